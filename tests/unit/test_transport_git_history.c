/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sync/git/git.h"
#include "tests/unit/transport_fixture.h"

static const git_oid *const nothing = &store_empty_tree;

static const char repository[] =
	"git init -q; git config user.name 'The User'; git config user.email u@example.org\n"
	"git config credential.helper store; echo a > a; git add a; git commit -qm one\n"
	"git branch old; echo b > b; git add b; git commit -qm two\n"
	"git update-ref refs/remotes/origin/main old; echo changed > a; echo new > new\n";

static git_oid send(struct stage *stage, const git_oid *from)
{
	git_oid tree = place_take(stage->place, from);
	stage_deliver(stage, from ? from : nothing, &tree);
	return tree;
}

/* The same command must print the same on both sides. */
static void assert_same_answer(struct stage *stage, const char *script)
{
	char *here = place_ask(stage->place, script);
	char *there = stage_ask(stage, script);
	if (strcmp(here, there) != 0) {
		fail_msg("%s\nhere: %s\nthere: %s", script, here, there);
	}
	free(here);
	free(there);
}

static void assert_same_repository(struct stage *stage)
{
	assert_same_answer(stage,
		"git symbolic-ref -q HEAD || true; git rev-parse -q --verify HEAD || true;"
		"git for-each-ref refs/remotes; git status --porcelain");
	stage_there(stage, "git fsck --strict >/dev/null 2>&1");
}

static void test_the_root_is_a_repository_at_the_users_head(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, repository);
	assert_same_repository(stage);
	assert_same_answer(stage, "git log --format=%H; git diff origin/main");
	stage_there(stage, "test \"$(git config user.name)\" = 'The User'\n"
			   "test \"$(git config user.email)\" = u@example.org\n"
			   "! git config credential.helper; test ! -d .git/hooks\n"
			   "git commit -qam three; test \"$(git log --format=%s | head -n 2)\" = "
			   "\"$(printf 'three\\ntwo')\"");
}

static void test_the_users_repository_is_not_written(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	char *before = place_ask(stage->place, "find .git -type f -exec cksum {} + | sort");
	stage_send_first(stage, "");
	char *after = place_ask(stage->place, "find .git -type f -exec cksum {} + | sort");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void test_a_detached_head_stays_detached(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	stage_send_first(stage, "git checkout -q --detach");
	assert_same_repository(stage);
}

static void test_an_unborn_branch_stays_unborn(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage, "git init -q -b fresh; echo a > a");
	assert_same_repository(stage);
	stage_there(stage, "git add a; git -c user.name=A -c user.email=a@b commit -qm first");
}

static void test_head_moves_there_as_it_moves_here(void **state)
{
	struct stage *stage = *state;
	static const char *const moves[] = {"git commit -qam three", "git checkout -q -f old",
		"git checkout -qb feature; echo f > f; git add f; git commit -qm f",
		"git checkout -q --detach main", "git checkout -q main; git reset -q --hard old",
		("git update-ref refs/remotes/origin/other HEAD; echo x > x; git add x; git commit "
		 "-qm x")};
	git_oid tree = stage_send_first(stage, repository);
	for (size_t i = 0; i < ARRAY_LENGTH(moves); i++) {
		place_run(stage->place, moves[i]);
		if (i % 2 == 1) {
			stage_restart(stage);
			stage_prepare(stage);
		}
		tree = send(stage, &tree);
		assert_same_repository(stage);
		stage_assert_equal(stage);
	}
}

static void test_head_stays_where_the_agent_has_moved_it(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git checkout -qb agents; git commit -qam mine");
	tree = stage_collect(stage, &tree);
	place_run(stage->place, "git commit -qam yours");
	send(stage, &tree);
	stage_there(stage, "test $(git symbolic-ref --short HEAD) = agents; test $(git log -1 "
			   "--format=%s) = mine");
}

static void test_a_deleted_repository_is_made_anew(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "rm -rf .git");
	git_oid there = stage_collect(stage, &tree);
	assert_memory_equal(&there, &tree, sizeof(tree));
	stage_deliver(stage, &tree, &tree);
	assert_same_repository(stage);
}

