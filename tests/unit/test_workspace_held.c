/* SPDX-License-Identifier: MIT */
#include "tests/support/facts.h"
#include "tests/unit/held_fixture.h"

/* Changes of guarded files: they wait in the runtime, whatever happens in the meantime. */

static void test_a_guarded_change_stays_in_the_runtime_and_all_else_travels(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; mkdir $R/.husky; echo x > $R/.husky/pre-commit; "
		     "echo its > $R/b; echo mine > a");
	sync_held(fixture, 2, true);
	expect(fixture, "cat .envrc b; ls -A; cat $R/.envrc $R/a $R/.husky/pre-commit",
		"old\nits\n.envrc\na\nb\nnew\nmine\nx\n");
	assert_int_equal(fixture->result.to_local.added, 1);
	assert_int_equal(fixture->result.to_runtime.changed, 1);
	dir_transport_hooks.delivers = 0;
	sync_held(fixture, 2, false);
	assert_int_equal(dir_transport_hooks.delivers, 0);
	expect(fixture, "cat .envrc $R/.envrc; ls -A; ls -A $R",
		"old\nnew\n.envrc\na\nb\n.envrc\n.husky\na\nb\n");
	run(fixture, "echo newer > $R/.envrc");
	sync_held(fixture, 2, true);
}

static void test_the_next_broker_finds_it_held_too(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo x > $R/.mcp.json");
	sync_held(fixture, 2, true);
	struct error err;
	struct guard_paths *guard = guard_paths_create(NULL, &err);
	reopen(fixture, guard);
	guard_paths_destroy(guard);
	sync_held(fixture, 2, true);
	expect(fixture, "cat .envrc $R/.envrc; ls -A", "old\nnew\n.envrc\na\n");
	reopen(fixture, NULL); // it is not guarded any more
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "cat .envrc .mcp.json", "new\nx\n");
}

static void test_what_the_user_does_to_the_file_meanwhile_is_not_lost(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "printf '1\\n2\\n3\\n4\\n' > .envrc");
	sync_once(fixture);
	run(fixture, "printf '1\\n2\\n3\\nits\\n' > $R/.envrc");
	sync_held(fixture, 1, true);
	run(fixture, "printf 'mine\\n2\\n3\\n4\\n' > .envrc");
	sync_held(fixture, 1, true); // the result would be different now
	sync_held(fixture, 1, false);
	expect(fixture, "head -1 .envrc; tail -1 .envrc; head -1 $R/.envrc; tail -1 $R/.envrc",
		"mine\n4\n1\nits\n");
	reopen(fixture, NULL);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "head -1 .envrc; tail -1 .envrc", "mine\nits\n");
}

static void test_what_is_taken_back_or_made_here_as_well_is_held_no_more(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo x > $R/.mcp.json");
	sync_held(fixture, 2, true);
	run(fixture, "echo old > $R/.envrc; echo x > .mcp.json");
	sync_held(fixture, 0, false);
	expect_same(fixture);
	run(fixture, "echo mine > .envrc; rm .mcp.json");
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "cat .envrc; ls -A", "mine\n.envrc\na\n");
}

static void test_a_deletion_is_held_until_the_yes(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "rm $R/.envrc");
	sync_held(fixture, 1, true);
	sync_held(fixture, 1, false);
	expect(fixture, "cat .envrc; ls -A $R", "old\na\n");
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect(fixture, "ls -A", "a\n");
	run(fixture, "echo new > $R/.envrc");
	sync_held(fixture, 1, true);
	expect(fixture, "ls -A; cat $R/.envrc", "a\nnew\n");
}

static void test_a_yes_to_a_deletion_is_none_to_another(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo x > .mcp.json");
	sync_once(fixture);
	run(fixture, "rm $R/.envrc");
	sync_held(fixture, 1, true);
	answer(fixture, HELD_ONCE);
	run(fixture, "rm $R/.mcp.json");
	sync_held(fixture, 1, true);
	expect(fixture, "ls -A; ls -A $R", ".mcp.json\na\na\n");
}

static void test_a_file_that_the_user_edits_or_deletes_is_no_deletion_that_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo x > .mcp.json");
	sync_once(fixture);
	run(fixture, "rm $R/.envrc $R/.mcp.json");
	sync_held(fixture, 2, true);
	run(fixture, "echo mine > .envrc; rm .mcp.json");
	sync_once(fixture);
	assert_int_equal(fixture->result.held_count, 0);
	expect_same(fixture);
	expect(fixture, "cat .envrc; ls -A", "mine\n.envrc\na\n");
}

