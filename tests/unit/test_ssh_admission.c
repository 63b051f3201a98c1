/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/pipe_client.h"
#include "tests/support/facts.h"

/*
 * A host that asks before each connection. Each event of a turn is noted as a letter: a(sked),
 * g(ranted), r(efused), c(ancelled), s(ettled).
 */
static struct stage stage;

static struct gate {
	char told[32];
	struct ssh_admission_turn *turn; // the one that was asked last
	bool was_asked;
	bool answers_at_once;
	bool refuses;
	size_t count;
} gate;

static void tell(char letter)
{
	size_t len = strlen(gate.told);
	assert_in_range(len, 0, sizeof(gate.told) - 2);
	gate.told[len] = letter;
}

static void grant(void)
{
	char user[32];
	snprintf(user, sizeof(user), "token-%zu", ++gate.count);
	tell('g');
	ssh_admission_grant(gate.turn, user);
	memset(user, 'x', sizeof(user)); // it was copied
}

static void refuse(void)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "NO_TOKEN", "none is given today");
	tell('r');
	ssh_admission_refuse(gate.turn, &err);
	err.text[0] = '\0';
}

static void on_ask(void *data, struct ssh_admission_turn *turn)
{
	assert_ptr_equal(data, &gate);
	tell('a');
	gate.turn = turn;
	gate.was_asked = true;
	if (gate.answers_at_once) {
		gate.refuses ? refuse() : grant();
	}
}

static void on_cancel(void *data, struct ssh_admission_turn *turn)
{
	assert_ptr_equal(turn, gate.turn);
	tell('c');
}

static void on_settled(void *data, struct ssh_admission_turn *turn)
{
	assert_ptr_equal(turn, gate.turn);
	tell('s');
}

static const struct ssh_admission admission = {
	.ask = on_ask, .cancel = on_cancel, .settled = on_settled};

static int set_up(void **state)
{
	pipe_client_options = (struct pipe_client_options){.shell = "/bin/sh", .home = "/tmp"};
	gate = (struct gate){.answers_at_once = true};
	stage_init(&stage);
	stage.target.user = (char *)"nobody";
	stage.request.admission = &admission;
	stage.request.admission_data = &gate;
	stage.request.max_connections = 1;
	return 0;
}

static int tear_down(void **state)
{
	int open = 0;
	pipe_clients_freeze(false);
	stage_finish(&stage);
	for (const char *at = gate.told; *at; at++) {
		open += *at == 'a' ? 1 : *at == 'g' ? 0 : -1;
	}
	assert_int_equal(open, 0); // every turn has had one end
	return 0;
}

static void expect_failure(const char *reason, const char *text)
{
	stage_start(&stage);
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, reason);
	if (!text_names(stage.err.text, text)) {
		fail_msg("%s", stage.err.text);
	}
	assert_null(strstr(stage.err.text, "token-"));
	assert_null(strstr(stage.progress, "token-"));
}

static void test_a_granted_name_logs_in(void **state)
{
	stage_open(&stage);
	assert_string_equal(gate.told, "ags");
	assert_string_equal(pipe_client_options.users, "token-1 ");
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	assert_int_equal(pipe_client_options.connection_count, 1);
}

static void test_it_may_be_granted_later(void **state)
{
	gate.answers_at_once = false;
	stage_start(&stage);
	assert_string_equal(gate.told, ""); // not before it returns
	stage_run_until(&stage, &gate.was_asked);
	stage_run_for(&stage, 30);
	assert_int_equal(pipe_client_options.connection_count, 0);
	grant();
	assert_int_equal(pipe_client_options.connection_count, 0);
	stage_run_until(&stage, &stage.is_ready);
	assert_string_equal(gate.told, "ags");
}

static void test_a_refusal_is_the_error(void **state)
{
	gate.refuses = true;
	expect_failure("NO_TOKEN", "none is given today");
	assert_string_equal(gate.told, "ar");
	assert_int_equal(pipe_client_options.connection_count, 0);
}

static void test_one_who_leaves_cancels(void **state)
{
	gate.answers_at_once = false;
	stage_start(&stage);
	stage_run_until(&stage, &gate.was_asked);
	ssh_host_close(stage.host);
	stage.host = NULL;
	assert_string_equal(gate.told, "ac");
}