static void test_a_shallow_repository_is_shallow_there(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place,
		"mkdir ../full; cd ../full\n"
		"git init -q; for n in 1 2 3; do echo $n > n; git add n; git commit -qm $n; done\n"
		"rm -rf \"$PLACE/work\"; git clone -q --depth 2 \"file://$PLACE/full\" "
		"\"$PLACE/work\"");
	stage_send_first(stage, "");
	assert_same_repository(stage);
	stage_there(stage, "test $(git rev-list --count HEAD) = 2");
}

/*
 * A workspace with 2 of 9 commits, and the same there; ../full has all of them, and in "other"
 * commits of somebody else.
 */
static git_oid begin_shallow(struct stage *stage)
{
	place_run(stage->place,
		"mkdir ../full; cd ../full\n"
		"git init -q -b main; for n in $(seq 9); do git commit -q --allow-empty -m $n; "
		"done\n"
		"git checkout -q --orphan other; git commit -q --allow-empty -m x\n"
		"git commit -q --allow-empty -m y; rm -rf \"$PLACE/work\"\n"
		"git clone -q -b main --depth 2 \"file://$PLACE/full\" \"$PLACE/work\"");
	return stage_send_first(stage, "");
}

/* The list of shallow commits there may have more than the one here, and less. */
static void test_what_the_agent_has_fetched_stays_shallow_there(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin_shallow(stage);
	stage_there(stage, "git fetch -q --depth 1 \"file://$PLACE/full\" other:other");
	place_run(stage->place, "git commit -q --allow-empty -m mine");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "git fsck; test $(git rev-list --count other) = 1\n"
			   "test $(git rev-list --count HEAD) = 3");
	place_run(stage->place, "git fetch -q --depth 4; git commit -q --allow-empty -m more");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "git fsck; test $(git rev-list --count HEAD) = 4\n"
			   "git fetch -q --unshallow \"file://$PLACE/full\" main\n"
			   "git fsck; test $(git rev-list --count HEAD) = 11");
	place_run(stage->place, "git commit -q --allow-empty -m last");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "git fsck; test $(git rev-list --count HEAD) = 12");
	place_run(stage->place,
		"git -C ../full commit -q --allow-empty -m z; git fetch -q --depth 1 "
		"origin other; git update-ref refs/remotes/origin/other FETCH_HEAD");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "git fsck; test $(git rev-list --count origin/other) = 1");
}

/* After a fetch git writes its whole list, so an addition in the meantime would be lost. */
static void test_the_agents_lock_of_what_is_shallow_is_waited_for(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin_shallow(stage);
	stage_there(stage, "cp .git/shallow .git/shallow.lock; cp .git/shallow ../was");
	place_run(stage->place, "git fetch -q --depth 1 origin other:refs/remotes/origin/other");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "cmp .git/shallow ../was; cmp .git/shallow.lock ../was; git fsck\n"
			   "! git rev-parse -q --verify origin/other");
	stage_collect(stage, &tree);
	assert_non_null(strstr(stage->collected.note, "its git is locked"));
	/* The agent's git has ended, and one of our scripts was cut off. */
	stage_there(stage, "echo acp-broker > .git/shallow.lock");
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "git fsck; test $(git rev-list --count origin/other) = 1\n"
			   "test ! -e .git/shallow.lock; test ! -e .git/acp-broker/missing");
	assert_same_repository(stage);
}

/* No program takes this much in one argument: 400 KB of refs, 200 KB of shallow commits. */
static void test_five_thousand_branches_are_sent_once(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place,
		"mkdir ../full; cd ../full; git init -q -b main\n"
		"n=0; while [ $n -lt 5000 ]; do n=$((n + 1))\n"
		"	printf 'commit refs/heads/a-topic-with-a-name/%s\\ncommitter A <a@b> %s "
		"+0000\\ndata 0\\nfrom refs/heads/main\\n' $n $n\n"
		"done > ../branches\n"
		"echo a > a; git add a; git commit -qm one; git fast-import --quiet < ../branches\n"
		"rm -rf \"$PLACE/work\"\n"
		"git clone -q --depth 1 --no-single-branch \"file://$PLACE/full\" \"$PLACE/work\"");
	stage_send_first(stage, "");
	assert_same_repository(stage);
	assert_same_answer(stage, "sort .git/shallow; git for-each-ref refs/remotes | wc -l");
	stage_program(stage, "git",
		"case \" $* \" in *' index-pack '*|*' update-ref '*) echo x >> \"${0%/*}/sent\" ;; "
		"esac\nexec /usr/bin/git \"$@\"");
	stage_restart(stage);
	stage_prepare(stage);
	place_run(stage->place, "test ! -e ../bin/sent; git commit -q --allow-empty -m further\n"
				"git update-ref refs/remotes/origin/further HEAD");
	stage_restart(stage);
	stage_prepare(stage);
	place_run(stage->place, "test -e ../bin/sent");
	assert_same_repository(stage);
	stage_restart(stage);
	place_run(stage->place, "rm ../bin/sent");
	stage_prepare(stage);
	place_run(stage->place, "test ! -e ../bin/sent");
}

