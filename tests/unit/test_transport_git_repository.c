/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

/* How the runtime's repository follows the user's if something goes wrong. */

static const char repository[] =
	"git init -q -b main; echo a > a; git add a; git commit -qm one\n"
	"git branch old; echo b > b; git add b; git commit -qm two\n"
	"git update-ref refs/remotes/origin/main old; echo changed > a; echo new > new\n";

/* HEAD, the remote-tracking refs, and the changes that git sees are the same on both sides. */
static void assert_same_repository(struct stage *stage)
{
	static const char script[] =
		"git symbolic-ref -q HEAD || true; git rev-parse -q --verify HEAD || true\n"
		"git for-each-ref refs/remotes; git status --porcelain";
	char *here = place_ask(stage->place, script);
	char *there = stage_ask(stage, script);
	assert_string_equal(there, here);
	free(here);
	free(there);
	stage_there(stage, "git fsck --strict >/dev/null 2>&1");
}

/* Begins another run of the broker. */
static void start_anew(struct stage *stage)
{
	stage_restart(stage);
	stage_prepare(stage);
}

static void test_an_update_that_was_cut_off_is_done_by_the_next_start(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place, "git commit -q --allow-empty -m three");
	stage_program(stage, "git",
		"case \" $* \" in *' index-pack '*) kill -KILL $PPID; exit 1 ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	start_anew(stage);
	stage_program(stage, "git", "exec /usr/bin/git \"$@\"");
	stage_there(stage, "echo edited > edited");
	start_anew(stage);
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nb\nedited\nnew\n");
	stage_there(stage, "rm edited");
	assert_same_repository(stage);
}

static void test_files_of_ours_there_that_are_empty_end_nothing(void **state)
{
	struct stage *stage = *state;
	static const char *const emptied[] = {"print", "head", "sent"};
	git_oid tree = stage_send_first(stage, repository);
	for (size_t i = 0; i < ARRAY_LENGTH(emptied); i++) {
		char script[64];
		snprintf(script, sizeof(script), ": > .git/acp-broker/%s", emptied[i]);
		stage_there(stage, script);
		start_anew(stage);
		tree = stage_collect(stage, &tree);
		place_run(stage->place, "git update-ref refs/remotes/origin/further HEAD");
		start_anew(stage);
		place_run(stage->place, "git update-ref -d refs/remotes/origin/further");
	}
}

/* ---- sparse checkouts ---- */

static const char folders[] =
	"git init -q -b main; mkdir in out out/deep; echo 1 > in/a; echo 1 > out/b\n"
	"echo 1 > out/deep/c; echo 1 > top; git add .; git commit -qm one\n";

/* Each of these leaves out/ out; the last one leaves out everything except in/. */
static const char *const sparse_ways[] = {
	"git sparse-checkout set in",
	"git sparse-checkout set --no-cone '/*' '!/out/'",
	"git sparse-checkout set --sparse-index in",
	("git config core.sparseCheckout true; echo /in > .git/info/sparse-checkout\n"
	 "git read-tree -m -u HEAD"),
};

static void test_what_a_sparse_checkout_leaves_out_is_not_deleted_there(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(sparse_ways); i++) {
		stage_setup(state);
		struct stage *stage = *state;
		place_run(stage->place, folders);
		stage_send_first(stage, sparse_ways[i]);
		stage_there(stage, "test ! -e out; test -z \"$(git status --porcelain)\"\n"
				   "echo 2 > in/a; git commit -qam two\n"
				   "test \"$(git diff --name-only HEAD~1)\" = in/a\n"
				   "git add -A; git commit -q --allow-empty -m three\n"
				   "test \"$(git diff --name-only HEAD~2)\" = in/a\n"
				   "git checkout -q -b other HEAD~2; git checkout -q main\n"
				   "test ! -e out; test -z \"$(git status --porcelain)\"");
		stage_teardown(state);
	}
}

static git_oid follow(struct stage *stage, const git_oid *from, const char *script)
{
	place_run(stage->place, script);
	git_oid tree = place_take(stage->place, from);
	stage_deliver(stage, from, &tree);
	assert_same_repository(stage);
	stage_assert_equal(stage);
	return tree;
}