static void test_one_who_leaves_before_he_asked_says_nothing(void **state)
{
	stage_start(&stage);
	ssh_host_close(stage.host);
	stage.host = NULL;
	stage_run_for(&stage, 20);
	assert_string_equal(gate.told, "");
}

static void test_one_who_leaves_with_a_grant_settles(void **state)
{
	gate.answers_at_once = false;
	stage_start(&stage);
	stage_run_until(&stage, &gate.was_asked);
	grant();
	ssh_host_close(stage.host);
	stage.host = NULL;
	assert_string_equal(gate.told, "ags");
	assert_int_equal(pipe_client_options.connection_count, 0);
}

static void test_the_wait_has_a_deadline(void **state)
{
	gate.answers_at_once = false;
	stage.target.auth_timeout_ms = 100;
	expect_failure("TIMEOUT_EXCEEDED", "auth-timeout");
	assert_string_equal(gate.told, "ac");
}

/* Processes that the first connection has started, with the run's name, may end late. */
static void test_a_drop_after_the_login_is_tried_once_more(void **state)
{
	char token[SSH_TOKEN_SIZE];
	pipe_client_options.drops = 1;
	stage_start(&stage);
	snprintf(token, sizeof(token), "%s", stage.host->token);
	stage_run_until(&stage, &stage.is_ready);
	assert_string_not_equal(stage.host->token, token);
	assert_string_equal(gate.told, "agsags");
	assert_string_equal(pipe_client_options.users, "token-1 token-2 ");
	assert_non_null(strstr(stage.progress, "dropped"));
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
}

static void test_a_second_drop_is_explained(void **state)
{
	pipe_client_options.drops = 5;
	expect_failure("LINK_LOST", "no longer valid | sandbox");
	assert_string_equal(gate.told, "agsags");
	assert_int_equal(pipe_client_options.connection_count, 2);
}

static void test_a_refused_login_is_tried_once_more(void **state)
{
	pipe_client_options.login_failures = 1;
	pipe_client_options.login_reason = "AUTH_FAILED";
	stage_open(&stage);
	assert_string_equal(gate.told, "agsags");
	pipe_client_options.login_failures = 0;
}

static void test_a_host_that_is_not_reached_is_not_asked_twice(void **state)
{
	pipe_client_options.login_failures = 1;
	pipe_client_options.login_reason = "HOST_UNREACHABLE";
	expect_failure("HOST_UNREACHABLE", "no more of them");
	assert_string_equal(gate.told, "ags");
}

/* The user of the host has heard of the failure, but has not closed the host yet. */
static void test_a_drop_of_a_host_that_has_failed_is_nothing(void **state)
{
	stage.request.channel_timeout_ms = 50;
	pipe_clients_freeze(true); // no channel is opened
	expect_failure("TIMEOUT_EXCEEDED", "channel-timeout");
	pipe_clients_cut();
	stage_run_for(&stage, 20);
	assert_string_equal(gate.told, "ags");
}

static void test_a_loss_after_the_first_use_is_none_of_it(void **state)
{
	stage_open(&stage);
	pipe_clients_cut();
	assert_true(stage.has_failed);
	assert_string_equal(stage.err.text, "the connection was cut");
	assert_string_equal(gate.told, "ags");
}

#define ADMISSION_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		ADMISSION_TEST(test_a_granted_name_logs_in),
		ADMISSION_TEST(test_it_may_be_granted_later),
		ADMISSION_TEST(test_a_refusal_is_the_error),
		ADMISSION_TEST(test_one_who_leaves_cancels),
		ADMISSION_TEST(test_one_who_leaves_before_he_asked_says_nothing),
		ADMISSION_TEST(test_one_who_leaves_with_a_grant_settles),
		ADMISSION_TEST(test_the_wait_has_a_deadline),
		ADMISSION_TEST(test_a_drop_after_the_login_is_tried_once_more),
		ADMISSION_TEST(test_a_second_drop_is_explained),
		ADMISSION_TEST(test_a_refused_login_is_tried_once_more),
		ADMISSION_TEST(test_a_host_that_is_not_reached_is_not_asked_twice),
		ADMISSION_TEST(test_a_drop_of_a_host_that_has_failed_is_nothing),
		ADMISSION_TEST(test_a_loss_after_the_first_use_is_none_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
