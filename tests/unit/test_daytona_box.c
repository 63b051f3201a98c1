/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "providers/daytona/states.h"
#include "tests/unit/daytona_plane_fixture.h"
#include "tests/support/facts.h"

static const char *docs; // docs/daytona.md

static struct daytona_profile profile;
static struct daytona_identity identity = {.owner = "me"};

static int set_up(void **state)
{
	plane = (struct plane){.loop = ev_loop_new(0)};
	profile = (struct daytona_profile){.ready_state = "started",
		.create_timeout_ms = 20000,
		.stop_timeout_ms = 20000,
		.api_timeout_ms = 20000};
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int tear_down(void **state)
{
	ev_loop_destroy(plane.loop);
	return 0;
}

static void open_box(struct told *told, struct plane_box *there, struct daytona_create *create)
{
	*told = (struct told){.plane = there};
	told->box = daytona_box_create(&(struct daytona_box_config){
		.loop = plane.loop,
		.profile = &profile,
		.identity = &identity,
		.name = there->name,
		.create = create,
		.data = told,
	});
}

static void bring(struct told *told, struct plane_box *there, struct daytona_create *create)
{
	open_box(told, there, create);
	daytona_box_bring(told->box, told_done);
	told_wait(told);
	daytona_box_destroy(told->box);
}

/* ---- only a certain sandbox is wanted ---- */

static void test_another_of_the_same_name_is_not_started(void **state)
{
	static const char *const states[] = {"stopped", "started", "error"};
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		struct told told = {0};
		struct plane_box *there = plane_add(states[i], states[i]);
		told.plane = there;
		told.box = daytona_box_create(&(struct daytona_box_config){
			.loop = plane.loop,
			.profile = &profile,
			.identity = &identity,
			.name = there->name,
			.instance = "the-first",
			.data = &told,
		});
		daytona_box_bring(told.box, told_done);
		told_wait(&told);
		assert_string_equal(told.err.reason, "SANDBOX_NOT_FOUND");
		assert_names(told.err.text, "the-first | deleted");
		assert_true(daytona_box_is_another(told.box));
		assert_int_equal(there->gets, 1);
		assert_int_equal(there->starts + there->recovers + there->deletes, 0);
		daytona_box_destroy(told.box);
	}
}

/* ---- starts and creates that turn out useless ---- */

static void rest(struct daytona_box *box, daytona_box_done *done)
{
	daytona_box_rest(box, false, done);
}

static void withdraw(struct told *told, struct plane_box *there, bool is_used)
{
	told->is_over = false;
	daytona_box_withdraw(told->box, is_used, told_done);
	told_wait(told);
	assert_int_equal(told->is_ok, there->act_reason == NULL);
	daytona_box_destroy(told->box);
}

static void test_what_was_started_for_nothing_is_stopped_again(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "stopped");
	for (int i = 0; i < 2; i++) { // the second time it already runs
		open_box(&told, there, NULL);
		daytona_box_bring(told.box, told_done);
		told_wait(&told);
		assert_int_equal(daytona_box_has_acted(told.box), i == 0);
		withdraw(&told, there, false);
		assert_int_equal(there->starts, 1);
		assert_int_equal(there->stops, 1);
		assert_int_equal(there->deletes, 0);
		there->state = "started";
	}
	there->state = "stopped"; // its start is still under way
	there->started = "starting";
	open_box(&told, there, NULL);
	daytona_box_bring(told.box, told_done);
	while (there->starts == 1) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
	there->state = "started";
	withdraw(&told, there, false);
	assert_int_equal(there->stops, 2);
}

static void test_every_order_ends_though_the_service_does_not_answer(void **state)
{
	static const struct {
		void (*give)(struct daytona_box *box, daytona_box_done *done);
		const char *names;
	} table[] = {
		{daytona_box_bring, "did not run | create-timeout"},
		{rest, "did not stop | stop-timeout"},
		{daytona_box_delete, "not deleted | api-timeout"},
	};
	struct plane_box *there = plane_add("box", "started");
	profile.create_timeout_ms = profile.stop_timeout_ms = 20;
	profile.api_timeout_ms = 30;
	plane.hangs = true;
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct told told;
		open_box(&told, there, NULL);
		table[i].give(told.box, told_done);
		told_wait(&told);
		assert_string_equal(told.err.reason, "TIMEOUT_EXCEEDED");
		assert_names(told.err.text, table[i].names);
		daytona_box_destroy(told.box);
	}
}

