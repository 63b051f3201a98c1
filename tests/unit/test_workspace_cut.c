/* SPDX-License-Identifier: MIT */
#include <sys/wait.h>
#include <unistd.h>

#include "base/point.h"
#include "tests/unit/workspace_fixture.h"

/* A broker is killed while it applies a merge with a rename. */

enum { KILLED = 77 };

/* sync/round.c and sync/apply.c reach these points. */
static const char *killed_at;
static int killed_count;

bool point(const char *name)
{
	if (killed_at && strcmp(name, killed_at) == 0 && --killed_count == 0) {
		_exit(KILLED);
	}
	return false;
}

/* Kills the sync when it reaches the point for the `count`th time. */
static void sync_killed(
	struct fixture *fixture, const struct sync_order *order, const char *at, int count)
{
	int status;
	workspace_destroy(fixture->workspace);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		killed_at = at;
		killed_count = count;
		fixture->request.loop = ev_loop_new(0);
		fixture->request.pool = pool_create(fixture->request.loop);
		fixture->workspace = workspace_create(&fixture->request);
		begin(fixture, order);
		ev_run(fixture->request.loop, 0);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), KILLED);
	fixture->workspace = workspace_create(&fixture->request);
}

static const struct sync_order usual = {.reason = SYNC_REASON_TURN};
static const struct sync_order keeps = {
	.reason = SYNC_REASON_TURN, .deletions = SYNC_DELETIONS_KEEP};

/* A link here gives the new place a guarded name, so the merge is made without the renames. */
static void test_what_did_not_follow_before_a_kill_has_not_moved(void **state)
{
	struct fixture *fixture = *state;
	fixture->request.guard_paths = guard_paths_create(NULL, &fixture->err);
	workspace_destroy(fixture->workspace);
	fixture->workspace = workspace_create(&fixture->request);
	run(fixture, "mkdir d; seq 10 > d/tasks.json; seq 20 50 > d/b; ln -s e .vscode");
	sync_once(fixture);
	run(fixture, "mv $R/d $R/e; sed -i '1s/.*/agent/' $R/e/b $R/e/tasks.json; "
		     "sed -i '$s/.*/MINE/' d/b d/tasks.json");
	sync_killed(fixture, &usual, "round.applied", 1);
	for (int i = 0; i < 2; i++) {
		sync_once(fixture);
		expect(fixture, "grep -rl MINE . | sort", "./d/b\n./d/tasks.json\n");
		assert_int_equal(fixture->result.held_count, 1);
	}
	guard_paths_destroy((struct guard_paths *)fixture->request.guard_paths);
}

static void test_nothing_has_moved_where_deletions_were_kept(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; for i in $(seq 30); do echo $i > d/f$i; done; seq 20 > a");
	sync_once(fixture);
	run(fixture, "rm -r $R/d; mv $R/a $R/b; sed -i '1s/.*/agent/' $R/b; "
		     "sed -i '$s/.*/MINE/' a");
	sync_killed(fixture, &keeps, "round.applied", 1);
	for (int i = 0; i < 2; i++) {
		sync_with(fixture, &keeps);
		assert_true(fixture->is_ok);
		expect_same(fixture);
		expect(fixture, "ls; tail -n 1 a; head -n 1 b", "a\nb\nd\nMINE\nagent\n");
	}
}

/* At the end of the first part the file is at both places, and later only at the new one. */
static void test_what_has_followed_before_a_kill_is_merged_once(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *at;
		int count;
	} kills[] = {{"apply.done", 1}, {"apply.done", 2}, {"round.applied", 1}};
	for (size_t i = 0; i < ARRAY_LENGTH(kills); i++) {
		run(fixture, "rm -rf d e; mkdir d; seq 10 > d/a; seq 20 30 > d/b");
		sync_once(fixture);
		run(fixture, "mv $R/d $R/e; sed -i '1s/.*/agent/' $R/e/a; "
			     "sed -i '$s/.*/MINE/' d/a");
		sync_killed(fixture, &usual, kills[i].at, kills[i].count);
		for (int again = 0; again < 2; again++) {
			sync_once(fixture);
			assert_int_equal(fixture->result.conflict_count, 0);
			expect_same(fixture);
			expect(fixture, "ls; ls e; sed -n '1p;$p' e/a", "e\na\nb\nagent\nMINE\n");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_what_did_not_follow_before_a_kill_has_not_moved),
		WORKSPACE_TEST(test_nothing_has_moved_where_deletions_were_kept),
		WORKSPACE_TEST(test_what_has_followed_before_a_kill_is_merged_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
