/* SPDX-License-Identifier: MIT */
/* Snapshots of real repositories, made by git, including some that libgit2 1.5 cannot read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sync/snapshot.h"
#include "tests/unit/store_fixture.h"
#include "tests/support/facts.h"

/* A hash of everything in the user's repositories: names, content, modes and times. */
static char *state_of_git(struct place *place)
{
	return place_ask(place, "find . ../*.git -path '*.git*' ! -type d -printf '%p %m %s %T@ "
				"%C@\\n' 2>/dev/null |"
				"sort | sha256sum; find . -path '*.git/*' -type f -exec sha256sum "
				"{} + | sort | sha256sum");
}

/*
 * A repository with a tracked file that is ignored; only readers of the index know that it is
 * tracked.
 */
static const char tracked_but_ignored[] =
	"echo '*.o' >.gitignore; mkdir -p d; echo 1 >d/kept.o; echo 1 >a; echo 1 >d/b;"
	"git add .gitignore a d/b; git add -f d/kept.o; git commit -qm one; echo 1 >left.o; echo 1 "
	">new;";

static void take_and_expect(struct place *place, const char *paths, const char *note)
{
	char *before = state_of_git(place);
	git_oid tree = place_take(place, NULL);
	assert_paths(place, &tree, paths);
	if (note) {
		assert_names(place->last.note, note);
	} else {
		assert_string_equal(place->last.note, "");
	}
	git_oid again = place_take(place, &tree);
	assert_memory_equal(&again, &tree, sizeof(tree));
	char *after = state_of_git(place);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static const char expected[] = ".gitignore\na\nd/b\nd/kept.o\nnew\n";
static const char by_program[] = "git program | asked";

static void test_a_plain_repository_is_read_and_never_written(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	take_and_expect(place, expected, NULL);
}

static void test_a_sha256_repository(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q --object-format=sha256");
	place_run(place, tracked_but_ignored);
	take_and_expect(place, expected, by_program);
}

static void test_a_split_index(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	place_run(place,
		"git update-index --split-index; ls .git/sharedindex.*; echo 2 >d/b; git add d/b");
	take_and_expect(place, expected, by_program);
}

static void test_a_sparse_index(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	place_run(place, "mkdir -p far/deep; echo 1 >far/deep/x; git add far; git commit -qm two;"
			 "git sparse-checkout set --cone --sparse-index d; [ ! -e far ]");
	take_and_expect(place, expected, by_program);
}

static void test_a_shallow_clone(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q ../from; cd ../from");
	place_run(place, "cd ../from; echo '*.o' >.gitignore; mkdir d; echo 1 >d/kept.o; echo 1 "
			 ">a; echo 1 >d/b;"
			 "git add -f .; git commit -qm one; echo 1 >>a; git commit -qam two;"
			 "cd ../work; git clone -q --depth 1 file://$PLACE/from .;"
			 "[ -e .git/shallow ]; echo 1 >left.o; echo 1 >new");
	take_and_expect(place, expected, NULL);
}

static void test_a_partial_clone_fetches_nothing(void **state)
{
	struct place *place = *state;
	place_run(place,
		"git init -q ../from; cd ../from; git config uploadpack.allowFilter true;"
		"echo '*.o' >.gitignore; mkdir d; echo 1 >d/kept.o; echo 1 >a; echo 1 >d/b;"
		"git add -f .; git commit -qm one; echo 2 >a; git commit -qam two;"
		"cd ../work; git clone -q --filter=blob:none file://$PLACE/from .;"
		"[ \"$(git config remote.origin.promisor)\" = true ]; echo 1 >left.o; echo 1 >new;"
		"rm -rf ../from");
	take_and_expect(place, expected, NULL);
}

static void test_worktree_config_and_an_unknown_extension(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	place_run(place, "git config core.repositoryFormatVersion 1; git config "
			 "extensions.worktreeConfig true;"
			 "git config --worktree core.sparseCheckout false");
	take_and_expect(place, expected, NULL);
}

static void test_a_linked_work_tree(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q ../from; cd ../from; echo '*.o' >.gitignore; mkdir d; echo 1 "
			 ">d/kept.o;"
			 "echo 1 >a; echo 1 >d/b; git add -f .; git commit -qm one; echo '*.mine' "
			 ">.git/info/exclude;"
			 "rmdir ../work; git worktree add -q ../work; cd ../work; [ -f .git ];"
			 "echo 1 >left.o; echo 1 >new; echo 1 >my.mine");
	take_and_expect(place, expected, NULL);
}

static void test_an_index_nobody_can_read_is_said_and_the_rest_goes_on(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	place_run(place, "echo garbage >.git/index");
	take_and_expect(place, ".gitignore\na\nd/b\nnew\n", "could not be read");
}

static void test_a_folder_below_the_top_of_a_repository(void **state)
{
	struct place *place = *state;
	place_run(place,
		"cd ..; git init -q; mkdir work/d; printf '*.o\\n/work/gen\\n' >.gitignore;"
		"echo 1 >work/x.o; echo 1 >work/d/kept.o; mkdir work/gen; echo 1 >work/gen/g;"
		"echo 1 >work/a; git add -f work/d/kept.o; echo '!y.*' >work/.gitignore; echo 1 "
		">work/y.o");
	take_and_expect(place, ".gitignore\na\nd/kept.o\ny.o\n", NULL);
}

static void test_a_repository_around_that_ignores_the_workspace_is_none_of_its(void **state)
{
	struct place *place = *state;
	place_run(place, "cd ..; git init -q; echo '*' >.gitignore; echo 1 >work/a; mkdir work/d; "
			 "echo 1 >work/d/b");
	take_and_expect(place, "a\nd/b\n", NULL);
}

