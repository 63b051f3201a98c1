/* SPDX-License-Identifier: MIT */
#include "broker/config/options.h"

#include <string.h>

#include "base/nearest.h"
#include "base/settings.h"
#include "base/text.h"
#include "broker/config/options_tables.h"

enum { QUOTED_MAX = 96, CHOICES_MAX = 256 };

struct parser {
	struct options *options;
	char *const *argv;
	int count; // words before "--", which are the broker's
	int at;
	const char *group;             // the first word of a two-word command, or NULL
	const struct command_row *row; // the command seen, or NULL
	bool is_help;                  // the words after "help" name a command
};

/* Compares the part of the word before "=". */
static bool option_is(const struct option *option, const char *word, size_t len)
{
	if (len == 2 && option->letter && word[1] == option->letter) {
		return true;
	}
	return strlen(option->name) == len && memcmp(option->name, word, len) == 0;
}

static bool fail_unknown_option(const char *word, size_t len, struct error *err)
{
	char name[QUOTED_MAX];
	text_format(name, sizeof(name), "%.*s", (int)len, word);
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
		"unknown option %s: acp-broker --help lists the options; the agent's own options "
		"go "
		"after --",
		name);
}

/* Takes the value after "=", or the next word. */
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
		parser->options->flags |= option->flag;
		if (option->value_name) {
			return take_value(parser, option, equals, err);
		}
		if (equals) {
			return error_set(err, ERROR_CONFIG, "%s takes no value", option->name);
		}
		if (option->command != COMMAND_RUN) {
			parser->options->command = option->command;
		}
		return true;
	}
	return fail_unknown_option(word, len, err);
}

/* ---- commands ---- */

/*
 * Writes "list, show or take": the words that may follow the group, or the first words without a
 * group.
 */
static void list_words(const char *group, char *text, size_t size)
{
	const char *names[ARRAY_LENGTH(command_table) + 1] = {NULL};
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		const char *word = command_row_word(&command_table[i], group);
		if (word && (count == 0 || strcmp(names[count - 1], word) != 0)) {
			names[count++] = word;
		}
	}
	setting_choices_text(text, size, names);
}

static bool fail_group(const char *group, const char *quoted, struct error *err)
{
	char choices[CHOICES_MAX];
	list_words(group, choices, sizeof(choices));
	return error_set(err, ERROR_CONFIG, "%s: expected %s%s%s", group, choices,
		quoted ? ", got " : "", quoted ? quoted : "");
}

static bool fail_bare_word(const struct parser *parser, const char *word, struct error *err)
{
	struct nearest nearest;
	nearest_init(&nearest, word);
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		const char *own = command_row_word(&command_table[i], parser->group);
		if (own) {
			nearest_offer(&nearest, own);
		}
	}
	char quoted[QUOTED_MAX];
	setting_quote(quoted, sizeof(quoted), word);
	if (nearest.best) {
		return error_set(err, ERROR_CONFIG, "unknown command %s: did you mean %s?", quoted,
			nearest.best);
	}
	if (parser->group) {
		return fail_group(parser->group, quoted, err);
	}
	char choices[CHOICES_MAX];
	list_words(NULL, choices, sizeof(choices));
	return error_set(err, ERROR_CONFIG,
		"unknown command %s: expected %s; an agent goes after --: acp-broker -- %s", quoted,
		choices, word);
}

static bool fail_words(const struct command_row *row, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%s: expected acp-broker %s%s", row->name, row->name,
		row->words);
}

static bool take_word(struct parser *parser, const char *word, struct error *err)
{
	struct options *options = parser->options;
	if (options->word_count == parser->row->most) {
		return fail_words(parser->row, err);
	}
	options->words[options->word_count++] = word;
	return true;
}

static bool take_command(
	struct parser *parser, const struct command_row *row, const char *word, struct error *err)
{
	if (parser->row) {
		return error_set(err, ERROR_CONFIG, "expected only one command, got %s and %s",
			parser->row->name, word);
	}
	if (row->group && !parser->group) {
		parser->group = row->group;
		return true;
	}
	parser->row = row;
	/* An option such as --help takes precedence. */
	if (parser->options->command == COMMAND_RUN) {
		parser->options->command = row->command;
	}
	return true;
}

static bool parse_word(struct parser *parser, const char *word, struct error *err)
{
	if (parser->row && parser->row->command == COMMAND_HELP && !parser->is_help) {
		parser->is_help = true;
		parser->row = NULL;
	}
	bool takes_words = parser->row && parser->row->most > 0 && !parser->is_help;
	if (parser->row && (parser->group || takes_words)) {
		return take_word(parser, word, err);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		const char *own = command_row_word(&command_table[i], parser->group);
		if (own && strcmp(own, word) == 0) {
			return take_command(parser, &command_table[i], word, err);
		}
	}
	return fail_bare_word(parser, word, err);
}

