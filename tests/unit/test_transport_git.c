/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/transport_fixture.h"

static void test_the_first_delivery_fills_an_empty_root(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	stage_assert_equal(stage);
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "test ! -e .git");
}

static void test_changes_there_come_back(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	const char *changes = "rm a; mkdir a; echo in > a/b; rm -r d; ln -s sub d; chmod -x run\n"
			      "printf 'x\\r\\nz\\n' > crlf; echo m > sub/more; rm sub/nested\n"
			      "mkdir -p new/deep; echo y > new/deep/y; echo x > '-x'\n";
	stage_there(stage, changes);
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, changes);
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
}

static void test_changes_here_go_there(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	place_run(stage->place, "rm crlf; mkdir crlf; echo in > crlf/b; rm -r d; ln -s sub d; "
				"chmod -x run; echo b > a");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_assert_equal(stage);
	assert_true(stage->delivered.sent_bytes < 1000); // only the difference
	place_run(stage->place, "rm -r crlf d; mkdir d; echo f > d/f; echo c > crlf");
	git_oid last = place_take(stage->place, &next);
	stage_deliver(stage, &next, &last);
	stage_assert_equal(stage);
}

static void test_a_change_there_stops_a_delivery(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; echo b > b");
	place_run(stage->place, "echo aa > a; echo bb > b; echo c > c");
	git_oid next = place_take(stage->place, &tree);
	stage_there(stage, "echo other > b");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
	stage_there(stage, "test $(cat a) = a; test $(cat b) = other; test ! -e c");
	stage_there(stage, "echo b > b; echo mine > c");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	stage_there(stage, "test $(cat a) = a; test $(cat c) = mine; rm c");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_deliver(stage, &tree, &next);
	stage_assert_equal(stage);
}

static void test_what_is_ignored_stays_where_it_is(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "git init -q; echo secret >> .git/info/exclude; mkdir ../.config;"
				"mkdir ../.config/git; echo mine > ../.config/git/ignore");
	git_oid tree = stage_send_first(stage, "echo node_modules > .gitignore; echo a > a");
	stage_there(stage,
		"mkdir node_modules; echo m > node_modules/m; echo s > secret; echo x > mine");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "echo a >> .gitignore; echo aa > a");
	there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, ".gitignore\na\n"); // a member stays a member
	place_run(stage->place,
		"rm .gitignore; echo here > mine; git add -f mine; rm .git/info/exclude");
	git_oid next = place_take(stage->place, &there);
	git_oid with_mine = next;
	stage_deliver(stage, &there, &with_mine);
	stage_there(stage, "test $(cat mine) = here; test $(cat mine.*.acp-conflict) = x");
}

/* The name is so long that nothing can be appended to it. */
static void test_what_is_ignored_is_never_replaced_whatever_its_name(void **state)
{
	struct stage *stage = *state;
	static const char make[] = "x=$(printf '%0240d' 0)\n";
	char script[512];
	git_oid tree = stage_send_first(stage, "git init -q; echo '0*' > .gitignore; echo a > a");
	snprintf(script, sizeof(script), "%s echo theirs > $x; echo 2 > ${x}2", make);
	stage_there(stage, script);
	snprintf(script, sizeof(script), "%s echo ours > $x; echo 2 > ${x}2; git add -f .", make);
	place_run(stage->place, script);
	git_oid next = place_take(stage->place, &tree);
	stage_program(stage, "mv",
		"case $* in *.acp-conflict) exit 1 ;; esac\nPATH=${PATH#*:}\nexec mv \"$@\"");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	snprintf(script, sizeof(script), "%s test $(cat $x) = theirs", make);
	stage_there(stage, script);
	stage_program(stage, "mv", "PATH=${PATH#*:}\nexec mv \"$@\"");
	stage_deliver(stage, &tree, &next);
	snprintf(script, sizeof(script),
		"%s test $(cat $x) = ours; test $(cat *.acp-conflict) = theirs", make);
	stage_there(stage, script);
	git_oid there = stage_collect(stage, &next);
	stage_assert_same(&there, &next);
}

static void test_new_nested_repositories_come_as_files(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage,
		"mkdir -p n/m; cd n; git init -q; echo n > n; echo i > .gitignore; echo x > i;"
		"cd m; git init -q; echo m > m; git add m; git commit -qm m");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nn/.gitignore\nn/m/m\nn/n\n");
	git_oid again = stage_collect(stage, &there);
	stage_assert_same(&again, &there);
}