static void test_what_was_made_for_nothing_is_deleted(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	open_box(&told, there, &create);
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	withdraw(&told, there, false);
	assert_int_equal(there->deletes, 1);
	there->exists = false; // its create is still under way
	open_box(&told, there, &create);
	daytona_box_bring(told.box, told_done);
	while (there->creates == 1) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
	withdraw(&told, there, false);
	assert_int_equal(there->deletes, 2);
	there->exists = false; // something may be in it
	open_box(&told, there, &create);
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	withdraw(&told, there, true);
	assert_int_equal(there->deletes, 2);
	assert_int_equal(there->stops, 1);
}

/* Leaves the box while its create is under way. */
static void bring_and_leave(
	struct told *told, struct plane_box *there, struct daytona_create *create)
{
	open_box(told, there, create);
	daytona_box_bring(told->box, told_done);
	while (there->creates == 0) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
}

static void test_what_is_made_after_its_create_was_left_is_deleted(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->created_after = 3;
	bring_and_leave(&told, there, &create);
	withdraw(&told, there, false);
	assert_int_equal(there->deletes, 1);
}

static void test_what_is_made_after_its_create_was_given_up_is_deleted(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	plane.may_be_done = true;
	profile.api_timeout_ms = 100; // too short for another create
	there->created_after = 2;     // the look right after the create is the first one
	there->create_code = ERROR_TIMEOUT;
	there->create_reason = "TIMEOUT_EXCEEDED";
	open_box(&told, there, &create);
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	assert_string_equal(told.err.reason, "TIMEOUT_EXCEEDED");
	profile.api_timeout_ms = 20000;
	withdraw(&told, there, false);
	assert_int_equal(there->creates, 1);
	assert_int_equal(there->deletes, 1);
}

static void test_what_may_be_made_yet_is_not_said_to_be_gone(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	profile.api_timeout_ms = 300;
	there->created_after = 1000;
	bring_and_leave(&told, there, &create);
	told.is_over = false;
	daytona_box_withdraw(told.box, false, told_done);
	told_wait(&told);
	assert_false(told.is_ok);
	assert_names(told.err.text, "sandbox box | may still appear");
	assert_true(daytona_box_is_doubted(told.box));
	assert_int_equal(there->deletes, 0);
	daytona_box_destroy(told.box);
}

/*
 * Either its first create was done after all, or another broker has made it, and may have work in
 * it.
 */
static void test_a_name_that_is_taken_after_a_lost_create_is_stopped_again(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	plane.may_be_done = true;
	there->create_code = ERROR_UNAVAILABLE;
	there->create_reason = "DAYTONA_UNAVAILABLE";
	bring_and_leave(&told, there, &create);
	there->create_reason = "DAYTONA_CONFLICT";
	there->create_state = "started";
	told_wait(&told);
	assert_true(told.is_ok);
	assert_int_equal(there->creates, 2);
	withdraw(&told, there, false);
	assert_int_equal(there->stops, 1);
	assert_int_equal(there->deletes, 0);
}

/* ---- every state ---- */

static void check_run(const struct told *told, enum daytona_step step)
{
	const struct plane_box *there = told->plane;
	assert_int_equal(there->starts, step == DAYTONA_STEP_START);
	assert_int_equal(there->recovers, step == DAYTONA_STEP_RECOVER);
	assert_int_equal(there->creates, step == DAYTONA_STEP_GONE);
	assert_int_equal(there->stops, 0);
	assert_int_equal(there->deletes, step == DAYTONA_STEP_FAIL);
	assert_int_equal(told->is_ok, step != DAYTONA_STEP_FAIL);
	if (!told->is_ok) {
		assert_string_equal(told->err.reason, "SANDBOX_FAILED");
		assert_non_null(strstr(told->err.text, "the disk"));
	}
}

static void test_every_state_is_led_to_a_session(void **state)
{
	static struct told told[PLANE_MAX];
	static struct daytona_create creates[PLANE_MAX];
	for (size_t i = 0; i <= daytona_state_count; i++) {
		const char *name = i < daytona_state_count ? daytona_states[i].name : "brand_new";
		struct plane_box *there = plane_add(name, name);
		there->reason = "the disk";
		there->is_recoverable = true;
		if (daytona_state_find(name)->to_run == DAYTONA_STEP_WAIT) {
			there->later = "started";
		}
		creates[i] = (struct daytona_create){.name = there->name};
		open_box(&told[i], there, &creates[i]);
		daytona_box_bring(told[i].box, told_done);
	}
	for (size_t i = 0; i < plane.count; i++) {
		told_wait(&told[i]);
		check_run(&told[i], daytona_state_find(plane.boxes[i].name)->to_run);
		daytona_box_destroy(told[i].box);
	}
}

