/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_OPTIONS_TABLES_H
#define BROKER_CONFIG_OPTIONS_TABLES_H

#include "broker/config/options.h"

/* What there is on the command line; options.c reads it by these. */
enum { OPTION_TABLE_LENGTH = 25, COMMAND_TABLE_LENGTH = 33 };

struct option {
	const char *name;       // with its dashes
	char letter;            // of its short form, "-h"; 0: it has none
	const char *value_name; // NULL: takes none
	size_t offset;          // of its field in struct options, with a value
	enum command command;   // without one, where it stands for a command
	unsigned flag;          // where it goes with some commands alone; 0: with all
	const char *help;
};

struct command_row {
	const char *group; // the first word of a name of two; NULL: it has one
	const char *name;
	const char *words; // what follows it, for people
	size_t least, most;
	enum command command;
	unsigned flags; // that go with it
	const char *help;
};

/* What goes with a session, which is run without the word of a command. */
enum {
	SESSION_FLAGS = OPTION_PROFILE | OPTION_WORKSPACE | OPTION_TOOLHOST | OPTION_TRACE |
	                OPTION_APPROVE | OPTION_CONFINE | OPTION_AGENT
};

extern const struct option option_table[OPTION_TABLE_LENGTH];
extern const struct command_row command_table[COMMAND_TABLE_LENGTH]; // groups stand together

/*
 * The word of a row that may come next: its second word after its group, its first one without a
 * group. NULL after the group of others.
 */
const char *command_row_word(const struct command_row *row, const char *group);

#endif
