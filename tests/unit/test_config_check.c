/* SPDX-License-Identifier: MIT */
#include "tests/unit/config_fixture.h"

/* ---- mistakes ---- */

static const struct {
	const char *text;
	const char *mistake;
} file_mistakes[] = {
	/* syntax */
	{"[broker]\nprofile = local\n[bro\n", "FILE:3: missing ']' in section header"},
	{"[broker]\ntrace = a\\qb\n", "FILE:2: unknown escape"},
	{"[broker]\n\ntrace = \"a\nb\"\n", "FILE:3: missing '\"' | value"},
	{"[profile \"p\n\"]\n", "FILE:1: missing '\"' in section header"},
	{"[broker]\nprofile local\n", "FILE:2: missing '=' after a key"},
	{"[broker]\n= local\n", "FILE:2: neither | section | setting"},
	{"profile = x\n", "FILE: profile | section | [broker]"},
	{"[broker]\nprofile\n", "FILE: broker.profile: expected a value: profile = …"},
	{"[broker]\nprofile =\n", "FILE: broker.profile | an empty one"},
	/* includes */
	{"[broker]\n[include]\npath = /x\n", "FILE:3 | [include]"},
	{"[INCLUDE]\npath = /x\n", "FILE:2 | [include]"},
	{"\n[includeIf \"gitdir:/\"]\npath = /x\n", "FILE:3 | [include]"},
	{"[agent \"y\"] [include] path = /x\n", "FILE:1 | [include]"},
	{"[agent \"y\"]\"] [include]\npath = /x\n", "FILE:1: neither | section | setting"},
	{"[include.x]\npath = /x\n", "FILE:2 | [include]"},
	/* sections */
	{"[brokr]\nprofile = x\n", "FILE | unknown section [brokr] | did you mean [broker]?"},
	{"[profiles \"x\"]\nbackend = local\n",
		"FILE | unknown section [profiles] | did you mean [profile]?"},
	{"[core]\nbare = true\n", "FILE | unknown section [core] | [broker] | [agent \"NAME\"] | "
				  "[profile \"NAME\"] | [policy \"NAME\"] | [mcp \"NAME\"]"},
	{"[broker \"x\"]\nprofile = local\n", "FILE: broker.x.profile | [broker] without"},
	{"[agent]\ncommand = x\n", "FILE: agent.command: expected a name: [agent \"NAME\"]"},
	/* keys */
	{"[profile \"unused\"]\nbakend = local\n",
		"FILE: profile.unused.bakend | unknown key | did you mean backend?"},
	{"[profile \"unused\"]\ncommand = x\n",
		"FILE: profile.unused.command: expected in [agent \"NAME\"], not in "
		"[profile \"…\"]"},
	{"[agent \"a\"]\nlog-level = x\n",
		"FILE: agent.a.log-level: expected in [broker], not in [agent \"…\"]"},
	{"[agent \"a\"]\ncommand = x\ncolour = red\n",
		"FILE: agent.a.colour | unknown key | command | arg | env"},
	{"[profile \"p\"]\nimage = x\n", "FILE: profile.p.image | backend = fake"},
	{"[profile \"p\"]\nsnyc = none\n",
		"FILE: profile.p.snyc | unknown key | did you mean sync?"},
	{"[profile \"p\"]\ncolour = red\n",
		"FILE: profile.p.colour | unknown key | backend | agent | policy | toolhost | "
		"editor-terminals | mcp | mcp-exec "
		"| env | secret-env | max-message | max-queue | max-requests | max-sessions | "
		"start-timeout | session-timeout | authenticate-timeout | restart-limit | "
		"prepare-timeout | stop-eof-timeout | stop-term-timeout | stop-kill-timeout | "
		"drain-timeout | pause-drain-timeout | pause-timeout | idle-timeout | "
		"wall | cancel-timeout | max-file | output-limit | max-terminals | "
		"terminal-timeout | "
		"file-timeout | mcp-timeout | health-timeout | setup | setup-timeout | copy | "
		"permission-timeout | network | allow-host | allow-cidr | public-ingress | "
		"required | sync | persistence | transport | include | exclude | guard-paths | "
		"big-file | max-files | max-size | sync-timeout | sync-lock-timeout | "
		"recovery-timeout | checkpoints | max-checkpoints | checkpoint-age"},
	/* the network */
	{"[profile \"p\"]\nnetwork = closed\n",
		"FILE: profile.p.network | open | blocked | allow | \"closed\""},
	{"[profile \"p\"]\nnetwork = allow\n",
		"FILE: profile.p.network | allow-host | allow-cidr | network = blocked"},
	{"[profile \"p\"]\nnetwork = blocked\nallow-cidr = 10.0.0.0/8\n",
		"FILE: profile.p.allow-cidr | network = allow | network = blocked"},
	{"[profile \"p\"]\nallow-host = a.example\n",
		"FILE: profile.p.allow-host | network = allow | network = open"},
	{"[profile \"p\"]\nnetwork = allow\nallow-cidr = 10.0.0.1/8\n",
		"FILE: profile.p.allow-cidr | 10.0.0.0/8 | /32 | \"10.0.0.1/8\""},
	{"[profile \"p\"]\nguard-paths = a//b\n", "FILE: profile.p.guard-paths | path | \"a//b\""},
	{"[profile \"p\"]\nguard-paths = none\nguard-paths = x\n",
		"FILE: profile.p.guard-paths | \"none\" alone"},
	{"[profile \"p\"]\nrequired = perhaps\n",
		"FILE: profile.p.required | true | false | \"perhaps\""},
	{"[profile \"p\"]\nbackend = fake\nimmage = x\n",
		"FILE: profile.p.immage | unknown key | did you mean image?"},
	/* values */
	{"[profile \"p\"]\nbackend = ssj\n", "FILE: profile.p.backend | local | fake | \"ssj\""},
	{"[profile \"p\"]\nbackend = daytona\n",
		"FILE: profile.p.backend | local | fake | \"daytona\""},
	{"[profile \"p\"]\nbackend\n", "FILE: profile.p.backend: expected a value: backend = …"},
	{"[profile \"p\"]\ntoolhost = me\n",
		"FILE: profile.p.toolhost | auto | editor | broker | \"me\""},
	{"[profile \"p\"]\nmax-message = 1t\n",
		"FILE: profile.p.max-message: expected a size from 1k to 1g, got \"1t\""},
	{"[profile \"p\"]\nstart-timeout = soon\n",
		"FILE: profile.p.start-timeout: expected a time from 1ms to 24h, got "
		"\"soon\""},
	{"[profile \"p\"]\nidle-timeout = 0\n",
		"FILE: profile.p.idle-timeout: expected a time like 500ms, 30s, 5m or 1h, "
		"or never, got \"0\""},
	{"[profile \"p\"]\nbackend = fake\nkeep = perhaps\n",
		"FILE: profile.p.keep | true | false | \"perhaps\""},
	{"[profile \"p\"]\nenv = novalue\n",
		"FILE: profile.p.env | NAME=value | letters, digits and _"},
	{"[profile \"p\"]\nsecret-env = A=b\n",
		"FILE: profile.p.secret-env | name | letters, digits and _ | environment"},
	{"[policy \"local\"]\nmode = ask\n", "FILE: policy.local.mode | pass | ask-all | \"ask\""},
	{"[policy \"local\"]\nmode = aprove-all\n",
		"FILE: policy.local.mode | did you mean \"approve-all\"?"},
	{"[broker]\nlog-format = xml\n", "FILE: broker.log-format | text | json | \"xml\""},
	{"[broker]\nlog-level = loud\n",
		"FILE: broker.log-level | error | warning | info | debug | \"loud\""},
	{"[profile \"local\"]\nmax-sessions = \"a\\nb\"\n",
		"FILE: profile.local.max-sessions | 1 to 100000 | \"a\\nb\""},
	/* what sections say of each other */
	{"[broker]\nprofile = devbox\n", "FILE: broker.profile: no [profile \"devbox\"] in FILE"},
	{"[broker]\nagent = nobody-knows-it\n",
		"FILE: broker.agent: no [agent \"nobody-knows-it\"] in FILE | acp-broker agents"},
	{"[profile \"p\"]\nagent = clade\n", "FILE: profile.p.agent | \"clade\" | \"claude\"?"},
	{"[profile \"p\"]\nagent = mya\n[agent \"my\"]\ncommand = x\n",
		"FILE: profile.p.agent | \"mya\" | \"my\"?"},
	{"[profile \"p\"]\npolicy = x\n", "FILE: profile.p.policy: no [policy \"x\"] in FILE"},
	{"[agent \"a\"]\narg = x\n", "FILE: agent.a: expected command = PROGRAM"},
	{"[agent \"a\"]\ncommand = claude-agent-acp --flag\n",
		"FILE: agent.a.command | program alone | arg ="},
	/* MCP servers */
	{"[profile \"p\"]\nmcp = gitub\n[mcp \"github\"]\ncommand = x\n",
		"FILE: profile.p.mcp: no [mcp \"gitub\"] in FILE: did you mean \"github\"?"},
	{"[profile \"p\"]\nmcp = github\nmcp = other\n[mcp \"github\"]\ncommand = x\n",
		"FILE: profile.p.mcp: no [mcp \"other\"] in FILE"},
	{"[mcp \"m\"]\narg = x\n", "FILE: mcp.m: expected command = PROGRAM, or url = http://…"},
	{"[mcp \"m\"]\ncommand = x\nurl = http://h\n",
		"FILE: mcp.m.command: not expected with url = …"},
	{"[mcp \"m\"]\ntype = sse\ncommand = x\n",
		"FILE: mcp.m.command: not expected with type = sse"},
	{"[mcp \"m\"]\ntype = stdio\nurl = http://h\n",
		"FILE: mcp.m.url: not expected with type = stdio"},
	{"[mcp \"m\"]\nurl = http://h\nsecret-env = TOKEN\n",
		"FILE: mcp.m.secret-env: not expected with url = …"},
	{"[mcp \"m\"]\ncommand = x\nheader = A: b\n",
		"FILE: mcp.m.header: not expected with command = …"},
	{"[mcp \"m\"]\ncommand = npx -y x\n", "FILE: mcp.m.command | program alone | arg ="},
	{"[mcp \"m\"]\nurl = //h/x\n", "FILE: mcp.m.url: expected http://HOST… or https://HOST…"},
	{"[mcp \"m\"]\nurl = http://h\nheader = hunter2\n",
		"FILE: mcp.m.header | NAME: VALUE | HTTP"},
	{"[mcp \"m\"]\nurl = http://h\nheader = \"A: hunter2\\nB: c\"\n",
		"FILE: mcp.m.header | NAME: VALUE | HTTP"},
	{"[mcp \"m\"]\ncommand = x\nenv = hunter2\n",
		"FILE: mcp.m.env | NAME=value | letters, digits and _"},
	{"[mcp \"m\"]\ntype = ws\nurl = ws://h\n",
		"FILE: mcp.m.type | stdio | http | sse | \"ws\""},
	{"[mcp \"m\"]\ncommand = x\nimage = y\n",
		"FILE: mcp.m.image | unknown key | type | command | arg | env | secret-env | url | "
		"header"},
	{"[agent \"a\"]\nurl = x\n",
		"FILE: agent.a.url: expected in [mcp \"NAME\"], not in [agent \"…\"]"},
	/* policy */
	{"[policy \"local\"]\nmode = yolo\n", "FILE: policy.local.mode | pass | ask-all | "
					      "approve-reads | approve-all | deny-all | \"yolo\""},
	{"[policy \"local\"]\ndeny = wirte\n", "FILE: policy.local: deny | read | write | terminal "
					       "| grant | * | pattern | \"wirte\""},
	{"[policy \"devbx\"]\ndeny = write\n[profile \"devbox\"]\nmax-sessions = 1\n",
		"FILE: policy.devbx | policy = devbx | profile"},
};