static void test_every_state_is_led_to_rest(void **state)
{
	static struct told told[PLANE_MAX];
	for (size_t i = 0; i <= daytona_state_count; i++) {
		const char *name = i < daytona_state_count ? daytona_states[i].name : "brand_new";
		struct plane_box *there = plane_add(name, name);
		if (daytona_state_find(name)->to_rest == DAYTONA_STEP_WAIT) {
			there->later = "stopped";
		}
		open_box(&told[i], there, NULL);
		daytona_box_rest(told[i].box, true, told_done);
	}
	for (size_t i = 0; i < plane.count; i++) {
		const struct plane_box *there = &plane.boxes[i];
		enum daytona_step step = daytona_state_find(there->name)->to_rest;
		told_wait(&told[i]);
		assert_int_equal(there->stops, step == DAYTONA_STEP_STOP);
		assert_int_equal(there->starts + there->creates, 0);
		assert_int_equal(told[i].is_ok, step != DAYTONA_STEP_FAIL);
		assert_true(!told[i].is_ok || step == DAYTONA_STEP_GONE ||
			    there->archives == (strncmp(there->name, "archiv", 6) != 0));
		daytona_box_destroy(told[i].box);
	}
}

static void test_the_table_of_the_docs_is_the_one(void **state)
{
	static const char *const run[] = {[DAYTONA_STEP_WAIT] = "waits",
		[DAYTONA_STEP_DONE] = "done",
		[DAYTONA_STEP_START] = "starts it",
		[DAYTONA_STEP_STOP] = "stops it",
		[DAYTONA_STEP_RECOVER] = "recovers it",
		[DAYTONA_STEP_FAIL] = "fails",
		[DAYTONA_STEP_GONE] = "as if it were not there"};
	size_t size = 0;
	char *text = NULL;
	FILE *file = fopen(docs, "r");
	assert_non_null(file);
	assert_true(getdelim(&text, &size, '\0', file) > 0);
	fclose(file);
	for (size_t i = 0; i < daytona_state_count; i++) {
		const struct daytona_state *row = &daytona_states[i];
		char start[64];
		snprintf(start, sizeof(start), "\n| `%s`", row->name);
		const char *line = strstr(text, start);
		assert_non_null(line);
		const char *cell = strchr(strchr(line + 2, '|'), ' ') + 1;
		const char *second = strchr(cell, '|') + 2;
		const char *rest = row->to_rest == DAYTONA_STEP_GONE ? "done" : run[row->to_rest];
		assert_memory_equal(cell, run[row->to_run], strlen(run[row->to_run]));
		assert_memory_equal(second, rest, strlen(rest));
	}
	free(text);
}

/* ---- what goes wrong ---- */

static void test_one_that_stays_in_a_state_is_given_up(void **state)
{
	struct told told;
	profile.create_timeout_ms = 300;
	bring(&told, plane_add("box", "pulling_snapshot"), NULL);
	assert_string_equal(told.err.reason, "TIMEOUT_EXCEEDED");
	assert_non_null(strstr(told.err.text, "pulling_snapshot"));
	assert_non_null(strstr(told.err.text, "create-timeout"));
}

static void test_a_start_that_is_refused_is_told_in_the_services_words(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "stopped");
	there->act_reason = "DAYTONA_REJECTED";
	bring(&told, there, NULL);
	assert_false(told.is_ok);
	assert_string_equal(told.err.reason, "DAYTONA_REJECTED");
	assert_int_equal(there->starts, 1);
}

static void test_what_has_no_recovery_is_reported(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "error");
	there->reason = "no such runner";
	bring(&told, there, NULL);
	assert_string_equal(told.err.reason, "SANDBOX_FAILED");
	assert_non_null(strstr(told.err.text, "no such runner"));
	assert_int_equal(there->recovers + there->deletes, 0);
}

static void test_the_very_one_that_is_gone_is_not_made_anew(void **state)
{
	struct told told;
	bring(&told, plane_add("box", NULL), NULL);
	assert_int_equal(told.err.code, ERROR_NOT_FOUND);
	assert_string_equal(told.err.reason, "SANDBOX_NOT_FOUND");
}

