/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/ssh/host_fixture.h"
#include "tests/ssh/pipe_client.h"

/* The shell there that runs our scripts; every test is made with each. */
static const char *const shells[] = {"/bin/dash", "/bin/bash", "/usr/bin/busybox"};
static struct stage stage;
static char folder[] = "/tmp/ssh-exec-XXXXXX";
static char sh[64]; // a link to one of them, since busybox goes by its name

static int set_up(void **state)
{
	stage_init(&stage);
	assert_int_equal(symlink(*state, sh), 0);
	stage.request.sh = sh;
	stage_open(&stage);
	return 0;
}

static int tear_down(void **state)
{
	stage_finish(&stage);
	return unlink(sh);
}

static void test_every_status_is_told_as_it_is(void **state)
{
	static const int codes[] = {0, 1, 126, 127, 129, 130, 137, 141, 143, 255};
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM, SIGUSR1};
	struct heard heard;
	char script[64];
	for (size_t i = 0; i < ARRAY_LENGTH(codes) + ARRAY_LENGTH(signals); i++) {
		bool is_code = i < ARRAY_LENGTH(codes);
		int code = is_code ? codes[i] : 0;
		int signal = is_code ? 0 : signals[i - ARRAY_LENGTH(codes)];
		snprintf(script, sizeof(script), is_code ? "exit %d" : "kill -%d $$",
			is_code ? code : signal);
		heard_start_shell(&heard, &stage, script);
		heard_wait(&heard, "sxe");
		heard_wait_output(&heard);
		assert_int_equal(heard.status.code, code);
		assert_int_equal(heard.status.signal, signal);
		assert_string_equal(heard_text(&heard, 0), "");
		assert_string_equal(heard_text(&heard, 1), "");
		heard_finish(&heard);
	}
}

static void test_output_is_apart(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, "echo out; echo err >&2; exit 7");
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, 0), "out\n");
	assert_string_equal(heard_text(&heard, 1), "err\n");
	assert_int_equal(heard.status.code, 7);
	heard_finish(&heard);
}

#define SHELL_TESTS(shell)                                                                         \
	cmocka_unit_test_prestate_setup_teardown(                                                  \
		test_every_status_is_told_as_it_is, set_up, tear_down, (void *)(shell)),           \
		cmocka_unit_test_prestate_setup_teardown(                                          \
			test_output_is_apart, set_up, tear_down, (void *)(shell))

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(folder)) {
		return 1;
	}
	snprintf(sh, sizeof(sh), "%s/sh", folder);
	const struct CMUnitTest tests[] = {
		SHELL_TESTS(shells[0]), SHELL_TESTS(shells[1]), SHELL_TESTS(shells[2])};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
