/* SPDX-License-Identifier: MIT */
/* Submodules and other repositories below the root have their own history in the runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sync/git/commits.h"
#include "sync/git/inner.h"
#include "sync/nested.h"
#include "tests/support/facts.h"
#include "tests/unit/transport_fixture.h"

static const char repository[] =
	"export GIT_ALLOW_PROTOCOL=file; git init -q -b main ../from\n"
	"(cd ../from; echo 1 > f; git add f; git commit -qm first; echo 2 > f\n"
	"git commit -qam second; git tag v1; git branch other HEAD~1)\n"
	"git init -q -b main; git config user.name 'The User'; git config user.email u@e.org\n"
	"echo 1 > a; git add a\n"
	"git submodule --quiet add --force \"file://$PLACE/from\" lib\n"
	"git submodule --quiet add --force \"file://$PLACE/from\" ' un used '\n"
	"git commit -qm one; git submodule --quiet deinit -f ' un used '\n"
	"git init -q -b trunk 'deep/ne[s]ted'\n"
	"(cd 'deep/ne[s]ted'; echo 1 > n; git add n; git commit -qm one)\n";

/* What git prints in each of the repositories. */
static const char questions[] = "for folder in . lib 'deep/ne[s]ted'; do\n"
				"	git -C \"$folder\" log --all --format='%H %D'\n"
				"	git -C \"$folder\" status --porcelain\n"
				"	git -C \"$folder\" ls-files -s -t\n"
				"	git -C \"$folder\" diff HEAD\n"
				"done; git submodule status lib; git describe --always --all\n";

static git_oid send(struct stage *stage, const git_oid *from, const char *script)
{
	place_run(stage->place, script);
	git_oid tree = place_take(stage->place, from);
	stage_deliver(stage, from, &tree);
	return tree;
}

static void assert_same_answers(struct stage *stage)
{
	char *here = place_ask(stage->place, questions);
	char *there = stage_ask(stage, questions);
	assert_string_equal(there, here);
	free(here);
	free(there);
}

/* ---- the store's content ---- */

static bool list_branch(void *data, const struct agent_branch *branch)
{
	return buf_append_format(data, NULL, "%s|%s:", branch->repository, branch->name);
}

static bool list_commit(void *data, const struct agent_commit *commit)
{
	return buf_append_format(data, NULL, " %s\n", commit->subject);
}

static void assert_commits(struct stage *stage, const char *expected)
{
	struct buf text;
	struct error err;
	struct agent_commits_visitor visitor = {list_branch, list_commit, &text};
	buf_init(&text, 1 << 16);
	assert_true(agent_commits_list(&stage->place->store, 100, &visitor, &err));
	char *said = mem_strndup(buf_span(&text));
	assert_string_equal(said, expected);
	free(said);
	buf_finish(&text);
}

/* ---- the histories ---- */

static void test_git_says_the_same_in_each_on_both_sides(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	assert_same_answers(stage);
	stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	tree = send(stage, &tree,
		"git -C lib checkout -q -b work; echo 3 > lib/f; git -C lib commit -qam third\n"
		"git commit -qam bump; echo 4 > lib/f; echo 2 > 'deep/ne[s]ted/n'\n");
	assert_same_answers(stage);
	stage_there(stage, "test \"$(git -C lib symbolic-ref HEAD)\" = refs/heads/work");
}

