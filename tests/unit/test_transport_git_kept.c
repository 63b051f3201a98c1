/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "sync/graft.h"
#include "tests/unit/transport_fixture.h"

/* Files of the runtime that cannot be brought here must never look deleted. */

static git_oid send_big(struct stage *stage, const char *script)
{
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
	return stage_send_first(stage, script);
}

/* Root reads everything, unless it has given that up. */
static void give_up_reading(struct stage *stage)
{
	stage_program(stage, "sh",
		"[ $(id -u) = 0 ] || exec /bin/sh \"$@\"\n"
		"exec setpriv --bounding-set=-dac_override,-dac_read_search -- /bin/sh \"$@\"");
}

/* The paths that the collect has left out, in any order. */
static void expect_left(const struct stage *stage, const char *const *paths)
{
	struct transport_left left = {0};
	for (; *paths; paths++) {
		transport_left_add(&left, *paths);
	}
	assert_int_equal(stage->collected.left.count, left.count);
	assert_int_equal(stage->collected.left.print, left.print);
}

static void test_a_big_file_that_cannot_be_read_is_not_taken_for_deleted(void **state)
{
	struct stage *stage = *state;
	git_oid tree = send_big(stage, "mkdir -p d/e gone; for f in top d/big d/e/big gone/big; do "
				       "head -c 9000 /dev/urandom > $f; done; echo s > d/small; "
				       "echo s > grown");
	give_up_reading(stage);
	stage_there(stage, "chmod 0 top d; rm -r gone; echo n > new; "
			   "head -c 9000 /dev/zero > grown; chmod 0 grown");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "d/big\nd/e/big\nd/small\ngrown\nnew\ntop\n");
	expect_left(stage, (const char *[]){"d/big", "d/e/big", "grown", "top", NULL});
	place_run(stage->place, "rm -r gone; echo n > new");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here); // all are what they were
	/* All other files are delivered. */
	place_run(stage->place, "echo nn > new");
	here = place_take(stage->place, &there);
	stage_deliver(stage, &there, &here);
	stage_there(stage, "chmod 0755 d; chmod 0644 top grown; rm d/e/big; echo t >> top");
	there = stage_collect(stage, &here);
	assert_int_equal(stage->collected.left.count, 0);
	assert_tree(stage->place, &there,
		"160000 d/big\n100644 d/small\n160000 grown\n100644 new\n160000 top\n");
}

/* The scripts do not look behind a link, even if nobody can know what is there. */
static void test_a_closed_folder_behind_a_link_keeps_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = send_big(stage, "mkdir d; head -c 9000 /dev/zero > d/big");
	give_up_reading(stage);
	stage_there(stage, "mv d ../closed; ln -s ../closed d; chmod 0 ../closed");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "d\n");
	stage_there(stage, "chmod 0755 ../closed");
}

static void test_a_folder_whose_name_ends_in_a_new_line_keeps_its_big_files(void **state)
{
	struct stage *stage = *state;
	git_oid tree = send_big(stage, "d=$(printf 'd\nx'); mkdir \"${d%x}\"; "
				       "head -c 9000 /dev/zero > \"${d%x}/big\"");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "for f in d*/big; do echo more >> \"$f\"; done");
	there = stage_collect(stage, &tree);
	place_run(stage->place, "for f in d*/big; do echo more >> \"$f\"; done");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
}

/* The file in the tree is the beginning of the one in the runtime. */
static void assert_begins(struct stage *stage, const git_oid *tree, const char *path)
{
	struct store *store = &stage->place->store;
	struct error err;
	struct graft found;
	assert_true(graft_find(store, tree, path, &found, &err));
	struct store_entry file = {.mode = found.mode, .id = found.id};
	int fd ATTR_CLEANUP(fd_cleanup) = open(
		place_path(stage->place, "brought"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!store_copy_out(store, &file, fd, &err)) {
		fail_msg("%s", err.text);
	}
	char script[FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script),
		"head -c $(wc -c < brought) ../runtime/0/%s | cmp - brought", path);
	place_run(stage->place, script);
}

