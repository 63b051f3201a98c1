/* SPDX-License-Identifier: MIT */
#include "broker/cli/sessions_into.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/store_fixture.h"

/*
 * A folder is made in the workspace's old place. If somebody else puts anything there, nobody may
 * remove it.
 */

static void set_name(char path[FIXTURE_PATH_MAX], const struct place *place, const char *name)
{
	assert_true(snprintf(path, FIXTURE_PATH_MAX, "%.400s/%s", place->folder, name) > 0);
}

static void begin(struct place *place, struct sessions_into *into)
{
	char gone[FIXTURE_PATH_MAX], state[FIXTURE_PATH_MAX], to[FIXTURE_PATH_MAX];
	char runtime[] = "/runtime", backend[] = "copy", profile[] = "p";
	struct error err;
	log_set_level(LOG_LEVEL_ERROR);
	set_name(gone, place, "on/the/way");
	set_name(state, place, "state");
	set_name(to, place, "to");
	struct record record = {.local_root = gone,
		.runtime_root = runtime,
		.backend = backend,
		.profile = profile};
	if (!sessions_into_begin(into, state, &record, to, &err)) {
		fail_msg("%s", err.text);
	}
}

static void end(struct sessions_into *into, bool is_collected, bool is_fine)
{
	struct error err;
	assert_int_equal(sessions_into_end(into, is_collected, &err), is_fine);
}

static void test_what_was_made_goes_again(void **state)
{
	struct place *place = *state;
	struct sessions_into into;
	begin(place, &into);
	place_run(place, "test -d ../on/the/way");
	end(&into, false, true);
	place_run(place, "test ! -e ../on");
}

static void test_what_came_into_it_stays(void **state)
{
	struct place *place = *state;
	struct sessions_into into;
	begin(place, &into);
	place_run(place, "echo mine > ../on/the/way/new");
	end(&into, false, true);
	place_run(place, "test \"$(cat ../on/the/way/new)\" = mine");
}

static void test_another_folder_in_its_place_is_neither_removed_nor_moved(void **state)
{
	struct place *place = *state;
	static const bool outcomes[] = {false, true};
	for (size_t i = 0; i < 2; i++) {
		struct sessions_into into;
		begin(place, &into);
		place_run(place, "cd ../on/the; mv way aside; mkdir way");
		end(&into, outcomes[i], !outcomes[i]);
		place_run(place, "cd ..; test -d on/the/way && test ! -e to; rm -r on");
	}
}

static void test_it_is_moved_with_all_that_is_in_it(void **state)
{
	struct place *place = *state;
	struct sessions_into into;
	begin(place, &into);
	place_run(place, "echo its > ../on/the/way/new");
	end(&into, true, true);
	place_run(place, "cd ..; test \"$(cat to/new)\" = its && test ! -e on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_was_made_goes_again, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_what_came_into_it_stays, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(
			test_another_folder_in_its_place_is_neither_removed_nor_moved, place_setup,
			place_teardown),
		cmocka_unit_test_setup_teardown(
			test_it_is_moved_with_all_that_is_in_it, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
