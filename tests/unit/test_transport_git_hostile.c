/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

/*
 * A runtime whose git lies: a program of that name comes first in the sandbox's PATH, does what the
 * test wants with one of git's commands, and passes all others on to the real git.
 */
static void lie(struct stage *stage, const char *command, const char *script)
{
	char all[4096];
	snprintf(all, sizeof(all), "case \"$*\" in %s) %s ;; *) exec /usr/bin/git \"$@\" ;; esac",
		command, script);
	stage_program(stage, "git", all);
}

static void stop_lying(struct stage *stage)
{
	char path[2 * FIXTURE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/git", stage->bin);
	assert_int_equal(unlink(path), 0);
}

/* After a refusal everything is unchanged, and syncs work again once the runtime is honest. */
static void expect_refusal(
	struct stage *stage, const git_oid *base, enum error_code code, const char *words)
{
	stage_collect_fails(stage, base, code, words);
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
}

#define EMPTY_BLOB "\\346\\235\\342\\233\\262\\321\\326CK\\213)\\256wZ\\330\\302\\344\\214S\\221"
#define FILE_ENTRY(name) "100644 " name "\\0" EMPTY_BLOB

static void test_trees_that_no_snapshot_can_be_are_refused(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *tree, *words;
	} trees[] = {
		{FILE_ENTRY(".."), "not allowed"},
		{FILE_ENTRY("."), "not allowed"},
		{FILE_ENTRY(""), "not allowed"},
		{FILE_ENTRY(".git"), "not allowed"},
		{FILE_ENTRY(".GIT"), "not allowed"},
		{FILE_ENTRY("git~1"), "not allowed"},
		{FILE_ENTRY(".g\\342\\200\\214it"), "not allowed"},
		{FILE_ENTRY("a/b"), "not allowed"},
		{FILE_ENTRY("/etc"), "not allowed"},
		{FILE_ENTRY("../up"), "not allowed"},
		{"160000 sub\\0" EMPTY_BLOB, "link or directory"},
		{"100600 x\\0" EMPTY_BLOB, "link or directory"},
		{"0100644 x\\0" EMPTY_BLOB, "damaged"},
		{"40000 dir\\0" EMPTY_BLOB, "a directory is missing"},
		{FILE_ENTRY("x") "short", "damaged"},
		{FILE_ENTRY("b") FILE_ENTRY("a"), "out of order"},
		{FILE_ENTRY("a") FILE_ENTRY("a"), "out of order"},
		{"100644 x\\0aaaaaaaaaaaaaaaaaaaa", "missing"},
		{"120000 x\\0" EMPTY_BLOB, "leads nowhere"},
	};
	git_oid tree = stage_send_first(stage, "echo a > a");
	for (size_t i = 0; i < ARRAY_LENGTH(trees); i++) {
		char script[1024];
		snprintf(script, sizeof(script),
			"/usr/bin/git hash-object -w --stdin </dev/null >/dev/null\n"
			"printf '%s' | /usr/bin/git hash-object -t tree -w --literally --stdin ;;\n"
			"diff-tree*) echo ': 1 2 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 A'",
			trees[i].tree);
		lie(stage, "write-tree", script);
		stage_there(stage, "echo $$ > a");
		expect_refusal(stage, &tree, ERROR_PROTOCOL, trees[i].words);
	}
	stop_lying(stage);
	stage_there(stage, "echo a > a");
	git_oid there = stage_collect(stage, &tree);
	assert_memory_equal(&there, &tree, sizeof(tree));
}

