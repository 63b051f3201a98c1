/* SPDX-License-Identifier: MIT */
#include "tests/unit/workspace_fixture.h"
#include "tests/support/facts.h"

/* Makes what git would take for a repository, in a folder of the agent's. */
#define MAKE_REPOSITORY                                                                            \
	"make() { mkdir -p $1/objects/pack $1/refs/heads; echo 'ref: refs/heads/main' > $1/HEAD;"  \
	"printf '[core]\\n\\tfsmonitor = touch ran\\n\\tbare = false\\n\\tworktree = .\\n' >"      \
	"$1/config; touch $1/objects/pack/x $1/refs/heads/main; }; "

static void assert_left(struct fixture *fixture, size_t count, const char *names)
{
	assert_int_equal(fixture->result.left, count);
	assert_names(fixture->note, names);
}

static void test_a_repository_of_the_agents_stays_in_the_sandbox(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY "mkdir -p $R/d; make $R/d/evil.git; echo b > $R/d/b");
	sync_once(fixture);
	expect(fixture, "find * | sort", "a\nd\nd/b\n");
	assert_left(fixture, 1, "d/evil.git");
	int delivers = dir_transport_hooks.delivers;
	/* The user is told once. The repository is not deleted there, and nothing is sent to it. */
	run(fixture, "echo more > $R/d/evil.git/more");
	sync_once(fixture);
	expect(fixture, "find * | sort; ls $R/d/evil.git",
		"a\nd\nd/b\nHEAD\nconfig\nmore\nobjects\nrefs\n");
	assert_int_equal(fixture->result.left, 1);
	assert_string_equal(fixture->note, "");
	assert_int_equal(dir_transport_hooks.delivers, delivers);
	/* Edits on both sides go on beside it. */
	run(fixture, "echo a2 > a; echo c > $R/c");
	sync_once(fixture);
	expect(fixture, "cat c $R/a; ls $R/d/evil.git/HEAD | wc -l", "c\na2\n1\n");
	/* Once it is not a repository any more, its other files come here. */
	run(fixture, "rm $R/d/evil.git/HEAD");
	sync_once(fixture);
	assert_int_equal(fixture->result.left, 0);
	expect_same(fixture);
}

static void test_it_is_known_in_every_spelling_and_shape(void **state)
{
	struct fixture *fixture = *state;
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY
		"make $R/a; mv $R/a/HEAD $R/a/hEAD; mv $R/a/refs $R/a/Refs;"
		"make $R/b; rm -r $R/b/objects $R/b/refs; echo ../x > $R/b/commondir;"
		"make $R/c; rm -r $R/c/refs; ln -s /tmp $R/c/refs;"
		"make $R/d; rm -r $R/d/objects; touch $R/d/objects; chmod +x $R/d/objects;"
		"make $R/e; rm $R/e/HEAD; ln -s refs/heads/main $R/e/HEAD;"
		"make $R/f; mv $R/f/objects \"$R/f/objects. \";"
		"make $R/.g; rm $R/.g/config;"
		"make $R/none; rm -r $R/none/refs; touch $R/none/xrefs");
	sync_once(fixture);
	expect(fixture, "ls -A", "none\n");
	assert_int_equal(fixture->result.left, 7);
}

static void test_one_that_comes_in_parts_never_becomes_whole(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY "make $R/made; mkdir $R/r;"
				     "mv $R/made/objects $R/made/config $R/r; rm -r $R/made");
	sync_once(fixture);
	expect(fixture, "ls r", "config\nobjects\n");
	run(fixture, "mkdir $R/r/refs; touch $R/r/refs/x");
	sync_once(fixture);
	expect(fixture, "ls r", "config\nobjects\nrefs\n");
	run(fixture, "echo 'ref: refs/heads/main' > $R/r/HEAD; echo b > $R/r/b");
	sync_once(fixture);
	expect(fixture, "ls r", "b\nconfig\nobjects\nrefs\n");
	assert_left(fixture, 1, "r/HEAD");
	/* When it becomes one, its parts are not brought here any more. */
	run(fixture, "echo evil > $R/r/config; rm $R/r/refs/x");
	sync_once(fixture);
	expect(fixture, "ls r; wc -l < r/config; cat $R/r/config", "b\nconfig\nobjects\n4\nevil\n");
}

static void test_it_is_not_completed_by_what_is_here_and_ignored(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "git init -q .; echo /x/ > .gitignore; mkdir -p x/objects x/refs;"
		     "touch x/objects/o x/refs/r");
	sync_once(fixture);
	run(fixture, "echo > $R/.gitignore; mkdir -p $R/x; echo 'ref: refs/heads/m' > $R/x/HEAD;"
		     "echo evil > $R/x/config");
	sync_once(fixture);
	expect(fixture, "ls x", "objects\nrefs\n");
	assert_names(fixture->note, ": x");
}

