/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"

/* Whatever an agent makes of its repository, its files are brought. */

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

#define REFUSED_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REFUSED_TEST(test_a_commit_of_a_file_over_the_limit_is_brought),
		REFUSED_TEST(test_a_repository_that_git_cannot_read_keeps_no_file_there),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