static void test_a_sparse_checkout_that_changes_is_followed(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, folders);
	git_oid tree = stage_send_first(stage, "git sparse-checkout set in");
	assert_same_repository(stage);
	tree = follow(stage, &tree, "git sparse-checkout set in out/deep; echo 2 > out/deep/c");
	tree = follow(stage, &tree, "rm top; git commit -q --allow-empty -m two");
	tree = follow(stage, &tree,
		"git checkout -q top; git checkout -q out/deep/c\n"
		"git sparse-checkout set in");
	tree = follow(stage, &tree, "git sparse-checkout disable");
	stage_there(stage, "test -e out/b; ! git ls-files -t | grep '^S'");
	tree = follow(stage, &tree, "git sparse-checkout set out");
	start_anew(stage);
	assert_same_repository(stage);
}

/* ---- what libgit2 cannot read ---- */

static void test_a_history_that_cannot_be_read_is_told_once_and_the_files_go(void **state)
{
	static const char *const ways[] = {
		"git init -q; echo a > a; echo nonsense > .git/HEAD",
		"git init -q; echo a > a; git symbolic-ref HEAD refs/elsewhere",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(ways); i++) {
		stage_setup(state);
		struct stage *stage = *state;
		git_oid tree = stage_send_first(stage, ways[i]);
		stage_assert_equal(stage);
		stage_there(stage, "test ! -e .git");
		if (!text_names(stage->collected.note, "git history | not sent")) {
			fail_msg("%s: %s", ways[i], stage->collected.note);
		}
		place_run(stage->place, "echo b > b");
		git_oid next = place_take(stage->place, &tree);
		stage_deliver(stage, &tree, &next);
		stage_collect(stage, &next);
		assert_string_equal(stage->collected.note, "");
		stage_teardown(state);
	}
}

/* ---- names that prevent other names ---- */

static void test_refs_that_are_gone_here_go_there(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, repository);
	place_run(stage->place, "git update-ref refs/remotes/origin/topic HEAD");
	start_anew(stage);
	assert_same_repository(stage);
	stage_there(stage,
		"git update-ref refs/remotes/mine/own $(git commit-tree -m own HEAD^{tree})");
	place_run(stage->place, "git update-ref -d refs/remotes/origin/topic; git update-ref -d "
				"refs/remotes/origin/main\n"
				"git update-ref refs/remotes/origin/topic/y HEAD");
	start_anew(stage);
	stage_there(stage, "git log -1 --format=%s refs/remotes/mine/own | grep -qx own\n"
			   "git update-ref -d refs/remotes/mine/own");
	assert_same_repository(stage);
}

static void test_a_ref_of_the_agents_is_in_the_way_of_one_other_alone(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, repository);
	stage_there(stage,
		"git update-ref refs/remotes/origin/x $(git commit-tree -m own HEAD^{tree})");
	place_run(stage->place, "git update-ref refs/remotes/origin/x/y HEAD\n"
				"git update-ref refs/remotes/origin/z HEAD; git commit -qam three");
	start_anew(stage);
	stage_there(stage, "git log -1 --format=%s refs/remotes/origin/x | grep -qx own\n"
			   "git update-ref -d refs/remotes/origin/x");
	start_anew(stage);
	assert_same_repository(stage);
}

static void test_a_branch_may_become_a_folder_of_branches_and_back(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, repository);
	place_run(stage->place, "git branch -m main main/x; git commit -qam three");
	start_anew(stage);
	assert_same_repository(stage);
	place_run(stage->place, "git branch -m main/x main; git commit -q --allow-empty -m four");
	start_anew(stage);
	assert_same_repository(stage);
}

static void test_a_branch_of_the_agents_is_not_removed_for_one_of_the_users(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, repository);
	stage_there(stage, "git branch own/topic $(git commit-tree -m own -p HEAD HEAD^{tree})");
	place_run(stage->place, "git checkout -q -b own; git commit -qam three");
	start_anew(stage);
	stage_there(stage, "git log -1 --format=%s own/topic | grep -qx own\n"
			   "test $(git symbolic-ref HEAD) = refs/heads/main\n"
			   "git branch -q -M own/topic elsewhere");
	start_anew(stage);
	assert_same_repository(stage);
}

static void test_a_branch_that_went_back_while_another_was_checked_out_follows(void **state)
{
	struct stage *stage = *state;
	static const char *const moves[] = {
		"git commit -qam three; git commit -q --allow-empty -m four", "git checkout -q old",
		"git branch -f main main~1; git checkout -q main"};
	git_oid tree = stage_send_first(stage, repository);
	for (size_t i = 0; i < ARRAY_LENGTH(moves); i++) {
		place_run(stage->place, moves[i]);
		start_anew(stage);
		git_oid next = place_take(stage->place, &tree);
		stage_deliver(stage, &tree, &next);
		assert_same_repository(stage);
		tree = next;
	}
}

