/* SPDX-License-Identifier: MIT */
#include "base/soon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/buf.h"

struct owner {
	struct soon soon;
	int calls;
	int again; // this many calls start it again
	bool is_inside;
	bool was_inside; // it was called from inside something else
};

static struct ev_loop *loop;
static int frees;

static void on_soon(struct soon *soon)
{
	struct owner *owner = CONTAINER_OF(soon, struct owner, soon);
	owner->calls++;
	owner->was_inside = owner->was_inside || owner->is_inside;
	assert_false(soon_is_due(soon));
	if (owner->again > 0) {
		owner->again--;
		owner->is_inside = true;
		soon_start(soon);
		owner->is_inside = false;
	}
}

static void on_free(struct soon *soon)
{
	frees++;
	free(CONTAINER_OF(soon, struct owner, soon));
}

static int make_loop(void **state)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	return loop ? 0 : -1;
}

static int destroy_loop(void **state)
{
	ev_loop_destroy(loop);
	return 0;
}

static void test_the_call_comes_from_the_loop_and_once(void **state)
{
	struct owner owner = {.calls = 0};
	soon_init(&owner.soon, loop, on_soon);
	assert_false(soon_is_due(&owner.soon));
	soon_start(&owner.soon);
	soon_start(&owner.soon);
	assert_true(soon_is_due(&owner.soon));
	assert_int_equal(owner.calls, 0);
	ev_run(loop, 0);
	assert_int_equal(owner.calls, 1);
	assert_false(soon_is_due(&owner.soon));
}

static void test_a_call_may_start_it_anew_for_a_later_turn(void **state)
{
	struct owner owner = {.again = 2};
	soon_init(&owner.soon, loop, on_soon);
	soon_start(&owner.soon);
	ev_run(loop, EVRUN_ONCE);
	assert_int_equal(owner.calls, 1);
	ev_run(loop, 0);
	assert_int_equal(owner.calls, 3);
	assert_false(owner.was_inside);
}

static void test_a_stopped_one_is_not_called_and_does_not_keep_the_loop(void **state)
{
	struct owner owner = {.calls = 0};
	soon_stop(&owner.soon);
	soon_init(&owner.soon, loop, on_soon);
	soon_stop(&owner.soon);
	soon_start(&owner.soon);
	soon_stop(&owner.soon);
	assert_false(soon_is_due(&owner.soon));
	ev_run(loop, 0);
	assert_int_equal(owner.calls, 0);
}

static void test_the_call_may_free_its_owner(void **state)
{
	struct owner *owner = mem_alloc_zero(sizeof(*owner));
	soon_init(&owner->soon, loop, on_free);
	soon_start(&owner->soon);
	ev_run(loop, 0);
	assert_int_equal(frees, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_loop, destroy_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_call_comes_from_the_loop_and_once),
		TEST(test_a_call_may_start_it_anew_for_a_later_turn),
		TEST(test_a_stopped_one_is_not_called_and_does_not_keep_the_loop),
		TEST(test_the_call_may_free_its_owner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
