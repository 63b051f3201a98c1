/* SPDX-License-Identifier: MIT */
#include "providers/container/devcontainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/words.h"
#include "tests/support/facts.h"

/* A workspace with ".devcontainer.json" and a Dockerfile. */
static struct {
	char folder[64], source[96], dockerfile[96];
	struct writers writers;
	bool is_shown, opens_ports;
} world;

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	snprintf(world.folder, sizeof(world.folder), "/tmp/devcontainer-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(world.source, sizeof(world.source), "%s/.devcontainer.json", world.folder);
	snprintf(world.dockerfile, sizeof(world.dockerfile), "%s/Dockerfile", world.folder);
	write_file(world.dockerfile, "FROM scratch\n");
	writers_init(&world.writers);
	return 0;
}

static int tear_down(void **state)
{
	unlink(world.source);
	unlink(world.dockerfile);
	rmdir(world.folder);
	return 0;
}

static bool find(const char *text, struct exec_found *out, struct error *err)
{
	const struct exec_place place = {.workspace = world.folder,
		.writers = &world.writers,
		.is_shown = world.is_shown,
		.opens_ports = world.opens_ports};
	write_file(world.source, text);
	*out = (struct exec_found){.source = NULL};
	return devcontainer_find(&place, out, err);
}

static void find_well(const char *text, struct exec_found *out)
{
	struct error err;
	if (!find(text, out, &err)) {
		fail_msg("%s: %s", text, err.text);
	}
}

/* The words with blanks between them; "" for none. */
static const char *line_of(char *const *words)
{
	static char line[4096];
	size_t len = 0;
	line[0] = '\0';
	for (; words && *words; words++) {
		len += (size_t)snprintf(
			line + len, sizeof(line) - len, "%s[%s]", len ? " " : "", *words);
	}
	return line;
}

static void test_an_image_or_a_dockerfile_is_found(void **state)
{
	struct exec_found found;
	find_well("{\"image\": \"debian:12\", /* x */ \"name\": \"y\",}", &found);
	assert_string_equal(found.source, world.source);
	assert_string_equal(found.image, "debian:12");
	assert_null(found.file);
	assert_null(found.writable);
	assert_string_equal(line_of(found.ignored), "");
	exec_found_finish(&found);
	find_well("{\"dockerFile\": \"Dockerfile\", \"context\": \".\"}", &found);
	assert_string_equal(found.file, world.dockerfile);
	assert_string_equal(found.folder, world.folder);
	assert_null(found.image);
	exec_found_finish(&found);
}