static void test_the_agents_commits_come_with_the_path(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	char *before = place_ask(
		stage->place, "find . -path '*.git/*' -type f -print0 | sort -z | xargs -0 cat");
	stage_there(stage, "cd lib; git checkout -q -b fix; echo new > g; git add g\n"
			   "git commit -qm inside; cd '../deep/ne[s]ted'; echo 2 > n\n"
			   "git commit -qam nested; cd ../..; git add lib; git commit -qm around");
	tree = stage_collect(stage, &tree);
	assert_commits(stage, "|main: around\ndeep/ne[s]ted|trunk: nested\nlib|fix: inside\n");
	assert_names(stage->collected.note, "main at | around | fix of lib at | inside | "
					    "trunk of deep/ne[s]ted at | nested");
	char *after = place_ask(
		stage->place, "find . -path '*.git/*' -type f -print0 | sort -z | xargs -0 cat");
	assert_string_equal(after, before);
	place_run(stage->place,
		"git -C lib fetch -q \"$PLACE/state/store\" refs/acp-broker/agent-in/lib/fix\n"
		"test \"$(git -C lib log --format=%s FETCH_HEAD | xargs)\" = "
		"'inside second first'\n"
		"cd 'deep/ne[s]ted'; git fetch -q \"$PLACE/state/store\" "
		"refs/acp-broker/agent-in/deep%2Fne%5Bs%5Dted/trunk\n"
		"test \"$(git log --format=%s FETCH_HEAD | xargs)\" = 'nested one'; git fsck "
		"--strict");
	stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	stage_restart(stage);
	stage_prepare(stage);
	stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	stage_there(stage, "test \"$(git -C lib log -1 --format=%s)\" = inside");
	free(before);
	free(after);
}

static void test_too_many_commits_of_one_hide_none_of_another(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"{ for n in $(seq 65537); do printf 'commit refs/heads/flood\ncommitter A <a@b> "
		"%s +0000\ndata 2\nc\n\n' $n; done; } | git fast-import --quiet\n"
		"cd lib; git checkout -q -b fix; git commit -qm inside --allow-empty");
	stage_collect(stage, &tree);
	assert_names(stage->collected.note, "more than 65536 are new | fix of lib at | inside");
	assert_true(stage->collected.commits_left);
	assert_commits(stage, "lib|fix: inside\n");
}

static void test_one_that_comes_later_or_was_lost_is_made_again(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "git init -q -b main; echo 1 > a; git add a\n"
					       "git commit -qm one; mkdir sub; echo 1 > sub/f");
	tree = send(stage, &tree,
		"cd sub; git init -q -b main; git add f; git commit -qm below; echo 2 > f");
	stage_there(stage, "test \"$(git -C sub status --porcelain)\" = ' M f'\n"
			   "test \"$(git status --porcelain)\" = '?? sub/'; rm -rf sub/.git");
	stage_collect(stage, &tree);
	stage_deliver(stage, &tree, &tree);
	stage_there(stage, "test \"$(git -C sub log --format=%s)\" = below");
	tree = send(stage, &tree, "rm -rf sub/.git");
	stage_there(stage, "test ! -e sub/.git; test \"$(git status --porcelain)\" = '?? sub/'\n"
			   "git add -A; test \"$(git diff --cached --name-only)\" = sub/f");
}

static void test_a_filter_of_one_finds_its_files(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage,
		"git init -q; git init -q sub; cd sub; git config filter.x.clean 'tr a b'\n"
		"git config filter.x.smudge 'tr b a'; echo '*.x filter=x' > .gitattributes\n"
		"echo a > t.x; git add .; git commit -qm one; test \"$(git show HEAD:t.x)\" = b");
	stage_there(stage,
		"cd sub; test \"$(cat t.x)\" = a; test -z \"$(git status --porcelain)\"\n"
		"rm t.x; git checkout -q t.x; test \"$(cat t.x)\" = a");
	assert_names(stage->collected.note, "1 files | t.x");
}

/* git itself moves the repository, as for a checkout with --recurse-submodules. */
static void test_one_that_git_has_moved_is_still_ours(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git submodule --quiet absorbgitdirs lib; test -f lib/.git\n"
			   "git -C lib commit -q --allow-empty -m moved");
	stage_collect(stage, &tree);
	assert_commits(stage, "lib|main: moved\n");
	stage_there(stage, "git -C lib reset -q --hard HEAD~1");
	stage_restart(stage);
	stage_prepare(stage);
	tree = send(
		stage, &tree, "git -C lib commit -q --allow-empty -m users; git commit -qam bump");
	assert_same_answers(stage);
	send(stage, &tree, "git rm -q -f lib; git commit -qm gone; rm -rf lib");
	stage_there(stage, "test ! -e lib; test -z \"$(git status --porcelain -uno)\"");
}

