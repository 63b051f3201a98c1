/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"

/* Deliveries of a few changes, which use a faster script (sync/git/remote/deliver.sh). */

static const char first[] = "for n in 1 2 3 4; do echo $n > $n; done; mkdir -p d/e; echo f > d/f\n"
			    "echo g > d/e/g; ln -s 1 link; echo r > run; chmod +x run\n";

/* Records all calls of git from here on. */
static void begin_listening(struct stage *stage)
{
	stage_program(stage, "git",
		"printf '%s\\n' \"$*\" >> \"${0%/*}/asked\"\nPATH=${PATH#*:}\nexec git \"$@\"");
}

static bool was_asked(struct stage *stage, const char *words)
{
	char *asked = place_ask(stage->place, "cat ../bin/asked; : > ../bin/asked");
	bool is_there = strstr(asked, words) != NULL;
	free(asked);
	return is_there;
}

static git_oid change_here(struct stage *stage, const git_oid *base, const char *script)
{
	place_run(stage->place, script);
	return place_take(stage->place, base);
}

/* Checks that the delivery has arrived, and that the transport knows it. */
static void assert_delivered(struct stage *stage, const git_oid *tree)
{
	stage_assert_equal(stage);
	git_oid there = stage_collect(stage, tree);
	assert_memory_equal(&there, tree, sizeof(there));
}

static void test_few_changes_go_past_the_merge_of_whole_trees(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	begin_listening(stage);
	git_oid next = change_here(stage, &tree,
		"echo one > 1; chmod +x 2; chmod -x run; ln -sf 2 link; mkdir -p new/deep\n"
		"echo n > new/deep/n; echo h > d/e/h; rm 3; ln -s 4 3; : > 4\n");
	stage_deliver(stage, &tree, &next);
	assert_false(was_asked(stage, "read-tree"));
	assert_delivered(stage, &next);
	stage_there(stage, "echo two > 1"); // of the same size, in the same second
	git_oid there = stage_collect(stage, &next);
	git_oid here = change_here(stage, &next, "echo two > 1");
	assert_memory_equal(&there, &here, sizeof(here));
}

static void test_an_index_that_was_cut_off_ends_one_run_only(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "set -- ../.acp-broker/sync/*/known-*; test $# = 1; : > \"$1\"");
	stage_collect_fails(stage, &tree, ERROR_SYSTEM, "index file");
	git_oid there = stage_collect(stage, &tree);
	assert_memory_equal(&there, &tree, sizeof(there));
}

static void test_names_are_names_and_nothing_else(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	begin_listening(stage);
	git_oid next = change_here(stage, &tree,
		"echo a > ' a '; echo b > \"$(printf 'b\\tb')\"; echo c > -c; echo d > '*'\n"
		"echo e > ':(exclude)e'; echo f > 'f\\'; echo g > 'g\"'; echo h > '$(h)'\n"
		"echo i > \"$(printf '\\377i')\"; mkdir -- '-d '; echo j > '-d / j'\n");
	stage_deliver(stage, &tree, &next);
	assert_false(was_asked(stage, "read-tree"));
	assert_delivered(stage, &next);
	git_oid more = change_here(stage, &next,
		"for f in *; do test -d \"$f\" || echo m > \"./$f\"\n"
		"done; echo k > '\"k\"'");
	stage_deliver(stage, &next, &more);
	assert_delivered(stage, &more);
	git_oid last = change_here(stage, &more, "echo l > \"$(printf 'l\\nl')\"; echo m > 1");
	stage_deliver(stage, &more, &last);
	assert_delivered(stage, &last);
}

static void test_only_what_is_as_it_was_is_replaced(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *there, *is_left, *back;
	} changes[] = {
		{"echo x > 1", "test $(cat 1) = x", "echo 1 > 1"},
		{"rm 1", "test ! -e 1", "echo 1 > 1"},
		{"chmod +x 1", "test -x 1; test $(cat 1) = 1", "chmod -x 1"},
		{"rm 1; mkdir 1; echo x > 1/x", "test -e 1/x", "rm -r 1; echo 1 > 1"},
		{"rm 1; ln -s 2 1", "test -L 1", "rm 1; echo 1 > 1"},
		{"mv d ../d; ln -s ../d d", "test -L d; test $(cat ../d/f) = f", "rm d; mv ../d d"},
		{"echo x > new", "test $(cat new) = x", "rm new"},
		{"mkdir ../out; ln -s ../out more", "test ! -e ../out/deep",
			"rm more; rm -r ../out"},
		{"echo x > more", "test $(cat more) = x", "rm more"},
	};
	git_oid tree = stage_send_first(stage, first);
	git_oid next = change_here(stage, &tree,
		"echo one > 1; echo ff > d/f; echo n > new; mkdir -p more/deep; echo n > "
		"more/deep/n");
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		stage_there(stage, changes[i].there);
		stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
		assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
		stage_there(stage, changes[i].is_left);
		stage_there(stage, changes[i].back);
	}
	stage_there(stage, "touch 1; test $(cat 2) = 2");
	stage_deliver(stage, &tree, &next); // everything is as before, whatever its time
	assert_delivered(stage, &next);
}

static void test_what_is_ignored_is_moved_out_of_the_way(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "echo made > .gitignore");
	git_oid tree = stage_send_first(stage, first);
	stage_there(stage, "echo theirs > made");
	git_oid next = change_here(
		stage, &tree, "echo one > 1; echo ours > made; git init -q; git add -f made");
	stage_deliver(stage, &tree, &next);
	stage_there(stage, "test $(cat made) = ours; test $(cat made.*.acp-conflict) = theirs");
	stage_there(stage, "test $(cat 1) = one");
	git_oid there = stage_collect(stage, &next);
	assert_memory_equal(&there, &next, sizeof(next));
}

