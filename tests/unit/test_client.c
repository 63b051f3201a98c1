/* SPDX-License-Identifier: MIT */
#include "broker/client/client.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/support/facts.h"

enum { TOLD_MAX = 1024, DRAIN_MS = 5 };

/* What was raised, a word each. */
struct fixture {
	struct ev_loop *loop;
	struct client *client;
	char told[TOLD_MAX];
	int refuse; // how many messages are refused yet
	struct ev_timer later;
};

static void tell(struct fixture *fixture, const char *format, ...) ATTR_PRINTF(2, 3);

static void tell(struct fixture *fixture, const char *format, ...)
{
	size_t len = strlen(fixture->told);
	va_list args;
	va_start(args, format);
	vsnprintf(fixture->told + len, TOLD_MAX - len, format, args);
	va_end(args);
}

static void on_later(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct fixture *fixture = timer->data;
	client_resume(fixture->client);
}

static bool on_message(void *data, const struct message *message)
{
	struct fixture *fixture = data;
	if (fixture->refuse > 0) {
		fixture->refuse--;
		ev_timer_init(&fixture->later, on_later, 10 * DRAIN_MS / 1000.0, 0);
		fixture->later.data = fixture;
		ev_timer_start(fixture->loop, &fixture->later);
		return false;
	}
	tell(fixture, "%s:%ld ", message->method, client_id_of(message));
	return true;
}

static void on_ended(void *data, const struct client_end *end)
{
	struct fixture *fixture = data;
	tell(fixture, "ended(%d %d %s)", end->code, end->signal, end->err ? "failed" : "");
	ev_break(fixture->loop, EVBREAK_ALL);
}

static const struct client_listener listener = {.on_message = on_message, .on_ended = on_ended};

/* Runs a shell script as the program, to its end; calls `act` on the client first. */
static void play(struct fixture *fixture, const char *script, void (*act)(struct client *client))
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct error err;
	fixture->loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV);
	struct client_config config = {
		.loop = fixture->loop,
		.argv = argv,
		.environment = environment,
		.max_message = 1024,
		.drain_ms = DRAIN_MS,
		.listener = &listener,
		.data = fixture,
	};
	fixture->client = client_create(&config, &err);
	assert_non_null(fixture->client);
	if (act) {
		act(fixture->client);
	}
	ev_run(fixture->loop, 0);
	client_destroy(fixture->client);
	ev_loop_destroy(fixture->loop);
}

#define NOTE "printf '{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\\n';"

static void test_messages_come_before_the_end(void **state)
{
	struct fixture fixture = {0};
	play(&fixture, NOTE "printf '{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\\n'; exit 3",
		NULL);
	assert_string_equal(fixture.told, "note:-1 :7 ended(3 0 )");
}

static void test_a_refused_message_comes_again_after_the_end(void **state)
{
	struct fixture fixture = {.refuse = 2};
	play(&fixture, NOTE NOTE, NULL);
	assert_string_equal(fixture.told, "note:-1 note:-1 ended(0 0 )");
}

static void test_a_line_that_is_no_message_ends_it(void **state)
{
	struct fixture fixture = {0};
	play(&fixture, "echo banner; cat >/dev/null; exit 4", NULL);
	assert_string_equal(fixture.told, "ended(4 0 failed)");
	struct fixture longer = {0};
	play(&longer, "printf '[\"%02000d\"]\\n' 0; cat >/dev/null", NULL);
	assert_string_equal(longer.told, "ended(0 0 failed)");
}

static void ask_and_close(struct client *client)
{
	client_request(client, 5, "m", SPAN_LITERAL("{}"));
	client_close(client);
	client_close(client);
}

static void test_what_was_sent_is_read_before_the_end_of_stdin(void **state)
{
	struct fixture fixture = {0};
	play(&fixture,
		"read line; [ \"$line\" = "
		"'{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\",\"params\":{}}' ] || exit 1;"
		"read line && exit 1; exit 9",
		ask_and_close);
	assert_string_equal(fixture.told, "ended(9 0 )");
}

static void end(struct client *client)
{
	client_signal(client, SIGTERM);
}

