/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sync/rsync/shell.h"
#include "tests/unit/transport_fixture.h"

static int set_up(void **state)
{
	int failed = stage_setup(state);
	struct stage *stage = *state;
	stage->create = transport_auto_create;
	stage_restart(stage);
	return failed;
}

static git_oid there_and_back(struct stage *stage)
{
	place_run(stage->place, "echo a > a");
	git_oid tree = place_take(stage->place, NULL);
	stage_prepare(stage);
	stage_collect(stage, &store_empty_tree);
	stage_deliver(stage, &store_empty_tree, &tree);
	stage_assert_equal(stage);
	return tree;
}

/* Makes the sandbox's PATH a folder with all programs except these. */
static void take_away(struct stage *stage, const char *programs)
{
	char script[2048];
	snprintf(script, sizeof(script),
		"for p in /usr/local/bin/* /usr/bin/* /bin/*; do\n"
		"case ${p##*/} in %s) ;; *) ln -sf $p %s/ ;; esac; done",
		programs, stage->bin);
	place_run(stage->place, script);
	snprintf(stage->path, sizeof(stage->path), "PATH=%.400s", stage->bin);
}

static void test_git_is_taken_where_it_is(void **state)
{
	struct stage *stage = *state;
	assert_string_equal(transport_name(stage->transport), "auto");
	there_and_back(stage);
	assert_string_equal(transport_name(stage->transport), "git");
}

static int set_up_without_git(void **state)
{
	int failed = set_up(state);
	take_away(*state, "git");
	return failed;
}

static void test_rsync_is_taken_where_git_is_not(void **state)
{
	struct stage *stage = *state;
	git_oid tree = there_and_back(stage);
	assert_string_equal(transport_name(stage->transport), "rsync");
	/* The choice stays when the program disappears. */
	place_run(stage->place, "rm ../bin/rsync");
	transport_collect(stage->transport, &tree, stage_on_collected, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_string_equal(transport_name(stage->transport), "rsync");
}

static int set_up_without_both(void **state)
{
	int failed = set_up(state);
	take_away(*state, "git|rsync");
	return failed;
}

static void test_both_are_named_where_both_are_missing(void **state)
{
	struct stage *stage = *state;
	transport_prepare(stage->transport, stage_on_done, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_string_equal(stage->err.reason, "SYNC_TOOL_MISSING");
	assert_non_null(strstr(stage->err.text, "\"git\""));
	assert_non_null(strstr(stage->err.text, "no rsync"));
	assert_string_equal(transport_name(stage->transport), "auto");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, (const char *const *)environ);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_git_is_taken_where_it_is, set_up, stage_teardown),
		cmocka_unit_test_setup_teardown(
			test_rsync_is_taken_where_git_is_not, set_up_without_git, stage_teardown),
		cmocka_unit_test_setup_teardown(test_both_are_named_where_both_are_missing,
			set_up_without_both, stage_teardown),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