static void test_many_changes_go_the_other_way(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	begin_listening(stage);
	git_oid next = change_here(
		stage, &tree, "n=0; while [ $n -lt 101 ]; do echo $n > many$n; n=$((n + 1)); done");
	stage_deliver(stage, &tree, &next);
	assert_true(was_asked(stage, "read-tree -m -u"));
	assert_delivered(stage, &next);
	git_oid last = change_here(stage, &next, "echo x > 1; rm 2");
	stage_deliver(stage, &next, &last);
	assert_true(was_asked(stage, "read-tree -m -u"));
	assert_delivered(stage, &last);
}

/*
 * Somebody writes to a file there while it is being delivered: the write stays, and the delivery
 * reports it.
 */
static void test_what_is_written_meanwhile_stays(void **state)
{
	struct stage *stage = *state;
	static const char *const moments[] = {
		"echo saved > 1; echo saved > d/f", "echo saved >> 1; chmod +x 1",
		"echo 2 > 1", // of the same size, in the same second
	};
	static const char *const moments_left[] = {
		"test $(cat 1)$(cat d/f) = savedsaved; test $(readlink link) = 2",
		"test \"$(echo $(cat 1))\" = '1 saved'; test -x 1; test $(cat d/f) = ff",
		"test $(cat 1) = 2; test $(cat new) = n",
	};
	static const char *const moments_stuck[] = {"1\nd/f\n", "1\n", "1\n"};
	git_oid tree = stage_send_first(stage, first);
	git_oid next = change_here(
		stage, &tree, "echo one > 1; echo ff > d/f; ln -sf 2 link; echo n > new");
	for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
		char script[512];
		snprintf(script, sizeof(script),
			"PATH=${PATH#*:}\ncase \" $* \" in *' checkout '*) %s ;; esac\n"
			"exec git \"$@\"",
			moments[i]);
		stage_program(stage, "git", script);
		stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
		assert_string_equal(stage->stuck, moments_stuck[i]);
		assert_false(stage->delivered.is_lasting);
		stage_there(stage, "rm ../../bin/git");
		git_oid there = stage_collect(stage, &tree);
		stage_there(stage, moments_left[i]);
		stage_deliver(stage, &there, &tree);
	}
	stage_deliver(stage, &tree, &next);
	assert_delivered(stage, &next);
}

/* By the slower script, before which git examines the whole index. */
static void test_what_is_in_the_way_of_many_changes_is_named(void **state)
{
	struct stage *stage = *state;
	static const struct {
		const char *before, *program, *stuck;
	} ways[] = {
		{"echo saved > 1; rm d/f; echo unrelated > 4", "", "1\nd/f\n"},
		{"", "case \" $* \" in *' read-tree -m '*) echo saved > 1 ;; esac", "1\n"},
		{"",
			"case \" $* \" in *' read-tree -m '*) rm 1 2 3\n"
			"echo one > 1; echo two > 2; exit 1 ;; esac",
			"d/f\n"},
	};
	git_oid tree = stage_send_first(stage, first);
	git_oid next = change_here(stage, &tree, "echo one > 1; echo two > 2; rm 3; echo ff > d/f");
	for (size_t i = 0; i < ARRAY_LENGTH(ways); i++) {
		char script[512];
		snprintf(script, sizeof(script), "PATH=${PATH#*:}\n%s\nexec git \"$@\"",
			ways[i].program);
		stage_there(stage, ways[i].before);
		stage_program(stage, "git", script);
		stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
		assert_string_equal(stage->stuck, ways[i].stuck);
		stage_there(stage, "rm ../../bin/git");
		git_oid there = stage_collect(stage, &tree);
		stage_deliver(stage, &there, &tree);
	}
	stage_deliver(stage, &tree, &next);
	assert_delivered(stage, &next);
}

static void test_what_cannot_have_a_second_link_is_delivered_too(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	git_oid next = change_here(stage, &tree, "echo one > 1; chmod +x 2; echo n > new");
	stage_program(stage, "cp", "exit 1");
	begin_listening(stage);
	stage_deliver(stage, &tree, &next);
	assert_false(was_asked(stage, "read-tree"));
	assert_delivered(stage, &next);
}

/* If git had to stop in the middle, the delivery fails; a collect finds what is there. */
static void test_what_could_not_be_written_is_told(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, first);
	git_oid next = change_here(stage, &tree, "echo one > 1; echo two > 2");
	stage_program(stage, "git",
		"case \" $* \" in *' checkout '*) rm 1; exit 1 ;; esac\nPATH=${PATH#*:}\n"
		"exec git \"$@\"");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "2\n3\n4\nd/e/g\nd/f\nlink\nrun\n");
	stage_program(stage, "git", "PATH=${PATH#*:}\nexec git \"$@\"");
	stage_deliver(stage, &there, &next);
	assert_delivered(stage, &next);
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_few_changes_go_past_the_merge_of_whole_trees),
		STAGE_TEST(test_an_index_that_was_cut_off_ends_one_run_only),
		STAGE_TEST(test_names_are_names_and_nothing_else),
		STAGE_TEST(test_only_what_is_as_it_was_is_replaced),
		STAGE_TEST(test_what_is_ignored_is_moved_out_of_the_way),
		STAGE_TEST(test_many_changes_go_the_other_way),
		STAGE_TEST(test_what_is_written_meanwhile_stays),
		STAGE_TEST(test_what_is_in_the_way_of_many_changes_is_named),
		STAGE_TEST(test_what_cannot_have_a_second_link_is_delivered_too),
		STAGE_TEST(test_what_could_not_be_written_is_told),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