static void test_submodules_and_nested_repositories_are_plain_files(void **state)
{
	struct place *place = *state;
	place_run(place,
		"git init -q ../from; (cd ../from; echo '*.o' >.gitignore; echo 1 >kept.o; echo 1 "
		">s;"
		"git add -f .; git commit -qm one); git init -q; echo 1 >a; git add a;"
		"git submodule --quiet add file://$PLACE/from sub; git commit -qm one;"
		"git init -q nested; cd nested; echo 1 >n; echo '*.x' >.gitignore; echo 1 >t.x;"
		"git add -f t.x n; git commit -qm one; echo 2 >n; echo 1 >u.x; echo 1 >v;"
		"cd ../sub; echo 2 >s; echo 1 >new; echo 1 >left.o");
	take_and_expect(place,
		".gitmodules\na\nnested/.gitignore\nnested/n\nnested/t.x\nnested/v\n"
		"sub/.gitignore\nsub/kept.o\nsub/new\nsub/s\n",
		NULL);
}

static void test_no_filter_hook_or_conversion_of_the_users_changes_a_byte(void **state)
{
	struct place *place = *state;
	place_run(place,
		"git init -q; git config core.autocrlf true; git config core.eol crlf;"
		"git config filter.evil.clean 'touch ../ran; rev'; git config filter.evil.smudge "
		"'touch ../ran; rev';"
		"git config filter.lfs.clean 'touch ../ran; cat'; git config filter.lfs.process "
		"'touch ../ran; false';"
		"git config core.fsmonitor 'touch ../ran; false';"
		"printf '* text=auto eol=crlf ident\\n*.bin filter=lfs\\n*.ev filter=evil\\n"
		"*.u working-tree-encoding=UTF-16\\n' >.gitattributes;"
		"for h in pre-commit post-index-change post-checkout; do printf '#!/bin/sh\\ntouch "
		"../ran\\n' >.git/hooks/$h;"
		"chmod +x .git/hooks/$h; done; printf 'a\\r\\nb\\n$Id$\\n' >t; printf 'x\\r\\n' "
		">y.bin; echo abc >z.ev;"
		"printf '\\377\\376a\\0' >w.u; rm -f ../ran");
	git_oid tree = place_take(place, NULL);
	assert_int_not_equal(access(place_path(place, "../ran"), F_OK), 0);
	char *said = place_ask(place, "git hash-object --no-filters t y.bin z.ev w.u");
	char hex[GIT_OID_HEXSZ + 1], script[200];
	place->store.git->oid_tostr(hex, sizeof(hex), &tree);
	snprintf(script, sizeof(script),
		"for f in t y.bin z.ev w.u; do git --git-dir=../state/store rev-parse %s:$f; done",
		hex);
	char *stored = place_ask(place, script);
	assert_string_equal(stored, said);
	free(said);
	free(stored);
}

static void test_the_program_is_asked_without_running_anything_of_the_users(void **state)
{
	struct place *place = *state;
	place_run(place, "git init -q");
	place_run(place, tracked_but_ignored);
	place_run(place,
		"git update-index --split-index; git config core.fsmonitor \"$PLACE/hook\";"
		"printf '#!/bin/sh\\ntouch \"$PLACE/ran\"\\ntouch '\"$PLACE\"'/ran\\n' >../hook; "
		"chmod +x ../hook;"
		"cp ../hook .git/hooks/post-index-change; rm -f ../ran");
	take_and_expect(place, expected, by_program);
	assert_int_not_equal(access(place_path(place, "../ran"), F_OK), 0);
}

static void test_gc_and_rebase_in_the_repository_hurt_no_snapshot(void **state)
{
	struct place *place = *state;
	struct error err;
	git_oid commit, found;
	place_run(place, "git init -q; seq 1 100 >a; git add a; git commit -qm one; seq 1 200 >a;"
			 "git commit -qam two; git branch side HEAD~; git checkout -q side; echo 1 "
			 ">b; git add b;"
			 "git commit -qm three");
	git_oid tree = place_take(place, NULL);
	assert_true(store_keep(&place->store, "checkpoints/1", &tree, NULL, "x", &commit, &err));
	place_run(place,
		"git rebase -q main; git branch -D -q main; git reflog expire --expire=now --all;"
		"git gc -q --prune=now --aggressive; rm -rf .git");
	assert_true(store_find(&place->store, "checkpoints/1", &found, &err));
	assert_memory_equal(&found, &tree, sizeof(tree));
	place_run(place, "git --git-dir=../state/store fsck --strict --full;"
			 "[ \"$(git --git-dir=../state/store show acp-broker/checkpoints/1:a | wc "
			 "-l)\" = 100 ]");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_plain_repository_is_read_and_never_written),
		TEST(test_a_sha256_repository),
		TEST(test_a_split_index),
		TEST(test_a_sparse_index),
		TEST(test_a_shallow_clone),
		TEST(test_a_partial_clone_fetches_nothing),
		TEST(test_worktree_config_and_an_unknown_extension),
		TEST(test_a_linked_work_tree),
		TEST(test_an_index_nobody_can_read_is_said_and_the_rest_goes_on),
		TEST(test_a_folder_below_the_top_of_a_repository),
		TEST(test_a_repository_around_that_ignores_the_workspace_is_none_of_its),
		TEST(test_submodules_and_nested_repositories_are_plain_files),
		TEST(test_no_filter_hook_or_conversion_of_the_users_changes_a_byte),
		TEST(test_the_program_is_asked_without_running_anything_of_the_users),
		TEST(test_gc_and_rebase_in_the_repository_hurt_no_snapshot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