static void test_what_the_agent_renames_stays_under_its_name_here(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir pkg; echo x > pkg/.envrc; echo y > pkg/f");
	sync_once(fixture);
	run(fixture, "mv $R/pkg $R/lib");
	sync_held(fixture, 2, true);
	expect(fixture, "ls -A pkg lib; ls -A $R", "lib:\nf\n\npkg:\n.envrc\n.envrc\na\nlib\n");
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_STOP});
	assert_int_equal(fixture->result.held_count, 2);
	expect(fixture, "ls -A pkg", ".envrc\n");
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "ls -A . lib", ".:\n.envrc\na\nlib\n\nlib:\n.envrc\nf\n");
}

static void test_what_the_agent_moves_to_where_it_is_held_stays_here(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir -p d/h; echo x > d/h/x; echo y > y; echo z > z; touch none");
	sync_once(fixture);
	run(fixture, "cd $R; mkdir .husky; mv d/h .husky/h; mv y .husky/new; rm z none; "
		     "touch .husky/none");
	sync_held(fixture, 3, true);
	assert_names(fixture->note, "d/h | y");
	expect(fixture, "find . -type f | sort; ls -A $R",
		"./.envrc\n./a\n./d/h/x\n./y\n.envrc\n.husky\na\nd\n");
	answer(fixture, HELD_NO);
	run(fixture, "echo mine >> y");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	expect(fixture, "tail -qn 1 y $R/y; ls d; ls $R", "mine\nmine\nh\na\nd\ny\n");
	sync_held(fixture, 3, false);
}

static void test_what_the_agent_moves_is_gone_here_once_its_new_place_is_allowed(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir h; echo x > h/x; echo y > y");
	sync_once(fixture);
	run(fixture, "cd $R; mv h .husky; mv y .mcp.json");
	sync_held(fixture, 2, true);
	sync_held(fixture, 2, false);
	expect(fixture, "find . -type f | sort", "./.envrc\n./a\n./h/x\n./y\n");
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "find . -type f | sort", "./.envrc\n./.husky/x\n./.mcp.json\n./a\n");
}

static void test_a_folder_in_place_of_a_guarded_file_stays_in_the_runtime(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "ln -s conf .vscode");
	sync_once(fixture);
	run(fixture, "rm $R/.vscode; mkdir $R/.vscode; echo x > $R/.vscode/f; "
		     "echo y > $R/.vscode/tasks.json");
	sync_held(fixture, 1, true);
	sync_held(fixture, 1, false);
	expect(fixture, "readlink .vscode; ls $R/.vscode", "conf\nf\ntasks.json\n");
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 1, true);
	expect(fixture, "ls .vscode; ls $R/.vscode", "f\nf\ntasks.json\n");
}

static void test_a_delivery_that_fails_leaves_it_held(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo its > $R/b; echo mine > a");
	dir_transport_hooks.fail_delivers = 1;
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	assert_false(fixture->is_ok);
	expect(fixture, "cat .envrc $R/.envrc b $R/a", "old\nnew\nits\na\n");
	sync_held(fixture, 1, true);
	expect(fixture, "cat .envrc $R/.envrc $R/a", "old\nnew\nmine\n");
}

static void change_runtime(void *data)
{
	struct fixture *fixture = data;
	dir_transport_hooks.before_deliver = NULL;
	run(fixture, "echo newer > $R/.envrc; echo again > $R/b");
}

static void test_a_runtime_that_changes_meanwhile_keeps_its_version(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo mine > a");
	dir_transport_hooks.before_deliver = change_runtime;
	dir_transport_hooks.data = fixture;
	sync_held(fixture, 1, true);
	sync_once(fixture);
	expect(fixture, "cat .envrc $R/.envrc b $R/a", "old\nnewer\nagain\nmine\n");
}

static void test_the_last_sync_parks_it_once_and_leaves_the_runtime(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc");
	for (int i = 0; i < 2; i++) {
		sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_STOP});
		assert_true(fixture->is_ok);
		assert_int_equal(fixture->result.held_count, 1);
		expect(fixture, "cat .envrc $R/.envrc $P/.envrc; ls -A $R",
			"old\nnew\nnew\n.envrc\na\n");
	}
}