static void test_a_repository_of_the_agents_is_left_alone(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	stage_there(stage, "git init -q -b mine");
	stage_send_first(stage, "");
	stage_there(
		stage, "test $(git symbolic-ref --short HEAD) = mine; test ! -e .git/acp-broker");
}

/* ---- the number of scripts: each costs a round trip if the sandbox is far away ---- */

static int started(struct stage *stage)
{
	char *said = place_ask(stage->place, "cat ../bin/started; : > ../bin/started");
	int count = (int)strlen(said);
	free(said);
	return count;
}

static void test_few_scripts_are_started(void **state)
{
	struct stage *stage = *state;
	stage_program(stage, "sh",
		"[ \"$3\" != acp-broker-sync ] || printf x >> \"${0%/*}/started\"\n"
		"exec /bin/sh \"$@\"");
	place_run(stage->place, repository);
	stage_prepare(stage);
	assert_int_equal(started(stage), 2); // it was sent the history
	stage_collect(stage, nothing);
	git_oid tree = send(stage, NULL);
	assert_int_equal(started(stage), 2);
	stage_restart(stage);
	stage_prepare(stage);
	assert_int_equal(started(stage), 1); // it has it
	tree = stage_collect(stage, &tree);
	stage_deliver(stage, &tree, &tree);
	assert_int_equal(started(stage), 1); // nothing has changed
	stage_there(stage, "git commit -qam agents; for n in 1 2 3 4 5; do echo $n > $n; done");
	tree = stage_collect(stage, &tree);
	assert_int_equal(started(stage), 1);
	place_run(stage->place, "for n in 1 2 3 4 5; do echo $n > $n; echo $n > n$n; done; rm a");
	send(stage, &tree);
	assert_int_equal(started(stage), 1);
	stage_assert_equal(stage);
}

static void test_a_repository_that_is_not_current_is_brought_up_to_date(void **state)
{
	struct stage *stage = *state;
	static const char *const changes[] = {"git update-ref -d refs/remotes/origin/main old",
		"git checkout -q -f old", "git checkout -q -f -"};
	git_oid tree = stage_send_first(stage, repository);
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		place_run(stage->place, changes[i]);
		stage_restart(stage);
		stage_prepare(stage);
		assert_same_answer(stage, "git symbolic-ref HEAD; git rev-parse HEAD");
	}
	stage_there(stage, "rm -rf .git");
	stage_restart(stage);
	stage_prepare(stage);
	assert_same_answer(stage, "git symbolic-ref HEAD; git rev-parse HEAD");
	stage_collect(stage, &tree);
}

/* The history that was sent to the runtime does not exist here any more. */
static void test_a_history_that_was_rewritten_and_pruned_is_sent_on(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place, "git commit -qam three");
	tree = send(stage, &tree);
	place_run(stage->place, "git commit -q --amend -m again; git reflog expire --expire=now "
				"--all; git gc -q --prune=now");
	tree = send(stage, &tree);
	assert_same_repository(stage);
	place_run(stage->place, "echo 4 > a; git commit -qam four");
	stage_restart(stage);
	stage_prepare(stage);
	send(stage, &tree);
	assert_same_repository(stage);
	stage_assert_equal(stage);
}

static void test_a_workspace_that_was_cloned_anew_is_sent_on(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	place_run(stage->place, "git clone -q --bare . ../full; rm -rf .git; rm *\n"
				"git clone -q ../full .; echo mine > a; git commit -qam unpushed");
	git_oid tree = stage_send_first(stage, "");
	place_run(stage->place, "rm -rf .git; rm *; git clone -q ../full .");
	stage_restart(stage);
	stage_prepare(stage);
	tree = send(stage, &tree);
	assert_same_repository(stage);
	place_run(stage->place, "echo other > a; git commit -qam other");
	send(stage, &tree);
	assert_same_repository(stage);
	stage_assert_equal(stage);
}

