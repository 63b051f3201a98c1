/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "sync/rsync/shell.h"
#include "tests/unit/transport_fixture.h"

/*
 * When a collect runs rsync there, and when a look alone is enough. The program "stat" there adds
 * the seconds in BIN/ahead to the time, so that nobody has to wait.
 */
static const git_oid *const nothing = &store_empty_tree;

static void set_ahead(struct stage *stage, int seconds)
{
	char path[2 * FIXTURE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/ahead", stage->bin);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%d\n", seconds);
	assert_int_equal(fclose(file), 0);
}

/* Runs `before` and `after` there, before and after each run of rsync. */
static void surround_runs(struct stage *stage, const char *before, const char *after)
{
	char script[4 * FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script),
		"[ \"$1\" != --server ] || (echo run >>%s/runs; cd %s; %s)\n"
		"/usr/bin/rsync \"$@\" || exit\n[ \"$1\" != --server ] || { cd %s; %s; }",
		stage->bin, stage->root, before, stage->root, after);
	stage_program(stage, "rsync", script);
}

static void count_runs(struct stage *stage, const char *after)
{
	surround_runs(stage, ":", after);
}

static void set_clock(struct stage *stage)
{
	char script[2 * FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script),
		"[ \"$2\" != %%Z ] || exec expr \"$(/usr/bin/stat \"$@\")\" + \"$(cat %s/ahead)\"\n"
		"exec /usr/bin/stat \"$@\"",
		stage->bin);
	stage_program(stage, "stat", script);
	set_ahead(stage, 100);
}

/* How often rsync has run there since the last call. */
static size_t runs(struct stage *stage)
{
	char path[2 * FIXTURE_PATH_MAX], line[16];
	size_t count = 0;
	snprintf(path, sizeof(path), "%s/runs", stage->bin);
	FILE *file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		count++;
	}
	if (file) {
		assert_int_equal(fclose(file), 0);
		assert_int_equal(unlink(path), 0);
	}
	return count;
}

/* Makes a tree that both sides have and the transport knows. */
static git_oid begin(struct stage *stage)
{
	set_clock(stage);
	count_runs(stage, ":");
	place_run(stage->place, "echo a > a; echo b > b; mkdir d; echo c > d/c; ln -s a l");
	git_oid tree = place_take(stage->place, NULL);
	stage_prepare(stage);
	stage_collect(stage, nothing);
	stage_deliver(stage, nothing, &tree);
	stage_collect(stage, &tree);
	runs(stage);
	return tree;
}

static void assert_collects(struct stage *stage, const git_oid *tree, size_t expected)
{
	git_oid there = stage_collect(stage, tree);
	assert_memory_equal(&there, tree, sizeof(there));
	assert_int_equal(runs(stage), expected);
}

static void test_what_has_not_changed_is_not_pulled(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	for (int i = 0; i < 3; i++) {
		assert_collects(stage, &tree, 0);
		stage_deliver(stage, &tree, &tree);
	}
	stage_there(stage, "cat a >/dev/null; ls -R >/dev/null"); // only read
	assert_collects(stage, &tree, 0);
	stage_restart(stage);
	stage_prepare(stage); // tries whether it can write to the root
	assert_collects(stage, &tree, 1);
	assert_collects(stage, &tree, 0);
}

static void test_each_change_there_is_pulled(void **state)
{
	static const char *const changes[] = {"echo x > a", "echo n > n", "rm b", "chmod +x n",
		"mv a e", "ln -sfn d l", "mkdir m; echo o > m/o", "mv d m", "rm -r m/d; echo f > d",
		"echo g > \"$(printf 'a\\nline')\"", "ln -f e h", "echo i >> h",
		"cp -p n n2; mv n2 n"};
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		stage_there(stage, changes[i]);
		git_oid there = stage_collect(stage, &tree);
		assert_int_equal(runs(stage), 1);
		place_run(stage->place, changes[i]);
		tree = place_take(stage->place, &tree);
		assert_memory_equal(&there, &tree, sizeof(there));
		assert_collects(stage, &tree, 0);
	}
}

/* The files of another folder have the same sizes and times, so rsync has to compare them. */
static void test_a_root_that_was_made_anew_is_pulled(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	stage_there(stage, "cp -a . ../copy; rm -r ../0; mv ../copy ../0");
	assert_collects(stage, &tree, 1);
	assert_collects(stage, &tree, 0);
}

static void test_a_look_right_after_a_change_is_not_kept(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	set_ahead(stage, 0);
	stage_there(stage, "touch a");
	for (int i = 0; i < 2; i++) {
		assert_collects(stage, &tree, 1);
	}
	stage_there(stage, "sleep 4");
	assert_collects(stage, &tree, 1);
	assert_collects(stage, &tree, 0);
}

static void test_a_clock_that_was_set_there_is_seen(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	static const int steps[] = {200, 50, 60};
	for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
		set_ahead(stage, steps[i]);
		assert_collects(stage, &tree, 1);
		assert_collects(stage, &tree, 0);
	}
}