static void test_a_rollback_leaves_it_held(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo new > $R/.envrc; echo its > $R/b");
	sync_held(fixture, 1, true);
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "cat .envrc $R/.envrc; ls; ls $R", "old\nnew\na\na\n");
	sync_held(fixture, 1, false);
	expect(fixture, "cat .envrc $R/.envrc", "old\nnew\n");
}

static void test_what_stands_here_as_a_folder_stays_as_a_whole_until_the_yes(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir .husky; echo x > .husky/pre-commit; echo y > .husky/f");
	sync_once(fixture);
	run(fixture, "rm -r $R/.husky; ln -s /tmp $R/.husky; echo mine > .husky/mine; "
		     "echo z > .husky/f");
	sync_held(fixture, 1, true);
	sync_held(fixture, 1, false);
	run(fixture, "rm .husky/mine");
	sync_held(fixture, 1, false);
	expect(fixture, "ls .husky; cat .husky/*; readlink $R/.husky",
		"f\npre-commit\nz\nx\n/tmp\n");
	run(fixture, "echo y > .husky/f");
	answer(fixture, HELD_ONCE);
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "readlink .husky", "/tmp\n");
}

static void test_a_file_in_place_of_a_folder_that_the_agent_takes_back_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir .husky; echo x > .husky/pre-commit");
	sync_once(fixture);
	run(fixture, "mv $R/.husky $R/away; echo a > $R/.husky");
	sync_held(fixture, 1, true);
	expect(fixture, "cat .husky/* away/*; cat $R/.husky", "x\nx\na\n");
	run(fixture, "rm $R/.husky; mv $R/away $R/.husky");
	sync_held(fixture, 0, false);
	expect_same(fixture);
	expect(fixture, "cat .husky/*; ls", "x\na\n");
}

static void test_a_link_through_which_such_a_file_would_be_found_is_held(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir $R/conf; echo x > $R/conf/tasks.json; ln -s conf $R/.vscode; "
		     "ln -s /etc/hostname $R/link");
	sync_held(fixture, 1, true);
	expect(fixture, "ls -A; readlink $R/.vscode link",
		".envrc\na\nconf\nlink\nconf\n/etc/hostname\n");
}

static void test_a_guarded_file_is_one_under_every_name_that_a_link_here_gives_it(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir -p a.d/conf tools env pkg; ln -s a.d/conf .vscode; "
		     "ln -s $PWD/l/hooks .husky; ln -s tools l; ln -s ../env/dev pkg/.envrc; "
		     "ln -s ../../env/more a.d/conf/tasks.json; "
		     "for i in env/dev env/more a.d/conf/other tools/other; do echo x > $i; done");
	sync_once(fixture);
	run(fixture, "cd $R; mkdir -p tools/hooks/_; for i in a.d/conf/settings.json "
		     "a.d/conf/other tools/other tools/hooks/_/x env/dev env/more; "
		     "do echo its > $i; done");
	sync_held(fixture, 4, true);
	expect(fixture, "cat a.d/conf/other tools/other env/dev env/more; ls a.d/conf tools",
		"its\nits\nx\nx\na.d/conf:\nother\ntasks.json\n\ntools:\nother\n");
}

static void test_a_link_in_the_way_of_a_link_here_is_held(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "ln -s deep/conf .vscode");
	sync_once(fixture);
	run(fixture, "mkdir -p $R/evil/conf; echo x > $R/evil/conf/tasks.json; ln -s evil $R/deep");
	sync_held(fixture, 1, true);
	expect(fixture, "readlink $R/deep; ls", "evil\na\nevil\n");
}

static void test_links_here_that_lead_in_a_circle_do_no_harm(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir .idea; ln -s . .husky; ln -s b .vscode; ln -s .vscode b; "
		     "ln -s .. .idea/runConfigurations");
	sync_once(fixture);
	run(fixture, "echo its > $R/f");
	sync_held(fixture, 1, true);
}