static void test_what_is_no_answer_is_refused(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *script, *words;
		enum error_code code;
	} lies[] = {
		{"yes", "the sandbox sent", ERROR_PROTOCOL},
		{"cat /dev/zero", "the sandbox sent", ERROR_PROTOCOL},
		{"cat /dev/urandom", "the sandbox sent", ERROR_PROTOCOL},
		{"printf '%040d blob 99999999999\\n' 0; cat /dev/zero", "limit", ERROR_LIMIT},
		{"printf '%040d blob 3\\nabc\\n' 0", "not match its id", ERROR_PROTOCOL},
		{"printf '%040d commit 0\\n\\n' 0", "as a file", ERROR_PROTOCOL},
		{"printf '%040d blob 3\\nabcd' 0", "without its end", ERROR_PROTOCOL},
		{"printf '%040d missing\\n' 0", "not an object", ERROR_PROTOCOL},
		{"/usr/bin/git \"$@\" | sed s/hello/jello/", "not match its id", ERROR_PROTOCOL},
		{"/usr/bin/git \"$@\" | head -c 100", "", ERROR_PROTOCOL},
		{"kill -9 $PPID", "in the middle", ERROR_UNAVAILABLE},
		{"exit 3", "in the middle", ERROR_UNAVAILABLE},
	};
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "echo hello > a; echo more > b");
	for (size_t i = 0; i < ARRAY_LENGTH(lies); i++) {
		lie(stage, "*--buffer*", lies[i].script);
		expect_refusal(stage, &tree, lies[i].code, lies[i].words);
		if (lies[i].code == ERROR_UNAVAILABLE) {
			assert_string_equal(stage->err.reason, "LINK_LOST");
		}
	}
	stop_lying(stage);
	stage_collect(stage, &tree);
}

static void test_endless_answers_end_at_the_limit(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage->request.bytes_max = 1 << 20;
	stage_restart(stage);
	stage_program(stage, "sh", "yes \"$(printf 'left')\" | tr '\\n' '\\0'");
	expect_refusal(stage, &tree, ERROR_LIMIT, "more than the allowed 1048576 bytes");
	stage_program(stage, "sh", "printf 'big\\0%040d\\000100644\\0009999999\\000x\\0' 0");
	expect_refusal(stage, &tree, ERROR_LIMIT, "more than the allowed");
	stage_program(stage, "sh", "printf 'big\\0%040d\\000100644\\0001\\000../x\\0' 0");
	expect_refusal(stage, &tree, ERROR_PROTOCOL, "not allowed");
	stage_program(stage, "sh", "cat /dev/zero | head -c 9999999");
	expect_refusal(stage, &tree, ERROR_PROTOCOL, "not an answer");
}

static void test_silence_ends_at_the_deadline(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage->request.timeout_ms = 300;
	stage_restart(stage);
	stage_program(stage, "sh", "echo $$ > \"$0.pid\"; exec sleep 1000");
	expect_refusal(stage, &tree, ERROR_TIMEOUT, "for 300 ms");
	assert_string_equal(stage->err.reason, "TIMEOUT_EXCEEDED");
	/* The process tree of the script is killed. */
	place_run(stage->place,
		"while kill -0 $(cat ../bin/sh.pid) 2>/dev/null; do sleep 0.05; done");
}

/*
 * The broker of this script was killed, and the next one's script has removed what this one had
 * begun.
 */
static void test_a_dying_script_removes_nothing_of_the_next_ones(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "echo b > b");
	lie(stage, "write-tree",
		"rm -rf \"$GIT_DIR\"/work.*; mkdir \"$GIT_DIR/work.next\"; exit 1");
	expect_refusal(stage, &tree, ERROR_SYSTEM, "status");
	char *found = place_ask(stage->place, "find .. -name work.next | wc -l");
	assert_string_equal(found, "1\n");
	free(found);
}

static void test_big_files_that_are_less_than_was_said_stay_as_they_were(void **state)
{
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "head -c 9000 /dev/zero > big");
	static const char *const streams[] = {"/bin/cat \"$@\" | head -c 8999", "exit 1"};
	for (size_t i = 0; i < ARRAY_LENGTH(streams); i++) {
		char script[256];
		snprintf(script, sizeof(script),
			"case $1 in ./big) %s ;; *) exec /bin/cat \"$@\" ;; esac", streams[i]);
		stage_program(stage, "cat", script);
		git_oid there = stage_collect(stage, &tree);
		assert_tree(stage->place, &there, "100644 a\n");
		assert_int_equal(stage->collected.left.count, 1);
		assert_string_equal(stage->collected.left.first, "big");
		place_run(stage->place, "git --git-dir=../state/store fsck --strict");
	}
}