static void test_the_workspace_itself_does_not_become_one(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY "make $R; echo b > $R/b");
	sync_once(fixture);
	expect(fixture, "git rev-parse 2>&- || echo none; ls", "none\na\nb\n");
	assert_left(fixture, 4, "HEAD | config | objects | 1 more");
}

static void test_to_a_workspace_in_a_repository_comes_nothing_that_git_would_run(void **state)
{
	struct fixture *fixture = *state;
	char root[FIXTURE_PATH_MAX + 16];
	run(fixture, MAKE_REPOSITORY "make mine; mkdir mine/hooks; echo h > mine/hooks/h");
	snprintf(root, sizeof(root), "%s/mine/hooks", fixture->place->root);
	workspace_destroy(fixture->workspace);
	fixture->request.local_root = root;
	fixture->workspace = workspace_create(&fixture->request);
	sync_once(fixture);
	assert_left(fixture, 0, "");
	run(fixture, "echo its > $R/update; echo mine > mine/hooks/mine");
	sync_once(fixture);
	assert_left(fixture, 1, ": .");
	expect(fixture, "ls mine/hooks; ls $R", "h\nmine\nh\nmine\nupdate\n");
}

static void test_in_a_repository_of_the_users_only_what_runs_is_withheld(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "git init -q --bare --template= mine; git -C mine config a.b 1;"
		     "mkdir mine/hooks; echo hook > mine/hooks/update; touch mine/refs/r");
	sync_once(fixture);
	expect(fixture, "ls $R/mine/hooks", "update\n");
	run(fixture, "cd $R/mine; echo evil >> config; echo evil > hooks/post-update;"
		     "echo evil > hooks/update; echo /tmp > commondir; echo new > refs/r2;"
		     "echo 'ref: refs/heads/b' > HEAD; rm refs/r");
	sync_once(fixture);
	expect(fixture,
		"find mine -type f | sort; cat mine/HEAD mine/hooks/update; grep -c evil "
		"mine/config || :",
		"mine/HEAD\nmine/config\nmine/hooks/update\nmine/refs/r2\nref: refs/heads/b\nhook\n"
		"0\n");
	assert_left(fixture, 3, "mine/commondir | mine/config | mine/hooks");
	/* The user's changes to them stay here, and the agent's stay there. */
	run(fixture, "echo mine >> mine/config; echo mine > mine/refs/r3");
	sync_once(fixture);
	expect(fixture,
		"tail -qn 1 mine/config $R/mine/config; cat $R/mine/refs/r3; ls mine | grep -c acp "
		"|| :",
		"mine\nevil\nmine\n0\n");
	/* Paths that are the same again are in sync. */
	run(fixture, "cp mine/config $R/mine/config; cp mine/hooks/* $R/mine/hooks;"
		     "rm $R/mine/hooks/post-update $R/mine/commondir");
	sync_once(fixture);
	assert_int_equal(fixture->result.left, 0);
	expect(fixture, "cd $R && find mine -type f | sort",
		"mine/HEAD\nmine/config\nmine/hooks/update\nmine/refs/r2\nmine/refs/r3\n");
	run(fixture, "rm -r $R/mine; mkdir $R/mine; touch $R/mine/left");
	sync_once(fixture);
	expect(fixture, "find mine -type f", "mine/left\n");
}

static void test_a_deletion_of_the_users_leaves_there_only_what_the_agent_changed(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, MAKE_REPOSITORY "make mine; make his; echo a > a");
	sync_once(fixture);
	run(fixture, "echo evil >> $R/mine/config; echo evil >> $R/his/config");
	sync_once(fixture);
	assert_left(fixture, 2, "his/config | mine/config");
	run(fixture, "rm -r mine; rm -r his; echo mine > his");
	sync_once(fixture);
	expect(fixture, "find . -type f | sort; cd $R; find . -type f | sort; tail -qn 1 */config",
		"./a\n./his\n./a\n./his/config\n./mine/config\nevil\nevil\n");
	assert_int_equal(fixture->result.conflict_count, 0);
	sync_once(fixture); // it is not a repository any more
	assert_int_equal(fixture->result.left, 0);
	expect(fixture, "cat his $P/config | grep '^evil\\|^mine'; find . -type f | wc -l",
		"mine\nevil\nevil\n2\n");
}