static void test_a_workspace_without_git_may_have_repositories_in_it(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "git init -q -b main one; cd one; echo 1 > f\n"
					       "git add f; git commit -qm first");
	stage_there(stage, "test ! -e .git; cd one; test -z \"$(git status --porcelain)\"\n"
			   "git commit -q --allow-empty -m agents");
	tree = stage_collect(stage, &tree);
	assert_commits(stage, "one|main: agents\n");
	send(stage, &tree, "rm -rf one; echo 1 > one");
	stage_there(stage, "test -f one");
}

static const char with_one[] =
	"export GIT_ALLOW_PROTOCOL=file; git init -q -b main ../from\n"
	"(cd ../from; echo 1 > f; git add f; git commit -qm first)\n"
	"git init -q -b main; git config user.name 'The User'; git config user.email u@e.org\n"
	"git submodule --quiet add --force \"file://$PLACE/from\" lib; git commit -qm one\n";

/* Every second time the repository there is gone, so that it is made instead of moved. */
static void test_an_update_is_cut_off_anywhere_and_done_again(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, with_one);
	bool was_reached = true;
	int at = 0;
	for (; was_reached && at < 200; at += 11) {
		place_run(stage->place, "git -C lib commit -q --allow-empty -m more\n"
					"git -C lib branch -f other HEAD~1; git commit -qam bump");
		stage_there(stage, at % 2 ? "rm -rf lib/.git" : "true");
		stage_cut(stage, 1 + at);
		stage_restart(stage);
		transport_prepare(stage->transport, stage_on_done, stage);
		stage_wait(stage); // it may have failed
		was_reached = stage_heal(stage, 1 + at);
		stage_there(stage,
			"find .git lib -name '*.lock' -exec rm -f {} +\n"
			"git -C lib log -1 > ../said 2>&1 || grep -q acp-broker ../said");
		tree = stage_collect(stage, &tree);
		assert_commits(stage, "");
		stage_restart(stage);
		stage_prepare(stage);
		stage_there(stage, "test -z \"$(git status --porcelain)\"");
		char *here = place_ask(stage->place, "git -C lib log --all --format='%H %D'");
		char *there = stage_ask(stage, "git -C lib log --all --format='%H %D'");
		assert_string_equal(there, here);
		free(here);
		free(there);
	}
	assert_true(at > 40 && at < 200);
}

/* ---- what the agent does with them ---- */

static void test_what_the_agent_breaks_keeps_nothing_else_from_coming(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"git -C lib commit -q --allow-empty -m lost\n"
		"echo 2 > a; git commit -qam kept; echo '[rubbish' > lib/.git/config\n"
		"git -C 'deep/ne[s]ted' commit -q --allow-empty -m kept; echo 3 > lib/f");
	git_oid after = stage_collect(stage, &tree);
	assert_commits(stage, "|main: kept\ndeep/ne[s]ted|trunk: kept\n");
	assert_names(stage->collected.note, "lib | not taken | lib/.git/config");
	assert_true(stage->collected.commits_left);
	assert_false(memcmp(&after, &tree, sizeof(tree)) == 0);
}

static void test_no_link_leads_out_of_the_root(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git init -q ../out; git -C ../out commit -q --allow-empty -m out\n"
			   "rm -rf lib/.git deep; ln -s \"$PWD/../out/.git\" lib/.git\n"
			   "mkdir ../far; git init -q '../far/ne[s]ted'; ln -s ../far deep\n"
			   "git -C 'deep/ne[s]ted' commit -q --allow-empty -m far\n"
			   "(cd ../out/.git; find . -type f | sort | xargs cat) > ../was");
	place_run(stage->place, "git -C lib commit -q --allow-empty -m more\n"
				"git -C 'deep/ne[s]ted' commit -q --allow-empty -m more");
	stage_collect(stage, &tree);
	assert_commits(stage, "");
	stage_restart(stage);
	stage_prepare(stage);
	stage_there(stage, "(cd ../out/.git; find . -type f | sort | xargs cat) | cmp - ../was\n"
			   "test ! -e '../far/ne[s]ted/.git/acp-broker'; test -L lib/.git\n"
			   "rm lib/.git; mkdir -p ../modules/x; cp -r ../out/.git/. ../modules/x\n"
			   "echo \"gitdir: $PWD/../modules/x\" > lib/.git");
	stage_collect(stage, &tree);
	assert_commits(stage, "");
}

