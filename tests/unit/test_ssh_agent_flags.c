/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_key_file.h"

/* The flags with which the ssh-agent is asked to sign. The test is the agent. */
enum { REQUEST_MAX = 4096, SIGN_REQUEST = 13, SIGN_RESPONSE = 14, USERAUTH_REQUEST = 50 };

static const struct agent_key key = {.blob = {"the key", 7}};

static void put_byte(struct buf *buf, char byte)
{
	assert_true(buf_append(buf, (struct span){&byte, 1}, NULL));
}

static void put_text(struct buf *buf, const char *text)
{
	assert_true(wire_put_string(buf, span_of(text), NULL));
}

/* The data that libssh2 has signed (RFC 4252, 7). */
static void put_login(struct buf *data, char number, const char *method, const char *algorithm)
{
	buf_init(data, REQUEST_MAX);
	put_text(data, "the id of the session");
	put_byte(data, number);
	put_text(data, "kim");
	put_text(data, "ssh-connection");
	put_text(data, method);
	put_byte(data, 1);
	put_text(data, algorithm);
	assert_true(wire_put_string(data, key.blob, NULL));
}

/* Writes the answer before the question is sent. */
static void put_answer(int fd)
{
	struct buf signature ATTR_CLEANUP(buf_finish);
	struct buf answer ATTR_CLEANUP(buf_finish);
	buf_init(&signature, REQUEST_MAX);
	buf_init(&answer, REQUEST_MAX);
	put_text(&signature, "any-format");
	put_text(&signature, "signed");
	assert_true(wire_put_u32(&answer, 1 + WIRE_U32_SIZE + signature.len, NULL));
	put_byte(&answer, SIGN_RESPONSE);
	assert_true(wire_put_string(&answer, buf_span(&signature), NULL));
	assert_true(fd_write_all(fd, buf_span(&answer), NULL));
}

/* The flags that the agent got with this data. */
static unsigned int flags_asked(struct span data)
{
	int fds[2];
	char bytes[REQUEST_MAX];
	struct error err;
	atomic_bool is_aborted;
	unsigned char *signature = NULL;
	size_t size = 0;
	unsigned int flags = 99;
	atomic_init(&is_aborted, false);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	struct agent agent = {
		.fd = fds[0], .deadline_ms = clock_now_ms() + 10000, .is_aborted = &is_aborted};
	buf_init(&agent.answer, AGENT_MESSAGE_MAX);
	put_answer(fds[1]);
	assert_true(agent_sign(&agent, &key, data, &signature, &size, &err));
	assert_int_equal(size, 6);
	assert_memory_equal(signature, "signed", 6);
	free(signature);
	ssize_t count = read(fds[1], bytes, sizeof(bytes));
	size_t expected = WIRE_U32_SIZE + 1 + 2 * WIRE_U32_SIZE + key.blob.len + data.len;
	assert_int_equal(count, expected + WIRE_U32_SIZE);
	assert_int_equal(bytes[WIRE_U32_SIZE], SIGN_REQUEST);
	struct span rest = {bytes + expected, WIRE_U32_SIZE};
	assert_true(wire_take_u32(&rest, &flags));
	agent_close(&agent);
	fd_close(&fds[1]);
	return flags;
}

static void assert_flags(
	char number, const char *method, const char *algorithm, unsigned int expected)
{
	struct buf data ATTR_CLEANUP(buf_finish);
	put_login(&data, number, method, algorithm);
	assert_int_equal(flags_asked(buf_span(&data)), expected);
}

static void test_an_rsa_key_signs_as_the_login_says(void **state)
{
	assert_flags(USERAUTH_REQUEST, "publickey", "rsa-sha2-256", 2);
	assert_flags(USERAUTH_REQUEST, "publickey", "rsa-sha2-512", 4);
	assert_flags(USERAUTH_REQUEST, "publickey", "ssh-rsa", 0);
	assert_flags(USERAUTH_REQUEST, "publickey", "ssh-ed25519", 0);
}

static void test_what_is_no_login_has_no_flags(void **state)
{
	assert_flags(USERAUTH_REQUEST + 1, "publickey", "rsa-sha2-256", 0);
	assert_flags(USERAUTH_REQUEST, "hostbased", "rsa-sha2-256", 0);
	assert_int_equal(flags_asked(SPAN_LITERAL("anything")), 0);
}

/* The memory has exactly that size, so that a checker notices a read beyond it. */
static void test_a_login_that_is_cut_short_has_no_flags(void **state)
{
	struct buf data ATTR_CLEANUP(buf_finish);
	put_login(&data, USERAUTH_REQUEST, "publickey", "rsa-sha2-256");
	size_t whole = data.len - WIRE_U32_SIZE - key.blob.len;
	for (size_t len = 0; len < whole; len++) {
		char *copy = mem_alloc(len + 1);
		memcpy(copy + 1, data.data, len);
		assert_int_equal(flags_asked((struct span){copy + 1, len}), 0);
		free(copy);
	}
	assert_int_equal(flags_asked((struct span){data.data, whole}), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_rsa_key_signs_as_the_login_says),
		cmocka_unit_test(test_what_is_no_login_has_no_flags),
		cmocka_unit_test(test_a_login_that_is_cut_short_has_no_flags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