static void test_nothing_of_another_users_is_touched(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "stopped");
	struct daytona_create create = {.name = "box"};
	there->is_foreign = true;
	bring(&told, there, &create);
	assert_int_equal(told.err.code, ERROR_DENIED);
	open_box(&told, there, NULL);
	daytona_box_delete(told.box, told_done);
	told_wait(&told);
	daytona_box_destroy(told.box);
	assert_int_equal(told.err.code, ERROR_DENIED);
	assert_int_equal(there->starts + there->deletes + there->creates, 0);
}

static void test_a_label_that_is_no_text_forbids_using_it_and_not_stopping_it(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	there->has_odd_labels = true;
	bring(&told, there, NULL);
	assert_names(told.err.text, "label | not a string");
	open_box(&told, there, NULL);
	daytona_box_rest(told.box, false, told_done);
	told_wait(&told);
	daytona_box_destroy(told.box);
	assert_true(told.is_ok);
	assert_int_equal(there->stops, 1);
}

/* A common deadline of both would report a stop that nobody asked for. */
static void test_a_delete_has_the_deadlines_of_its_calls_alone(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	profile.api_timeout_ms = profile.stop_timeout_ms = 0;
	open_box(&told, there, NULL);
	daytona_box_delete(told.box, told_done);
	told_wait(&told);
	daytona_box_destroy(told.box);
	assert_true(told.is_ok);
	assert_int_equal(there->deletes, 1);
}

/* ---- a key that may not delete ---- */

static void delete_with_a_key_that_may_not(struct told *told, struct plane_box *there, bool is_left)
{
	open_box(told, there, NULL);
	daytona_box_delete(told->box, told_done);
	told_wait(told);
	assert_int_equal(daytona_box_is_left(told->box), is_left);
	daytona_box_destroy(told->box);
	assert_int_equal(there->deletes, 1);
}

static void test_what_the_key_may_not_delete_is_stopped(void **state)
{
	static const char *const states[] = {"started", "stopped"};
	for (size_t i = 0; i < ARRAY_LENGTH(states); i++) {
		struct told told;
		struct plane_box *there = plane_add(i == 0 ? "runs" : "rests", states[i]);
		there->delete_status = 403;
		delete_with_a_key_that_may_not(&told, there, true);
		assert_false(told.is_ok);
		assert_string_equal(told.err.reason, "DAYTONA_UNAUTHORIZED");
		assert_names(told.err.text, there->name);
		assert_names(told.err.text, "stopped, but not deleted");
		assert_int_equal(there->stops, i == 0);
		assert_string_equal(there->state, "stopped");
	}
}

static void test_a_key_that_is_not_taken_at_all_stops_nothing(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	there->delete_status = 401;
	delete_with_a_key_that_may_not(&told, there, false);
	assert_string_equal(told.err.reason, "DAYTONA_UNAUTHORIZED");
	assert_int_equal(there->stops, 0);
}

static void test_what_can_be_neither_deleted_nor_stopped_goes_on(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", "started");
	there->delete_status = 403;
	there->act_reason = "DAYTONA_REJECTED";
	delete_with_a_key_that_may_not(&told, there, false);
	assert_string_equal(told.err.reason, "DAYTONA_REJECTED");
	assert_names(
		told.err.text, "box | keeps running | DAYTONA_UNAUTHORIZED | DAYTONA_REJECTED");
}

static void test_what_was_made_for_nothing_is_stopped_by_a_key_that_may_not_delete(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->delete_status = 403;
	open_box(&told, there, &create);
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	told.is_over = false;
	daytona_box_withdraw(told.box, false, told_done);
	told_wait(&told);
	assert_true(daytona_box_is_left(told.box));
	assert_int_equal(there->stops, 1);
	daytona_box_destroy(told.box);
}

/* ---- creates ---- */

static void test_a_create_that_failed_is_reported_and_removed(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->create_code = ERROR_DENIED;
	there->create_reason = "DAYTONA_REJECTED";
	there->create_state = "error";
	there->reason = "no disk left";
	bring(&told, there, &create);
	assert_string_equal(told.err.reason, "SANDBOX_FAILED");
	assert_non_null(strstr(told.err.text, "no disk left"));
	assert_int_equal(there->deletes, 1);
}

