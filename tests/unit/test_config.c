/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "base/environment.h"
#include "base/words.h"
#include "tests/unit/config_fixture.h"

/* ---- without a file ---- */

static void test_an_agent_on_the_command_line_needs_no_file(void **state)
{
	struct fixture *fixture = *state;
	assert_loads(fixture, &with_agent);
	const struct config *config = &fixture->config;
	assert_string_equal(config->file, fixture->file);
	assert_false(config->file_was_read);
	assert_int_equal(config->log_level, LOG_LEVEL_INFO);
	assert_int_equal(config->log_format, LOG_FORMAT_TEXT);
	assert_null(config->trace);
	assert_null(config->workspace);
	assert_string_equal(config->profile.name, "local");
	assert_string_equal(config->profile.backend, "local");
	assert_int_equal(config->profile.toolhost, TOOLHOST_AUTO);
	assert_string_equal(config->profile.agent_name, "some-agent");
	assert_words(config->profile.agent_argv, "/opt/bin/some-agent|--acp|");
	assert_words(config->profile.agent_env, "");
	assert_words(config->profile.secret_env, "");
	assert_string_equal(policy_line(config->profile.policy, 0), "mode = pass");
	config_finish(&fixture->config);
}

static void test_limits_have_defaults(void **state)
{
	struct fixture *fixture = *state;
	assert_loads(fixture, &with_agent);
	const struct profile *profile = &fixture->config.profile;
	assert_int_equal(profile->max_message, 64 << 20);
	assert_int_equal(profile->max_queue, 8 << 20);
	assert_int_equal(profile->max_requests, 1024);
	assert_int_equal(profile->max_sessions, 1024);
	assert_int_equal(profile->start_timeout_ms, 120000);
	assert_int_equal(profile->prepare_timeout_ms, 120000);
	assert_int_equal(profile->stop_eof_ms, 3000);
	assert_int_equal(profile->stop_term_ms, 5000);
	assert_int_equal(profile->stop_kill_ms, 2000);
	assert_int_equal(profile->drain_timeout_ms, 2000);
	assert_int_equal(profile->idle_timeout_ms, 0);
	assert_int_equal(profile->session_timeout_ms, 5 * 60 * 1000);
	assert_int_equal(profile->authenticate_timeout_ms, 30 * 60 * 1000);
	assert_int_equal(profile->permission_timeout_ms, 0);
	config_finish(&fixture->config);
}

static void test_the_file_is_where_xdg_says(void **state)
{
	struct fixture *fixture = *state;
	fixture->environment[3] = "XDG_CONFIG_HOME=/nowhere/at/all";
	assert_loads(fixture, &with_agent);
	assert_string_equal(fixture->config.file, "/nowhere/at/all/acp-broker/config");
	config_finish(&fixture->config);
	fixture->environment[3] = "XDG_CONFIG_HOME=relative";
	assert_loads(fixture, &with_agent);
	assert_string_equal(fixture->config.file, fixture->file);
	config_finish(&fixture->config);
	fixture->environment[3] = "XDG_CONFIG_HOME=";
	assert_loads(fixture, &with_agent);
	assert_string_equal(fixture->config.file, fixture->file);
	config_finish(&fixture->config);
}

static void test_without_a_home_only_the_option_names_a_file(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, "[broker]\n\ttrace = t\n");
	fixture->environment[1] = "HOME=";
	assert_loads(fixture, &with_agent);
	assert_null(fixture->config.file);
	config_finish(&fixture->config);
	struct options options = with_agent;
	options.config = fixture->file;
	assert_loads(fixture, &options);
	assert_string_equal(fixture->config.trace, "t");
	config_finish(&fixture->config);
	options.config = NULL;
	options.profile = "devbox";
	assert_mistake(
		fixture, &options, "--profile | [profile \"devbox\"] | HOME is not set | --config");
}

/* ---- what a file says ---- */

static const char whole_file[] = "[broker]\n"
				 "\tprofile = DevBox   ; a comment\n"
				 "\tlog-level = debug\n"
				 "\tlog-format = json\n"
				 "\ttrace = \"/tmp/a b\"\n"
				 "[agent \"Claude\"]\n"
				 "\tcommand = claude-agent-acp\n"
				 "\targ = --flag\n"
				 "\targ = \"with; semicolon # and \\\"quotes\\\"\"\n"
				 "\targ =\n"
				 "\tenv = A=1\n"
				 "[profile \"DevBox\"]\n"
				 "\tBackend = fake\n"
				 "\timage = debian:12\n"
				 "\tkeep\n"
				 "\tagent = Claude\n"
				 "\ttoolhost = broker\n"
				 "\tenv = B=2 3\n"
				 "\tsecret-env = API_KEY\n"
				 "\tmax-message = 1m\n"
				 "\tmax-message = 2m\n"
				 "\tmax-sessions = 3\n"
				 "\tidle-timeout = 10m\n"
				 "\tstop-eof-timeout = 0\n"
				 "[policy \"DevBox\"]\n"
				 "\tmode = ask-all\n"
				 "\tdeny = write **/.git/**\n"
				 "\tallow = read\n"
				 "[profile \"DevBox\"]\n"
				 "\tdrain-timeout = 100ms\n";

