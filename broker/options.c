/* SPDX-License-Identifier: MIT */
#include "broker/options.h"

#include <stdio.h>
#include <string.h>

#include "base/settings.h"
#include "broker/nearest.h"

enum { QUOTED_MAX = 96 };

struct option {
	const char *name;       // with its dashes
	const char *value_name; // NULL: takes none
	size_t offset;          // of its field in struct options, with a value
	enum command command;   // without one
	const char *help;
};

static const struct option option_table[] = {
	{"--profile", "NAME", offsetof(struct options, profile), COMMAND_RUN,
		"use [profile \"NAME\"] of the configuration"},
	{"--workspace", "DIR", offsetof(struct options, workspace), COMMAND_RUN,
		"work in DIR instead of the directory the editor names"},
	{"--config", "FILE", offsetof(struct options, config), COMMAND_RUN,
		"read FILE instead of $XDG_CONFIG_HOME/acp-broker/config"},
	{"--toolhost", "MODE", offsetof(struct options, toolhost), COMMAND_RUN,
		"who serves files and terminals: auto, editor or broker"},
	{"--trace", "FILE", offsetof(struct options, trace), COMMAND_RUN,
		"write every message of every hop to FILE"},
	{"--log-level", "LEVEL", offsetof(struct options, log_level), COMMAND_RUN,
		"error, warning, info or debug"},
	{"--help", NULL, 0, COMMAND_HELP, "print this and exit"},
	{"--version", NULL, 0, COMMAND_VERSION, "print the version and exit"},
};

static const struct {
	const char *name;
	enum command command;
	const char *help;
} command_table[] = {
	{"check", COMMAND_CHECK, "print what the configuration means, run nothing"},
	{"help", COMMAND_HELP, "print this and exit"},
	{"version", COMMAND_VERSION, "print the version and exit"},
};

struct parser {
	struct options *options;
	char *const *argv;
	int count; // words that may be the broker's
	int at;
	const char *command_word; // the command seen, or NULL
};

/* Compares the part of a word before its "=". */
static bool option_is(const struct option *option, const char *word, size_t len)
{
	return strlen(option->name) == len && memcmp(option->name, word, len) == 0;
}

static bool fail_unknown_option(const char *word, size_t len, struct error *err)
{
	char name[QUOTED_MAX];
	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	struct nearest nearest;
	nearest_init(&nearest, name);
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		nearest_offer(&nearest, option_table[i].name);
	}
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG, "unknown option %s: did you mean %s?", name,
			nearest.best);
	}
	return error_set(err, ERROR_CONFIG,
		"unknown option %s: acp-broker --help lists the options; an agent's own words go "
		"after --",
		name);
}

/* Takes the value behind "=" or the next word. */
static bool take_value(
	struct parser *parser, const struct option *option, const char *equals, struct error *err)
{
	const char *value = equals ? equals + 1 : NULL;
	if (!value && parser->at < parser->count &&
		strncmp(parser->argv[parser->at], "--", 2) != 0) {
		value = parser->argv[parser->at++];
	}
	if (!value || !value[0]) {
		return error_set(err, ERROR_CONFIG, "%s: expected %s %s", option->name,
			option->name, option->value_name);
	}
	memcpy((char *)parser->options + option->offset, &value, sizeof(value));
	return true;
}

static bool parse_option(struct parser *parser, const char *word, struct error *err)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		const struct option *option = &option_table[i];
		if (!option_is(option, word, len)) {
			continue;
		}
		if (option->value_name) {
			return take_value(parser, option, equals, err);
		}
		if (equals) {
			return error_set(err, ERROR_CONFIG, "%s takes no value", option->name);
		}
		parser->options->command = option->command;
		return true;
	}
	return fail_unknown_option(word, len, err);
}

static bool fail_bare_word(const char *word, struct error *err)
{
	struct nearest nearest;
	nearest_init(&nearest, word);
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		nearest_offer(&nearest, command_table[i].name);
	}
	char quoted[QUOTED_MAX];
	setting_quote(quoted, sizeof(quoted), word);
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG, "unknown command %s: did you mean %s?", quoted,
			nearest.best);
	}
	return error_set(err, ERROR_CONFIG,
		"unknown command %s: expected check, help or version; an agent goes after --: "
		"acp-broker -- %.200s",
		quoted, word);
}

static bool parse_command(struct parser *parser, const char *word, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		if (strcmp(command_table[i].name, word) != 0) {
			continue;
		}
		if (parser->command_word) {
			return error_set(err, ERROR_CONFIG, "expected one command, got %s and %s",
				parser->command_word, word);
		}
		parser->command_word = word;
		/* An option such as --help has the last word. */
		if (parser->options->command == COMMAND_RUN) {
			parser->options->command = command_table[i].command;
		}
		return true;
	}
	return fail_bare_word(word, err);
}

/* The words after "--"; those of a login follow them at once in argv. */
static bool take_agent(struct parser *parser, struct error *err)
{
	if (parser->at == parser->count) {
		return error_set(err, ERROR_CONFIG,
			"--: expected the agent's command after it: acp-broker -- AGENT [ARG...]");
	}
	if (!parser->argv[parser->at][0]) {
		return error_set(err, ERROR_CONFIG,
			"--: expected the agent's command after it, got an empty word");
	}
	parser->options->agent_argv = (const char *const *)&parser->argv[parser->at];
	return true;
}

bool options_parse(
	struct options *options, int argc, char *const *argv, int login_words, struct error *err)
{
	*options = (struct options){.command = COMMAND_RUN};
	if (login_words < 0 || login_words > (argc > 0 ? argc - 1 : 0)) {
		return error_set(err, ERROR_CONFIG,
			"terminal login: expected %d more words of the agent's on the command line",
			login_words);
	}
	struct parser parser = {
		.options = options, .argv = argv, .count = argc - login_words, .at = 1};
	while (parser.at < parser.count) {
		const char *word = argv[parser.at++];
		if (strcmp(word, "--") == 0) {
			return take_agent(&parser, err);
		}
		bool is_option = word[0] == '-';
		if (!(is_option ? parse_option(&parser, word, err)
				: parse_command(&parser, word, err))) {
			return false;
		}
	}
	if (login_words > 0) {
		options->extra_argv = (const char *const *)&argv[parser.count];
	}
	return true;
}

void options_print_help(void)
{
	puts("Usage: acp-broker [OPTION...] [COMMAND] [-- AGENT [ARG...]]\n\n"
	     "Stands between an editor and an ACP agent: launches the agent, carries the\n"
	     "session over stdin and stdout, and leaves nothing behind.\n\nOptions:");
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		const struct option *option = &option_table[i];
		char left[32];
		snprintf(left, sizeof(left), "%s%s%s", option->name, option->value_name ? " " : "",
			option->value_name ? option->value_name : "");
		printf("  %-20s %s\n", left, option->help);
	}
	puts("\nCommands:");
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		printf("  %-20s %s\n", command_table[i].name, command_table[i].help);
	}
	puts("\nacp-broker(1) says more; acp-broker.config(5) describes the configuration.");
}

void options_print_version(void)
{
	puts("acp-broker " ACP_BROKER_VERSION);
}

const char *options_option_name(size_t index)
{
	return index < ARRAY_LENGTH(option_table) ? option_table[index].name : NULL;
}

const char *options_command_name(size_t index)
{
	return index < ARRAY_LENGTH(command_table) ? command_table[index].name : NULL;
}
