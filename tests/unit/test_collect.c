/* SPDX-License-Identifier: MIT */
#include "broker/ledger/collect.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "broker/ledger/recovery.h"
#include "providers/impl.h"
#include "tests/unit/stderr_capture.h"

enum { RECORDS_MAX = 4, DEADLINE_MS = 30000 };

/* Occupies a worker until the gate opens. */
struct held {
	struct pool_job job;
	sem_t *entered, *gate;
};

/* A provider whose sandbox says what the test says, and a folder of records. */
struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	char folder[64];
	int folder_fd;
	char ids[RECORDS_MAX][RECORD_ID_SIZE];
	int id_count;
	struct provider provider;
	struct profile profile;
	struct sandbox sandbox;
	const struct sandbox_listener *listener; // of who asked for the sandbox
	void *data;
	bool is_refused;
	char asked[64]; // the directories, in the order in which they were asked for
	int withdrawn;
	char instance[64]; // that was asked for
	sandbox_done *root_added;
	void *root_data;
	sem_t entered, gate;
	struct held held[POOL_WORK_THREADS];
	struct collect *collect;
	int told;
	enum collect_outcome outcome;
	struct error err;
};

/* ---- the sandbox ---- */

static void add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct fixture *fixture = CONTAINER_OF(sandbox, struct fixture, sandbox);
	fixture->root_added = done;
	fixture->root_data = data;
}

static void close_sandbox(struct sandbox *sandbox)
{
}

static void withdraw(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	CONTAINER_OF(sandbox, struct fixture, sandbox)->withdrawn++;
	sandbox_raise_later(sandbox, done, data, NULL);
}

static const struct sandbox_impl sandbox_impl = {
	.add_root = add_root, .close = close_sandbox, .withdraw = withdraw};

static struct sandbox *prepare(struct provider *provider, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct fixture *fixture = CONTAINER_OF(provider, struct fixture, provider);
	size_t len = strlen(fixture->asked);
	snprintf(fixture->asked + len, sizeof(fixture->asked) - len, "%s", request->directory);
	snprintf(fixture->instance, sizeof(fixture->instance), "%s",
		request->instance ? request->instance : "");
	if (fixture->is_refused) {
		error_set(err, ERROR_UNAVAILABLE, "the host is not there");
		return NULL;
	}
	sandbox_init(&fixture->sandbox, &sandbox_impl, fixture->loop);
	fixture->listener = listener;
	fixture->data = data;
	return &fixture->sandbox;
}

static const struct provider_impl provider_impl = {.name = "fake", .prepare = prepare};

/* ---- records ---- */

static void write_record(
	struct fixture *fixture, const char *local_root, const char *error, const char *updated)
{
	struct record record;
	struct buf json;
	struct error err;
	record_init(&record);
	record.state = error ? RECORD_FAILED : RECORD_ACTIVE;
	record.profile = mem_strdup("p");
	record.backend = mem_strdup("fake");
	record.sync = mem_strdup("none");
	record.persistence = mem_strdup("reuse");
	record.local_root = mem_strdup(local_root);
	record.error = mem_strdup_or_null(error);
	record.reference = mem_strdup("box");
	record.instance = mem_strdup("the-first");
	snprintf(record.updated, sizeof(record.updated), "%s", updated);
	buf_init(&json, RECORD_FILE_MAX);
	assert_true(record_write_json(&record, &json, &err));
	assert_true(record_save(fixture->folder_fd, record.id, buf_span(&json), &err));
	memcpy(fixture->ids[fixture->id_count++], record.id, sizeof(record.id));
	buf_finish(&json);
	record_finish(&record);
}

/* ---- life ---- */

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	struct error err;
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-collect-XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	fixture->folder_fd = record_folder_open(fixture->folder, &err);
	fixture->provider.impl = &provider_impl;
	fixture->profile =
		(struct profile){.name = (char *)"p", .backend = "fake", .prepare_timeout_ms = 1};
	settings_init(&fixture->profile.settings);
	sem_init(&fixture->entered, 0, 0);
	sem_init(&fixture->gate, 0, 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	char path[96];
	collect_destroy(fixture->collect);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	for (int i = 0; i < fixture->id_count; i++) {
		assert_true(record_remove(fixture->folder_fd, fixture->ids[i], &err));
	}
	fd_close(&fixture->folder_fd);
	snprintf(path, sizeof(path), "%s/sessions", fixture->folder);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(fixture->folder), 0);
	settings_finish(&fixture->profile.settings);
	sem_destroy(&fixture->entered);
	sem_destroy(&fixture->gate);
	free(fixture);
	return 0;
}