static void test_a_whole_file_is_understood(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, whole_file);
	assert_loads(fixture, &no_options);
	const struct config *config = &fixture->config;
	assert_true(config->file_was_read);
	assert_int_equal(config->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(config->log_format, LOG_FORMAT_JSON);
	assert_string_equal(config->trace, "/tmp/a b");
	const struct profile *profile = &config->profile;
	assert_string_equal(profile->name, "DevBox");
	assert_string_equal(profile->backend, "fake");
	assert_int_equal(profile->toolhost, TOOLHOST_BROKER);
	assert_string_equal(profile->agent_name, "Claude");
	assert_words(
		profile->agent_argv, "claude-agent-acp|--flag|with; semicolon # and \"quotes\"||");
	assert_words(profile->agent_env, "A=1|B=2 3|");
	assert_words(profile->secret_env, "API_KEY|");
	assert_int_equal(profile->max_message, 2 << 20);
	assert_int_equal(profile->max_sessions, 3);
	assert_int_equal(profile->idle_timeout_ms, 600000);
	assert_int_equal(profile->stop_eof_ms, 0);
	assert_int_equal(profile->drain_timeout_ms, 100);
	assert_string_equal(settings_get(&profile->settings, "image"), "debian:12");
	assert_string_equal(settings_get(&profile->settings, "keep"), "true");
	assert_string_equal(settings_find(&profile->settings, "image")->origin, fixture->file);
	assert_string_equal(policy_line(profile->policy, 0), "mode = ask-all");
	assert_string_equal(policy_line(profile->policy, 1), "deny = write **/.git/**");
	assert_string_equal(policy_line(profile->policy, 2), "allow = read");
	config_finish(&fixture->config);
}

static void test_the_command_line_wins(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, whole_file);
	struct options options = with_agent;
	options.profile = "local";
	options.log_level = "error";
	options.trace = "other";
	options.toolhost = "editor";
	assert_loads(fixture, &options);
	assert_string_equal(fixture->config.profile.name, "local");
	assert_int_equal(fixture->config.log_level, LOG_LEVEL_ERROR);
	assert_string_equal(fixture->config.trace, "other");
	assert_int_equal(fixture->config.profile.toolhost, TOOLHOST_EDITOR);
	assert_string_equal(settings_find(&fixture->config.profile.settings, "toolhost")->origin,
		"command line");
	assert_words(fixture->config.profile.agent_argv, "/opt/bin/some-agent|--acp|");
	config_finish(&fixture->config);
	options.profile = "DevBox";
	assert_loads(fixture, &options);
	assert_int_equal(fixture->config.profile.toolhost, TOOLHOST_EDITOR);
	/* An agent that is not used does not bring its environment. */
	assert_words(fixture->config.profile.agent_env, "B=2 3|");
	assert_words(fixture->config.profile.agent_argv, "/opt/bin/some-agent|--acp|");
	config_finish(&fixture->config);
}

/* The audit log is opened in the workspace, and the configuration before that. */
static void test_the_brokers_own_files_are_known(void **state)
{
	struct fixture *fixture = *state;
	char workspace[PATH_MAX], expected[PATH_MAX + 16];
	struct options options = with_agent;
	options.workspace = "/usr/lib";
	assert_non_null(realpath(options.workspace, workspace));
	snprintf(expected, sizeof(expected), "%s/audit.log", workspace);
	write_config(fixture, "[broker]\naudit = audit.log\n");
	assert_loads(fixture, &options);
	const char *const *files = (const char *const *)fixture->config.own_files;
	assert_true(words_contain(files, fixture->file));
	assert_true(words_contain(files, expected));
	config_finish(&fixture->config);
}

static void test_the_brokers_agent_serves_profiles_without_one(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture,
		"[broker]\nagent = a\n[agent \"a\"]\ncommand = x\n[agent \"b\"]\ncommand = y\n"
		"[profile \"local\"]\nmax-sessions = 2\n[profile \"p\"]\nagent = b\n");
	assert_loads(fixture, &no_options);
	assert_string_equal(fixture->config.profile.agent_name, "a");
	assert_int_equal(fixture->config.profile.max_sessions, 2);
	config_finish(&fixture->config);
	const struct options options = {.profile = "p"};
	assert_loads(fixture, &options);
	assert_string_equal(fixture->config.profile.agent_name, "b");
	config_finish(&fixture->config);
}