/* A log that is written all the time, even while it is measured and sent. */
static void test_a_big_file_that_grows_all_the_time_is_brought_as_it_was_read(void **state)
{
	struct stage *stage = *state;
	git_oid tree = send_big(stage, "echo a > a");
	stage_there(stage, "head -c 9000 /dev/zero > log");
	static const char grow[] = "case $* in *%s*) echo more >> log ;; esac\nexec %s \"$@\"";
	char script[256];
	snprintf(script, sizeof(script), grow, "hash-object*--no-filters", "/usr/bin/git");
	stage_program(stage, "git", script);
	snprintf(script, sizeof(script), grow, "log", "/bin/cat");
	stage_program(stage, "cat", script);
	for (int i = 0; i < 3; i++) {
		stage_there(stage, "echo edit >> a");
		git_oid there = stage_collect(stage, &tree);
		assert_non_null(strstr(stage->collected.note, "log was written to"));
		assert_tree(stage->place, &there, "100644 a\n160000 log\n");
		assert_begins(stage, &there, "log");
		tree = there;
	}
}

/*
 * If a file ends earlier than announced, the link may have been cut, so the file counts as left
 * out.
 */
static void test_a_big_file_that_becomes_shorter_stays_as_it_was(void **state)
{
	struct stage *stage = *state;
	git_oid tree = send_big(stage, "echo a > a");
	stage_there(stage, "head -c 9000 /dev/zero > log");
	stage_program(stage, "cat", "case $* in *log*) : > log ;; esac; exec /bin/cat \"$@\"");
	git_oid there = stage_collect(stage, &tree);
	assert_tree(stage->place, &there, "100644 a\n");
	expect_left(stage, (const char *[]){"log", NULL});
	there = stage_collect(stage, &tree);
	assert_tree(stage->place, &there, "100644 a\n100644 log\n");
	stage_there(stage, "head -c 9000 /dev/zero > log"); // a small one that becomes big
	git_oid again = stage_collect(stage, &there);
	assert_memory_equal(&again, &there, sizeof(there));
	expect_left(stage, (const char *[]){"log", NULL});
}

/* git refuses a tree that has one. */
static void test_a_link_of_the_name_gitmodules_is_in_the_way_of_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; ln -s a .gitmodules; mkdir sub;"
					       "echo '[submodule]' > sub/.gitmodules");
	stage_there(stage, "test ! -L .gitmodules; test -s sub/.gitmodules; echo b >> a;"
			   "rm sub/.gitmodules; ln -s ../a sub/.gitmodules; ln -s a .GITMODULES");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nsub/.gitmodules\n");
	expect_left(stage, (const char *[]){".GITMODULES", "sub/.gitmodules", NULL});
	place_run(stage->place, "echo b >> a; echo c > c; rm .gitmodules; echo > .gitmodules");
	git_oid here = place_take(stage->place, &there);
	stage_deliver(stage, &there, &here);
	stage_there(stage, "test -e c; test -s .gitmodules; test -L sub/.gitmodules;"
			   "test -L .GITMODULES");
	stage_there(stage, "rm .GITMODULES sub/.gitmodules");
	there = stage_collect(stage, &here);
	assert_paths(stage->place, &there, ".gitmodules\na\nc\n");
	assert_int_equal(stage->collected.left.count, 0);
}

/* Beside files that cannot be read, in any folder, and in any spelling. */
static void test_every_link_of_the_name_gitmodules_is_told(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	give_up_reading(stage);
	stage_there(stage, "echo b > b; chmod 0 b; mkdir sub 'x\ny' 'z[*]'; ln -s a 'a~1'\n"
			   "for name in sub/.gitmodules 'x\ny/.gitmodules' 'z[*]/.GitModules .' "
			   "'gi7eba~1' \"$(printf '.g\\342\\200\\214itmodules')\"; do\n"
			   "	ln -s a \"$name\"; done");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\na~1\n");
	expect_left(
		stage, (const char *[]){"b", "sub/.gitmodules", "x\ny/.gitmodules",
			       "z[*]/.GitModules .", "gi7eba~1", ".g\342\200\214itmodules", NULL});
	stage_there(stage, "rm b");
	there = stage_collect(stage, &there);
	assert_int_equal(stage->collected.left.count, 5);
}

#define KEPT_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(test_a_big_file_that_cannot_be_read_is_not_taken_for_deleted),
		KEPT_TEST(test_a_link_of_the_name_gitmodules_is_in_the_way_of_nothing),
		KEPT_TEST(test_every_link_of_the_name_gitmodules_is_told),
		KEPT_TEST(test_a_closed_folder_behind_a_link_keeps_nothing),
		KEPT_TEST(test_a_folder_whose_name_ends_in_a_new_line_keeps_its_big_files),
		KEPT_TEST(test_a_big_file_that_grows_all_the_time_is_brought_as_it_was_read),
		KEPT_TEST(test_a_big_file_that_becomes_shorter_stays_as_it_was),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