static void test_a_link_here_leads_to_no_history(void **state)
{
	struct place *place = ((struct stage *)*state)->place;
	char root[PATH_MAX];
	place_run(place, "mkdir -p in/a; ln -s in out");
	assert_true(inner_root(place->root, "in/a", root));
	assert_string_equal(root, place_path(place, "in/a"));
	assert_false(inner_root(place->root, "out/a", root));
	assert_false(inner_root(place->root, "none", root));
	assert_true(inner_root(place->root, "", root));
	assert_string_equal(root, place->root);
}

/* ---- whose repositories they are ---- */

/* A repository of the user's that was not given to the sandbox, and a folder beside it. */
static const char secret[] =
	"git init -q -b main ../secret; (cd ../secret; git config user.name s\n"
	"git config user.email s@e.org; echo TOPSECRET > key; git add key; git commit -qm top)\n"
	"git init -q -b main; git config user.name u; git config user.email u@e.org\n"
	"echo a > a; git add a; git commit -qm one; mkdir sub; echo x > sub/x; cd sub\n";

/* `made` ends in the folder of a nested repository in which git itself would find the secret. */
static void expect_kept(struct stage *stage, const char *made)
{
	char script[4096];
	text_whole(script, sizeof(script), "%s%s\ngit cat-file -e $(cat ../../id)\n", secret, made);
	stage_send_first(stage, script);
	stage_there(stage, "test -f sub/x; test -f sub/.git\n"
			   "test -z \"$(git -C sub log --all --oneline 2> ../said)\"\n"
			   "grep -q acp-broker ../said\n"
			   "! git cat-file --batch-all-objects --batch | grep -q TOPSECRET");
	assert_names(stage->collected.note, "sub");
}

#define SECRET_TEST(name, made)                                                                    \
	static void name(void **state)                                                             \
	{                                                                                          \
		expect_kept(*state, "git -C ../../secret rev-parse HEAD:key > ../../id\n" made);   \
	}

SECRET_TEST(
	test_a_git_file_leads_to_no_other_repository, "echo \"gitdir: $PLACE/secret/.git\" > .git")
SECRET_TEST(test_a_linked_git_leads_to_no_other_repository, "ln -s $PLACE/secret/.git .git")
SECRET_TEST(test_a_common_folder_leads_to_no_other_repository,
	"mkdir .git; echo 'ref: refs/heads/main' > .git/HEAD\n"
	"echo $PLACE/secret/.git > .git/commondir; echo $PLACE/local/sub/.git > .git/gitdir")
SECRET_TEST(test_alternates_lead_to_no_other_repository,
	"git init -q; echo ../../../../secret/.git/objects > .git/objects/info/alternates\n"
	"git update-ref HEAD $(git -C ../../secret rev-parse HEAD)")
SECRET_TEST(test_a_linked_folder_of_objects_leads_to_no_other_repository,
	"git init -q; rm -r .git/objects; ln -s ../../../secret/.git/objects .git/objects\n"
	"git update-ref HEAD $(git -C ../../secret rev-parse HEAD)")
SECRET_TEST(test_a_work_tree_elsewhere_is_no_proof,
	"git -C ../../secret worktree add -q ../linked -b linked; cp ../../linked/.git .git")

static void test_one_that_names_its_folder_is_the_users(void **state)
{
	struct stage *stage = *state;
	stage_send_first(stage,
		"git init -q -b main ../far; (cd ../far; git config user.name f\n"
		"git config user.email f@e.org; echo 1 > f; git add f; git commit -qm far)\n"
		"git init -q -b main; git config user.name u; git config user.email u@e.org\n"
		"echo a > a; git add a; git commit -qm one\n"
		"git -C ../far worktree add -q \"$PWD/tree\" -b tree\n"
		"git clone -q ../far apart; mv apart/.git ../apart.git\n"
		"echo \"gitdir: $PLACE/apart.git\" > apart/.git\n"
		"git -C apart config core.worktree \"$PWD/apart\"\n"
		"export GIT_ALLOW_PROTOCOL=file; git clone -q ../far lib\n"
		"git submodule --quiet add --force \"file://$PLACE/far\" lib\n"
		"git submodule --quiet absorbgitdirs lib; test -f lib/.git");
	stage_there(stage, "for folder in tree apart lib; do\n"
			   "	test \"$(git -C $folder log -1 --format=%s)\" = far\n"
			   "done; test \"$(git -C tree symbolic-ref --short HEAD)\" = tree");
}