static void test_a_create_that_fails_while_it_is_waited_for_is_reported_and_removed(void **state)
{
	static const char *const failed[] = {"error", "build_failed"};
	for (size_t i = 0; i < 2 * ARRAY_LENGTH(failed); i++) {
		struct told told;
		char name[32];
		snprintf(name, sizeof(name), "box-%zu", i);
		struct plane_box *there = plane_add(name, NULL);
		struct daytona_create create = {.name = there->name};
		bool is_reasoned = i < ARRAY_LENGTH(failed);
		there->after_create = failed[i % ARRAY_LENGTH(failed)];
		there->reason = is_reasoned ? "no such base" : "";
		bring(&told, there, &create);
		assert_string_equal(told.err.reason, "SANDBOX_FAILED");
		assert_non_null(strstr(told.err.text, is_reasoned ? "no such base" : "no reason"));
		assert_non_null(strstr(told.err.text, "it is deleted"));
		assert_int_equal(there->creates, 1);
		assert_int_equal(there->deletes, 1);
	}
}

static void test_what_a_failed_create_left_and_cannot_be_deleted_is_not_said_to_be(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = there->name};
	there->after_create = "build_failed";
	there->reason = "no such base";
	there->delete_status = 403;
	bring(&told, there, &create);
	assert_string_equal(told.err.reason, "SANDBOX_FAILED");
	assert_names(told.err.text, "no such base | stays there | DAYTONA_UNAUTHORIZED");
	assert_null(strstr(told.err.text, "it is deleted"));
	assert_int_equal(there->deletes, 1);
}

static void test_a_create_that_left_nothing_is_told_in_the_services_words(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->create_code = ERROR_DENIED;
	there->create_reason = "DAYTONA_REJECTED";
	bring(&told, there, &create);
	assert_string_equal(told.err.reason, "DAYTONA_REJECTED");
	assert_int_equal(there->creates, 1);
	assert_int_equal(there->deletes, 0);
}

static void test_a_create_that_failed_in_passing_is_made_again_and_not_for_ever(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->create_code = ERROR_UNAVAILABLE;
	there->create_reason = "DAYTONA_UNAVAILABLE";
	there->create_fails = 2;
	bring(&told, there, &create);
	assert_true(told.is_ok);
	assert_int_equal(there->creates, 3);
	there->exists = false;
	there->creates = there->create_fails = 0;
	profile.api_timeout_ms = 600;
	bring(&told, there, &create);
	assert_string_equal(told.err.reason, "DAYTONA_UNAVAILABLE");
	assert_true(there->creates > 1);
}

static void test_a_lost_answer_and_a_taken_name_are_no_failures(void **state)
{
	static const char *const reasons[] = {"DAYTONA_UNAVAILABLE", "DAYTONA_CONFLICT"};
	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		struct told told;
		struct plane_box *there = plane_add(reasons[i], NULL);
		struct daytona_create create = {.name = there->name};
		there->create_code = ERROR_UNAVAILABLE;
		there->create_reason = reasons[i];
		there->create_state = "started";
		bring(&told, there, &create);
		assert_true(told.is_ok);
		assert_int_equal(there->creates, 1);
	}
}

static void test_a_taken_name_that_nobody_has_is_tried_again_and_not_for_ever(void **state)
{
	struct told told;
	struct plane_box *there = plane_add("box", NULL);
	struct daytona_create create = {.name = "box"};
	there->create_code = ERROR_UNAVAILABLE;
	there->create_reason = "DAYTONA_CONFLICT";
	bring(&told, there, &create);
	assert_string_equal(told.err.reason, "DAYTONA_CONFLICT");
	assert_int_equal(there->creates, 3);
}

/* ---- sandboxes that are found ---- */

static void test_one_that_the_labels_find_is_taken_by_its_name(void **state)
{
	struct told told = {0};
	static const struct daytona_pair query[] = {{DAYTONA_LABEL_OWNER, "me"}, {NULL, NULL}};
	struct daytona_create create = {.name = "box"};
	plane_add("box", NULL);
	struct plane_box *other = plane_add("other", "stopped");
	plane.listed = "other";
	told.box = daytona_box_create(&(struct daytona_box_config){.loop = plane.loop,
		.profile = &profile,
		.identity = &identity,
		.name = "box",
		.create = &create,
		.query = query,
		.data = &told});
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	assert_true(told.is_ok);
	assert_string_equal(daytona_box_id(told.box), "");
	assert_string_equal(daytona_box_name(told.box), "other");
	assert_int_equal(other->starts, 0); // not before it has the lock
	told.is_over = false;
	daytona_box_bring(told.box, told_done);
	told_wait(&told);
	assert_true(told.is_ok);
	assert_int_equal(other->starts, 1);
	daytona_box_destroy(told.box);
}