static void test_links_that_lead_out_are_never_followed(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "mkdir d; echo x > d/x; ln -s /etc/passwd out");
	stage_there(stage, "mkdir ../outside; echo x > ../outside/x; rm -r d; ln -s ../outside d");
	place_run(stage->place, "echo changed > d/x; echo new > d/new");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	stage_there(stage, "test $(cat ../outside/x) = x; test $(ls ../outside) = x");
	git_oid there = stage_collect(stage, &tree);
	assert_tree(stage->place, &there, "120000 d\n120000 out\n");
}

static void test_a_missing_tool_is_named(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "for t in sh find xargs stat comm cut sort wc head tr sed; do "
				"ln -s \"$(command -v $t)\" ../bin/; done");
	snprintf(stage->path, sizeof(stage->path), "PATH=%.400s", stage->bin);
	transport_prepare(stage->transport, stage_on_done, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_int_equal(stage->err.code, ERROR_UNAVAILABLE);
	assert_names(stage->err.text, "needs \"git\" | sandbox");
}

/*
 * Kills the script and its git with SIGKILL at each of git's commands: repeated, nothing is lost.
 */
static void test_a_killed_script_can_be_run_again(void **state)
{
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	git_oid base =
		stage_send_first(stage, "echo a > a; echo b > b; head -c 6000 /dev/zero > big");
	stage_program(stage, "git",
		"n=$(cat \"$0.n\"); echo $((n - 1)) > \"$0.n.$$\"; mv \"$0.n.$$\" \"$0.n\"\n"
		"[ $n != 0 ] || kill -9 0\n"
		"exec /usr/bin/git \"$@\"");
	bool was_killed = true;
	for (int n = 0; was_killed; n++) {
		char script[256];
		snprintf(script, sizeof(script),
			"echo %d > ../bin/git.n; echo a%d > a; rm -rf c; "
			"mkdir c; echo %d > c/f; head -c %d /dev/zero > big",
			n, n, n, 6000 + n);
		place_run(stage->place, script);
		git_oid next = place_take(stage->place, &base);
		transport_deliver(stage->transport, &base, &next, stage_on_delivered, stage);
		stage_wait(stage);
		was_killed = stage->failed;
		place_run(stage->place, "echo -1 > ../bin/git.n");
		git_oid there = stage_collect(stage, &base);
		stage_deliver(stage, &there, &next);
		stage_assert_equal(stage);
		base = next;
		assert_true(was_killed || n > 12); // there are at least this many commands
		assert_in_range(n, 0, 60);
	}
}

static void test_a_transport_can_be_destroyed_at_any_time(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	for (int turns = 0; turns < 12; turns++) {
		transport_collect(stage->transport, &tree, stage_on_collected, stage);
		for (int i = 0; i < turns; i++) {
			ev_run(stage->loop, EVRUN_ONCE);
		}
		stage->is_done = false; // it may have ended by then
		stage_restart(stage);
	}
	git_oid there = stage_collect(stage, &tree);
	assert_memory_equal(&there, &tree, sizeof(tree));
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_trees_that_no_snapshot_can_be_are_refused),
		STAGE_TEST(test_what_is_no_answer_is_refused),
		STAGE_TEST(test_endless_answers_end_at_the_limit),
		STAGE_TEST(test_silence_ends_at_the_deadline),
		STAGE_TEST(test_a_dying_script_removes_nothing_of_the_next_ones),
		STAGE_TEST(test_big_files_that_are_less_than_was_said_stay_as_they_were),
		STAGE_TEST(test_links_that_lead_out_are_never_followed),
		STAGE_TEST(test_a_missing_tool_is_named),
		STAGE_TEST(test_a_killed_script_can_be_run_again),
		STAGE_TEST(test_a_transport_can_be_destroyed_at_any_time),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