/* ---- which repositories have a history ---- */

static void test_paths_in_refs(void **state)
{
	char text[AGENT_COMMITS_PATH_MAX + 1], path[AGENT_COMMITS_PATH_MAX + 2];
	assert_true(agent_commits_path("a/B-9_.x\xc3", text));
	assert_string_equal(text, "a%2FB-9_%2Ex%C3");
	memset(path, 'n', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_false(agent_commits_path(path, text));
	assert_string_equal(text, "");
	path[AGENT_COMMITS_PATH_MAX] = '\0';
	assert_true(agent_commits_path(path, text));
	assert_string_equal(text, path);
	path[AGENT_COMMITS_PATH_MAX - 1] = '/';
	assert_false(agent_commits_path(path, text));
	assert_false(agent_commits_path("", text));
}

static void put_lines(struct history *top, size_t from, size_t count)
{
	buf_clear(&top->nested);
	for (size_t i = from + count; i > from; i--) {
		char path[16];
		text_whole(path, sizeof(path), "n%02zu", i - 1);
		nested_add(&top->nested, span_of(path));
	}
}

static void test_so_many_have_a_history(void **state)
{
	struct history *histories[1 + INNER_MAX] = {history_create("")};
	put_lines(histories[0], 0, INNER_MAX + 1);
	size_t count = inner_update(histories, 1);
	assert_int_equal(count, 1 + INNER_MAX);
	assert_string_equal(histories[1]->path, "n00");
	assert_string_equal(histories[INNER_MAX]->path, "n31");
	histories[3]->is_made = true;
	put_lines(histories[0], 2, 2);
	nested_add(&histories[0]->nested, SPAN_LITERAL("n02/deep"));
	count = inner_update(histories, count);
	assert_int_equal(count, 4);
	assert_string_equal(histories[1]->path, "n02");
	assert_true(histories[1]->is_made);
	assert_true(span_is(buf_span(&histories[1]->nested), "deep\n"));
	assert_string_equal(histories[2]->path, "n02/deep");
	assert_string_equal(histories[3]->path, "n03");
	assert_int_equal(histories[3]->nested.len, 0);
	buf_clear(&histories[0]->nested);
	assert_int_equal(inner_update(histories, count), 1);
	history_destroy(histories[0]);
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_git_says_the_same_in_each_on_both_sides),
		STAGE_TEST(test_the_agents_commits_come_with_the_path),
		STAGE_TEST(test_too_many_commits_of_one_hide_none_of_another),
		STAGE_TEST(test_one_that_comes_later_or_was_lost_is_made_again),
		STAGE_TEST(test_a_filter_of_one_finds_its_files),
		STAGE_TEST(test_one_that_git_has_moved_is_still_ours),
		STAGE_TEST(test_a_workspace_without_git_may_have_repositories_in_it),
		STAGE_TEST(test_an_update_is_cut_off_anywhere_and_done_again),
		STAGE_TEST(test_what_the_agent_breaks_keeps_nothing_else_from_coming),
		STAGE_TEST(test_no_link_leads_out_of_the_root),
		STAGE_TEST(test_a_link_here_leads_to_no_history),
		STAGE_TEST(test_a_git_file_leads_to_no_other_repository),
		STAGE_TEST(test_a_linked_git_leads_to_no_other_repository),
		STAGE_TEST(test_a_common_folder_leads_to_no_other_repository),
		STAGE_TEST(test_alternates_lead_to_no_other_repository),
		STAGE_TEST(test_a_linked_folder_of_objects_leads_to_no_other_repository),
		STAGE_TEST(test_a_work_tree_elsewhere_is_no_proof),
		STAGE_TEST(test_one_that_names_its_folder_is_the_users),
		cmocka_unit_test(test_paths_in_refs),
		cmocka_unit_test(test_so_many_have_a_history),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