static void on_collected(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err)
{
	struct fixture *fixture = data;
	fixture->told++;
	fixture->outcome = outcome;
	if (err) {
		fixture->err = *err;
	}
}

static struct collect_config config_of(struct fixture *fixture)
{
	return (struct collect_config){.loop = fixture->loop,
		.pool = fixture->pool,
		.provider = &fixture->provider,
		.profile = &fixture->profile,
		.state_folder = fixture->folder,
		.done = on_collected,
		.data = fixture};
}

/* ---- the worker's record is left alone ---- */

static void run_held(struct pool_job *job)
{
	struct held *held = CONTAINER_OF(job, struct held, job);
	sem_post(held->entered);
	sem_wait(held->gate);
}

static void on_held(struct pool_job *job)
{
}

/* Occupies all workers until the gate opens. */
static void hold_workers(struct fixture *fixture)
{
	struct error err;
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		struct held *held = &fixture->held[i];
		*held = (struct held){{.lane = POOL_LANE_WORK, .run = run_held, .done = on_held},
			&fixture->entered, &fixture->gate};
		assert_true(pool_submit(fixture->pool, &held->job, &err));
	}
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		sem_wait(&fixture->entered);
	}
}

static void on_later(struct ev_loop *loop, ev_timer *timer, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

/*
 * Timers are raised in the order in which they are due, so prepare-timeout comes before this one.
 */
static void let_it_be_due(struct fixture *fixture)
{
	ev_timer later;
	ev_timer_init(&later, on_later, 0.05, 0.);
	ev_now_update(fixture->loop);
	ev_timer_start(fixture->loop, &later);
	ev_run(fixture->loop, 0);
}

/* Waits until the time to get ready has passed, which has to be written down. */
static void begin_and_run_out(struct fixture *fixture, bool is_ready)
{
	struct collect_config config = config_of(fixture);
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	write_record(fixture, "/w", NULL, "2026-01-01T00:00:00Z");
	fixture->collect = collect_start(&config, fixture->ids[0]);
	while (!fixture->listener && clock_now_ms() < deadline_ms) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_non_null(fixture->listener);
	hold_workers(fixture);
	assert_string_equal(fixture->instance, "the-first");
	fixture->sandbox.instance = "the-first";
	fixture->sandbox.was_ready = true;
	if (is_ready) {
		fixture->listener->on_ready(fixture->data);
		assert_non_null(fixture->root_added);
	}
	let_it_be_due(fixture);
	assert_int_equal(fixture->told, 0);
}

static void assert_written_as_it_ran_out(struct fixture *fixture)
{
	struct error err;
	struct record record;
	for (int i = 0; i < POOL_WORK_THREADS; i++) {
		sem_post(&fixture->gate);
	}
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 1);
	assert_int_equal(fixture->outcome, COLLECT_FAILED);
	assert_int_equal(fixture->withdrawn, 1); // what was started for it is stopped again
	assert_non_null(strstr(fixture->err.text, "prepare-timeout"));
	assert_true(record_load(fixture->folder_fd, fixture->ids[0], &record, &err));
	assert_int_equal(record.state, RECORD_FAILED);
	assert_non_null(strstr(record.error, "prepare-timeout"));
	record_finish(&record);
}

static void test_a_sandbox_that_is_lost_after_its_time_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct error lost;
	begin_and_run_out(fixture, true);
	error_set(&lost, ERROR_UNAVAILABLE, "the link went down");
	fixture->listener->on_failed(fixture->data, &lost);
	assert_written_as_it_ran_out(fixture);
}

static void test_a_root_that_comes_after_its_time_is_not_used(void **state)
{
	struct fixture *fixture = *state;
	begin_and_run_out(fixture, true);
	fixture->root_added(fixture->root_data, NULL);
	assert_written_as_it_ran_out(fixture);
}

static void test_a_sandbox_that_is_ready_after_its_time_is_not_used(void **state)
{
	struct fixture *fixture = *state;
	begin_and_run_out(fixture, false);
	fixture->listener->on_ready(fixture->data);
	assert_null(fixture->root_added);
	assert_written_as_it_ran_out(fixture);
}

/* ---- which one is tried first ---- */

