/* SPDX-License-Identifier: MIT */
#include "providers/local/net/program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

/* A socket that is connected to a listener of ours, and its port. */
static int connect_here(int family, int *out_listener, uint16_t *out_port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = 0};
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in listening;
	socklen_t size = sizeof(listening);
	four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&four, sizeof(four)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&listening, &size), 0);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	six.sin6_port = listening.sin_port;
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
	const void *name = family == AF_INET ? (const void *)&listening : (const void *)&six;
	size = family == AF_INET ? sizeof(listening) : sizeof(six);
	assert_int_equal(connect(fd, name, size), 0);
	struct sockaddr_in6 own;
	size = sizeof(own);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
	*out_port = ntohs(own.sin6_port); // for IPv4 it is at the same place
	*out_listener = listener;
	return fd;
}

static ino_t own_namespace(void)
{
	struct stat status;
	assert_int_equal(stat("/proc/self/ns/net", &status), 0);
	return status.st_ino;
}

static void test_who_has_a_connection_is_found_by_its_port(void **state)
{
	static const int families[] = {AF_INET, AF_INET6};
	char program[PROGRAM_SIZE];
	for (size_t i = 0; i < 2; i++) {
		uint16_t port;
		int listener;
		int fd = connect_here(families[i], &listener, &port);
		program_find(own_namespace(), port, program);
		assert_non_null(strstr(program, "test_net_program"));
		fd_close(&fd);
		fd_close(&listener);
		program_find(own_namespace(), port, program);
		assert_string_equal(program, "");
	}
}

static void test_in_another_namespace_there_is_nobody(void **state)
{
	char program[PROGRAM_SIZE];
	uint16_t port;
	int listener;
	int fd = connect_here(AF_INET, &listener, &port);
	program_find(own_namespace() + 1, port, program);
	assert_string_equal(program, "");
	program_find(0, port, program);
	assert_string_equal(program, "");
	fd_close(&fd);
	fd_close(&listener);
}

static void test_what_is_no_socket_has_no_namespace(void **state)
{
	assert_int_equal(program_namespace(STDIN_FILENO), 0);
	assert_int_equal(program_namespace(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_has_a_connection_is_found_by_its_port),
		cmocka_unit_test(test_in_another_namespace_there_is_nobody),
		cmocka_unit_test(test_what_is_no_socket_has_no_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