static void test_filters_and_hooks_there_never_run(void **state)
{
	struct stage *stage = *state;
	git_oid tree =
		stage_send_first(stage, "git init -q; echo a > a; git add a; git commit -qm a");
	stage_there(stage, "git config filter.evil.clean 'touch RAN; cat'\n"
			   "git config filter.evil.smudge 'touch RAN; cat'\n"
			   "git config core.fsmonitor 'touch RAN'; git config core.autocrlf true\n"
			   "mkdir -p .git/hooks; for h in post-checkout reference-transaction "
			   "post-index-change pre-commit; do printf '#!/bin/sh\\ntouch RAN\\n' "
			   "> .git/hooks/$h; chmod +x .git/hooks/$h; done\n"
			   "echo '* filter=evil' > .gitattributes; printf 'x\\r\\n' > b");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "echo a2 > a; git commit -qam two; printf 'x\\r\\n' > b;"
				"echo '* filter=evil' > .gitattributes; echo c > c");
	git_oid next = place_take(stage->place, &there);
	stage_deliver(stage, &there, &next);
	stage_assert_equal(stage);
	stage_there(stage, "test ! -e RAN");
}

static void test_a_deleted_side_repository_is_made_anew(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	stage_there(stage, "rm -r ../.acp-broker; echo new > new; rm a");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "echo new > new; rm a");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
	stage_there(stage, "rm -r ../.acp-broker/sync/*/objects");
	place_run(stage->place, "echo newer > new");
	git_oid next = place_take(stage->place, &here);
	stage_restart(stage);
	stage_deliver(stage, &here, &next); // a few: compared by their content
	stage_assert_equal(stage);
	there = stage_collect(stage, &next);
	stage_assert_same(&there, &next);
	stage_there(stage, "rm -r ../.acp-broker/sync/*/objects");
	place_run(stage->place, "rm new");
	git_oid last = place_take(stage->place, &next);
	stage_restart(stage);
	stage_deliver_fails(
		stage, &next, &last, ERROR_UNAVAILABLE, "have changed"); // nothing is known
	there = stage_collect(stage, &next);
	stage_assert_same(&there, &next);
	stage_deliver(stage, &next, &last);
	stage_assert_equal(stage);
}

static void test_include_and_exclude_are_heard(void **state)
{
	struct stage *stage = *state;
	static const char *const include[] = {"dist", NULL};
	static const char *const exclude[] = {"*.log", "tmp", NULL};
	stage->request.include = include;
	stage->request.exclude = exclude;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo dist > .gitignore");
	stage_there(stage, "mkdir dist tmp; echo d > dist/d; echo l > dist/x.log; echo t > tmp/t");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, ".gitignore\ndist/d\n");
}

/*
 * If a collect brought a path that does not belong to the files here, the next delivery would
 * delete it there.
 */
static void test_a_folder_is_excluded_there_as_it_is_here(void **state)
{
	struct stage *stage = *state;
	static const char *const exclude[] = {"**/data", "*cache", "/top", "x?y", NULL};
	stage->request.exclude = exclude;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "mkdir -p w/data/deep my_cache top k/xzy; for f in w/data/x top/x "
			   "w/data/deep/x my_cache/x k/xzy/x w/keep; do echo x > $f; done");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nk/xzy/x\nw/keep\n");
}

/* ---- big files ---- */

static void make_small_limit(struct stage *stage)
{
	stage->place->store.big_file_bytes = 5000;
	stage_restart(stage);
}

static void test_big_files_travel_apart(void **state)
{
	struct stage *stage = *state;
	make_small_limit(stage);
	git_oid tree = stage_send_first(stage,
		"mkdir d; head -c 20000 /dev/urandom > d/big; chmod +x d/big;"
		"head -c 9000 /dev/zero > zero; echo s > s");
	stage_assert_equal(stage);
	stage_there(stage, "test -x d/big; test ! -x zero; test -z \"$(ls -A | grep tmp$)\"");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	assert_true(stage->collected.received_bytes < 4000); // not again
	const char *changes = "printf more >> d/big; mv zero other; head -c 6000 /dev/zero > s;"
			      "head -c 7000 /dev/zero > \"$(printf 'n\\nl')\"";
	stage_there(stage, changes);
	there = stage_collect(stage, &tree);
	place_run(stage->place,
		"cp -p \"$PLACE/runtime/0/d/big\" d/big; mv zero other;"
		"head -c 6000 /dev/zero > s; head -c 7000 /dev/zero > \"$(printf 'n\\nl')\"");
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
	stage_there(stage, "test -z \"$(find ../.acp-broker -size +5k -path '*objects*')\"");
}

static void test_big_files_take_every_other_form_and_back(void **state)
{
	struct stage *stage = *state;
	static const char *const forms[] = {"head -c 9000 /dev/urandom > x", "echo small > x",
		"head -c 8000 /dev/urandom > x", "ln -s target x",
		"head -c 8001 /dev/urandom > x; chmod +x x", "chmod -x x", "mkdir x; echo y > x/y",
		"head -c 8002 /dev/urandom > x",
		"mkdir -p x/d; head -c 8002 /dev/urandom > x/d/big", ":", "echo x > x"};
	make_small_limit(stage);
	git_oid last = stage_send_first(stage, "echo keep > keep");
	for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
		char script[256];
		bool is_chmod = strncmp(forms[i], "chmod", 5) == 0;
		snprintf(script, sizeof(script), "%s%s", is_chmod ? "" : "rm -rf x; ", forms[i]);
		place_run(stage->place, script);
		git_oid next = place_take(stage->place, &last);
		stage_deliver(stage, &last, &next);
		stage_assert_equal(stage);
		git_oid there = stage_collect(stage, &next);
		stage_assert_same(&there, &next);
		last = next;
	}
}

