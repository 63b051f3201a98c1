/* SPDX-License-Identifier: MIT */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/facts.h"
#include "tests/unit/workspace_fixture.h"

/*
 * Changes that a sync cannot bring to the runtime: everything else is synced, and nothing is lost.
 */

/* Sets whether this thread may write, like root, where the mode forbids it. */
static void set_override(bool may)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];
	assert_int_equal(syscall(SYS_capget, &header, sets), 0);
	unsigned bits = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
	sets[0].effective &= ~bits;
	sets[0].effective |= may ? sets[0].permitted & bits : 0;
	assert_int_equal(syscall(SYS_capset, &header, sets), 0);
}

static void obey_modes(void *data)
{
	set_override(false);
}

/* A sync as one order; its deliveries obey the modes of folders. */
static void sync_obeying(struct fixture *fixture)
{
	dir_transport_hooks.before_deliver = obey_modes;
	dir_transport_hooks.is_lasting = true;
	sync_once(fixture);
	set_override(true);
}

static void test_what_cannot_be_replaced_is_named_once_and_the_rest_goes(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir ro gen; echo a > a; echo r > ro/r; echo s > ro/s; echo g > gen/g");
	sync_once(fixture);
	run(fixture, "chmod 555 $R/ro $R/gen; echo aa > a; echo rr > ro/r; rm -r gen ro/s");
	sync_obeying(fixture);
	expect(fixture, "cat $R/a $R/ro/r $R/ro/s $R/gen/g; ls", "aa\nr\ns\ng\na\nro\n");
	assert_names(fixture->note, "sandbox | gen/g | ro/r | ro/s");
	sync_obeying(fixture);
	assert_string_equal(fixture->note, "");
	expect(fixture, "ls . ro", ".:\na\nro\n\nro:\nr\n"); // nothing has come back
	run(fixture, "chmod 755 $R/ro $R/gen");
	sync_obeying(fixture);
	expect(fixture, "rmdir $R/gen || :; diff -r $L $R && echo same", "same\n");
	run(fixture, "chmod 555 $R/ro; echo rrr > ro/r");
	sync_obeying(fixture);
	assert_names(fixture->note, "sandbox | ro/r");
	run(fixture, "chmod 755 $R/ro");
}

static void test_what_the_agent_makes_of_an_undelivered_file_comes(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir ro; seq 20 > ro/n; echo x > ro/x; echo y > ro/y");
	sync_once(fixture);
	run(fixture, "chmod 555 $R/ro; sed -i s/^1$/one/ ro/n; echo mine > ro/x; rm ro/y");
	sync_obeying(fixture);
	run(fixture, "t=$(sed s/^20$/twenty/ $R/ro/n); echo \"$t\" > $R/ro/n; echo its > $R/ro/x; "
		     "echo its > $R/ro/y");
	sync_obeying(fixture);
	expect(fixture, "head -1 ro/n; tail -1 ro/n; cat ro/x", "one\ntwenty\nmine\n");
	expect(fixture, "cat $P/x $P/y; test ! -e ro/y", "its\nits\n");
	assert_int_equal(fixture->result.conflict_count, 2);
	sync_obeying(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	run(fixture, "chmod 755 $R/ro");
	sync_obeying(fixture);
	expect_same(fixture);
	expect(fixture, "grep -c twenty $R/ro/n; ls $R/ro", "1\nn\nx\n");
}

static void test_a_rollback_leaves_it_as_well(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir ro; echo a > a; echo r > ro/r");
	sync_once(fixture);
	run(fixture, "chmod 555 $R/ro; echo aa > a; echo rr > ro/r");
	sync_obeying(fixture);
	dir_transport_hooks.before_deliver = obey_modes;
	roll_back(fixture, "1");
	set_override(true);
	assert_true(fixture->is_ok);
	expect(fixture, "cat a ro/r $R/a $R/ro/r", "a\nr\na\nr\n");
	run(fixture, "chmod 755 $R/ro; echo last > ro/r");
	sync_obeying(fixture);
	expect_same(fixture);
	expect(fixture, "cat ro/r", "last\n");
}

static void fail_full(struct fixture *fixture)
{
	dir_transport_hooks.fail_delivers = 1;
	dir_transport_hooks.deliver_reason = "DISK_FULL";
}

static void test_a_full_runtime_gets_its_files_later(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b; echo c > c");
	sync_once(fixture);
	run(fixture, "echo aa > a; rm b; echo n > new; echo its > $R/c");
	fail_full(fixture);
	dir_transport_hooks.delivers = 0;
	sync_once(fixture);
	assert_int_equal(dir_transport_hooks.delivers, 1);
	assert_int_equal(fixture->result.to_runtime.added, 0);
	assert_names(fixture->note, "sandbox | a | b | new | space");
	expect(fixture, "cat c a; ls $R; cat $R/a", "its\naa\na\nb\nc\na\n");
	run(fixture, "echo more > $R/more; rm $R/c");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	assert_string_equal(fixture->note, "");
	expect_same(fixture);
	expect(fixture, "ls; cat a", "a\nmore\nnew\naa\n");
}

static void test_a_runtime_that_has_no_room_for_anything_is_no_place_to_work(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	fail_full(fixture);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_START});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_string_equal(fixture->err.reason, "DISK_FULL");
	sync_once(fixture);
	expect_same(fixture);
}

/* The transport does not know what is in its way. */
static void test_the_rounds_have_a_limit(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo aa > a; echo its > $R/b");
	dir_transport_hooks.fail_delivers = 100;
	dir_transport_hooks.deliver_reason = "RUNTIME_CHANGED";
	dir_transport_hooks.delivers = 0;
	sync_once(fixture);
	assert_int_equal(dir_transport_hooks.delivers, SYNC_ROUNDS_MAX);
	assert_names(fixture->note, "sandbox | a");
	expect(fixture, "cat b $R/a", "its\na\n");
	dir_transport_hooks.fail_delivers = 0;
	sync_once(fixture);
	expect_same(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_what_cannot_be_replaced_is_named_once_and_the_rest_goes),
		WORKSPACE_TEST(test_what_the_agent_makes_of_an_undelivered_file_comes),
		WORKSPACE_TEST(test_a_rollback_leaves_it_as_well),
		WORKSPACE_TEST(test_a_full_runtime_gets_its_files_later),
		WORKSPACE_TEST(test_a_runtime_that_has_no_room_for_anything_is_no_place_to_work),
		WORKSPACE_TEST(test_the_rounds_have_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