static void test_why_git_could_not_send_it_is_told_and_the_next_sync_does(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	place_run(stage->place, "echo 3 > a; git commit -qam three\n"
				"id=$(git rev-parse HEAD:a); mkdir -p ../gone\n"
				"mv .git/objects/${id%${id#??}}/${id#??} ../gone/${id#??}");
	tree = send(stage, &tree);
	stage_collect(stage, &tree);
	char *id = place_ask(stage->place, "git rev-parse HEAD:a | tr -d '\\n'");
	assert_non_null(strstr(stage->collected.note, "history was not sent"));
	assert_non_null(strstr(stage->collected.note, id));
	free(id);
	stage_deliver(stage, &tree, &tree);
	stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	place_run(stage->place, "id=$(git rev-parse HEAD:a)\n"
				"mv ../gone/${id#??} .git/objects/${id%${id#??}}/${id#??}");
	stage_deliver(stage, &tree, &tree);
	assert_same_repository(stage);
}

static void assert_attempts(struct stage *stage, const git_oid *tree, const char *count)
{
	stage_deliver(stage, tree, tree);
	char *lines = place_ask(stage->place, "wc -l <../bin/sent | tr -d ' \\n'");
	assert_string_equal(lines, count);
	free(lines);
}

/* Packing gigabytes would take minutes, before and after each prompt. */
static void test_what_cannot_be_sent_is_not_sent_for_ever(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_program(stage, "git",
		"case \" $* \" in *' index-pack '*) echo x >> \"${0%/*}/sent\" ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	place_run(stage->place, "echo 3 > a; git commit -qam three\n"
				"id=$(git rev-parse HEAD:a); mkdir -p ../gone\n"
				"mv .git/objects/${id%${id#??}}/${id#??} ../gone/${id#??}\n"
				"echo $id >../gone/id");
	tree = send(stage, &tree);
	assert_attempts(stage, &tree, "2");
	assert_attempts(stage, &tree, "3");
	assert_attempts(stage, &tree, "3");
	assert_attempts(stage, &tree, "3");
	place_run(stage->place, "git commit -q --allow-empty -m four");
	assert_attempts(stage, &tree, "4"); // not the one that has failed
	assert_attempts(stage, &tree, "5");
	assert_attempts(stage, &tree, "6");
	assert_attempts(stage, &tree, "6");
	place_run(stage->place, "id=$(cat ../gone/id)\n"
				"mv ../gone/${id#??} .git/objects/${id%${id#??}}/${id#??}");
	assert_attempts(stage, &tree, "6");
	git_from(stage->transport)->histories[0]->failed_ms -= HISTORY_PAUSE_MS;
	assert_attempts(stage, &tree, "7");
	assert_same_repository(stage);
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_the_root_is_a_repository_at_the_users_head),
		STAGE_TEST(test_the_users_repository_is_not_written),
		STAGE_TEST(test_a_detached_head_stays_detached),
		STAGE_TEST(test_an_unborn_branch_stays_unborn),
		STAGE_TEST(test_head_moves_there_as_it_moves_here),
		STAGE_TEST(test_head_stays_where_the_agent_has_moved_it),
		STAGE_TEST(test_a_deleted_repository_is_made_anew),
		STAGE_TEST(test_a_history_that_was_rewritten_and_pruned_is_sent_on),
		STAGE_TEST(test_a_workspace_that_was_cloned_anew_is_sent_on),
		STAGE_TEST(test_why_git_could_not_send_it_is_told_and_the_next_sync_does),
		STAGE_TEST(test_what_cannot_be_sent_is_not_sent_for_ever),
		STAGE_TEST(test_a_shallow_repository_is_shallow_there),
		STAGE_TEST(test_what_the_agent_has_fetched_stays_shallow_there),
		STAGE_TEST(test_the_agents_lock_of_what_is_shallow_is_waited_for),
		STAGE_TEST(test_five_thousand_branches_are_sent_once),
		STAGE_TEST(test_a_repository_of_the_agents_is_left_alone),
		STAGE_TEST(test_few_scripts_are_started),
		STAGE_TEST(test_a_repository_that_is_not_current_is_brought_up_to_date),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