static void test_a_known_agent_needs_no_section(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, "[broker]\nagent = qwen\n[profile \"p\"]\nagent = gemini\n"
			      "[agent \"gemini\"]\ncommand = mine\n");
	assert_loads(fixture, &no_options);
	assert_string_equal(fixture->config.profile.agent_name, "qwen");
	assert_words(fixture->config.profile.agent_argv, "qwen|--acp|");
	config_finish(&fixture->config);
	struct options options = {.profile = "p"};
	assert_loads(fixture, &options);
	assert_words(fixture->config.profile.agent_argv, "mine|");
	config_finish(&fixture->config);
	options.agent = "claude";
	assert_loads(fixture, &options);
	assert_string_equal(fixture->config.profile.agent_name, "claude");
	assert_words(fixture->config.profile.agent_argv, "claude-agent-acp|");
	config_finish(&fixture->config);
}

static void test_a_policy_can_be_shared_by_name(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture,
		"[profile \"p\"]\npolicy = strict\n[profile \"q\"]\nmax-sessions = 1\n"
		"[policy \"strict\"]\nmode = deny-all\n[policy \"local\"]\nmode = ask-all\n");
	struct options options = with_agent;
	options.profile = "p";
	assert_loads(fixture, &options);
	assert_string_equal(policy_line(fixture->config.profile.policy, 0), "mode = deny-all");
	config_finish(&fixture->config);
	options.profile = "q";
	assert_loads(fixture, &options);
	assert_string_equal(policy_line(fixture->config.profile.policy, 0), "mode = pass");
	config_finish(&fixture->config);
	assert_loads(fixture, &with_agent);
	assert_string_equal(policy_line(fixture->config.profile.policy, 0), "mode = ask-all");
	config_finish(&fixture->config);
}

static void test_git_spellings_are_accepted(void **state)
{
	struct fixture *fixture = *state;
	static const char *const files[] = {
		"\xef\xbb\xbf[broker]\n\tagent = a\n[agent \"a\"]\n\tcommand = x\n",
		"[broker]\r\n\tagent = a\r\n[agent \"a\"]\r\n\tcommand = x\r\n",
		"# comment\n; comment [include]\n[BROKER] AGENT = a\n[Agent \"a\"] Command = x",
		"[broker]\nagent = \\\na\n[agent.a]\ncommand = x\n",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		write_config(fixture, files[i]);
		assert_loads(fixture, &no_options);
		assert_string_equal(fixture->config.profile.agent_name, "a");
		assert_words(fixture->config.profile.agent_argv, "x|");
		config_finish(&fixture->config);
	}
}

static void test_an_empty_file_is_an_empty_configuration(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, "");
	assert_loads(fixture, &with_agent);
	assert_true(fixture->config.file_was_read);
	config_finish(&fixture->config);
}

static void test_reading_leaves_no_descriptor_open(void **state)
{
	struct fixture *fixture = *state;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(before);
	write_config(fixture, whole_file);
	assert_loads(fixture, &no_options);
	config_finish(&fixture->config);
	write_config(fixture, "[bro");
	assert_false(load(fixture, &no_options));
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(after);
	assert_int_equal(after, before);
}

static void test_the_environment_is_searched_by_whole_names(void **state)
{
	static const char *const environment[] = {"PATHS=x", "PATH=y", "EMPTY=", "ODD", NULL};
	assert_string_equal(environment_get(environment, "PATH"), "y");
	assert_string_equal(environment_get(environment, "EMPTY"), "");
	assert_null(environment_get(environment, "PAT"));
	assert_null(environment_get(environment, "ODD"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_an_agent_on_the_command_line_needs_no_file),
		CONFIG_TEST(test_limits_have_defaults),
		CONFIG_TEST(test_the_file_is_where_xdg_says),
		CONFIG_TEST(test_without_a_home_only_the_option_names_a_file),
		CONFIG_TEST(test_a_whole_file_is_understood),
		CONFIG_TEST(test_the_command_line_wins),
		CONFIG_TEST(test_the_brokers_own_files_are_known),
		CONFIG_TEST(test_the_brokers_agent_serves_profiles_without_one),
		CONFIG_TEST(test_a_known_agent_needs_no_section),
		CONFIG_TEST(test_a_policy_can_be_shared_by_name),
		CONFIG_TEST(test_git_spellings_are_accepted),
		CONFIG_TEST(test_an_empty_file_is_an_empty_configuration),
		CONFIG_TEST(test_reading_leaves_no_descriptor_open),
		CONFIG_TEST(test_the_environment_is_searched_by_whole_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
