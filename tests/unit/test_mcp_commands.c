/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_commands.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/words.h"

enum { PATH_BYTES = 512 };

static struct mcp_commands commands;
static char folder[PATH_BYTES]; // with a program "tool", a file "text", a folder "sub"
static char path_entry[PATH_BYTES + 16];

static void make_file(const char *name, mode_t mode)
{
	char path[PATH_BYTES + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void change_folder(const char *name, int (*change)(const char *path))
{
	char path[PATH_BYTES + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(change(path), 0);
}

static int make_folder(const char *path)
{
	return mkdir(path, 0700);
}

static int set_up(void **state)
{
	mcp_commands_init(&commands);
	snprintf(folder, sizeof(folder), "/tmp/acp-broker-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	make_file("tool", 0700);
	make_file("a tool", 0700);
	make_file("*", 0700);
	make_file("text", 0600);
	change_folder("sub", make_folder);
	snprintf(path_entry, sizeof(path_entry), "PATH=%s", folder);
	return 0;
}

static int tear_down(void **state)
{
	mcp_commands_finish(&commands);
	change_folder("tool", unlink);
	change_folder("a tool", unlink);
	change_folder("*", unlink);
	change_folder("text", unlink);
	change_folder("sub", rmdir);
	assert_int_equal(rmdir(folder), 0);
	return 0;
}

/* Runs the question in the folder, with the folder as PATH, and reads the answer. */
static void ask(void)
{
	int fds[2];
	char answer[MCP_COMMANDS_MAX + 2];
	char **argv = mcp_commands_argv(&commands);
	char *env[] = {path_entry, NULL};
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (chdir(folder) == 0 && dup2(fds[1], STDOUT_FILENO) >= 0) {
			execve(argv[0], argv, env);
		}
		_exit(127);
	}
	close(fds[1]);
	size_t len = 0;
	ssize_t count;
	while ((count = read(fds[0], answer + len, sizeof(answer) - len)) > 0) {
		len += (size_t)count;
	}
	close(fds[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	words_free(argv);
	struct error err;
	if (!mcp_commands_answer(&commands, (struct span){answer, len}, &err)) {
		fail_msg("%s", err.text);
	}
}

static void expect(const char *name, const char *path, enum mcp_command_state state)
{
	if (mcp_commands_state(&commands, name, path) != state) {
		fail_msg("\"%s\" with PATH \"%s\"", name, path);
	}
}

static void test_a_shell_tells_what_there_is(void **state)
{
	static const struct {
		const char *name;
		enum mcp_command_state state;
	} samples[] = {
		{"tool", MCP_COMMAND_EXISTS},
		{"a tool", MCP_COMMAND_EXISTS},
		{"./tool", MCP_COMMAND_EXISTS},
		{"*", MCP_COMMAND_EXISTS},
		{"/bin/sh", MCP_COMMAND_EXISTS},
		{"t*", MCP_COMMAND_MISSING},
		{"text", MCP_COMMAND_MISSING},
		{"./text", MCP_COMMAND_MISSING},
		{"sub", MCP_COMMAND_MISSING},
		{"./sub", MCP_COMMAND_MISSING},
		{"sh", MCP_COMMAND_MISSING}, // on another PATH
		{"cd", MCP_COMMAND_MISSING}, // built into the shell
		{"if", MCP_COMMAND_MISSING},
		{"-x", MCP_COMMAND_MISSING},
		{"", MCP_COMMAND_MISSING},
		{"tool; exit", MCP_COMMAND_MISSING},
		{"$(tool)", MCP_COMMAND_MISSING},
		{"/nonexistent/tool", MCP_COMMAND_MISSING},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		mcp_commands_add(&commands, samples[i].name, "");
	}
	ask();
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		expect(samples[i].name, "", samples[i].state);
	}
}

static void test_a_server_s_own_path_is_asked_too(void **state)
{
	mcp_commands_add(&commands, "sh", "/usr/bin:/bin");
	mcp_commands_add(&commands, "sh", "/nonexistent");
	mcp_commands_add(&commands, "tool", "/nonexistent"); // on the agent's
	mcp_commands_add(&commands, "missing", "::/bin");
	mcp_commands_add(&commands, "text", "");
	ask();
	expect("sh", "/usr/bin:/bin", MCP_COMMAND_EXISTS);
	expect("sh", "/nonexistent", MCP_COMMAND_MISSING);
	expect("tool", "/nonexistent", MCP_COMMAND_EXISTS);
	expect("missing", "::/bin", MCP_COMMAND_MISSING);
	expect("text", "", MCP_COMMAND_MISSING);
}

static void test_each_different_one_is_asked_about_once(void **state)
{
	mcp_commands_add(&commands, "a", "");
	mcp_commands_add(&commands, "a", "");
	mcp_commands_add(&commands, "a", "/p");
	mcp_commands_add(&commands, "b", "");
	assert_int_equal(commands.count, 3);
	expect("a", "", MCP_COMMAND_UNKNOWN);
	expect("c", "", MCP_COMMAND_UNKNOWN);
}

static void test_what_is_no_answer_says_nothing(void **state)
{
	static const char *const answers[] = {
		"", "y.", "yyn.", "yy", "yx.", "yn.\n", "yn. ", ".yn", "Welcome"};
	struct error err;
	mcp_commands_add(&commands, "a", "");
	mcp_commands_add(&commands, "b", "");
	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		assert_false(mcp_commands_answer(&commands, span_of(answers[i]), &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
		expect("a", "", MCP_COMMAND_UNKNOWN);
	}
	assert_true(mcp_commands_answer(&commands, SPAN_LITERAL("yn."), &err));
	expect("a", "", MCP_COMMAND_EXISTS);
	expect("b", "", MCP_COMMAND_MISSING);
}

static void test_too_many_and_too_long_ones_stay_unknown_with_the_reason(void **state)
{
	char name[16];
	for (int i = 0; i < MCP_COMMANDS_MAX; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		mcp_commands_add(&commands, name, "");
	}
	assert_string_equal(commands.why_unknown, "");
	mcp_commands_add(&commands, "c0", "");
	assert_string_equal(commands.why_unknown, "");
	mcp_commands_add(&commands, "one more", "");
	assert_int_equal(commands.count, MCP_COMMANDS_MAX);
	assert_non_null(strstr(commands.why_unknown, "64"));
	mcp_commands_finish(&commands);
	mcp_commands_init(&commands);
	char *text = mem_alloc_zero(MCP_COMMAND_BYTES_MAX + 2);
	memset(text, 'x', MCP_COMMAND_BYTES_MAX);
	mcp_commands_add(&commands, text, text);
	assert_int_equal(commands.count, 1);
	text[MCP_COMMAND_BYTES_MAX] = 'x';
	mcp_commands_add(&commands, text, "");
	mcp_commands_add(&commands, "a", text);
	assert_int_equal(commands.count, 1);
	assert_non_null(strstr(commands.why_unknown, "4096"));
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_shell_tells_what_there_is),
		TEST(test_a_server_s_own_path_is_asked_too),
		TEST(test_each_different_one_is_asked_about_once),
		TEST(test_what_is_no_answer_says_nothing),
		TEST(test_too_many_and_too_long_ones_stay_unknown_with_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
