/* SPDX-License-Identifier: MIT */
#include "providers/local/net/lookup.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/local/net/confinement.h"

static int to_process;
static pid_t process;

static int start_process(void **state)
{
	int sockets[2];
	struct error err;
	assert_true(confinement_prepare(&err));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	process = fork();
	assert_true(process >= 0);
	if (process == 0) {
		close(sockets[0]);
		alarm(120);
		lookup_run(sockets[1]);
	}
	close(sockets[1]);
	to_process = sockets[0];
	return 0;
}

/* The process ends when its socket ends. */
static int end_process(void **state)
{
	int status;
	fd_close(&to_process);
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return 0;
}

static void ask_without(uint32_t id, const char *name, const char *first, const char *second)
{
	struct lookup_request request = {.id = id};
	text_whole(request.name, sizeof(request.name), "%s", name);
	text_whole(request.avoid[0], sizeof(request.avoid[0]), "%s", first);
	text_whole(request.avoid[1], sizeof(request.avoid[1]), "%s", second);
	size_t size = lookup_request_size(&request);
	assert_int_equal(size, offsetof(struct lookup_request, avoid) +
				       (second[0] ? 2 : first[0] != '\0') * NAME_SIZE);
	assert_int_equal(send(to_process, &request, size, 0), size);
}

static void ask(uint32_t id, const char *name)
{
	ask_without(id, name, "", "");
}

static struct lookup_answer answer(void)
{
	char bytes[sizeof(struct lookup_answer) + 1];
	struct lookup_answer out;
	ssize_t size = recv(to_process, bytes, sizeof(bytes), 0);
	assert_true(size > 0);
	assert_true(lookup_read((struct span){bytes, (size_t)size}, &out));
	return out;
}

static void test_this_machines_addresses_are_its_own(void **state)
{
	const struct address expected = address_from_ipv4(INADDR_LOOPBACK);
	ask(7, "127.0.0.1");
	struct lookup_answer own = answer();
	assert_int_equal(own.id, 7);
	assert_int_equal(own.count, 1);
	assert_memory_equal(&own.found[0].address, &expected, sizeof(expected));
	assert_true(own.found[0].is_own);
	ask(8, "192.0.2.1");
	struct lookup_answer other = answer();
	assert_int_equal(other.count, 1);
	assert_false(other.found[0].is_own);
}

static void test_an_address_that_is_to_be_avoided_is_told(void **state)
{
	static const struct {
		const char *name;
		const char *avoid;
		const char *too;
		bool is_avoided;
	} cases[] = {
		{"192.0.2.1", "", "", false},
		{"192.0.2.1", "192.0.2.2", "", false},
		{"192.0.2.1", "192.0.2.1", "", true},
		{"::ffff:192.0.2.1", "192.0.2.1", "", true},
		{"192.0.2.1", "64:ff9b::192.0.2.1", "", true},
		{"127.0.0.1", "127.0.0.2", "", true}, // both are this machine
		{"192.0.2.1", "127.0.0.2", "", false},
		{"192.0.2.1", "-", "", true}, // nobody knows its address
		{"192.0.2.1", "192.0.2.1", "192.0.2.2", true},
		{"192.0.2.1", "192.0.2.2", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", "192.0.2.3", false},
	};
	for (uint32_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		ask_without(i, cases[i].name, cases[i].avoid, cases[i].too);
		struct lookup_answer out = answer();
		assert_int_equal(out.count, 1);
		if (out.found[0].is_avoided != cases[i].is_avoided) {
			fail_msg("%s, %s, %s", cases[i].name, cases[i].avoid, cases[i].too);
		}
	}
}

static void test_each_request_has_an_answer(void **state)
{
	enum { REQUESTS = 100 };
	bool seen[REQUESTS] = {false};
	for (uint32_t i = 0; i < REQUESTS; i++) {
		char name[NAME_SIZE];
		text_whole(name, sizeof(name), "192.0.2.%u", i);
		ask(i, name);
	}
	for (int i = 0; i < REQUESTS; i++) {
		struct lookup_answer out = answer();
		assert_true(out.id < REQUESTS && !seen[out.id]);
		assert_int_equal(out.found[0].address.bytes[3], out.id);
		seen[out.id] = true;
	}
}

static void test_an_answer_that_is_none_is_refused(void **state)
{
	struct lookup_answer out, wrong = {.count = LOOKUP_ADDRESSES_MAX + 1};
	struct span packet = {(const char *)&wrong, sizeof(wrong)};
	assert_false(lookup_read(packet, &out));
	wrong.count = 1;
	assert_false(lookup_read(packet, &out));
	wrong.found[0].address.family = AF_INET6;
	assert_true(lookup_read(packet, &out));
	packet.len--;
	assert_false(lookup_read(packet, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_this_machines_addresses_are_its_own, start_process, end_process),
		cmocka_unit_test_setup_teardown(
			test_an_address_that_is_to_be_avoided_is_told, start_process, end_process),
		cmocka_unit_test_setup_teardown(
			test_each_request_has_an_answer, start_process, end_process),
		cmocka_unit_test(test_an_answer_that_is_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
