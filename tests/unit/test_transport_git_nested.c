/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

/* Submodules and other repositories below the root whose history cannot be sent. */

/* With these dots, a path is longer in a ref than AGENT_COMMITS_PATH_MAX. */
#define DOTS "...................................................................."
#define LIB "lib" DOTS
#define NESTED "ne[s]ted" DOTS

static const char repository[] =
	"export GIT_ALLOW_PROTOCOL=file; git init -q -b main ../from\n"
	"(cd ../from; echo 1 > f; git add f; git commit -qm inner)\n"
	"git init -q -b main; echo 1 > a; git add a\n"
	"git submodule --quiet add --force \"file://$PLACE/from\" " LIB "\n"
	"git submodule --quiet add --force \"file://$PLACE/from\" ' un used '\n"
	"git commit -qm one; git submodule --quiet deinit -f ' un used '\n"
	"git init -q '" NESTED "'; (cd '" NESTED "'; echo 1 > n; git add n; git commit -qm one)\n";

/* git fails there with the explanation, and commits nothing to the repository above. */
static const char fails_inside[] =
	"for way in 'commit -qam x' 'status' 'log -1' 'add -A'; do\n"
	"	for folder in " LIB " '" NESTED "'; do\n"
	"		! git -C \"$folder\" $way > ../said 2>&1; grep -q acp-broker ../said\n"
	"	done\n"
	"done\n"
	"test $(git rev-list --count HEAD) = 1";

static git_oid send(struct stage *stage, const git_oid *from, const char *script)
{
	place_run(stage->place, script);
	git_oid tree = place_take(stage->place, from);
	stage_deliver(stage, from, &tree);
	return tree;
}

static void test_the_gitlink_stays_and_git_inside_fails_with_an_explanation(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	assert_names(stage->collected.note, "lib | ne[s]ted");
	stage_there(stage, "test -z \"$(git status --porcelain)\"; test -d ' un used '");
	stage_there(stage, "test \"$(cat " LIB "/f '" NESTED "/n' | xargs)\" = '1 1'");
	stage_there(stage, fails_inside);
	stage_there(stage, "echo 2 > " LIB "/f; echo 2 > '" NESTED "/n'; echo 2 > a; git add -A\n"
			   "git commit -qam two; git stash list; git checkout -q HEAD~1\n"
			   "git checkout -q main; test -z \"$(git status --porcelain)\"\n"
			   "test \"$(git diff --name-only HEAD~1)\" = a\n"
			   "test $(git ls-tree HEAD | grep -c '^160000') = 2");
	tree = stage_collect(stage, &tree);
	assert_null(strstr(stage->collected.note, "lib"));
	assert_paths(stage->place, &tree, ".gitmodules\na\n" LIB "/f\n" NESTED "/n\n");
}

static void test_a_submodule_follows_the_users(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	tree = send(stage, &tree,
		"git -C " LIB " commit -q --allow-empty -m more; git commit -qam bump\n"
		"rm -rf '" NESTED "/.git'");
	stage_there(stage,
		"test \"$(git status --porcelain)\" = '?? " NESTED "/'\n"
		"test ! -e '" NESTED "/.git'; test \"$(git ls-files -t " LIB ")\" = 'S " LIB "'");
	tree = send(stage, &tree,
		"git rm -q -f " LIB "; rm -rf " LIB "; echo 1 > " LIB "; git add " LIB "\n"
		"git commit -qam file");
	stage_there(
		stage, "test -f " LIB "; test \"$(git status --porcelain)\" = '?? " NESTED "/'");
	tree = send(stage, &tree,
		"git rm -q " LIB "; GIT_ALLOW_PROTOCOL=file git submodule --quiet add --force "
		"\"file://$PLACE/from\" " LIB "; git commit -qam again");
	stage_there(stage, "test -f " LIB "/.git; git ls-files -t " LIB " | grep -q '^S'");
	send(stage, &tree, "git submodule --quiet deinit -f " LIB "");
	stage_there(stage, "test ! -e " LIB "/.git; git ls-files -t " LIB " | grep -q '^H'\n"
			   "test \"$(git status --porcelain)\" = '?? " NESTED "/'");
}

/* If the agent replaces a folder, nothing leads out of the root. */
static void test_a_link_or_a_repository_of_the_agents_is_left_alone(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"mkdir ../out; rm -rf " LIB "/.git '" NESTED "'; ln -s ../out '" NESTED "'\n"
		"git init -q " LIB "");
	place_run(stage->place, "git commit -q --allow-empty -m more");
	stage_restart(stage);
	stage_prepare(stage);
	stage_there(stage, "test -z \"$(ls -A ../out)\"; test -d " LIB "/.git");
	stage_collect(stage, &tree);
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_the_gitlink_stays_and_git_inside_fails_with_an_explanation),
		STAGE_TEST(test_a_submodule_follows_the_users),
		STAGE_TEST(test_a_link_or_a_repository_of_the_agents_is_left_alone),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
