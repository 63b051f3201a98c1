/* SPDX-License-Identifier: MIT */
#include "tests/support/ssh/sshd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fixture itself, with ssh(1): what other tests take for granted. */
static struct sshd sshd;

static int tear_down(void **state)
{
	char folder[SSHD_FOLDER_MAX];
	snprintf(folder, sizeof(folder), "%s", sshd.folder);
	sshd_stop(&sshd);
	return access(folder, F_OK) == -1 ? 0 : -1;
}

/* Runs a command there; its output without the last newline, valid until the next. */
static const char *run(const char *options, const char *command)
{
	static char text[512];
	char line[1024];
	snprintf(line, sizeof(line), "ssh -F %s %s -o BatchMode=yes box '%s' 2>&1", sshd.config,
		options, command);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	size_t len = fread(text, 1, sizeof(text) - 1, pipe);
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	pclose(pipe);
	return text;
}

static void test_commands_run_in_the_home_of_the_test(void **state)
{
	sshd_start(&sshd, NULL);
	assert_string_equal(run("", "cd; pwd"), sshd.home);
	assert_string_equal(run("", "echo $HOME"), sshd.home);
}

static void test_login_shells(void **state)
{
	static const char *const shells[][2] = {
		{"/bin/bash", "bash"},
		{"/bin/dash", "dash"},
		{"/usr/bin/fish", "fish"},
		{"/bin/csh", "csh"},
		{"/bin/busybox", "sh"},
	};
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (access(shells[i][0], X_OK) != 0) {
			continue;
		}
		sshd_start(&sshd, &(struct sshd_spec){.shell = shells[i][0]});
		const char *got = strrchr(run("", "echo $SHELL"), '/');
		assert_non_null(got);
		assert_string_equal(got + 1, shells[i][1]);
		sshd_stop(&sshd);
	}
	sshd_start(&sshd, NULL);
}

static void test_further_config_goes_first(void **state)
{
	sshd_start(&sshd, &(struct sshd_spec){.config = "AuthorizedKeysFile /dev/null\n"});
	assert_non_null(strstr(run("", "echo in"), "Permission denied"));
}

static void test_connections_are_frozen_and_killed(void **state)
{
	sshd_start(&sshd, NULL);
	char master[512];
	snprintf(master, sizeof(master), "ssh -F %s -f -N -M -S %s/s box", sshd.config, sshd.home);
	assert_int_equal(system(master), 0);
	char options[256];
	snprintf(options, sizeof(options), "-S %s/s", sshd.home);
	assert_string_equal(run(options, "echo in"), "in");
	assert_int_equal(sshd_count_connections(&sshd), 1);
	sshd_freeze(&sshd);
	snprintf(options, sizeof(options), "-o ConnectTimeout=1");
	assert_non_null(strstr(run(options, "echo in"), "timed out"));
	sshd_thaw(&sshd);
	sshd_kill_connections(&sshd);
	assert_int_equal(sshd_count_connections(&sshd), 0);
	assert_string_equal(run("", "echo again"), "again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_commands_run_in_the_home_of_the_test, tear_down),
		cmocka_unit_test_teardown(test_login_shells, tear_down),
		cmocka_unit_test_teardown(test_further_config_goes_first, tear_down),
		cmocka_unit_test_teardown(test_connections_are_frozen_and_killed, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