static void test_its_network_becomes_what_is_wanted(void **state)
{
	struct plane_box *there = plane_add("box", "started");
	struct daytona_create wanted = {.blocks_network = true};
	there->is_network_open = true;
	for (int i = 0; i < 2; i++) {
		struct told told = {0};
		told.box = daytona_box_create(&(struct daytona_box_config){.loop = plane.loop,
			.profile = &profile,
			.identity = &identity,
			.name = "box",
			.wanted = &wanted,
			.data = &told});
		daytona_box_bring(told.box, told_done);
		told_wait(&told);
		assert_true(told.is_ok);
		assert_int_equal(there->networks, 1);
		daytona_box_destroy(told.box);
	}
}

static void test_destroyed_at_any_moment_it_tells_nothing(void **state)
{
	for (int turns = 0; turns < 12; turns++) {
		struct told told;
		char name[32];
		snprintf(name, sizeof(name), "box-%d", turns);
		struct daytona_create create = {.name = name};
		open_box(&told, plane_add(name, NULL), &create);
		daytona_box_bring(told.box, told_done);
		for (int i = 0; i < turns && !told.is_over; i++) {
			ev_run(plane.loop, EVRUN_ONCE);
		}
		bool was_over = told.is_over;
		daytona_box_destroy(told.box);
		ev_run(plane.loop, 0);
		assert_int_equal(told.is_over, was_over);
	}
}

#define BOX_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOX_TEST(test_another_of_the_same_name_is_not_started),
		BOX_TEST(test_what_was_started_for_nothing_is_stopped_again),
		BOX_TEST(test_every_order_ends_though_the_service_does_not_answer),
		BOX_TEST(test_what_was_made_for_nothing_is_deleted),
		BOX_TEST(test_what_is_made_after_its_create_was_left_is_deleted),
		BOX_TEST(test_what_is_made_after_its_create_was_given_up_is_deleted),
		BOX_TEST(test_what_may_be_made_yet_is_not_said_to_be_gone),
		BOX_TEST(test_a_name_that_is_taken_after_a_lost_create_is_stopped_again),
		BOX_TEST(test_every_state_is_led_to_a_session),
		BOX_TEST(test_every_state_is_led_to_rest),
		BOX_TEST(test_the_table_of_the_docs_is_the_one),
		BOX_TEST(test_one_that_stays_in_a_state_is_given_up),
		BOX_TEST(test_a_start_that_is_refused_is_told_in_the_services_words),
		BOX_TEST(test_what_has_no_recovery_is_reported),
		BOX_TEST(test_the_very_one_that_is_gone_is_not_made_anew),
		BOX_TEST(test_nothing_of_another_users_is_touched),
		BOX_TEST(test_a_label_that_is_no_text_forbids_using_it_and_not_stopping_it),
		BOX_TEST(test_a_delete_has_the_deadlines_of_its_calls_alone),
		BOX_TEST(test_what_the_key_may_not_delete_is_stopped),
		BOX_TEST(test_a_key_that_is_not_taken_at_all_stops_nothing),
		BOX_TEST(test_what_can_be_neither_deleted_nor_stopped_goes_on),
		BOX_TEST(test_what_was_made_for_nothing_is_stopped_by_a_key_that_may_not_delete),
		BOX_TEST(test_a_create_that_failed_is_reported_and_removed),
		BOX_TEST(test_a_create_that_fails_while_it_is_waited_for_is_reported_and_removed),
		BOX_TEST(test_what_a_failed_create_left_and_cannot_be_deleted_is_not_said_to_be),
		BOX_TEST(test_a_create_that_left_nothing_is_told_in_the_services_words),
		BOX_TEST(test_a_create_that_failed_in_passing_is_made_again_and_not_for_ever),
		BOX_TEST(test_a_lost_answer_and_a_taken_name_are_no_failures),
		BOX_TEST(test_a_taken_name_that_nobody_has_is_tried_again_and_not_for_ever),
		BOX_TEST(test_one_that_the_labels_find_is_taken_by_its_name),
		BOX_TEST(test_its_network_becomes_what_is_wanted),
		BOX_TEST(test_destroyed_at_any_moment_it_tells_nothing),
	};
	docs = argc > 1 ? argv[1] : "docs/daytona.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
