/* SPDX-License-Identifier: MIT */
#include "sync/held.h"
#include "tests/unit/held_fixture.h"

/* The user's answers to the question about guarded files that wait in the runtime. */

static void test_a_yes_brings_just_what_was_asked_about(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "cat .envrc", "new\n");
	run(fixture, "echo old > .envrc");
	sync_held(fixture, 0, false);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true); // a yes holds once
	answer(fixture, HELD_ONCE);
	run(fixture, "echo newer > $R/.envrc");
	sync_held(fixture, 1, true);
	expect(fixture, "cat .envrc $R/.envrc", "old\nnewer\n");
}

static void test_a_yes_brings_no_more_than_the_question_names(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "for i in $(seq 1 22); do mkdir $R/a$i; echo x > $R/a$i/.envrc; done; "
		     "mkdir -p $R/0/0; echo x > $R/0/0/.envrc; echo new > $R/.envrc");
	sync_held(fixture, 24, true);
	answer(fixture, HELD_ALWAYS); // for the root's .envrc
	sync_held(fixture, 4, true);
	expect(fixture, "cat .envrc; ls; ls -d a*/.envrc | wc -l",
		"new\na\na1\na10\na11\na12\na13\na14\na15\na16\na17\na18\na19\na2\na20\na21\n"
		"a22\na3\na4\na5\na6\n19\n");
	answer(fixture, HELD_NO);
	run(fixture, "echo x > $R/.mcp.json");
	sync_held(fixture, 5, true);
	assert_false(fixture->result.is_held_answered);
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 4, true);
	assert_true(fixture->result.is_held_answered);
	expect(fixture, "ls -A | grep -c '^[.]'", "2\n");
	run(fixture, "rm $R/0/0/.envrc");
	sync_held(fixture, 3, true);
	assert_true(fixture->result.is_held_answered);
}

static void answer_yes(void *data)
{
	dir_transport_hooks.before_deliver = NULL;
	answer(data, HELD_ONCE);
}

static void test_a_sync_that_began_before_the_answer_does_not_ask_again(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	run(fixture, "echo mine > a");
	dir_transport_hooks.before_deliver = answer_yes;
	dir_transport_hooks.data = fixture;
	sync_held(fixture, 1, false);
	assert_true(fixture->result.is_held_answered);
	sync_held(fixture, 0, false);
	expect(fixture, "cat .envrc", "new\n");
}

static void test_a_yes_ends_what_an_earlier_sandbox_has_parked(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo x > $R/.mcp.json");
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_STOP});
	expect(fixture, "ls -d $P/.* | grep -c '/[.][a-z]'", "2\n");
	sync_held(fixture, 2, false);
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "ls -A; cat .envrc .mcp.json", ".envrc\n.mcp.json\na\nnew\nx\n");
}

/* Parks a version of a file that both sides then change, in places that can be merged. */
static void park_and_edit(struct fixture *fixture)
{
	begin_guarded(fixture);
	run(fixture, "printf '1\\n2\\n3\\n' > .envrc");
	sync_once(fixture);
	run(fixture, "printf '1\\n2\\nits\\n' > $R/.envrc");
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_STOP});
	expect(fixture, "ls -d $P/.* | grep -c '/[.][a-z]'", "1\n");
	run(fixture, "sed -i s/1/mine/ .envrc");
	sync_held(fixture, 1, true);
}

static void test_a_yes_ends_what_is_parked_where_the_user_has_edited_the_file_too(void **state)
{
	struct fixture *fixture = *state;
	park_and_edit(fixture);
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "ls -A; cat .envrc", ".envrc\na\nmine\n2\nits\n");
}

static void test_always_ends_it_too_unless_it_is_a_conflict(void **state)
{
	struct fixture *fixture = *state;
	park_and_edit(fixture);
	answer(fixture, HELD_ALWAYS);
	run(fixture, "sed -i s/2/more/ .envrc");
	sync_once(fixture);
	assert_string_equal(fixture->conflict, ".envrc");
	expect(fixture, "cat .envrc $P/.envrc", "mine\nmore\n3\n1\n2\nits\n");
}

static void test_a_no_is_remembered_until_the_change_is_another(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	assert_false(fixture->result.is_held_answered);
	answer(fixture, HELD_NO);
	sync_held(fixture, 1, false);
	assert_true(fixture->result.is_held_answered);
	run(fixture, "echo newer > $R/.envrc");
	sync_held(fixture, 1, true);
	assert_false(fixture->result.is_held_answered);
}

static void test_always_holds_for_the_path_in_this_workspace_and_in_the_next_broker(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	answer(fixture, HELD_ALWAYS);
	sync_held(fixture, 0, false);
	run(fixture, "echo newer > $R/.envrc; echo x > $R/.mcp.json");
	sync_held(fixture, 1, true);
	expect(fixture, "cat .envrc", "newer\n");
	struct guard_paths *guard = guard_paths_create(NULL, &err);
	reopen(fixture, guard);
	guard_paths_destroy(guard);
	run(fixture, "echo newest > $R/.envrc");
	sync_held(fixture, 1, true);
	expect(fixture, "cat .envrc; ls -A", "newest\n.envrc\na\n");
}

static void test_a_yes_does_not_overwrite_what_the_user_did_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	answer(fixture, HELD_ONCE);
	run(fixture, "echo mine > .envrc");
	sync_once(fixture);
	assert_int_equal(fixture->result.held_count, 0);
	assert_string_equal(fixture->conflict, ".envrc"); // both sides have changed the same line
	expect(fixture, "cat .envrc $P/.envrc", "mine\nnew\n");
}

static void on_held(void *data, const struct sync_result *result, const struct error *err)
{
	char *shown = data;
	assert_null(err);
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		size_t len = strlen(shown);
		snprintf(shown + len, 256 - len, "%s: %s | %s\n", held->path,
			held->old_text ? held->old_text : "-",
			held->new_text ? held->new_text : "-");
	}
}

static void test_what_is_held_is_read_as_far_as_it_is_text(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture,
		"printf new > $R/.envrc; ln -s conf $R/.vscode; printf 'a\\0b' > $R/.mcp.json; "
		"mkdir $R/.husky; head -c 70000 /dev/zero | tr '\\0' x > $R/.husky/long");
	char shown[256] = "";
	workspace_sync(fixture->workspace, &(struct sync_order){.reason = SYNC_REASON_TURN},
		on_held, shown);
	ev_run(fixture->loop, 0);
	assert_string_equal(shown, ".envrc: old\n | new\n"
				   ".mcp.json: - | -\n"
				   ".vscode: - | link to conf\n"
				   ".husky/long: - | -\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_a_yes_brings_just_what_was_asked_about),
		WORKSPACE_TEST(test_a_yes_brings_no_more_than_the_question_names),
		WORKSPACE_TEST(test_a_sync_that_began_before_the_answer_does_not_ask_again),
		WORKSPACE_TEST(test_a_yes_ends_what_an_earlier_sandbox_has_parked),
		WORKSPACE_TEST(
			test_a_yes_ends_what_is_parked_where_the_user_has_edited_the_file_too),
		WORKSPACE_TEST(test_always_ends_it_too_unless_it_is_a_conflict),
		WORKSPACE_TEST(test_a_no_is_remembered_until_the_change_is_another),
		WORKSPACE_TEST(
			test_always_holds_for_the_path_in_this_workspace_and_in_the_next_broker),
		WORKSPACE_TEST(test_a_yes_does_not_overwrite_what_the_user_did_meanwhile),
		WORKSPACE_TEST(test_what_is_held_is_read_as_far_as_it_is_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