/* Refuses a flag that this command does not take, because the user meant something by it. */
static bool check_flags(const struct parser *parser, struct error *err)
{
	const struct command_row *row = parser->row;
	unsigned extra = parser->options->flags & ~(row ? row->flags : (unsigned)SESSION_FLAGS);
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		if (!(option_table[i].flag & extra)) {
			continue;
		}
		if (option_table[i].flag & SESSION_FLAGS) {
			return error_set(err, ERROR_CONFIG,
				"%s takes no %s: acp-broker help %s lists its options", row->name,
				option_table[i].name, row->name);
		}
		const char *names[ARRAY_LENGTH(command_table) + 1] = {NULL};
		size_t count = 0;
		for (size_t j = 0; j < ARRAY_LENGTH(command_table); j++) {
			if (command_table[j].flags & option_table[i].flag) {
				names[count++] = command_table[j].name;
			}
		}
		char choices[CHOICES_MAX];
		return error_set(err, ERROR_CONFIG, "%s goes only with %s", option_table[i].name,
			setting_choices_text(choices, sizeof(choices), names));
	}
	return true;
}

static bool check_command(const struct parser *parser, struct error *err)
{
	struct options *options = parser->options;
	if (options->command == COMMAND_HELP) {
		const struct command_row *row = parser->row;
		bool is_all = row && row->command == COMMAND_HELP && !parser->is_help;
		options->topic = row && !is_all ? row->name : parser->group;
	}
	if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION) {
		return true;
	}
	if (parser->group && !parser->row) {
		return fail_group(parser->group, NULL, err);
	}
	if (parser->row && options->word_count < parser->row->least) {
		return fail_words(parser->row, err);
	}
	return check_flags(parser, err);
}

/* The words after "--". */
static bool take_agent(struct parser *parser, struct error *err)
{
	if (parser->at == parser->count) {
		return error_set(err, ERROR_CONFIG,
			"--: expected the agent's command after --: acp-broker -- AGENT [ARG...]");
	}
	if (!parser->argv[parser->at][0]) {
		return error_set(err, ERROR_CONFIG,
			"--: expected the agent's command after --, got an empty word");
	}
	parser->options->agent_argv = (const char *const *)&parser->argv[parser->at];
	return !parser->options->agent ||
	       error_set(err, ERROR_CONFIG,
		       "--agent %s: name the agent here, or give its command after --, not "
		       "both",
		       parser->options->agent);
}

/* After "--" come the agent's words, or a command's words that may begin with a dash. */
static bool take_rest(struct parser *parser, struct error *err)
{
	if (!parser->group) {
		return take_agent(parser, err);
	}
	while (parser->at < parser->count) {
		if (!parse_word(parser, parser->argv[parser->at++], err)) {
			return false;
		}
	}
	return true;
}

/* "-" is stdin. "-1" is the newest checkpoint if the command takes words. */
static bool is_option(const struct parser *parser, const char *word)
{
	bool is_number = word[0] == '-' && word[1] >= '0' && word[1] <= '9';
	return word[0] == '-' && word[1] && !(parser->group && is_number);
}

bool options_parse(struct options *options, int argc, char *const *argv, struct error *err)
{
	*options = (struct options){.command = COMMAND_RUN};
	struct parser parser = {.options = options, .argv = argv, .count = argc, .at = 1};
	while (parser.at < parser.count) {
		const char *word = argv[parser.at++];
		if (strcmp(word, "--") == 0) {
			return take_rest(&parser, err) && check_command(&parser, err);
		}
		if (!(is_option(&parser, word) ? parse_option(&parser, word, err)
					       : parse_word(&parser, word, err))) {
			return false;
		}
	}
	return check_command(&parser, err);
}

bool options_is_for_store(const struct options *options)
{
	return options->command >= COMMAND_CHECKPOINTS_LIST &&
	       options->command <= COMMAND_COMMITS_TAKE;
}

bool options_is_for_records(const struct options *options)
{
	return options->command >= COMMAND_STATUS && options->command <= COMMAND_SESSIONS_PRUNE;
}

bool options_is_for_sessions(const struct options *options)
{
	return options->command >= COMMAND_SESSIONS_COLLECT &&
	       options->command <= COMMAND_SESSIONS_DISCARD;
}

bool options_is_for_sandboxes(const struct options *options)
{
	return options->command >= COMMAND_SANDBOXES_LIST &&
	       options->command <= COMMAND_SANDBOXES_DELETE;
}

bool options_is_for_disk(const struct options *options)
{
	return options->command == COMMAND_DU || options->command == COMMAND_PRUNE;
}

bool options_is_for_policy(const struct options *options)
{
	return options->command >= COMMAND_POLICY_EXPLAIN &&
	       options->command <= COMMAND_POLICY_FORGET;
}

bool options_has_agent(const struct options *options)
{
	return options->command != COMMAND_TEST_PROVIDER && options->command != COMMAND_HEIR &&
	       options->command != COMMAND_AGENTS && options->command != COMMAND_INIT &&
	       !options_is_for_policy(options) && !options_is_for_store(options) &&
	       !options_is_for_records(options) && !options_is_for_sessions(options) &&
	       !options_is_for_sandboxes(options) && !options_is_for_disk(options);
}
