/* SPDX-License-Identifier: MIT */
#include "broker/config/options.h"
#include "tests/support/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS_MAX = 16 };

/* A command line, its words separated by one blank. */
struct line {
	char text[256];
	char *argv[WORDS_MAX];
	int argc;
};

static bool parse(struct options *options, const char *text, struct line *line, struct error *err)
{
	snprintf(line->text, sizeof(line->text), "%s", text);
	line->argv[0] = line->text;
	line->argc = 1;
	for (char *at = line->text; *at; at++) {
		if (*at == ' ') {
			*at = '\0';
			line->argv[line->argc++] = at + 1;
		}
	}
	line->argv[line->argc] = NULL;
	return options_parse(options, line->argc, line->argv, err);
}

static void assert_words(const char *const *words, const char *expected)
{
	char joined[256] = "";
	size_t used = 0;
	for (; words && *words; words++) {
		used += (size_t)snprintf(
			joined + used, sizeof(joined) - used, "%s%s", used ? " " : "", *words);
	}
	assert_string_equal(joined, expected);
}

static void test_no_words_run_the_configured_agent(void **state)
{
	struct options options;
	struct error err;
	struct line line;
	assert_true(parse(&options, "acp-broker", &line, &err));
	assert_int_equal(options.command, COMMAND_RUN);
	assert_null(options.profile);
	assert_null(options.agent_argv);
}

static void test_every_option_is_read_in_both_spellings(void **state)
{
	static const char *const lines[] = {
		"acp-broker --profile p --workspace w --config c --trace t --log-level debug "
		"--toolhost auto --log-format json",
		"acp-broker --profile=p --workspace=w --config=c --trace=t --log-level=debug "
		"--toolhost=auto --log-format=json",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		struct options options;
		struct error err;
		struct line line;
		assert_true(parse(&options, lines[i], &line, &err));
		assert_string_equal(options.profile, "p");
		assert_string_equal(options.workspace, "w");
		assert_string_equal(options.config, "c");
		assert_string_equal(options.trace, "t");
		assert_string_equal(options.log_level, "debug");
		assert_string_equal(options.log_format, "json");
		assert_string_equal(options.toolhost, "auto");
	}
}

static void test_a_value_may_hold_an_equals_sign(void **state)
{
	struct options options;
	struct error err;
	struct line line;
	assert_true(parse(&options, "acp-broker --profile=a=b", &line, &err));
	assert_string_equal(options.profile, "a=b");
	assert_true(parse(&options, "acp-broker --profile=--odd", &line, &err));
	assert_string_equal(options.profile, "--odd");
}

static void test_the_last_of_two_values_wins(void **state)
{
	struct options options;
	struct error err;
	struct line line;
	assert_true(parse(&options, "acp-broker --profile a --profile b", &line, &err));
	assert_string_equal(options.profile, "b");
}

static void test_words_after_the_dashes_are_the_agents_alone(void **state)
{
	struct options options;
	struct error err;
	struct line line;
	assert_true(parse(
		&options, "acp-broker --profile p -- agent --profile q -- check", &line, &err));
	assert_string_equal(options.profile, "p");
	assert_int_equal(options.command, COMMAND_RUN);
	assert_words(options.agent_argv, "agent --profile q -- check");
	assert_true(parse(&options, "acp-broker exec - -- agent -", &line, &err));
	assert_int_equal(options.word_count, 1);
	assert_words(options.agent_argv, "agent -");
}

static void test_commands_are_words(void **state)
{
	static const struct {
		const char *line;
		enum command command;
	} cases[] = {
		{"acp-broker check", COMMAND_CHECK},
		{"acp-broker check --profile p -- agent", COMMAND_CHECK},
		{"acp-broker --profile p check", COMMAND_CHECK},
		{"acp-broker help", COMMAND_HELP},
		{"acp-broker --help", COMMAND_HELP},
		{"acp-broker check --help", COMMAND_HELP},
		{"acp-broker --help check", COMMAND_HELP},
		{"acp-broker version", COMMAND_VERSION},
		{"acp-broker --version", COMMAND_VERSION},
		{"acp-broker -h", COMMAND_HELP},
		{"acp-broker -V", COMMAND_VERSION},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct options options;
		struct error err;
		struct line line;
		assert_true(parse(&options, cases[i].line, &line, &err));
		assert_int_equal(options.command, cases[i].command);
	}
}