static void test_a_changed_big_file_stops_a_delivery(void **state)
{
	struct stage *stage = *state;
	make_small_limit(stage);
	git_oid tree = stage_send_first(stage, "head -c 9000 /dev/zero > big; echo a > a");
	stage_there(stage, "printf x >> big");
	place_run(stage->place, "printf y >> big; echo b > a");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	stage_there(stage, "test $(tail -c 1 big) = x; test $(cat a) = a");
}

/* Its hash is known from before. After a power failure, the file may contain anything. */
static void test_a_big_file_is_there_whatever_is_known_of_it(void **state)
{
	struct stage *stage = *state;
	make_small_limit(stage);
	git_oid tree = stage_send_first(stage, "head -c 9000 /dev/zero > big; echo a > a");
	stage_program(stage, "date", "echo $(($(exec /bin/date \"$@\") + 100))");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "set -- ../.acp-broker/sync/*/big/*; test $# = 1; printf cut > \"$1\"");
	there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
}

static void test_an_ignored_big_member_stays_one(void **state)
{
	struct stage *stage = *state;
	make_small_limit(stage);
	git_oid tree = stage_send_first(stage, "head -c 9000 /dev/zero > big; echo a > a");
	stage_there(stage, "echo big > .gitignore");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, ".gitignore\na\nbig\n");
	stage_there(stage, "echo small > big");
	there = stage_collect(stage, &there);
	assert_tree(stage->place, &there, "100644 .gitignore\n100644 a\n100644 big\n");
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

static void test_a_write_that_goes_on_there_keeps_its_temporary_file(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage,
		"touch .acp-broker-1-1.tmp .acp-broker-sync-small.tmp .acp-broker-old.tmp; "
		"touch -d '2 days ago' .acp-broker-old.tmp; echo new > new");
	git_oid now = stage_collect(stage, &tree);
	assert_paths(stage->place, &now, "a\nnew\n");
	stage_there(stage, "test \"$(echo .acp-broker-*)\" = .acp-broker-1-1.tmp");
	stage_deliver(stage, &now, &tree);
	stage_there(stage, "test -f .acp-broker-1-1.tmp; test ! -e new");
}

static void test_what_is_excluded_after_it_was_delivered(void **state)
{
	struct stage *stage = *state;
	static const char *const exclude[] = {"tmp", NULL};
	git_oid tree = stage_send_first(stage, "mkdir tmp; echo t > tmp/t; echo a > a");
	stage->request.exclude = exclude;
	stage_restart(stage);
	stage_prepare(stage);
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree); // gone here: the deletion goes there
}

/* A run that is still dying writes files there, and so rm(1) fails. */
static void test_what_cannot_be_tidied_up_there_fails_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "cd ../.acp-broker/sync/*; mkdir work.1");
	stage_program(stage, "rm", "/bin/rm \"$@\"; case $* in *work.*) exit 1 ;; esac");
	stage_there(stage, "echo b > b");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nb\n");
	stage_deliver(stage, &there, &tree);
	stage_there(stage, "test ! -e b");
}

static void test_the_lock_that_a_killed_git_has_left_there_fails_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "cd ../.acp-broker/sync/*; mkdir -p refs/acp-broker\n"
			   "touch refs/acp-broker/to.lock");
	place_run(stage->place, "echo b > b");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_there(stage, "test $(cat b) = b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_the_first_delivery_fills_an_empty_root),
		STAGE_TEST(test_changes_there_come_back),
		STAGE_TEST(test_changes_here_go_there),
		STAGE_TEST(test_a_change_there_stops_a_delivery),
		STAGE_TEST(test_what_is_ignored_stays_where_it_is),
		STAGE_TEST(test_what_is_ignored_is_never_replaced_whatever_its_name),
		STAGE_TEST(test_new_nested_repositories_come_as_files),
		STAGE_TEST(test_filters_and_hooks_there_never_run),
		STAGE_TEST(test_a_deleted_side_repository_is_made_anew),
		STAGE_TEST(test_include_and_exclude_are_heard),
		STAGE_TEST(test_a_folder_is_excluded_there_as_it_is_here),
		STAGE_TEST(test_big_files_travel_apart),
		STAGE_TEST(test_big_files_take_every_other_form_and_back),
		STAGE_TEST(test_a_changed_big_file_stops_a_delivery),
		STAGE_TEST(test_a_big_file_is_there_whatever_is_known_of_it),
		STAGE_TEST(test_an_ignored_big_member_stays_one),
		STAGE_TEST(test_a_write_that_goes_on_there_keeps_its_temporary_file),
		STAGE_TEST(test_what_is_excluded_after_it_was_delivered),
		STAGE_TEST(test_what_cannot_be_tidied_up_there_fails_nothing),
		STAGE_TEST(test_the_lock_that_a_killed_git_has_left_there_fails_nothing),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