static void test_a_signal_is_told_and_what_holds_stdout_is_not_waited_for(void **state)
{
	struct fixture fixture = {0};
	play(&fixture, "exec cat", end);
	assert_string_equal(fixture.told, "ended(0 15 )");
	struct fixture held = {0};
	play(&held, "(trap '' HUP; read line <&3; exec cat) 3<&0 </dev/null & exit 0", NULL);
	assert_string_equal(held.told, "ended(0 0 )");
}

static void test_a_program_that_is_not_there_is_an_error(void **state)
{
	const char *const argv[] = {"/nowhere/broker", NULL};
	struct error err;
	struct client_config config = {
		.loop = ev_loop_new(EVBACKEND_POLL | EVFLAG_NOENV),
		.argv = argv,
		.environment = &argv[1],
		.max_message = 1024,
		.listener = &listener,
	};
	assert_null(client_create(&config, &err));
	assert_names(err.text, "/nowhere/broker");
	ev_loop_destroy(config.loop);
}

static void test_the_own_program_is_the_file_that_runs(void **state)
{
	struct stat own;
	struct stat found;
	char *path = client_own_program();
	assert_int_equal(path[0], '/');
	assert_int_equal(stat("/proc/self/exe", &own), 0);
	assert_int_equal(stat(path, &found), 0);
	assert_int_equal(own.st_ino, found.st_ino);
	assert_null(strstr(path, "/proc/"));
	free(path);
}

static void test_an_error_is_one_line(void **state)
{
	static const struct {
		const char *error;
		const char *text;
	} cases[] = {
		{"{\"code\":-32000,\"message\":\"log in\"}", "log in (-32000)"},
		{"{\"code\":-32603,\"message\":\"a\\nb\\u001b[1m\",\"data\":{\"code\":\"C\","
		 "\"stage\":\"s\",\"detail\":\"x\\ty\"}}",
			"a b^[[1m (C, s): x y"},
		// exact: the words of a whole line, in which an agent's number stands
		{"{\"code\":1,\"message\":7,\"data\":[]}", "an error without a message (1)"},
		// exact: the same
		{"{}", "an error without a message (0)"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		assert_false(client_error_read(&err, span_of(cases[i].error), NULL, 0));
		assert_string_equal(err.text, cases[i].text);
	}
}

static void test_the_reason_of_an_error_says_whose_it_is(void **state)
{
	static const struct error_reason own[] = {{"HOST_GONE", true, "wait"}};
	static const struct {
		const char *error;
		const char *reason;
	} cases[] = {
		{"{\"code\":-32603,\"message\":\"x\"}", "AGENT_ERROR"},
		{"{\"code\":-32000,\"message\":\"x\"}", "LOGIN_NEEDED"},
		{"{\"code\":-32603,\"data\":{\"code\":\"LINK_LOST\",\"stage\":\"relay\"}}",
			"LINK_LOST"},
		{"{\"code\":-32603,\"data\":{\"code\":\"HOST_GONE\",\"stage\":\"prepare\"}}",
			"HOST_GONE"},
		{"{\"code\":-32603,\"data\":{\"code\":\"ELSE\",\"stage\":\"relay\"}}",
			"AGENT_ERROR"},
		{"{\"code\":-32603,\"data\":{\"code\":\"LINK_LOST\"}}", "AGENT_ERROR"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		client_error_read(&err, span_of(cases[i].error), own, ARRAY_LENGTH(own));
		assert_string_equal(error_told_code(&err), cases[i].reason);
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_come_before_the_end),
		cmocka_unit_test(test_a_refused_message_comes_again_after_the_end),
		cmocka_unit_test(test_a_line_that_is_no_message_ends_it),
		cmocka_unit_test(test_what_was_sent_is_read_before_the_end_of_stdin),
		cmocka_unit_test(test_a_signal_is_told_and_what_holds_stdout_is_not_waited_for),
		cmocka_unit_test(test_a_program_that_is_not_there_is_an_error),
		cmocka_unit_test(test_the_own_program_is_the_file_that_runs),
		cmocka_unit_test(test_an_error_is_one_line),
		cmocka_unit_test(test_the_reason_of_an_error_says_whose_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