static void test_commands_of_two_words_take_words_and_flags(void **state)
{
	static const struct {
		const char *line;
		enum command command;
		unsigned flags;
		const char *words;
	} cases[] = {
		{"acp-broker checkpoints list", COMMAND_CHECKPOINTS_LIST, 0, ""},
		{"acp-broker checkpoints list --json", COMMAND_CHECKPOINTS_LIST, OPTION_JSON, ""},
		{"acp-broker --json checkpoints list", COMMAND_CHECKPOINTS_LIST, OPTION_JSON, ""},
		{"acp-broker checkpoints --workspace w list", COMMAND_CHECKPOINTS_LIST,
			OPTION_WORKSPACE, ""},
		{"acp-broker checkpoints show 3", COMMAND_CHECKPOINTS_SHOW, 0, "3"},
		{"acp-broker checkpoints show -1 --stat", COMMAND_CHECKPOINTS_SHOW, OPTION_STAT,
			"-1"},
		{"acp-broker checkpoints diff --stat 3 -2", COMMAND_CHECKPOINTS_DIFF, OPTION_STAT,
			"3 -2"},
		{"acp-broker checkpoints diff 3", COMMAND_CHECKPOINTS_DIFF, 0, "3"},
		{"acp-broker checkpoints rollback 3", COMMAND_CHECKPOINTS_ROLLBACK, 0, "3"},
		{"acp-broker checkpoints restore 3 a b", COMMAND_CHECKPOINTS_RESTORE, 0, "3 a b"},
		{"acp-broker checkpoints restore 3 -- --a -b", COMMAND_CHECKPOINTS_RESTORE, 0,
			"3 --a -b"},
		{"acp-broker checkpoints undelete 3", COMMAND_CHECKPOINTS_UNDELETE, 0, "3"},
		{"acp-broker conflicts list", COMMAND_CONFLICTS_LIST, 0, ""},
		{"acp-broker conflicts show a --local", COMMAND_CONFLICTS_SHOW, OPTION_LOCAL, "a"},
		{"acp-broker conflicts show --runtime a", COMMAND_CONFLICTS_SHOW, OPTION_RUNTIME,
			"a"},
		{"acp-broker conflicts take a local", COMMAND_CONFLICTS_TAKE, 0, "a local"},
		{"acp-broker commits list --json", COMMAND_COMMITS_LIST, OPTION_JSON, ""},
		{"acp-broker commits take", COMMAND_COMMITS_TAKE, 0, ""},
		{"acp-broker commits take fix/it", COMMAND_COMMITS_TAKE, 0, "fix/it"},
		{"acp-broker commits take --undo", COMMAND_COMMITS_TAKE, OPTION_UNDO, ""},
		{"acp-broker status", COMMAND_STATUS, 0, ""},
		{"acp-broker status --json --watch", COMMAND_STATUS, OPTION_JSON | OPTION_WATCH,
			""},
		{"acp-broker sessions list --json", COMMAND_SESSIONS_LIST, OPTION_JSON, ""},
		{"acp-broker sessions collect", COMMAND_SESSIONS_COLLECT, 0, ""},
		{"acp-broker sessions collect a", COMMAND_SESSIONS_COLLECT, 0, "a"},
		{"acp-broker sessions collect a --into d", COMMAND_SESSIONS_COLLECT, OPTION_INTO,
			"a"},
		{"acp-broker sessions discard a", COMMAND_SESSIONS_DISCARD, 0, "a"},
		{"acp-broker sessions prune 1h", COMMAND_SESSIONS_PRUNE, 0, "1h"},
		{"acp-broker sandboxes list --json", COMMAND_SANDBOXES_LIST, OPTION_JSON, ""},
		{"acp-broker sandboxes stop a", COMMAND_SANDBOXES_STOP, 0, "a"},
		{"acp-broker sandboxes delete a --discard", COMMAND_SANDBOXES_DELETE,
			OPTION_DISCARD, "a"},
		{"acp-broker policy explain terminal -- rm -rf x", COMMAND_POLICY_EXPLAIN, 0,
			"terminal rm -rf x"},
		{"acp-broker policy list --json", COMMAND_POLICY_LIST, OPTION_JSON, ""},
		{"acp-broker policy forget a.example:443", COMMAND_POLICY_FORGET, 0,
			"a.example:443"},
		{"acp-broker du --json", COMMAND_DU, OPTION_JSON, ""},
		{"acp-broker chat", COMMAND_CHAT, 0, ""},
		{"acp-broker chat --resume", COMMAND_CHAT, OPTION_RESUME, ""},
		{"acp-broker chat --resume s-1", COMMAND_CHAT, OPTION_RESUME, "s-1"},
		{"acp-broker chat --confine --approve reads", COMMAND_CHAT,
			OPTION_CONFINE | OPTION_APPROVE, ""},
		{"acp-broker exec hello", COMMAND_EXEC, 0, "hello"},
		{"acp-broker exec --confine check", COMMAND_EXEC, OPTION_CONFINE, "check"},
		{"acp-broker exec --approve reads check", COMMAND_EXEC, OPTION_APPROVE, "check"},
		{"acp-broker exec - --format=json", COMMAND_EXEC, OPTION_FORMAT, "-"},
		{"acp-broker prune --older 30d --dry-run", COMMAND_PRUNE,
			OPTION_OLDER | OPTION_DRY_RUN, ""},
		{"acp-broker prune --max-size=20g", COMMAND_PRUNE, OPTION_MAX_SIZE, ""},
		{"acp-broker checkpoints --help", COMMAND_HELP, 0, ""},
		{"acp-broker checkpoints show --help", COMMAND_HELP, 0, ""},
		{"acp-broker --help --stat checkpoints list", COMMAND_HELP, OPTION_STAT, ""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct options options;
		struct error err;
		struct line line;
		if (!parse(&options, cases[i].line, &line, &err)) {
			fail_msg("%s: %s", cases[i].line, err.text);
		}
		assert_int_equal(options.command, cases[i].command);
		assert_int_equal(options.flags, cases[i].flags);
		assert_null(options.agent_argv);
		options.words[options.word_count] = NULL;
		assert_words(options.words, cases[i].words);
	}
}

static void test_help_is_asked_for_all_or_for_one_command(void **state)
{
	static const struct {
		const char *line;
		const char *topic;
	} cases[] = {
		{"acp-broker help", NULL},
		{"acp-broker --help", NULL},
		{"acp-broker -h --profile p", NULL},
		{"acp-broker help check", "check"},
		{"acp-broker check -h", "check"},
		{"acp-broker -h check", "check"},
		{"acp-broker help help", "help"},
		{"acp-broker help checkpoints", "checkpoints"},
		{"acp-broker help exec", "exec"},
		{"acp-broker exec x -h", "exec"},
		{"acp-broker checkpoints --help", "checkpoints"},
		{"acp-broker help checkpoints show", "checkpoints show"},
		{"acp-broker checkpoints show 3 -h", "checkpoints show"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct options options;
		struct error err;
		struct line line;
		assert_true(parse(&options, cases[i].line, &line, &err));
		assert_int_equal(options.command, COMMAND_HELP);
		if (cases[i].topic) {
			assert_non_null(options.topic);
			assert_string_equal(options.topic, cases[i].topic);
		} else {
			assert_null(options.topic);
		}
	}
}

static void test_commands_on_a_store_run_no_agent(void **state)
{
	struct options options;
	struct error err;
	struct line line;
	assert_true(parse(&options, "acp-broker checkpoints list", &line, &err));
	assert_true(options_is_for_store(&options));
	assert_true(parse(&options, "acp-broker conflicts take a local", &line, &err));
	assert_true(options_is_for_store(&options));
	assert_true(parse(&options, "acp-broker commits list", &line, &err));
	assert_true(options_is_for_store(&options));
	assert_true(parse(&options, "acp-broker commits take", &line, &err));
	assert_true(options_is_for_store(&options));
	static const char *const others[] = {"acp-broker", "acp-broker check", "acp-broker help",
		"acp-broker version", "acp-broker checkpoints --help"};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_true(parse(&options, others[i], &line, &err));
		assert_false(options_is_for_store(&options));
	}
}

static void test_as_many_words_as_fit_are_taken(void **state)
{
	static struct options options;
	static const char *argv[OPTIONS_WORDS_MAX + 5] = {
		"acp-broker", "checkpoints", "restore", "1"};
	struct error err;
	for (size_t i = 4; i < OPTIONS_WORDS_MAX + 4; i++) {
		argv[i] = "path";
	}
	assert_true(options_parse(&options, OPTIONS_WORDS_MAX + 3, (char *const *)argv, &err));
	assert_int_equal(options.word_count, OPTIONS_WORDS_MAX);
	assert_false(options_parse(&options, OPTIONS_WORDS_MAX + 4, (char *const *)argv, &err));
	assert_int_equal(err.code, ERROR_CONFIG);
}

static void test_mistakes_say_what_was_expected(void **state)
{
	static const struct {
		const char *line;
		const char *mistake;
	} cases[] = {
		{"acp-broker --profile", "--profile: expected --profile NAME"},
		{"acp-broker --profile=", "--profile: expected --profile NAME"},
		{"acp-broker --profile --trace t", "--profile: expected --profile NAME"},
		{"acp-broker --config -- agent", "--config: expected --config FILE"},
		{"acp-broker --help=yes", "--help takes no value"},
		{"acp-broker --profil x", "unknown option --profil: did you mean --profile?"},
		{"acp-broker --profle=x", "unknown option --profle: did you mean --profile?"},
		{"acp-broker --nonsense",
			"unknown option --nonsense | acp-broker --help | after --"},
		{"acp-broker sessions list --profile p",
			"sessions list | --profile | acp-broker help sessions list"},
		{"acp-broker du --workspace w", "du | --workspace | acp-broker help du"},
		{"acp-broker checkpoints list --trace t", "checkpoints list | --trace"},
		{"acp-broker help prnue", "unknown command \"prnue\": did you mean prune?"},
		{"acp-broker help foo", "unknown command \"foo\" | checkpoints"},
		{"acp-broker -p x", "unknown option -p | acp-broker --help | after --"},
		{"acp-broker chekc", "unknown command \"chekc\": did you mean check?"},
		{"acp-broker claude-agent-acp",
			"unknown command \"claude-agent-acp\" | check | exec | checkpoints | "
			"conflicts | "
			"commits | sessions | sandboxes | du | prune | help | version | acp-broker "
			"-- "
			"claude-agent-acp"},
		{"acp-broker check version", "one command | check | version"},
		{"acp-broker checkpoints", "checkpoints | list | show | diff | rollback | restore"},
		{"acp-broker conflicts drop", "conflicts | list | show | take | \"drop\""},
		{"acp-broker commits", "commits: expected list or take"},
		{"acp-broker commits list --undo", "--undo | commits take"},
		{"acp-broker commits take a b", "commits take | acp-broker commits take [BRANCH]"},
		{"acp-broker checkpoints lst", "unknown command \"lst\": did you mean list?"},
		{"acp-broker checkpionts list",
			"unknown command \"checkpionts\": did you mean checkpoints?"},
		{"acp-broker check conflicts", "one command | check | conflicts"},
		{"acp-broker checkpoints list 3", "checkpoints list | acp-broker checkpoints list"},
		{"acp-broker checkpoints show", "checkpoints show | acp-broker checkpoints show N"},
		{"acp-broker checkpoints diff 1 2 3",
			"checkpoints diff | acp-broker checkpoints diff A [B]"},
		{"acp-broker checkpoints restore 3",
			"checkpoints restore | acp-broker checkpoints restore N PATH..."},
		{"acp-broker conflicts take a",
			"conflicts take | acp-broker conflicts take ID|PATH local|runtime"},
		{"acp-broker checkpoints list --stat",
			"--stat | checkpoints show | checkpoints diff"},
		{"acp-broker --json -- agent",
			"--json | check | test-provider | policy explain | policy list | "
			"checkpoints list | conflicts list | commits list | sessions list | "
			"sessions show | sandboxes list | du"},
		{"acp-broker exec", "exec: expected acp-broker exec PROMPT|-"},
		{"acp-broker exec a b", "exec: expected acp-broker exec PROMPT|-"},
		{"acp-broker exec -x", "unknown option -x | after --"},
		{"acp-broker exec x --json", "--json | check"},
		{"acp-broker chat --place here", "--place | init"},
		{"acp-broker init --confine", "init | --confine | acp-broker help init"},
		{"acp-broker init claude", "unknown command \"claude\""},
		{"acp-broker check --format json", "--format | exec"},
		{"acp-broker -", "unknown command \"-\""},
		{"acp-broker du --older 1d", "--older | prune"},
		{"acp-broker prune 3", "unknown command \"3\""},
		{"acp-broker sandboxes stop x --discard", "--discard | sandboxes delete"},
		{"acp-broker sandboxes delete",
			"sandboxes delete | acp-broker sandboxes delete NAME"},
		{"acp-broker sandboxes", "sandboxes | list | stop | delete"},
		{"acp-broker checkpoints list --json=1", "--json takes no value"},
		{"acp-broker check -1", "unknown option -1 | acp-broker --help | after --"},
		{"acp-broker --", "--: expected | acp-broker -- AGENT [ARG...]"},
		{"acp-broker -- ", "--: expected | empty word"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct options options;
		struct error err = {0};
		struct line line;
		assert_false(parse(&options, cases[i].line, &line, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
		assert_names(err.text, cases[i].mistake);
	}
}

static void test_an_empty_argv_is_survived(void **state)
{
	struct options options;
	struct error err;
	char *argv[] = {NULL};
	assert_true(options_parse(&options, 0, argv, &err));
	assert_int_equal(options.command, COMMAND_RUN);
}

static void test_tables_are_readable_to_their_end(void **state)
{
	size_t options = 0;
	while (options_option_name(options)) {
		options++;
	}
	size_t commands = 0;
	while (options_command_name(commands)) {
		commands++;
	}
	assert_int_equal(options, 30);
	assert_int_equal(commands, 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_words_run_the_configured_agent),
		cmocka_unit_test(test_every_option_is_read_in_both_spellings),
		cmocka_unit_test(test_a_value_may_hold_an_equals_sign),
		cmocka_unit_test(test_the_last_of_two_values_wins),
		cmocka_unit_test(test_words_after_the_dashes_are_the_agents_alone),
		cmocka_unit_test(test_commands_are_words),
		cmocka_unit_test(test_commands_of_two_words_take_words_and_flags),
		cmocka_unit_test(test_help_is_asked_for_all_or_for_one_command),
		cmocka_unit_test(test_commands_on_a_store_run_no_agent),
		cmocka_unit_test(test_as_many_words_as_fit_are_taken),
		cmocka_unit_test(test_mistakes_say_what_was_expected),
		cmocka_unit_test(test_an_empty_argv_is_survived),
		cmocka_unit_test(test_tables_are_readable_to_their_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