/* ---- no commit yet ---- */

static void test_head_follows_from_before_the_first_commit(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "git init -q -b main; echo a > a");
	assert_same_repository(stage);
	place_run(stage->place, "git add a; git commit -qm one; echo more > b");
	start_anew(stage);
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	assert_same_repository(stage);
	place_run(stage->place, "git checkout -q --orphan fresh");
	start_anew(stage);
	stage_there(stage, "test $(git symbolic-ref HEAD) = refs/heads/fresh\n"
			   "! git rev-parse -q --verify HEAD");
	place_run(stage->place, "git add -A; git commit -qm anew");
	start_anew(stage);
	assert_same_repository(stage);
}

/* ---- locks, and runs that are cut off ---- */

static void assert_no_commits_came(struct stage *stage)
{
	place_run(stage->place, "test -z \"$(git --git-dir=../state/store for-each-ref "
				"refs/acp-broker/agent)\"");
}

static void test_head_follows_once_the_lock_is_gone(void **state)
{
	struct stage *stage = *state;
	static const char *const locks[] = {"index.lock", "refs/heads/main.lock", "HEAD.lock"};
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place, "git add -A; git commit -qm three");
	for (size_t i = 0; i < ARRAY_LENGTH(locks); i++) {
		char script[128];
		place_run(stage->place, i < 2 ? "git commit -q --allow-empty -m more"
					      : "git checkout -q -b other; git rm -q b");
		place_run(stage->place, "git commit -q --allow-empty -m last");
		git_oid next = place_take(stage->place, &tree);
		snprintf(script, sizeof(script), ": > .git/%s", locks[i]);
		stage_there(stage, script);
		stage_deliver(stage, &tree, &next);
		tree = stage_collect(stage, &next);
		assert_non_null(strstr(stage->collected.note, "its git is locked"));
		snprintf(script, sizeof(script), "rm .git/%s", locks[i]);
		stage_there(stage, script);
		stage_deliver(stage, &tree, &tree);
		tree = stage_collect(stage, &tree);
		assert_string_equal(stage->collected.note, "");
		assert_same_repository(stage);
		assert_no_commits_came(stage);
	}
}

static void test_an_update_is_cut_off_anywhere_and_done_again(void **state)
{
	struct stage *stage = *state;
	static const char *const changes[] = {
		"git branch -m main main/x; git commit -q --allow-empty -m more\n"
		"git update-ref refs/remotes/origin/topic HEAD",
		"git branch -m main/x main; echo x >> b; git commit -qam further\n"
		"git update-ref -d refs/remotes/origin/topic"};
	git_oid tree = stage_send_first(stage, repository);
	bool was_reached = true;
	int at = 0;
	while (was_reached && at < 100) {
		place_run(stage->place, changes[at % 2]);
		stage_cut(stage, ++at);
		stage_restart(stage);
		transport_prepare(stage->transport, stage_on_done, stage);
		stage_wait(stage); // it may have failed
		was_reached = stage_heal(stage, at);
		stage_there(stage, "rm -f .git/*.lock .git/refs/heads/*.lock");
		tree = stage_collect(stage, &tree);
		assert_no_commits_came(stage);
		git_oid next = place_take(stage->place, &tree);
		start_anew(stage);
		stage_deliver(stage, &tree, &next);
		assert_same_repository(stage);
		tree = next;
	}
	assert_true(at > 10 && at < 100);
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_an_update_that_was_cut_off_is_done_by_the_next_start),
		STAGE_TEST(test_files_of_ours_there_that_are_empty_end_nothing),
		cmocka_unit_test(test_what_a_sparse_checkout_leaves_out_is_not_deleted_there),
		STAGE_TEST(test_a_sparse_checkout_that_changes_is_followed),
		cmocka_unit_test(test_a_history_that_cannot_be_read_is_told_once_and_the_files_go),
		STAGE_TEST(test_refs_that_are_gone_here_go_there),
		STAGE_TEST(test_a_ref_of_the_agents_is_in_the_way_of_one_other_alone),
		STAGE_TEST(test_a_branch_may_become_a_folder_of_branches_and_back),
		STAGE_TEST(test_a_branch_of_the_agents_is_not_removed_for_one_of_the_users),
		STAGE_TEST(test_a_branch_that_went_back_while_another_was_checked_out_follows),
		STAGE_TEST(test_head_follows_from_before_the_first_commit),
		STAGE_TEST(test_head_follows_once_the_lock_is_gone),
		STAGE_TEST(test_an_update_is_cut_off_anywhere_and_done_again),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