/* The look came before the change: the next look sees what the pull has missed. */
static void test_a_change_during_a_pull_is_pulled_by_the_next(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	count_runs(stage, "echo z > b");
	stage_there(stage, "touch a");
	assert_collects(stage, &tree, 1);
	count_runs(stage, ":");
	git_oid there = stage_collect(stage, &tree);
	assert_int_equal(runs(stage), 1);
	place_run(stage->place, "echo z > b");
	tree = place_take(stage->place, &tree);
	assert_memory_equal(&there, &tree, sizeof(there));
}

/* The rules of the last pull that was limited to changed folders. */
static void assert_narrow(struct stage *stage, const char *rules)
{
	char *narrow = place_ask(stage->place, "cat ../state/store/rsync/*/narrow | tr '\\0' ' '");
	if (strncmp(narrow, rules, strlen(rules)) != 0) {
		fail_msg("expected %s at the beginning of %s", rules, narrow);
	}
	free(narrow);
}

static void test_a_pull_looks_where_something_has_changed(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	static const char make[] = "mkdir -p 'e*/f' g; echo 1 > 'e*/f/x'; echo 2 > g/y";
	stage_there(stage, make);
	tree = stage_collect(stage, &tree);
	stage_there(stage, "echo 3 >> 'e*/f/x'");
	tree = stage_collect(stage, &tree);
	assert_narrow(stage, "+ /e[*]/ + /e[*]/f/ - */ ");
	place_run(stage->place, make);
	place_run(stage->place, "echo 3 >> 'e*/f/x'");
	git_oid expected = place_take(stage->place, &tree);
	assert_memory_equal(&tree, &expected, sizeof(tree));
	/*
	 * Removes folders with their content, and puts files and folders into each other's place.
	 */
	stage_there(stage, "rm -r 'e*' d; echo e > 'e*'; rm a; mkdir -p a/b; echo > a/b/c");
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, "a/b/c\nb\ne*\ng/y\nl\n");
	/* More folders than the script reports one by one. */
	stage_there(stage, "mkdir $(seq 1100); for i in $(seq 1100); do echo $i > $i/f; done");
	tree = stage_collect(stage, &tree);
	stage_there(stage, "rm -r $(seq 1100)");
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, "a/b/c\nb\ne*\ng/y\nl\n");
	runs(stage);
	assert_collects(stage, &tree, 0);
}

/* Neither look has seen the path, but the pull between them has. */
static void test_what_comes_and_goes_between_two_looks_is_gone(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	static const char come[] = "mkdir -p m/n/o d/p; echo > m/n/o/x; echo > d/p/y; echo > d/z";
	static const char *const changes[] = {"echo 1 >> a", "echo 1 >> d/c", "echo 1 >> b"};
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		surround_runs(stage, come, ":");
		stage_there(stage, changes[i]);
		if (i == 2) { // of everything
			place_run(stage->place, "rm ../state/store/rsync/*/print");
		}
		tree = stage_collect(stage, &tree);
		count_runs(stage, ":");
		stage_there(stage, "rm -r m d/p d/z");
		tree = stage_collect(stage, &tree);
		assert_paths(stage->place, &tree, "a\nb\nd/c\nl\n");
		runs(stage);
		assert_collects(stage, &tree, 0);
	}
}

static void test_what_was_delivered_and_is_gone_is_gone(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	place_run(stage->place, "mkdir -p m/n; echo > m/n/x; echo > q; echo 1 >> d/c; rm b");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_there(stage, "rm -r m q");
	runs(stage);
	tree = stage_collect(stage, &next);
	assert_int_equal(runs(stage), 1);
	assert_paths(stage->place, &tree, "a\nd/c\nl\n");
	assert_collects(stage, &tree, 0);
}

static void test_what_is_ignored_is_not_pulled_for(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "printf 'out/\n' > .gitignore");
	git_oid tree = begin(stage);
	stage_there(stage, "mkdir -p d/out; echo > d/out/x");
	assert_collects(stage, &tree, 1); // the folder it came to
	stage_there(stage, "echo 1 >> d/out/x; mkdir d/out/y; echo > d/out/y/z");
	assert_collects(stage, &tree, 0);
	stage_there(stage, "echo > .gitignore");
	tree = stage_collect(stage, &tree);
	assert_paths(stage->place, &tree, ".gitignore\na\nb\nd/c\nd/out/x\nd/out/y/z\nl\n");
}

static void test_a_pull_that_leaves_something_out_is_made_of_everything(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	stage_program(stage, "rsync",
		"echo run >>${0%/*}/runs; /usr/bin/rsync \"$@\" || exit\n"
		"[ -e ${0%/*}/once ] || { : >${0%/*}/once; exit 23; }");
	stage_there(stage, "echo 1 >> d/c");
	git_oid there = stage_collect(stage, &tree);
	assert_int_equal(runs(stage), 2);
	assert_memory_not_equal(&there, &tree, sizeof(there));
	assert_collects(stage, &there, 0);
}

