/* SPDX-License-Identifier: MIT */
#include "broker/relay/root_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <ev.h>

struct fixture {
	struct ev_loop *loop;
	struct pool *pool;
	char folder[32];
	int calls;
	bool is_refused;
	struct error err;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	fixture->loop = ev_loop_new(EVFLAG_AUTO);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/acp-unit-XXXXXX");
	*state = fixture;
	return mkdtemp(fixture->folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	rmdir(fixture->folder);
	free(fixture);
	return 0;
}

static void on_checked(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	fixture->calls++;
	fixture->is_refused = err != NULL;
	if (err) {
		fixture->err = *err;
	}
}

static struct root_check *check_own(
	struct fixture *fixture, char *second, const struct root_check_own *own)
{
	struct error err;
	char *directories[] = {fixture->folder, second, NULL};
	struct root_check *check =
		root_check_create(fixture->pool, directories, own, on_checked, fixture, &err);
	assert_non_null(check);
	assert_int_equal(fixture->calls, 0);
	return check;
}

static struct root_check *check_state(
	struct fixture *fixture, char *second, const char *home, const char *state_folder)
{
	const struct root_check_own own = {.home = home, .state_folder = state_folder};
	return check_own(fixture, second, &own);
}

static struct root_check *check(struct fixture *fixture, char *second, const char *home)
{
	return check_state(fixture, second, home, NULL);
}

static void test_a_project_may_be_synced(void **state)
{
	struct fixture *fixture = *state;
	check(fixture, NULL, "/nonexistent");
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->calls, 1);
	assert_false(fixture->is_refused);
}

static void test_any_of_the_directories_can_be_refused(void **state)
{
	struct fixture *fixture = *state;
	char root[] = "/";
	check(fixture, root, NULL);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->calls, 1);
	assert_true(fixture->is_refused);
	assert_int_equal(fixture->err.code, ERROR_DENIED);
}

static void test_the_home_directory_is_refused(void **state)
{
	struct fixture *fixture = *state;
	check(fixture, NULL, fixture->folder);
	ev_run(fixture->loop, 0);
	assert_true(fixture->is_refused);
	assert_non_null(strstr(fixture->err.text, "home directory"));
}

static void test_what_holds_the_state_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char inside[100], beside[100];
	snprintf(inside, sizeof(inside), "%s/not/there/yet", fixture->folder);
	check_state(fixture, NULL, NULL, inside);
	ev_run(fixture->loop, 0);
	assert_true(fixture->is_refused);
	assert_int_equal(fixture->err.code, ERROR_DENIED);
	assert_non_null(strstr(fixture->err.text, inside));
	snprintf(beside, sizeof(beside), "%s-beside", fixture->folder);
	fixture->calls = 0;
	check_state(fixture, NULL, NULL, beside);
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_refused);
}

static void test_what_holds_a_file_of_the_broker_is_refused(void **state)
{
	struct fixture *fixture = *state;
	char inside[100], beside[100];
	snprintf(inside, sizeof(inside), "%s/sub/config", fixture->folder);
	snprintf(beside, sizeof(beside), "%s-beside", fixture->folder);
	const char *const files[] = {beside, inside, NULL};
	const char *const others[] = {beside, NULL};
	check_own(fixture, NULL, &(struct root_check_own){.files = files});
	ev_run(fixture->loop, 0);
	assert_true(fixture->is_refused);
	assert_int_equal(fixture->err.code, ERROR_DENIED);
	assert_non_null(strstr(fixture->err.text, inside));
	fixture->calls = 0;
	check_own(fixture, NULL, &(struct root_check_own){.files = others});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_refused);
}

static void test_one_that_is_destroyed_raises_nothing(void **state)
{
	struct fixture *fixture = *state;
	root_check_destroy(check(fixture, NULL, NULL));
	root_check_destroy(NULL);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_project_may_be_synced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_any_of_the_directories_can_be_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_home_directory_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_holds_the_state_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_holds_a_file_of_the_broker_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_one_that_is_destroyed_raises_nothing, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
