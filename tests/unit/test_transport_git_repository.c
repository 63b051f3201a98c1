/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"

/* How the runtime's repository follows the user's where not all goes well. */

static const char repository[] =
	"git init -q -b main; echo a > a; git add a; git commit -qm one\n"
	"git branch old; echo b > b; git add b; git commit -qm two\n"
	"git update-ref refs/remotes/origin/main old; echo changed > a; echo new > new\n";

/* HEAD, the remote-tracking refs and what git takes to be changed are the same on both sides. */
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

/* As another run of the broker begins. */
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

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_an_update_that_was_cut_off_is_done_by_the_next_start),
		STAGE_TEST(test_files_of_ours_there_that_are_empty_end_nothing),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