static void test_what_is_withheld_no_more_is_no_later_change_than_the_users(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, MAKE_REPOSITORY "make mine");
	sync_once(fixture);
	run(fixture, "echo evil >> $R/mine/config; echo evil > $R/mine/commondir");
	sync_once(fixture);
	assert_left(fixture, 2, "mine/commondir | mine/config");
	run(fixture, "echo mine >> mine/config; echo mine > mine/commondir");
	sync_once(fixture);
	run(fixture, "rm $R/mine/HEAD");
	sync_once(fixture); // here it still is one
	sync_once(fixture);
	assert_int_equal(fixture->result.left, 0);
	expect(fixture, "cd mine; tail -qn 1 config commondir $P/*", "mine\nmine\nevil\nevil\n");
}

static void test_one_of_the_users_that_the_agent_moves_stays_here(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, MAKE_REPOSITORY "make mine; make d/his; echo a > a; echo d > d/his/d");
	sync_once(fixture);
	run(fixture, "cd $R; mv mine other; mv d/his his; echo more > his/more; rm a");
	sync_once(fixture);
	assert_left(fixture, 2, "his, other | d/his/HEAD, d/his/config, d/his/d | and 3 more");
	sync_once(fixture);
	assert_left(fixture, 2, "");
	expect(fixture, "find . -type f | sort; ls $R",
		"./d/his/HEAD\n./d/his/config\n./d/his/d\n./d/his/objects/pack/x\n./d/his/refs/"
		"heads/main\n"
		"./mine/HEAD\n./mine/config\n./mine/objects/pack/x\n./mine/refs/heads/main\n"
		"d\nhis\nother\n");
	run(fixture, "cd $R; rm -r other; mv his d/his");
	sync_once(fixture);
	expect(fixture, "ls -d * d/his/more", "d\nd/his/more\n");
}

static void test_what_is_the_same_here_is_not_withheld(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, MAKE_REPOSITORY
		"make mine; mkdir mine/hooks; echo h > mine/hooks/h; cp -r mine $R");
	sync_once(fixture); // there is no base yet
	assert_int_equal(fixture->result.left, 0);
	expect_same(fixture);
	run(fixture, "for i in . $R; do echo '# both' >> $i/mine/config; done");
	sync_once(fixture);
	assert_int_equal(fixture->result.left, 0);
	expect(fixture, "tail -qn 1 mine/config $R/mine/config", "# both\n# both\n");
}

static void test_what_the_user_makes_in_its_place_is_kept_beside_it(void **state)
{
	struct fixture *fixture = *state;
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY "make $R/r; make $R/s");
	sync_once(fixture);
	expect(fixture, "ls", "");
	run(fixture, "mkdir r; echo mine > r/mine; echo mine > s");
	sync_once(fixture);
	sync_once(fixture);
	expect(fixture, "ls r; cat s", "mine\nmine\n");
	expect(fixture, "cd $R; ls r; ls -d s/HEAD", "HEAD\nconfig\nmine\nobjects\nrefs\ns/HEAD\n");
}

static void test_a_cut_delivery_and_a_rollback_leave_it_where_it_is(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, MAKE_REPOSITORY "make $R/r");
	sync_once(fixture);
	run(fixture, "echo b > b");
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	sync_once(fixture);
	expect(fixture, "ls; ls $R/r; cat $R/b", "a\nb\nHEAD\nconfig\nobjects\nrefs\nb\n");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "ls; ls $R", "a\na\nr\n");
	sync_once(fixture);
	expect(fixture, "ls; ls $R", "a\na\nr\n");
	/* A new broker knows it, too. */
	workspace_destroy(fixture->workspace);
	fixture->workspace = workspace_create(&fixture->request);
	sync_once(fixture);
	expect(fixture, "ls; ls $R", "a\na\nr\n");
	assert_left(fixture, 1, ": r");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_a_repository_of_the_agents_stays_in_the_sandbox),
		WORKSPACE_TEST(test_it_is_known_in_every_spelling_and_shape),
		WORKSPACE_TEST(test_one_that_comes_in_parts_never_becomes_whole),
		WORKSPACE_TEST(test_it_is_not_completed_by_what_is_here_and_ignored),
		WORKSPACE_TEST(test_the_workspace_itself_does_not_become_one),
		WORKSPACE_TEST(
			test_to_a_workspace_in_a_repository_comes_nothing_that_git_would_run),
		WORKSPACE_TEST(test_in_a_repository_of_the_users_only_what_runs_is_withheld),
		WORKSPACE_TEST(
			test_a_deletion_of_the_users_leaves_there_only_what_the_agent_changed),
		WORKSPACE_TEST(test_what_is_withheld_no_more_is_no_later_change_than_the_users),
		WORKSPACE_TEST(test_one_of_the_users_that_the_agent_moves_stays_here),
		WORKSPACE_TEST(test_what_is_the_same_here_is_not_withheld),
		WORKSPACE_TEST(test_what_the_user_makes_in_its_place_is_kept_beside_it),
		WORKSPACE_TEST(test_a_cut_delivery_and_a_rollback_leave_it_where_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
