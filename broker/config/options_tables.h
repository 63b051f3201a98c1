/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_OPTIONS_TABLES_H
#define BROKER_CONFIG_OPTIONS_TABLES_H

#include "broker/config/options.h"

/* The options and commands of the command line. options.c reads argv by these tables. */
enum { OPTION_TABLE_LENGTH = 30, COMMAND_TABLE_LENGTH = 36 };

struct option {
	const char *name;       // with its dashes
	char letter;            // of its short form "-h"; 0: it has none
	const char *value_name; // NULL: takes no value
	size_t offset;          // of its field in struct options, if it takes a value
	enum command command;   // for an option without a value that stands for a command
	unsigned flag;          // set for an option that only some commands take; 0: all take it
	const char *help;
};

struct command_row {
	const char *group; // the first of two words; NULL: the name has one word
	const char *name;
	const char *words; // the words after the command, for the help text
	size_t least, most;
	enum command command;
	unsigned flags; // the options that it takes
	const char *help;
};

/* The options of a session. A session runs without a command word. */
enum {
	SESSION_FLAGS = OPTION_PROFILE | OPTION_WORKSPACE | OPTION_TOOLHOST | OPTION_TRACE |
	                OPTION_APPROVE | OPTION_CONFINE | OPTION_CONTAINER | OPTION_AGENT
};

extern const struct option option_table[OPTION_TABLE_LENGTH];
extern const struct command_row command_table[COMMAND_TABLE_LENGTH]; // a group's rows are adjacent

/*
 * The word of this row that may come next on the command line: after its group the second word,
 * without a group the first. NULL if the row belongs to another group.
 */
const char *command_row_word(const struct command_row *row, const char *group);

#endif
