/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "broker/config/options_tables.h"

enum { OPTION_COLUMN = 23 };

/* The help of every option stands in the same column. */
static void print_option(const struct option *option)
{
	char left[40] = "    ";
	if (option->letter) {
		text_format(left, sizeof(left), "-%c, ", option->letter);
	}
	text_append(left, sizeof(left), "%s%s%s", option->name, option->value_name ? " " : "",
		option->value_name ? option->value_name : "");
	printf("  %-*s  %s\n", OPTION_COLUMN, left, option->help);
}

/* Prints a command's own options, then those of every command. */
static void print_options(unsigned flags)
{
	puts("\nOptions:");
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		if (option_table[i].flag & flags) {
			print_option(&option_table[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		if (!option_table[i].flag) {
			print_option(&option_table[i]);
		}
	}
}

static void print_command(const struct command_row *row)
{
	char left[64];
	text_format(left, sizeof(left), "%s%s", row->name, row->words);
	printf("  %-37s %s\n", left, row->help);
}

static void print_commands(const char *group)
{
	puts("\nCommands:");
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		const char *own = command_table[i].group;
		if (!group || (own && strcmp(own, group) == 0)) {
			print_command(&command_table[i]);
		}
	}
}

static const struct command_row *find_row(const char *topic)
{
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		if (strcmp(command_table[i].name, topic) == 0) {
			return &command_table[i];
		}
	}
	return NULL;
}

static void print_all(void)
{
	puts("Usage: acp-broker [OPTION...] [-- AGENT [ARG...]]\n"
	     "       acp-broker COMMAND [OPTION...] [WORD...]\n\n"
	     "Stands between an editor and an ACP agent: starts the agent, passes messages\n"
	     "over stdin and stdout, and leaves nothing behind at the end.");
	print_options(SESSION_FLAGS);
	print_commands(NULL);
	puts("\nacp-broker help COMMAND prints the options of a command.\n"
	     "acp-broker(1) says more; acp-broker.config(5) describes the configuration.");
}

void options_print_help(const char *topic)
{
	const struct command_row *row = topic ? find_row(topic) : NULL;
	if (!topic) {
		print_all();
	} else if (row) {
		bool has_agent = (row->flags & SESSION_FLAGS) == SESSION_FLAGS;
		printf("Usage: acp-broker %s [OPTION...]%s%s\n\n%c%s.\n", row->name, row->words,
			has_agent ? " [-- AGENT [ARG...]]" : "", row->help[0] - 'a' + 'A',
			row->help + 1);
		print_options(row->flags);
	} else {
		printf("Usage: acp-broker %s COMMAND [OPTION...] [WORD...]\n", topic);
		print_commands(topic);
		printf("\nacp-broker help %s COMMAND prints the options of a command.\n", topic);
	}
}

void options_print_version(void)
{
	puts("acp-broker " ACP_BROKER_VERSION);
}
