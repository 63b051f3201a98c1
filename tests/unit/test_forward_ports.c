/* SPDX-License-Identifier: MIT */
#include "providers/forward_ports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/fd.h"

static struct forward_port ports[FORWARDS_MAX];
static size_t count;

/* Reads a profile of `forward` and `allow-host` lines, which end with NULL. */
static enum error_code read_lines(const char *const *lines)
{
	struct error err = {.code = ERROR_NONE};
	struct settings settings;
	settings_init(&settings);
	for (size_t i = 0; lines[i]; i += 2) {
		settings_add(&settings, lines[i], lines[i + 1], "test");
	}
	bool is_read = forward_ports_read(&settings, ports, &count, &err) &&
	               forward_ports_check_services(&settings, ports, count, &err);
	settings_finish(&settings);
	assert_int_equal(is_read, err.code == ERROR_NONE);
	return err.code;
}

static enum error_code read_line(const char *line)
{
	return read_lines((const char *const[]){"forward", line, NULL});
}

static void test_lines_are_read(void **state)
{
	static const char *const lines[] = {"forward", "3000", "forward", "8080:65535", NULL};
	assert_int_equal(read_lines(lines), ERROR_NONE);
	assert_int_equal(count, 2);
	assert_int_equal(ports[0].here, 3000);
	assert_int_equal(ports[0].inside, 3000);
	assert_int_equal(ports[1].here, 8080);
	assert_int_equal(ports[1].inside, 65535);
}

static void test_what_is_no_port_is_refused(void **state)
{
	static const char *const wrong[] = {"", "0", "03000", "65536", "100000", "-1", "3000 ",
		"3000:", ":3000", "1:2:3", "127.0.0.1:3000", "http", "3000:0", "+1"};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		assert_int_equal(read_line(wrong[i]), ERROR_CONFIG);
	}
}

static void test_a_port_is_forwarded_once_and_is_free_in_the_cell(void **state)
{
	static const char *const twice[] = {"forward", "3000", "forward", "3000:1", NULL};
	static const char *const shared[] = {"forward", "3000", "forward", "3001:3000", NULL};
	static const char *const service[] = {
		"forward", "8080:3000", "allow-host", "localhost:3000", NULL};
	static const char *const other[] = {
		"forward", "3000:8080", "allow-host", "localhost:3000", NULL};
	assert_int_equal(read_lines(twice), ERROR_CONFIG);
	assert_int_equal(read_lines(shared), ERROR_NONE);
	assert_int_equal(read_lines(service), ERROR_CONFIG);
	assert_int_equal(read_lines(other), ERROR_NONE);
}

static void test_too_many_lines_are_refused(void **state)
{
	static const char *const lines[] = {"forward", "1", "forward", "2", "forward", "3",
		"forward", "4", "forward", "5", "forward", "6", "forward", "7", "forward", "8",
		"forward", "9", NULL};
	assert_int_equal(read_lines(lines + 2), ERROR_NONE);
	assert_int_equal(read_lines(lines), ERROR_LIMIT);
}

static void test_a_free_port_is_chosen_and_a_taken_one_is_refused(void **state)
{
	struct error err;
	uint16_t port = 0;
	int fds[FORWARD_ADDRESSES] = {-1, -1};
	int more[FORWARD_ADDRESSES] = {-1, -1};
	assert_true(forward_port_listen(&port, fds, &err));
	assert_true(port > 0 && fds[0] >= 0);
	assert_false(forward_port_listen(&port, more, &err));
	assert_string_equal(err.reason, "FORWARD_TAKEN");
	assert_int_equal(more[0], -1);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	assert_true(forward_port_listen(&port, more, &err));
	fd_close(&more[0]);
	fd_close(&more[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_read),
		cmocka_unit_test(test_what_is_no_port_is_refused),
		cmocka_unit_test(test_a_port_is_forwarded_once_and_is_free_in_the_cell),
		cmocka_unit_test(test_too_many_lines_are_refused),
		cmocka_unit_test(test_a_free_port_is_chosen_and_a_taken_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