static void test_mistakes_in_a_file_are_one_line(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < ARRAY_LENGTH(file_mistakes); i++) {
		char expected[ERROR_TEXT_MAX];
		snprintf(expected, sizeof(expected), "%s", file_mistakes[i].mistake);
		/* If the message names the file twice, the second name is written out here. */
		char *again = strstr(expected + 4, " in FILE");
		if (again) {
			char rest[ERROR_TEXT_MAX];
			snprintf(rest, sizeof(rest), "%s", again + 8);
			snprintf(again, sizeof(expected) - (size_t)(again - expected), " in %s%s",
				fixture->file, rest);
		}
		write_config(fixture, file_mistakes[i].text);
		assert_mistake(fixture, &with_agent, expected);
	}
}

static void test_mistakes_on_the_command_line_are_one_line(void **state)
{
	struct fixture *fixture = *state;
	write_config(fixture, "[profile \"devbox\"]\nsecret-env = NOT_SET_HERE\n");
	char missing[PATH_BYTES];
	snprintf(missing, sizeof(missing), "%.400s/missing", fixture->home);
	char expected[ERROR_TEXT_MAX];
	struct options options = with_agent;

	options.profile = "devbx";
	snprintf(expected, sizeof(expected),
		"--profile: no [profile \"devbx\"] in FILE: did you mean \"devbox\"?");
	assert_mistake(fixture, &options, expected);

	options.profile = "devbox";
	assert_mistake(
		fixture, &options, "FILE: profile.devbox.secret-env | NOT_SET_HERE | environment");

	write_config(fixture, "[profile \"devbox\"]\nmcp = m\n[mcp \"m\"]\ncommand = x\n"
			      "secret-env = NOT_SET_HERE\n");
	assert_mistake(fixture, &options, "FILE: mcp.m.secret-env | NOT_SET_HERE | environment");

	options = with_agent;
	options.log_level = "loud";
	assert_mistake(
		fixture, &options, "--log-level | error | warning | info | debug | \"loud\"");

	options = with_agent;
	options.toolhost = "me";
	assert_mistake(fixture, &options, "--toolhost | auto | editor | broker | \"me\"");

	options = with_agent;
	options.config = missing;
	snprintf(expected, sizeof(expected), "--config %s: no such file", missing);
	assert_mistake(fixture, &options, expected);

	options = with_agent;
	options.workspace = missing;
	snprintf(expected, sizeof(expected), "--workspace %s: No such file or directory", missing);
	assert_mistake(fixture, &options, expected);

	options.workspace = fixture->file;
	assert_mistake(fixture, &options, "--workspace FILE: expected a directory");
}

static void test_no_agent_says_how_to_name_one(void **state)
{
	struct fixture *fixture = *state;
	assert_mistake(fixture, &no_options,
		"no agent is named | --agent NAME | acp-broker agents | -- COMMAND | "
		"[profile \"local\"] | FILE");
}

static void test_an_absent_profile_names_the_absent_file(void **state)
{
	struct fixture *fixture = *state;
	struct options options = with_agent;
	options.profile = "devbox";
	assert_mistake(
		fixture, &options, "--profile | [profile \"devbox\"] | no configuration file FILE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_mistakes_in_a_file_are_one_line),
		CONFIG_TEST(test_mistakes_on_the_command_line_are_one_line),
		CONFIG_TEST(test_no_agent_says_how_to_name_one),
		CONFIG_TEST(test_an_absent_profile_names_the_absent_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
