/* SPDX-License-Identifier: MIT */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/pool.h"
#include "providers/daytona/note.h"
#include "providers/daytona/sandbox.h"
#include "providers/daytona/sandbox_impl.h"
#include "tests/unit/daytona_plane_fixture.h"

/* A sandbox ends while something is being done with the claim on it. */

#define API "https://app.daytona.io/api"

static char folder[64];
static struct provider_context context;
static struct daytona_shared shared;
static struct settings settings;
static struct daytona_identity identity;
static int failures; // on_failed

static void on_ready(void *data)
{
	fail_msg("nothing listens there");
}

static void on_failed(void *data, const struct error *err)
{
	failures++;
}

static const struct sandbox_listener listener = {.on_ready = on_ready, .on_failed = on_failed};

static int set_up(void **state)
{
	static const char *const environment[] = {"DAYTONA_API_KEY=own-key", NULL};
	struct error err;
	snprintf(folder, sizeof(folder), "/tmp/acp-broker-end-XXXXXX");
	assert_non_null(mkdtemp(folder));
	plane = (struct plane){.loop = ev_loop_new(0)};
	context = (struct provider_context){.loop = plane.loop,
		.pool = pool_create(plane.loop),
		.environment = environment,
		.state_folder = folder};
	shared.context = &context;
	ssh_runs_init(&shared.runs, NULL);
	daytona_keys_init(&shared.keys, &context);
	settings_init(&settings);
	assert_true(daytona_identity_init(&identity, folder, "cloud", NULL, false, &err));
	plane.owner = identity.owner;
	failures = 0;
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	return remove(path);
}

static int tear_down(void **state)
{
	pool_destroy(context.pool);
	daytona_keys_finish(&shared.keys);
	ssh_runs_finish(&shared.runs);
	settings_finish(&settings);
	daytona_identity_finish(&identity);
	ev_loop_destroy(plane.loop);
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_note(const char *key)
{
	struct daytona_account account;
	struct daytona_note note = {.profile = mem_strdup("cloud")};
	struct error err;
	daytona_account_init(&account, API, NULL, key);
	int lock_fd = daytona_note_lock(folder, identity.name, DAYTONA_LOCK_SHARED, &err);
	assert_true(lock_fd >= 0);
	assert_true(daytona_account_mark(&account, &note.mark, &err));
	assert_true(daytona_note_write(folder, identity.name, &note, &err));
	close(lock_fd);
	daytona_note_finish(&note);
	daytona_account_finish(&account);
}

static bool has_note(void)
{
	struct daytona_note note;
	struct error err;
	if (!daytona_note_read(folder, identity.name, &note, &err)) {
		assert_int_equal(err.code, ERROR_NOT_FOUND);
		return false;
	}
	daytona_note_finish(&note);
	return true;
}

static struct daytona_place *open_place(bool has_reference)
{
	struct error err;
	struct sandbox_request request = {.profile = "cloud",
		.settings = &settings,
		.reference = has_reference ? identity.name : NULL};
	struct sandbox *sandbox = daytona_sandbox_open(&shared, &request, &listener, NULL, &err);
	assert_non_null(sandbox);
	return daytona_place_of(sandbox);
}

static void turn_until_busy_after_start(const struct daytona_place *place)
{
	while (!place->box || !daytona_box_has_acted(place->box) ||
		!daytona_claim_is_busy(place->claim)) {
		assert_int_equal(failures, 0);
		ev_run(plane.loop, EVRUN_ONCE);
	}
}

static void withdraw(struct daytona_place *place)
{
	struct told told = {0};
	sandbox_withdraw(&place->sandbox, told_done, &told);
	assert_false(told.is_over);
	told_wait(&told);
	assert_true(told.is_ok);
	assert_int_equal(failures, 0); // done is the only event
	sandbox_close(&place->sandbox);
}

/*
 * The note names another key; the broker is just writing down that the sandbox belongs to this key.
 */
static void test_a_withdrawal_while_it_is_adopted_stops_it(void **state)
{
	struct plane_box *there = plane_add(identity.name, "stopped");
	write_note("other-key");
	struct daytona_place *place = open_place(false);
	turn_until_busy_after_start(place);
	withdraw(place);
	assert_int_equal(there->starts, 1);
	assert_int_equal(there->stops, 1);
	assert_int_equal(there->deletes, 0);
	assert_int_equal(there->accesses, 0);
	assert_true(has_note());
}

/* Somebody has deleted the sandbox after its start here; the broker is just removing its note. */
static void test_a_withdrawal_while_it_is_forgotten_waits_for_that(void **state)
{
	struct plane_box *there = plane_add(identity.name, "stopped");
	there->started = "starting";
	write_note("own-key");
	struct daytona_place *place = open_place(true);
	while (there->starts == 0) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
	there->exists = false;
	turn_until_busy_after_start(place);
	withdraw(place);
	assert_int_equal(there->stops + there->deletes, 0);
	assert_false(has_note());
}

/* Nothing was done there, so there is nothing to wait for, and nothing is begun. */
static void test_a_withdrawal_while_it_is_claimed_begins_nothing(void **state)
{
	struct plane_box *there = plane_add(identity.name, "stopped");
	struct daytona_place *place = open_place(false);
	withdraw(place);
	place = open_place(false);
	while (!place->box) { // now the broker looks at it
		ev_run(plane.loop, EVRUN_ONCE);
	}
	withdraw(place);
	assert_int_equal(there->starts + there->stops, 0);
}

static void test_an_end_connects_no_more(void **state)
{
	struct plane_box *there = plane_add(identity.name, "started");
	struct daytona_place *place = open_place(false);
	struct told told = {0};
	while (there->accesses == 0) {
		ev_run(plane.loop, EVRUN_ONCE);
	}
	daytona_lost_finish(place);
	ev_timer_set(&place->again, 0., 0.); // as after a first connection that has failed
	ev_timer_start(plane.loop, &place->again);
	daytona_rest(&place->sandbox, told_done, &told);
	told_wait(&told);
	assert_true(told.is_ok);
	assert_int_equal(there->stops, 1);
	assert_int_equal(there->accesses, 1);
	sandbox_close(&place->sandbox);
}

#define END_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		END_TEST(test_a_withdrawal_while_it_is_adopted_stops_it),
		END_TEST(test_a_withdrawal_while_it_is_forgotten_waits_for_that),
		END_TEST(test_a_withdrawal_while_it_is_claimed_begins_nothing),
		END_TEST(test_an_end_connects_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
