/* SPDX-License-Identifier: MIT */
#include "broker/methods/inquiry.h"

#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/unit/relay_fixture.h"

static char store_folder[64];
static sem_t gate;

static int set_up_store(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	fixture->pool = pool_create(fixture->stage.loop);
	snprintf(store_folder, sizeof(store_folder), "/tmp/test-inquiry-XXXXXX");
	assert_non_null(mkdtemp(store_folder));
	assert_int_equal(sem_init(&gate, 0, 0), 0);
	return 0;
}

static int tear_down_store(void **state)
{
	char command[128];
	int result = tear_down(state);
	snprintf(command, sizeof(command), "rm -rf %s", store_folder);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	sem_destroy(&gate);
	return result;
}

static struct peer *begin_with_peer(struct fixture *fixture)
{
	begin_with_session(fixture);
	return session_find(&fixture->relay->sessions, "s")->peer;
}

static struct inquiry *make(struct peer *peer, const char *id)
{
	struct call call = {.message = {.id = span_of(id)}};
	return inquiry_create(peer, &call, store_folder);
}

/* ---- inquiries on the pool ---- */

static bool find_nothing(struct inquiry *inquiry, struct store *store, struct error *err)
{
	git_oid tree;
	struct error missing;
	bool is_empty = !store_find(store, "checkpoints/1", &tree, &missing);
	return buf_append_format(
		&inquiry->result, err, "{\"isEmpty\":%s}", is_empty ? "true" : "false");
}

static bool refuse(struct inquiry *inquiry, struct store *store, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, "there is none");
}

static bool wait_at_gate(struct inquiry *inquiry, struct store *store, struct error *err)
{
	sem_wait(&gate);
	return refuse(inquiry, store, err);
}

static void make_waiting(struct peer *peer, const char *id)
{
	struct inquiry *inquiry = make(peer, id);
	inquiry->run = wait_at_gate;
	inquiry_submit(inquiry);
}

static void test_what_was_found_is_the_answer(void **state)
{
	struct fixture *fixture = *state;
	struct inquiry *inquiry = make(begin_with_peer(fixture), "\"x\"");
	inquiry->run = find_nothing;
	inquiry_submit(inquiry);
	editor_hears(fixture, "'id':'x','result':{'isEmpty':true}");
}

static void test_an_error_is_the_answer(void **state)
{
	struct fixture *fixture = *state;
	struct inquiry *inquiry = make(begin_with_peer(fixture), "7");
	inquiry->run = refuse;
	inquiry_submit(inquiry);
	char *line = editor_line(fixture);
	assert_non_null(strstr(line, "\"id\":7,\"error\""));
	assert_non_null(strstr(line, "there is none"));
	assert_non_null(strstr(line, "\"stage\":\"sync\""));
	free(line);
}

static void test_a_store_that_cannot_be_opened_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	struct peer *peer = begin_with_peer(fixture);
	struct inquiry *inquiry = make(peer, "7");
	free(inquiry->store_folder);
	inquiry->store_folder = mem_strdup("/dev/null/store");
	inquiry->run = find_nothing;
	inquiry_submit(inquiry);
	editor_hears_failure(fixture, "7", "SYSTEM_ERROR", "sync", "/dev/null/store");
}

static const struct error ended = {.code = ERROR_UNAVAILABLE,
	.reason = "AGENT_EXITED",
	.stage = "relay",
	.text = "it has ended"};

static void test_all_of_a_peer_are_answered_once_when_it_ends(void **state)
{
	struct fixture *fixture = *state;
	struct peer *peer = begin_with_peer(fixture);
	struct inquiry *running = make(peer, "1");
	running->run = wait_at_gate;
	inquiry_submit(running);
	struct inquiry *waiting = make(peer, "2"); // one waits behind it, the other beside it
	waiting->run = wait_at_gate;
	inquiry_submit(waiting);
	make(peer, "3"); // on the loop: a sync goes on for it
	inquiry_drop_all(peer, &ended);
	assert_true(list_is_empty(inquiries_of(peer)));
	for (int id = 1; id <= 3; id++) {
		char text[8];
		snprintf(text, sizeof(text), "%d", id);
		editor_hears_failure(fixture, text, "AGENT_EXITED", "relay", "it has ended");
	}
	sem_post(&gate);
	sem_post(&gate);
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture); // nobody is told about the one that has run
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_store, tear_down_store)

static void test_no_more_than_max_requests_are_under_way(void **state)
{
	struct fixture *fixture = *state;
	struct peer *peer = begin_with_peer(fixture);
	profile_of(fixture)->max_requests = 2;
	make_waiting(peer, "1");
	make_waiting(peer, "2");
	editor_says(fixture, "'id':3,'method':'_broker/health','params':{}");
	editor_hears_failure(fixture, "3", "RESOURCE_LIMIT_EXCEEDED", "relay",
		"more _broker/ requests than max-requests");
	editor_says(fixture, "'id':4,'method':'_broker/usage','params':{}"); // waits for nothing
	char *usage = editor_line(fixture);
	assert_non_null(strstr(usage, "\"id\":4,\"result\""));
	free(usage);
	sem_post(&gate);
	sem_post(&gate);
	free(editor_line(fixture));
	free(editor_line(fixture));
	editor_says(fixture, "'id':5,'method':'_broker/policy/explain','params':{}");
	editor_hears_failure(fixture, "5", "INVALID_PARAMS", "session", "sessionId");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_what_was_found_is_the_answer),
		STORE_TEST(test_an_error_is_the_answer),
		STORE_TEST(test_a_store_that_cannot_be_opened_is_an_error),
		STORE_TEST(test_all_of_a_peer_are_answered_once_when_it_ends),
		STORE_TEST(test_no_more_than_max_requests_are_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