/* git leaves out a path for which no rule of rsync is made. */
static void test_other_patterns_count_where_the_rules_are_the_same(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	stage_there(stage, "mkdir tmp; echo > tmp/t");
	tree = stage_collect(stage, &tree);
	runs(stage);
	assert_collects(stage, &tree, 0);
	static const char *const exclude[] = {"[t]mp", NULL};
	const char *const *none = stage->request.exclude;
	stage->request.exclude = exclude;
	stage_restart(stage);
	stage_prepare(stage);
	git_oid less = stage_collect(stage, &tree);
	assert_paths(stage->place, &less, "a\nb\nd/c\nl\n");
	stage->request.exclude = none;
}

static void test_other_rules_pull_again(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "echo '*.log' > .gitignore");
	git_oid tree = begin(stage);
	stage_there(stage, "echo l > x.log");
	assert_collects(stage, &tree, 1);
	assert_collects(stage, &tree, 0);
	static const char *const include[] = {"*.log", NULL};
	const char *const *none = stage->request.include;
	stage->request.include = include;
	stage_restart(stage);
	stage_prepare(stage);
	git_oid more = stage_collect(stage, &tree);
	assert_int_equal(runs(stage), 1);
	assert_paths(stage->place, &more, ".gitignore\na\nb\nd/c\nl\nx.log\n");
	/* This broker does not know what another broker has pulled. */
	stage->request.include = none;
	stage_restart(stage);
	stage_prepare(stage);
	assert_collects(stage, &tree, 1);
}

static void test_a_delivery_forgets_what_was_seen(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	place_run(stage->place, "echo q > a");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	runs(stage);
	assert_collects(stage, &next, 1);
	assert_collects(stage, &next, 0);
	/*
	 * The mirror was changed, but not the runtime: the mirror must not count as the runtime's
	 * content.
	 */
	place_run(stage->place, "echo r > a");
	git_oid last = place_take(stage->place, &next);
	stage_program(stage, "rsync", "exit 1");
	stage_deliver_fails(stage, &next, &last, ERROR_UNAVAILABLE, "");
	count_runs(stage, ":");
	git_oid there = stage_collect(stage, &next);
	assert_memory_equal(&there, &next, sizeof(there));
	assert_true(runs(stage) > 0);
}

static void test_a_look_that_fails_is_none(void **state)
{
	struct stage *stage = *state;
	git_oid tree = begin(stage);
	stage_program(stage, "sha256sum", "exit 1");
	assert_collects(stage, &tree, 1);
	stage_program(stage, "sha256sum", "exec /usr/bin/sha256sum \"$@\"");
	assert_collects(stage, &tree, 1); // not tried again
	stage_restart(stage);
	stage_prepare(stage);
	assert_collects(stage, &tree, 1); // nothing was kept
	assert_collects(stage, &tree, 0);
	/* A folder that cannot be examined may change unseen. */
	stage_program(stage, "find", "/usr/bin/find \"$@\"; exit 1");
	assert_collects(stage, &tree, 1);
	assert_collects(stage, &tree, 1);
}

static void test_busybox_there_is_enough(void **state)
{
	struct stage *stage = *state;
	static const char *const programs[] = {"find", "sort", "sha256sum", "rm", "sh"};
	for (size_t i = 0; i < ARRAY_LENGTH(programs); i++) {
		char script[128];
		snprintf(script, sizeof(script), "exec busybox %s \"$@\"", programs[i]);
		stage_program(stage, programs[i], script);
	}
	git_oid tree = begin(stage);
	char script[2 * FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script),
		"[ \"$2\" != %%Z ] || exec expr \"$(busybox stat \"$@\")\" + 100\n"
		"exec busybox stat \"$@\"");
	stage_program(stage, "stat", script);
	assert_collects(stage, &tree, 0); // both report the same
	stage_there(stage, "echo y > b");
	git_oid there = stage_collect(stage, &tree);
	assert_memory_not_equal(&there, &tree, sizeof(there));
	assert_int_equal(runs(stage), 1);
	assert_collects(stage, &there, 0);
}

#define LOOK_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup_rsync, stage_teardown)

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, (const char *const *)environ);
	}
	const struct CMUnitTest tests[] = {
		LOOK_TEST(test_what_has_not_changed_is_not_pulled),
		LOOK_TEST(test_each_change_there_is_pulled),
		LOOK_TEST(test_a_root_that_was_made_anew_is_pulled),
		LOOK_TEST(test_a_look_right_after_a_change_is_not_kept),
		LOOK_TEST(test_a_clock_that_was_set_there_is_seen),
		LOOK_TEST(test_a_change_during_a_pull_is_pulled_by_the_next),
		LOOK_TEST(test_a_pull_looks_where_something_has_changed),
		LOOK_TEST(test_what_comes_and_goes_between_two_looks_is_gone),
		LOOK_TEST(test_what_was_delivered_and_is_gone_is_gone),
		LOOK_TEST(test_what_is_ignored_is_not_pulled_for),
		LOOK_TEST(test_a_pull_that_leaves_something_out_is_made_of_everything),
		LOOK_TEST(test_other_patterns_count_where_the_rules_are_the_same),
		LOOK_TEST(test_other_rules_pull_again),
		LOOK_TEST(test_a_delivery_forgets_what_was_seen),
		LOOK_TEST(test_a_look_that_fails_is_none),
		LOOK_TEST(test_busybox_there_is_enough),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
