/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/connector.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static int ends[2]; // who asks, who serves
static int listener;
static uint16_t port;

static int set_up(void **state)
{
	struct error err;
	struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(name);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_set = listener >= 0 &&
	              bind(listener, (const struct sockaddr *)&name, sizeof(name)) == 0 &&
	              listen(listener, 4) == 0 &&
	              getsockname(listener, (struct sockaddr *)&name, &size) == 0 &&
	              connector_open(ends, &err);
	port = ntohs(name.sin_port);
	return is_set ? 0 : -1;
}

static int tear_down(void **state)
{
	fd_close(&listener);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return 0;
}

static void ask(uint32_t id, uint16_t wanted)
{
	const struct connector_request request = {.id = id, .port = wanted};
	assert_true(connector_ask(ends[0], &request));
}

static void test_a_named_port_is_connected_to(void **state)
{
	struct connector_answer answer;
	char byte;
	ask(7, port);
	assert_true(connector_serve(ends[1], &port, 1));
	ATTR_CLEANUP(fd_cleanup) int fd = -1;
	assert_int_equal(connector_take(ends[0], &answer, &fd), 1);
	assert_int_equal(answer.id, 7);
	assert_int_equal(answer.errnum, 0);
	ATTR_CLEANUP(fd_cleanup) int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	assert_int_equal(write(accepted, "x", 1), 1);
	fd_close(&accepted);
	while (read(fd, &byte, 1) < 0) {
		assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(byte, 'x');
	assert_int_equal(connector_take(ends[0], &answer, &fd), 0);
}

static void test_no_other_port_is_connected_to(void **state)
{
	struct connector_answer answer;
	int fd;
	const uint16_t named = (uint16_t)(port + 1);
	ask(1, port);
	assert_true(connector_serve(ends[1], &named, 1));
	assert_int_equal(connector_take(ends[0], &answer, &fd), 1);
	assert_int_equal(answer.errnum, EACCES);
	assert_int_equal(fd, -1);
	struct pollfd waiting = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&waiting, 1, 0), 0);
}

static void test_a_port_without_a_program_answers_with_an_error(void **state)
{
	struct connector_answer answer;
	int fd;
	fd_close(&listener);
	ask(1, port);
	assert_true(connector_serve(ends[1], &port, 1));
	assert_int_equal(connector_take(ends[0], &answer, &fd), 1);
	if (fd >= 0) { // it was still connecting
		struct pollfd refused = {.fd = fd, .events = POLLOUT};
		socklen_t size = sizeof(answer.errnum);
		assert_int_equal(poll(&refused, 1, -1), 1);
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &answer.errnum, &size), 0);
		fd_close(&fd);
	}
	assert_int_equal(answer.errnum, ECONNREFUSED);
}

static void test_each_side_sees_the_end_of_the_other_and_what_is_no_message(void **state)
{
	struct connector_answer answer;
	int fd;
	assert_int_equal(send(ends[0], "x", 1, MSG_NOSIGNAL), 1);
	assert_false(connector_serve(ends[1], &port, 1));
	assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(connector_take(ends[0], &answer, &fd), -1);
	fd_close(&ends[1]);
	assert_int_equal(connector_take(ends[0], &answer, &fd), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_named_port_is_connected_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_no_other_port_is_connected_to, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_port_without_a_program_answers_with_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_each_side_sees_the_end_of_the_other_and_what_is_no_message, set_up,
			tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