static void test_what_failed_before_is_tried_after_the_rest(void **state)
{
	struct fixture *fixture = *state;
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	write_record(fixture, "/tried-last", "not there", "2026-01-04T00:00:00Z");
	write_record(fixture, "/tried-first", "not there", "2026-01-01T00:00:00Z");
	write_record(fixture, "/old", NULL, "2026-01-02T00:00:00Z");
	write_record(fixture, "/new", NULL, "2026-01-03T00:00:00Z");
	fixture->is_refused = true;
	struct recovery *recovery = recovery_start(&(struct recovery_config){
		.collect = config_of(fixture), .timeout_ms = DEADLINE_MS});
	while (!strstr(fixture->asked, "last") && clock_now_ms() < deadline_ms) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	recovery_destroy(recovery);
	assert_string_equal(fixture->asked, "/new/old/tried-first/tried-last");
}

static void test_what_failed_in_the_same_way_before_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	struct capture capture;
	write_record(fixture, "/told", "the host is not there", "2026-01-02T00:00:00Z");
	write_record(fixture, "/other", "no route to it", "2026-01-01T00:00:00Z");
	write_record(fixture, "/new", NULL, "2026-01-03T00:00:00Z");
	fixture->is_refused = true;
	capture_socket(&capture);
	for (int i = 0; i < 2; i++) { // two starts
		fixture->asked[0] = '\0';
		struct recovery *recovery = recovery_start(&(struct recovery_config){
			.collect = config_of(fixture), .timeout_ms = DEADLINE_MS});
		ev_run(fixture->loop, 0);
		recovery_destroy(recovery);
	}
	const char *text = logged(&capture);
	capture_stop(&capture);
	assert_int_equal(strlen(fixture->asked), strlen("/told/other/new"));
	assert_null(strstr(text, "/told"));
	const char *other = strstr(text, "/other");
	const char *new = strstr(text, "/new");
	assert_non_null(other);
	assert_non_null(new);
	assert_null(strstr(other + 1, "/other"));
	assert_null(strstr(new + 1, "/new"));
}

/* ---- a recovery that ends early ---- */

static void on_recovery_ended(void *data)
{
	struct fixture *fixture = data;
	fixture->told++;
}

/* A recovery whose first collect has its sandbox. */
static struct recovery *recover(struct fixture *fixture, int timeout_ms)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	write_record(fixture, "/left", NULL, "2026-01-01T00:00:00Z");
	fixture->profile.prepare_timeout_ms = 0;
	struct recovery *recovery = recovery_start(
		&(struct recovery_config){.collect = config_of(fixture), .timeout_ms = timeout_ms});
	while (!fixture->listener && clock_now_ms() < deadline_ms) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_non_null(fixture->listener);
	return recovery;
}

static void assert_still_active(struct fixture *fixture)
{
	struct record record;
	struct error err;
	assert_true(record_load(fixture->folder_fd, fixture->ids[0], &record, &err));
	assert_int_equal(record.state, RECORD_ACTIVE);
	record_finish(&record);
}

static void test_what_a_recovery_has_started_is_stopped_when_it_ends(void **state)
{
	struct fixture *fixture = *state;
	struct recovery *recovery = recover(fixture, DEADLINE_MS);
	assert_true(recovery_end(recovery, on_recovery_ended, fixture));
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 1);
	assert_int_equal(fixture->withdrawn, 1);
	assert_still_active(fixture);
	recovery_destroy(recovery);
}

static void test_what_a_recovery_has_started_is_stopped_when_its_time_is_over(void **state)
{
	struct fixture *fixture = *state;
	struct recovery *recovery = recover(fixture, 100);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->withdrawn, 1);
	assert_still_active(fixture);
	assert_false(recovery_end(recovery, on_recovery_ended, fixture));
	assert_int_equal(fixture->told, 0);
	recovery_destroy(recovery);
}

static void test_what_is_still_being_stopped_at_the_end_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct capture capture;
	struct recovery *recovery = recover(fixture, DEADLINE_MS);
	capture_socket(&capture);
	assert_true(recovery_end(recovery, on_recovery_ended, fixture));
	recovery_destroy(recovery);
	const char *text = logged(&capture);
	capture_stop(&capture);
	assert_non_null(strstr(text, "sandbox box "));
	assert_int_equal(fixture->told, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_sandbox_that_is_lost_after_its_time_changes_nothing, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_root_that_comes_after_its_time_is_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_sandbox_that_is_ready_after_its_time_is_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_failed_before_is_tried_after_the_rest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_failed_in_the_same_way_before_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_a_recovery_has_started_is_stopped_when_it_ends, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_a_recovery_has_started_is_stopped_when_its_time_is_over, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_still_being_stopped_at_the_end_is_named, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