static void test_a_value_of_the_wrong_type_is_an_error_that_names_its_member(void **state)
{
	static const struct {
		const char *text, *member;
	} cases[] = {{"{\"image\": 1}", "image"},
		{"{\"image\": \"x\", \"build\": \"Dockerfile\"}", "build"},
		{"{\"image\": \"x\", \"build\": {\"dockerfile\": [\"Dockerfile\"]}}",
			"build.dockerfile"},
		{"{\"image\": \"x\", \"dockerFile\": {}}", "dockerFile"},
		{"{\"build\": {\"dockerfile\": \"Dockerfile\", \"context\": 7}}", "build.context"},
		{"{\"dockerFile\": \"Dockerfile\", \"context\": null}", "context"},
		{"{\"image\": \"a\\u0000b\"}", "image"},
		{"{\"image\": \"x\", \"remoteUser\": 0}", "remoteUser"},
		{"{\"image\": \"x\", \"remoteUser\": \"a:b\"}", "remoteUser"},
		{"{\"image\": \"x\", \"containerUser\": \"\"}", "containerUser"},
		{"{\"image\": \"x\", \"containerUser\": \"-v\"}", "containerUser"},
		{"{\"image\": \"x\", \"remoteEnv\": []}", "remoteEnv"},
		{"{\"image\": \"x\", \"remoteEnv\": {\"A\": 1}}", "remoteEnv"},
		{"{\"image\": \"x\", \"mounts\": {}}", "mounts"},
		{"{\"image\": \"x\", \"forwardPorts\": 3000}", "forwardPorts"},
		{"{\"image\": \"x\", \"postCreateCommand\": 1}", "postCreateCommand"},
		{"{\"image\": \"x\", \"postCreateCommand\": [1]}", "postCreateCommand"},
		{"{\"image\": \"x\", \"onCreateCommand\": {\"x\": {}}}", "onCreateCommand"},
		{"{\"dockerFile\": \"Dockerfile\", \"build\": {\"args\": 1}}", "build.args"},
		{"{\"dockerFile\": \"Dockerfile\", \"build\": {\"target\": \"-x\"}}",
			"build.target"}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct exec_found found;
		struct error err;
		char facts[192];
		assert_false(find(cases[i].text, &found, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
		snprintf(facts, sizeof(facts), "%s | %s: expected", world.source, cases[i].member);
		assert_names(err.text, facts);
		exec_found_finish(&found);
	}
}

static void test_the_file_that_was_read_is_the_one_that_is_judged(void **state)
{
	struct exec_found found;
	write_file(world.source, "");
	assert_return_code(chmod(world.source, 0666), 0);
	find_well("{\"image\": \"x\"}", &found);
	assert_names(found.writable, "chmod o-w");
	exec_found_finish(&found);
	unlink(world.source);
}

static void test_users_variables_and_volumes_become_words_of_the_engine(void **state)
{
	struct exec_found found;
	find_well("{\"image\": \"x\", \"remoteUser\": \"vscode\", \"containerUser\": \"root\","
		  "\"containerEnv\": {\"A\": \"1 % $HOME ${HOME}\", \"B\": \"x\"},"
		  "\"remoteEnv\": {\"B\": \"${localWorkspaceFolder}/b\", \"C_1\": \"\"},"
		  "\"mounts\": [\"source=cache,target=/var/cache,type=volume\","
		  "{\"type\": \"volume\", \"target\": \"/x-y/z\"}]}",
		&found);
	char wanted[512];
	snprintf(wanted, sizeof(wanted),
		"[--user] [vscode] [--env] [A=1 %% $HOME ${HOME}] [--env] [B=x] [--env] [B=%s/b] "
		"[--env] [C_1=] [--volume] [/var/cache] [--volume] [/x-y/z]",
		world.folder);
	assert_string_equal(line_of(found.start), wanted);
	assert_string_equal(line_of(found.ignored), "[containerUser]");
	exec_found_finish(&found);
}

static void test_a_shown_workspace_keeps_its_user_and_has_a_known_folder(void **state)
{
	struct exec_found found;
	char text[512], wanted[256];
	world.is_shown = true;
	snprintf(text, sizeof(text),
		"{\"image\": \"x\", \"remoteUser\": \"vscode\","
		"\"remoteEnv\": {\"A\": \"${containerWorkspaceFolder}\"},"
		"\"mounts\": [\"type=volume,target=%s/.git\", \"type=volume,dst=%s\","
		"\"type=volume,dst=/tmp\"]}",
		world.folder, world.folder);
	find_well(text, &found);
	snprintf(wanted, sizeof(wanted), "[--env] [A=%s]", world.folder);
	assert_string_equal(line_of(found.start), wanted);
	assert_string_equal(
		line_of(found.ignored), "[remoteUser] [mounts.0] [mounts.1] [mounts.2]");
	exec_found_finish(&found);
	world.is_shown = false;
}

static void test_arguments_and_the_stage_of_a_build_become_words_of_the_engine(void **state)
{
	struct exec_found found;
	find_well("{\"build\": {\"dockerfile\": \"Dockerfile\", \"target\": \"dev\","
		  "\"args\": {\"V\": \"1=2\", \"BUILDKIT_SYNTAX\": \"x\"}}}",
		&found);
	assert_string_equal(line_of(found.build), "[--build-arg] [V=1=2] [--target] [dev]");
	assert_string_equal(line_of(found.ignored), "[build.args.BUILDKIT_SYNTAX]");
	assert_null(found.start);
	exec_found_finish(&found);
}

static void test_commands_become_lines_of_sh_in_the_order_of_their_kinds(void **state)
{
	struct exec_found found;
	find_well("{\"image\": \"x\", \"postCreateCommand\": {\"one\": \"x && y\","
		  "\"t wo\": [\"z\", \"it's\", \"${containerWorkspaceFolder}/a b\"]},"
		  "\"onCreateCommand\": [\"first\"], \"updateContentCommand\": \"\"}",
		&found);
	assert_string_equal(line_of(found.lines),
		"['first'] [x && y] ['z' 'it'\\''s' ''\"${containerWorkspaceFolder}\"'/a b']");
	assert_string_equal(line_of(found.line_names),
		"[onCreateCommand] [postCreateCommand.one] [postCreateCommand.?]");
	assert_string_equal(line_of(found.ignored), "");
	assert_null(found.start);
	exec_found_finish(&found);
	find_well("{\"image\": \"x\", \"postCreateCommand\": \"echo ${localEnv:X}\","
		  "\"onCreateCommand\": [\"echo\", \"${localEnv:X}\"],"
		  "\"postStartCommand\": \"x\", \"postAttachCommand\": \"x\"}",
		&found);
	assert_string_equal(line_of(found.lines), "");
	assert_string_equal(line_of(found.ignored), "[postStartCommand] [postAttachCommand] "
						    "[onCreateCommand] [postCreateCommand]");
	exec_found_finish(&found);
}

static void test_a_dockerfile_that_reaches_this_machine_is_refused_by_its_line(void **state)
{
	static const struct {
		const char *text;
		int line; // 0: it is fine
	} cases[] = {{"FROM debian:12 AS a\nFROM a\nCOPY --from=a / /\nCOPY --from=0 / /\n", 0},
		{"# syntax=docker/dockerfile:1\nARG V=1\nFROM mcr.example/x:1-${V}\n", 0},
		{"FROM scratch\nRUN a \\\n  # note\n  && b\nADD x $HOME/x\n", 0},
		{"FROM scratch\nARG N\nCOPY $N /n\nRUN --mount=type=cache,target=/c x\n", 0},
		{"FROM tarball:/x.tar\n", 1}, {"from \\\n\n# n\n tarball:x\n", 1},
		{"FR\\\nOM dir:/tmp\n", 1}, {"FROM --platform=x oci:y\r\n", 1},
		{"ARG B\nFROM $B\n", 2}, {"FROM ${B}:1\n", 1}, {"FROM localhost/acp-broker:1\n", 1},
		{"FROM 6a1\n", 1}, {"FROM acp-broker:$T\n", 1}, {"FROM tarball:$T\n", 1},
		{"FROM sha256:6a1\n", 1}, {"FROM scratch\nCOPY --from=tarball:/x f /f\n", 2},
		{"FROM scratch\nCOPY --from=6 f /f\n", 2},
		{"FROM scratch\nCOPY --fr\\om=dir:/ f /f\n", 2},
		{"FROM scratch\nRUN --mount=type=bind,from=dir:/x,target=/y z\n", 2},
		{"FROM scratch\nRUN --network=host z\n", 2},
		{"FROM scratch\nONBUILD COPY --from=tarball:/x f /f\n", 2},
		{"FROM scratch\nRUN <<E\nx\nE\nCOPY --from=dir:/x f /f\n", 5},
		{"FROM scratch\nRUN <<E\nFROM x AS ab\nE\nCOPY --from=ab f /f\n", 5},
		{"FROM scratch\nRUN x \\\n  # n\nFROM dir:/x\n", 4},
		{"FROM scratch\nADD http://127.0.0.1/x /x\n", 2},
		{"FROM scratch\nADD [\"\\u0068ttp\", \"/x\"]\n", 2},
		{"FROM scratch\nADD $U /x\n", 2}, {"FROM scratch\nADD git@h:x /x\n", 2},
		{"FROM scratch\nADD github.com/a/b /x\n", 2}, {"#escape=`\nFROM scratch\n", 1},
		{"# syntax = evil/x\nFROM scratch\n", 1}, {"{\"syntax\": \"x\"}", 1},
		{"FROM scratch\nRUN \\\\\nx\n", 2}, {"FROM\vdir:/x\n", 1}};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct exec_found found;
		struct error err = {.code = ERROR_NONE};
		char facts[192];
		write_file(world.dockerfile, cases[i].text);
		if (cases[i].line == 0) {
			find_well("{\"dockerFile\": \"Dockerfile\"}", &found);
			exec_found_finish(&found);
			continue;
		}
		if (find("{\"dockerFile\": \"Dockerfile\"}", &found, &err)) {
			fail_msg("accepted: %s", cases[i].text);
		}
		assert_string_equal(err.reason, "DOCKERFILE_REFUSED");
		snprintf(facts, sizeof(facts), "%s | line %d:", world.dockerfile, cases[i].line);
		assert_names(err.text, facts);
		exec_found_finish(&found);
	}
}

static void test_an_image_by_its_id_is_refused(void **state)
{
	static const char *const images[] = {"6a", "deadbeef", "sha256:6a"};
	for (size_t i = 0; i < ARRAY_LENGTH(images); i++) {
		struct exec_found found;
		struct error err;
		char text[64];
		snprintf(text, sizeof(text), "{\"image\": \"%s\"}", images[i]);
		assert_false(find(text, &found, &err));
		assert_string_equal(err.reason, "DOCKERFILE_REFUSED");
		exec_found_finish(&found);
	}
}

static void test_ports_are_found_only_if_the_user_opens_them(void **state)
{
	static const char text[] = "{\"image\": \"x\", \"forwardPorts\": [3000, \"db:5432\", "
				   "3000, 80, 65536, 3000.5, -1, 1024]}";
	struct exec_found found;
	find_well(text, &found);
	assert_int_equal(found.port_count, 0);
	assert_string_equal(line_of(found.ignored), "[forwardPorts]");
	exec_found_finish(&found);
	world.opens_ports = true;
	find_well(text, &found);
	world.opens_ports = false;
	assert_int_equal(found.port_count, 2);
	assert_int_equal(found.ports[0], 3000);
	assert_int_equal(found.ports[1], 1024);
	assert_string_equal(line_of(found.ignored),
		"[forwardPorts.1] [forwardPorts.3] [forwardPorts.4] [forwardPorts.5] "
		"[forwardPorts.6]");
	exec_found_finish(&found);
}

/* Each of these would read, show or change something of this machine. */
static void test_what_reaches_this_machine_is_named_and_left_out(void **state)
{
	static const struct {
		const char *text, *ignored;
	} cases[] = {
		{"\"remoteEnv\": {\"A\": \"${localEnv:SECRET}\"}", "[remoteEnv.A]"},
		{"\"remoteEnv\": {\"A\": \"x${localEnv:SECRET:y}\"}", "[remoteEnv.A]"},
		{"\"containerEnv\": {\"A\": \"${env:SECRET}\"}", "[containerEnv.A]"},
		{"\"containerEnv\": {\"A\": \"\\u0024{localEnv:SECRET}\"}", "[containerEnv.A]"},
		{"\"remoteEnv\": {\"PATH\": \"/x:${containerEnv:PATH}\"}", "[remoteEnv.PATH]"},
		{"\"remoteEnv\": {\"A\": \"${containerWorkspaceFolder}\"}", "[remoteEnv.A]"},
		{"\"remoteEnv\": {\"A\": null}", "[remoteEnv.A]"},
		{"\"remoteEnv\": {\"A\": \"x\\ny\"}", "[remoteEnv.A]"},
		{"\"remoteEnv\": {\"SECRET*\": \"\"}", "[remoteEnv.?]"},
		{"\"remoteEnv\": {\"A=B\": \"\"}", "[remoteEnv.?]"},
		{"\"remoteEnv\": {\"HOME\": \"/w\"}", "[remoteEnv.HOME]"},
		{"\"remoteEnv\": {\"\": \"\"}", "[remoteEnv.?]"},
		{"\"remoteEnv\": {\"--privileged\": \"\"}", "[remoteEnv.?]"},
		{"\"remoteEnv\": {\"ACP_BROKER_RUN\": \"1\"}", "[remoteEnv.ACP_BROKER_RUN]"},
		{"\"remoteUser\": \"${localEnv:USER}\"", "[remoteUser]"},
		{"\"mounts\": [\"source=/,target=/host,type=bind\"]", "[mounts.0]"},
		{"\"mounts\": [\"source=/,target=/host\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/x,type=bind\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/x,volume-opt=device=/\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,\\\"target=/x\\\"\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/host:/x\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/x/../.acp-broker\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/.acp-broker\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/.acp-broker/x\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=/proc/sys\"]", "[mounts.0]"},
		{"\"mounts\": [\"type=volume,target=x\"]", "[mounts.0]"},
		{"\"mounts\": [{\"type\": \"volume\", \"target\": \"/x\", \"external\": true}]",
			"[mounts.0]"},
		{"\"mounts\": [7]", "[mounts.0]"},
		{"\"runArgs\": [\"--privileged\"], \"privileged\": true, \"capAdd\": [\"ALL\"],"
		 "\"securityOpt\": [\"seccomp=unconfined\"], \"workspaceMount\": \"x\","
		 "\"initializeCommand\": \"x\", \"features\": {}, \"\\u001b[31m\": 1",
			"[runArgs] [privileged] [capAdd] [securityOpt] [workspaceMount] "
			"[initializeCommand] [features] [?]"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct exec_found found;
		char text[512];
		snprintf(text, sizeof(text), "{\"image\": \"x\", %s}", cases[i].text);
		find_well(text, &found);
		assert_string_equal(line_of(found.ignored), cases[i].ignored);
		assert_string_equal(line_of(found.start), "");
		exec_found_finish(&found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_image_or_a_dockerfile_is_found),
		cmocka_unit_test(test_a_value_of_the_wrong_type_is_an_error_that_names_its_member),
		cmocka_unit_test(test_the_file_that_was_read_is_the_one_that_is_judged),
		cmocka_unit_test(test_users_variables_and_volumes_become_words_of_the_engine),
		cmocka_unit_test(test_a_shown_workspace_keeps_its_user_and_has_a_known_folder),
		cmocka_unit_test(
			test_arguments_and_the_stage_of_a_build_become_words_of_the_engine),
		cmocka_unit_test(test_commands_become_lines_of_sh_in_the_order_of_their_kinds),
		cmocka_unit_test(test_ports_are_found_only_if_the_user_opens_them),
		cmocka_unit_test(
			test_a_dockerfile_that_reaches_this_machine_is_refused_by_its_line),
		cmocka_unit_test(test_an_image_by_its_id_is_refused),
		cmocka_unit_test(test_what_reaches_this_machine_is_named_and_left_out),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
