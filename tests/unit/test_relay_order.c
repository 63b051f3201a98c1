/* SPDX-License-Identifier: MIT */
#include "tests/unit/roots_fixture.h"

#include <semaphore.h>

#include "base/pool.h"

/* Messages that are sent after a session/load that waits, together with it. */

static const char load[] = "'method':'session/load','params':{'sessionId':'s','cwd':'/w'}";
static const char prompt[] = "'method':'session/prompt','params':{'sessionId':'s'}";

static sem_t let_go;

/* A pool looks for the session in the records; there are none. */
static int set_up_records(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	assert_int_equal(sem_init(&let_go, 0, 0), 0);
	fixture->pool = pool_create(fixture->stage.loop);
	fixture->state_folder = "/dev/null/acp-broker";
	return 0;
}

/* These jobs occupy the pool, so that nobody looks at the records until they are released. */
static struct pool_job busy[POOL_WORK_THREADS];

static void run_busy(struct pool_job *job)
{
	while (sem_wait(&let_go) != 0) {
	}
}

static void on_free(struct pool_job *job)
{
}

static void hold_pool(struct fixture *fixture)
{
	struct error err;
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		busy[i] =
			(struct pool_job){.lane = POOL_LANE_WORK, .run = run_busy, .done = on_free};
		assert_true(pool_submit(fixture->pool, &busy[i], &err));
	}
}

static void let_pool_go(void)
{
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		sem_post(&let_go);
	}
}

static int tear_down_records(void **state)
{
	let_pool_go();
	int result = tear_down(state);
	sem_destroy(&let_go);
	return result;
}

#define RECORDS_TEST(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, set_up_records, tear_down_records)

static void test_it_follows_a_load_that_waits_for_the_records(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'method':'_note','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':3,'method':'x/y'");
	agent_hears(fixture, 0, "'id':1,'method':'x/y'"); // it belongs to no session
	agent_hears(fixture, 0, "'id':2,%s", load);
	agent_hears_nothing(fixture, 0); // the load may fail, or end in a forbidden mode
	agent_says(fixture, 0, "'id':2,'result':{}");
	agent_hears(fixture, 0, "'id':3,%s", prompt);
	agent_hears(fixture, 0, "'method':'_note','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':3,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':1,'result':{}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'end_turn'}");
}

static void test_a_second_load_waits_behind_the_first_and_the_rest_behind_it(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,'method':'session/resume','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':3,%s", prompt);
	agent_hears(fixture, 0, "'id':1,%s", load);
	agent_says(fixture, 0, "'id':1,'result':{}");
	editor_hears(fixture, "'id':1,'result':{}");
	agent_hears(fixture, 0, "'id':2,'method':'session/resume','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':2,'result':{}");
	editor_hears(fixture, "'id':2,'result':{}");
	agent_hears(fixture, 0, "'id':3,%s", prompt);
}

static void test_it_follows_a_load_that_waits_for_its_directories(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,%s", prompt);
	agent_hears(fixture, 0,
		"'id':1,'method':'session/load','params':{'sessionId':'s','cwd':'/runtime/w'}");
	agent_says(fixture, 0, "'id':1,'error':{'code':1,'message':'no'}");
	editor_hears(fixture, "'id':1,'error':{'code':1,'message':'no'}");
	agent_hears(fixture, 0, "'id':2,%s", prompt);
}

/* It does not go to the agent that was there before. */
static void test_it_goes_to_the_agent_that_has_loaded_the_session(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.roots_max = 1;
	begin_greeted(fixture);
	open_session(fixture, 0, 1, "/a", "a");
	editor_hears(fixture, "'id':'new','result':{'sessionId':'a'}");
	editor_says(fixture, "'id':2,%s", load);
	editor_says(fixture, "'id':3,%s", prompt);
	greet_further(fixture, 1);
	agent_hears(fixture, 1,
		"'id':1,'method':'session/load','params':{'sessionId':'s','cwd':'/runtime/w'}");
	agent_says(fixture, 1, "'id':1,'result':{}");
	editor_hears(fixture, "'id':2,'result':{}");
	agent_hears(fixture, 1, "'id':2,%s", prompt);
	agent_hears_nothing(fixture, 0);
}

static void test_it_goes_on_where_the_load_is_refused(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	editor_says(fixture, "'id':1,'method':'session/load','params':{'sessionId':'s',"
			     "'cwd':'/missing'}");
	editor_says(fixture, "'id':2,%s", prompt);
	editor_hears_failure(fixture, "1", "DIRECTORY_NOT_FOUND", "session", "no such directory");
	agent_hears(fixture, 0, "'id':1,%s", prompt);
}

static void test_a_prompt_that_waits_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	hold_pool(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':3,%s", prompt);
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':3}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'cancelled'}");
	editor_hears(fixture, "'id':3,'error':{'code':-32800,'message':"
			      "'the request was cancelled'}");
	let_pool_go();
	agent_hears(fixture, 0, "'id':1,%s", load);
	agent_hears_nothing(fixture, 0);
}

static void test_what_waits_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_requests = 2;
	begin_greeted(fixture);
	hold_pool(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_says(fixture, "'id':3,%s", prompt);
	editor_hears_failure(fixture, "3", "RESOURCE_LIMIT_EXCEEDED", "session", "max-requests");
	let_pool_go();
	agent_hears(fixture, 0, "'id':1,%s", load);
	agent_says(fixture, 0, "'id':1,'result':{}");
	editor_hears(fixture, "'id':1,'result':{}");
	agent_hears(fixture, 0, "'id':2,%s", prompt);
}

static void test_what_waits_is_answered_when_the_broker_ends(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	hold_pool(fixture);
	editor_says(fixture, "'id':1,%s", load);
	editor_says(fixture, "'id':2,%s", prompt);
	editor_closes(fixture);
	editor_hears_failure(fixture, "2", "SHUTTING_DOWN", "stop", "");
	editor_hears_failure(fixture, "1", "SHUTTING_DOWN", "stop", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORDS_TEST(test_it_follows_a_load_that_waits_for_the_records),
		RECORDS_TEST(test_a_second_load_waits_behind_the_first_and_the_rest_behind_it),
		ROOTS_TEST(test_it_follows_a_load_that_waits_for_its_directories),
		ROOTS_TEST(test_it_goes_to_the_agent_that_has_loaded_the_session),
		ROOTS_TEST(test_it_goes_on_where_the_load_is_refused),
		RECORDS_TEST(test_a_prompt_that_waits_can_be_cancelled),
		RECORDS_TEST(test_what_waits_is_bounded),
		RECORDS_TEST(test_what_waits_is_answered_when_the_broker_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
