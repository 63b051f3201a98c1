/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

/* Whatever an agent does with its repository, its files are brought. */

static const char repository[] = "git init -q -b main; echo a > a; git add a; git commit -qm one";

static void assert_kept(struct stage *stage, const char *expected)
{
	char *said = place_ask(stage->place, "git --git-dir=../state/store for-each-ref "
					     "--format='%(refname:lstrip=3) %(subject)' "
					     "refs/acp-broker/agent");
	assert_string_equal(said, expected);
	free(said);
}

static void test_a_commit_of_a_file_over_the_limit_is_brought(void **state)
{
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "head -c 300000 /dev/urandom > big; head -c 65536 /dev/zero > chunk;"
			   "head -c 5001 /dev/urandom > more; echo edit >> a;"
			   "git add .; git commit -qm big");
	git_oid there = stage_collect(stage, &tree);
	assert_tree(stage->place, &there, "100644 a\n160000 big\n160000 chunk\n160000 more\n");
	assert_kept(stage, "main big\n");
	place_run(stage->place, "git --git-dir=../state/store fsck --strict\n"
				"git fetch -q ../state/store refs/acp-broker/agent/main\n"
				"for f in a big chunk more; do git show FETCH_HEAD:$f | "
				"cmp - \"$PLACE/runtime/0/$f\"; done");
}

/*
 * A file that a program writes without a pause grows after its size was checked and before git
 * reads it.
 */
static void test_a_file_that_grows_over_the_limit_waits_for_the_next_sync(void **state)
{
	struct stage *stage = *state;
	char command[1024];
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, repository);
	git_oid before = stage_collect(stage, &tree);
	snprintf(command, sizeof(command),
		"cat > %s/git <<'END'\n#!/bin/sh\n"
		"case $* in *--verbose*) head -c 9000 /dev/zero | tee -a a >> 'new one' ;; esac\n"
		"exec /usr/bin/git \"$@\"\nEND\nchmod +x %s/git",
		stage->bin, stage->bin);
	place_run(stage->place, command);
	stage_there(stage, "echo edit >> a; echo new > 'new one'; echo other > other");
	git_oid there = stage_collect(stage, &before);
	assert_tree(stage->place, &there, "100644 a\n100644 other\n");
	assert_int_equal(stage->collected.left.count, 2);
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
	snprintf(command, sizeof(command), "rm %s/git", stage->bin);
	place_run(stage->place, command);
	there = stage_collect(stage, &there);
	assert_tree(stage->place, &there, "160000 a\n160000 new one\n100644 other\n");
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
}

static void test_a_repository_that_git_cannot_read_keeps_no_file_there(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *script, *words;
	} broken[] = {
		{"echo '[garbage' >> .git/config", "bad config line"},
		{"git config core.repositoryformatversion 1; git config extensions.foo bar",
			"unknown repository extension found: foo"},
		{"rm -rf .git; git init -q --object-format=sha256; git add a; git commit -qm x",
			"no SHA-1"},
		{"rm .git/objects/$(git rev-parse HEAD^{tree} | sed 's,^..,&/,')", ""},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
		void *each;
		stage_teardown(state);
		stage_setup(&each);
		*state = stage = each;
		git_oid tree = stage_send_first(stage, repository);
		stage_there(stage, "echo more > more; git add more; git commit -qm mine");
		stage_there(stage, broken[i].script);
		stage_there(stage, "echo new > new");
		git_oid there = stage_collect(stage, &tree);
		assert_paths(stage->place, &there, "a\nmore\nnew\n");
		assert_kept(stage, "");
		git_oid again = stage_collect(stage, &there);
		stage_assert_same(&again, &there);
		assert_non_null(strstr(stage->collected.note, "commits were not taken: "));
		assert_non_null(strstr(stage->collected.note, broken[i].words));
		place_run(stage->place, "git --git-dir=../state/store fsck --strict");
	}
}

/* A branch in the store that is gone there does not prevent a new one. */
static void test_a_branch_below_the_name_of_another_is_kept(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git checkout -q -b fix; git commit -q --allow-empty -m one;"
			   "git checkout -q -b under/way; git commit -q --allow-empty -m way");
	tree = stage_collect(stage, &tree);
	stage_there(stage, "git checkout -q main; git branch -q -D fix under/way;"
			   "git checkout -q -b fix/two; git commit -q --allow-empty -m two;"
			   "git checkout -q -b under; git commit -q --allow-empty -m under;"
			   "git checkout -q -b zother; git commit -q --allow-empty -m other");
	tree = stage_collect(stage, &tree);
	assert_kept(stage, "fix one\nfix%two% two\nunder% under\nunder/way way\nzother other\n");
	assert_non_null(strstr(stage->collected.note, "fix%two%"));
	stage_there(stage, "git checkout -q fix/two; git commit -q --allow-empty -m three");
	tree = stage_collect(stage, &tree);
	assert_kept(stage, "fix one\nfix%two% three\nunder% under\nunder/way way\nzother other\n");
	stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
}

static void test_a_lock_that_somebody_left_is_in_the_way_of_no_branch(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place, "mkdir -p ../state/store/refs/acp-broker/agent;"
				": > ../state/store/refs/acp-broker/agent/main.lock");
	stage_there(stage, "git commit -q --allow-empty -m mine");
	stage_collect(stage, &tree);
	assert_kept(stage, "main mine\n");
}

/* The user is told about a branch that cannot be kept, and the others are kept all the same. */
static void test_a_branch_that_cannot_be_kept_is_told(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place,
		"cd ../state/store/refs/acp-broker; mkdir -p agent/main agent/main%;"
		"cp ../../HEAD agent/main/x; cp ../../HEAD agent/main%/x");
	stage_there(stage, "git commit -q --allow-empty -m mine; git checkout -q -b zother;"
			   "echo z > z; git add z; git commit -qm other");
	stage_collect(stage, &tree);
	assert_names(stage->collected.note, "branch main | not taken");
	assert_true(stage->collected.commits_left);
	place_run(stage->place, "rm -r ../state/store/refs/acp-broker/agent/main*;"
				"git --git-dir=../state/store fsck --strict");
	assert_kept(stage, "zother other\n");
}

static void test_three_hundred_branches_are_kept(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -q --allow-empty -m mine; for i in $(seq 300); do "
			   "echo create refs/heads/b$i HEAD; done | git update-ref --stdin");
	stage_collect(stage, &tree);
	place_run(stage->place, "test $(git --git-dir=../state/store for-each-ref "
				"refs/acp-broker/agent | wc -l) = 301");
}

#define REFUSED_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REFUSED_TEST(test_a_commit_of_a_file_over_the_limit_is_brought),
		REFUSED_TEST(test_a_file_that_grows_over_the_limit_waits_for_the_next_sync),
		REFUSED_TEST(test_a_repository_that_git_cannot_read_keeps_no_file_there),
		REFUSED_TEST(test_a_branch_below_the_name_of_another_is_kept),
		REFUSED_TEST(test_a_lock_that_somebody_left_is_in_the_way_of_no_branch),
		REFUSED_TEST(test_a_branch_that_cannot_be_kept_is_told),
		REFUSED_TEST(test_three_hundred_branches_are_kept),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
