/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"

static bool is_read(const struct keys_message *message, size_t size)
{
	struct keys_message out;
	return keys_read((struct span){(const char *)message, size}, 2, &out);
}

static void test_only_whole_messages_are_read(void **state)
{
	struct keys_message message = {.kind = KEYS_ANSWERED, .index = 1, .status = 200};
	size_t size = sizeof(message);
	assert_true(is_read(&message, size));
	assert_false(is_read(&message, size - 1));
	message.index = 2;
	assert_false(is_read(&message, size));
	message.index = 0;
	message.status = 0;
	assert_true(is_read(&message, size));
	message.status = 1000;
	assert_false(is_read(&message, size));
	message.status = 99;
	assert_false(is_read(&message, size));
	message.kind = KEYS_ANSWERED + 1;
	assert_false(is_read(&message, size));
	message.kind = KEYS_FAILED;
	assert_true(is_read(&message, size));
	memcpy(message.text, "a\x1b[2J", 6);
	assert_false(is_read(&message, size));
	memset(message.text, 'a', sizeof(message.text));
	assert_false(is_read(&message, size));
}

static void test_a_start_needs_a_socket_for_each_key(void **state)
{
	struct keys_start *start = mem_alloc_zero(sizeof(*start));
	struct keys_start *taken = mem_alloc_zero(sizeof(*taken));
	int sockets[2], fds[KEYS_MAX];
	int given[2] = {STDIN_FILENO, STDERR_FILENO};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	start->count = 2;
	memcpy(start->places[1].secret, "the key", sizeof("the key"));
	assert_true(keys_send_start(sockets[0], start, given));
	assert_true(keys_take_start(sockets[1], taken, fds));
	assert_memory_equal(start, taken, sizeof(*start));
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	assert_int_equal(send(sockets[0], start, sizeof(*start), 0), sizeof(*start));
	assert_false(keys_take_start(sockets[1], taken, fds));
	fd_close(&sockets[0]);
	assert_false(keys_take_start(sockets[1], taken, fds));
	fd_close(&sockets[1]);
	free(start);
	free(taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_whole_messages_are_read),
		cmocka_unit_test(test_a_start_needs_a_socket_for_each_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