static void test_no_link_that_leads_outside_is_followed(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "mkdir outside; mv outside ../outside; echo mine > ../outside/f; "
		     "ln -s ../outside $R/out; ln -s ../outside/f $R/f");
	sync_held(fixture, 0, false);
	expect(fixture, "readlink out f", "../outside\n../outside/f\n");
	run(fixture, "rm $R/out $R/f; mkdir $R/out; echo its > $R/out/f; echo its > $R/f");
	sync_held(fixture, 0, false);
	expect(fixture, "cat out/f f ../outside/f; test -L out || test -L f || echo none",
		"its\nits\nmine\nnone\n");
	run(fixture, "rm -r out f; ln -s ../outside out; ln -s ../outside/f f");
	sync_held(fixture, 0, false);
	run(fixture, "rm $R/out; mkdir $R/out; echo its > $R/out/f; ln -sf ../outside/f $R/g");
	sync_held(fixture, 0, false);
	expect(fixture, "cat ../outside/f; ls ../outside; cat out/f", "mine\nf\nits\n");
}

static void test_in_a_guarded_folder_all_is_guarded(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	char root[FIXTURE_PATH_MAX + 16];
	run(fixture, "mkdir -p .husky/_");
	snprintf(root, sizeof(root), "%s/.husky/_", fixture->place->root);
	fixture->request.local_root = root;
	struct guard_paths *guard = guard_paths_create(NULL, &err);
	reopen(fixture, guard);
	guard_paths_destroy(guard);
	sync_held(fixture, 0, false);
	run(fixture, "echo its > $R/x");
	sync_held(fixture, 1, true);
	expect(fixture, "ls .husky/_", "");
}

static void test_content_that_runs_nothing_travels(void **state)
{
	struct fixture *fixture = *state;
	begin_guarded(fixture);
	run(fixture, "echo '*.sh eol=lf' > $R/.gitattributes; mkdir $R/.claude; "
		     "echo '{\"model\":\"m\"}' > $R/.claude/settings.json");
	sync_held(fixture, 0, false);
	expect_same(fixture);
	run(fixture, "echo '* filter=x' >> $R/.gitattributes; "
		     "echo '{\"model\":\"m\",\"hooks\":{}}' > $R/.claude/settings.json");
	sync_held(fixture, 2, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_a_guarded_change_stays_in_the_runtime_and_all_else_travels),
		WORKSPACE_TEST(test_the_next_broker_finds_it_held_too),
		WORKSPACE_TEST(test_what_the_user_does_to_the_file_meanwhile_is_not_lost),
		WORKSPACE_TEST(test_what_is_taken_back_or_made_here_as_well_is_held_no_more),
		WORKSPACE_TEST(test_a_deletion_is_held_until_the_yes),
		WORKSPACE_TEST(test_a_yes_to_a_deletion_is_none_to_another),
		WORKSPACE_TEST(
			test_a_file_that_the_user_edits_or_deletes_is_no_deletion_that_waits),
		WORKSPACE_TEST(test_what_the_agent_renames_stays_under_its_name_here),
		WORKSPACE_TEST(test_what_the_agent_moves_to_where_it_is_held_stays_here),
		WORKSPACE_TEST(
			test_what_the_agent_moves_is_gone_here_once_its_new_place_is_allowed),
		WORKSPACE_TEST(test_a_folder_in_place_of_a_guarded_file_stays_in_the_runtime),
		WORKSPACE_TEST(test_a_delivery_that_fails_leaves_it_held),
		WORKSPACE_TEST(test_a_runtime_that_changes_meanwhile_keeps_its_version),
		WORKSPACE_TEST(test_the_last_sync_parks_it_once_and_leaves_the_runtime),
		WORKSPACE_TEST(test_a_rollback_leaves_it_held),
		WORKSPACE_TEST(test_what_stands_here_as_a_folder_stays_as_a_whole_until_the_yes),
		WORKSPACE_TEST(
			test_a_file_in_place_of_a_folder_that_the_agent_takes_back_changes_nothing),
		WORKSPACE_TEST(test_a_link_through_which_such_a_file_would_be_found_is_held),
		WORKSPACE_TEST(
			test_a_guarded_file_is_one_under_every_name_that_a_link_here_gives_it),
		WORKSPACE_TEST(test_a_link_in_the_way_of_a_link_here_is_held),
		WORKSPACE_TEST(test_links_here_that_lead_in_a_circle_do_no_harm),
		WORKSPACE_TEST(test_no_link_that_leads_outside_is_followed),
		WORKSPACE_TEST(test_in_a_guarded_folder_all_is_guarded),
		WORKSPACE_TEST(test_content_that_runs_nothing_travels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
