/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/attr.h"
#include "tests/unit/stderr_capture.h"

/* Logs far more than all buffers on the way hold. It proves enough that this returns. */
static void flood(void)
{
	for (int i = 0; i < 2000; i++) {
		log_info("%04d %01000d", i, 0);
	}
}

/* Checks that every line is whole, and that exactly the missing ones are reported as dropped. */
static void assert_flood_told(const char *text)
{
	unsigned int whole = 0;
	unsigned int dropped = 0;
	const char *last = "";
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		assert_non_null(strchr(line, '\n'));
		size_t len = strcspn(line, "\n");
		line += strncmp(line, "<6>", 3) == 0 ? 3 : 0;
		whole += len >= 1005 && line[4] == ' ';
		const char *told = strstr(line, "lines dropped");
		if (told && told < line + len) {
			dropped += (unsigned int)strtoul(strchr(told, ':') + 1, NULL, 10);
		}
		last = line;
	}
	assert_true(dropped > 0);
	assert_int_equal(whole + dropped, 2000);
	assert_int_equal(strncmp(last, "later\n", 6), 0);
}

static void flood_and_resume(struct capture *capture)
{
	static char all[1 << 21];
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	flood();
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL), flags);
	assert_false(flags & O_NONBLOCK);
	snprintf(all, sizeof(all), "%s", logged(capture));
	log_info("later");
	size_t len = strlen(all);
	snprintf(all + len, sizeof(all) - len, "%s", logged(capture));
	assert_flood_told(all);
	capture_stop(capture);
}

static void test_full_pipe_drops_lines_and_tells_their_number_later(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	flood_and_resume(&capture);
}

static void test_full_socket_drops_lines_and_tells_their_number_later(void **state)
{
	struct capture capture;
	capture_socket(&capture);
	flood_and_resume(&capture);
}

static void test_stuck_terminal_drops_lines_and_tells_their_number_later(void **state)
{
	struct capture capture;
	capture_terminal(&capture);
	flood_and_resume(&capture);
}

static void test_forked_child_never_blocks_on_the_shared_pipe_either(void **state)
{
	struct capture capture;
	capture_pipe(&capture);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(60);
		log_info("from the child");
		flood();
		_exit(0);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_memory_equal(logged(&capture), "<6>from the child\n<6>0000 ", 26);
	capture_stop(&capture);
}

int main(void)
{
	alarm(100); // a log that blocks ends here
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_pipe_drops_lines_and_tells_their_number_later),
		cmocka_unit_test(test_full_socket_drops_lines_and_tells_their_number_later),
		cmocka_unit_test(test_stuck_terminal_drops_lines_and_tells_their_number_later),
		cmocka_unit_test(test_forked_child_never_blocks_on_the_shared_pipe_either),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
