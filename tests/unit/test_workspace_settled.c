/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/utf8.h"
#include "sync/apply_journal.h"
#include "sync/conflicts.h"
#include "tests/unit/workspace_fixture.h"
#include "tests/support/facts.h"

/* ---- deletions that are asked about ---- */

static void make_many_and_delete(struct fixture *fixture)
{
	run(fixture, "mkdir d; for i in $(seq 30); do echo $i > d/f$i; done");
	sync_once(fixture);
	run(fixture, "rm -r $R/d; echo new > $R/new; echo mine > mine");
}

static void order(struct fixture *fixture, enum sync_deletions deletions)
{
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN,
				   .deletions = deletions,
				   .asked = fixture->asked});
}

static void test_a_question_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	order(fixture, SYNC_DELETIONS_ASK);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, 30);
	assert_string_equal(fixture->question_first, "d/f1");
	expect(fixture, "ls; ls d | wc -l; ls $R", "d\nmine\n30\nnew\n");
	order(fixture, SYNC_DELETIONS_KEEP);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->question_count, 0);
	assert_int_equal(fixture->result.kept, 30);
	expect_same(fixture);
	expect(fixture, "ls; ls d | wc -l", "d\nmine\nnew\n30\n");
}

static void test_a_yes_is_followed_and_can_be_gone_back_on(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	order(fixture, SYNC_DELETIONS_ASK);
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->result.followed, 30);
	assert_int_equal(fixture->result.kept, 0);
	expect_same(fixture);
	expect(fixture, "ls", "mine\nnew\n");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls d | wc -l; cat d/f7", "30\n7\n");
}

static void test_a_yes_is_about_what_was_asked_alone(void **state)
{
	struct fixture *fixture = *state;
	make_many_and_delete(fixture);
	run(fixture, "mkdir $R/d; echo 30 > $R/d/f30");
	order(fixture, SYNC_DELETIONS_ASK);
	assert_int_equal(fixture->question_count, 29);
	run(fixture, "rm -r $R/d; echo more > $R/more");
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->question_count, 30);
	expect(fixture, "ls d | wc -l", "30\n");
	run(fixture, "echo changed > $R/new; echo here > here");
	order(fixture, SYNC_DELETIONS_FOLLOW);
	assert_true(fixture->is_ok);
	expect_same(fixture);
	expect(fixture, "ls", "here\nmine\nmore\nnew\n");
}

/* ---- files that cannot be settled ---- */

static void test_an_ignored_file_in_the_way_is_a_conflict_once(void **state)
{
	struct fixture *fixture = *state;
	run(fixture,
		"git init -q; echo secret > .git/info/exclude; echo mine > secret; echo 1 > a");
	sync_once(fixture);
	expect(fixture, "ls $R", "a\n");
	run(fixture, "echo theirs > $R/secret; echo 2 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "secret");
	assert_string_equal(fixture->why, "something is there now");
	expect(fixture, "cat secret a $P/secret; ls $R", "mine\n2\ntheirs\na\n");
	run(fixture, "echo 3 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "cat secret a; ls $R", "mine\n3\na\n");
}

static void test_what_is_stuck_is_no_part_of_the_base_until_both_sides_agree(void **state)
{
	struct fixture *fixture = *state;
	run(fixture,
		"git init -q; echo secret > .git/info/exclude; echo mine > secret; echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo theirs > $R/secret; echo 2 > $R/a");
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	sync_once(fixture);
	expect(fixture, "cat secret a; ls $R; ls $P/* | wc -l", "mine\n2\na\n1\n");
}

static void test_folders_and_files_in_each_others_way_are_conflicts(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "git init -q; printf 'x\\ny\\n' > .git/info/exclude; echo 1 > a");
	sync_once(fixture);
	run(fixture, "echo file > x; mkdir y; echo deep > y/z");
	run(fixture, "mkdir $R/x; echo 1 > $R/x/1; echo 2 > $R/x/2; echo y > $R/y; echo 2 > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 3);
	expect(fixture, "cat x y/z a; ls $P/* | wc -l; ls $R", "file\ndeep\n2\n3\na\n");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
}

#define REPEATED "  x();\\nint f() {\\nb\\nb\\n}\\n  return;\\na\\nd\\n"

/* If it were merged with the old base again, the agent's line would come a second time. */
static void test_what_was_merged_is_not_merged_again_while_something_is_stuck(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "printf '" REPEATED "e\\na\\n}\\nb\\n' >a; echo z >z");
	sync_once(fixture);
	run(fixture, "printf '" REPEATED "c\\na\\n}\\nb\\n' >a; echo agent >$R/z\n"
		     "printf '" REPEATED "e\\na\\na\\n}\\nb\\n' >$R/a");
	int held = open(place_path(fixture->place, "z"), O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(held >= 0);
	sync_once(fixture);
	close(held);
	assert_string_equal(fixture->conflict, "z");
	assert_int_equal(fixture->result.conflict_count, 1);
	expect(fixture, "tail -n 6 a; cat z; tail -n 6 $R/a; cat $R/z; cat $P/z",
		"d\nc\na\na\n}\nb\nz\nd\nc\na\na\n}\nb\nz\nagent\n");
	run(fixture, "echo later >>$R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "tail -n 6 a; cat z", "c\na\na\n}\nb\nlater\nz\n");
}

static void test_a_conflict_is_parked_once_while_something_else_is_stuck(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo base >a; echo z >z");
	sync_once(fixture);
	run(fixture, "echo mine >a; echo agent >$R/a; echo agent >$R/z");
	int held = open(place_path(fixture->place, "z"), O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(held >= 0);
	sync_once(fixture);
	close(held);
	assert_int_equal(fixture->result.conflict_count, 2);
	struct error err;
	struct list list;
	assert_true(conflicts_list(&fixture->place->store, &list, &err));
	assert_non_null(conflicts_find(&list, "a"));
	assert_non_null(conflicts_find(&list, "z"));
	conflicts_finish(&list);
	expect(fixture, "ls $P/* | wc -l", "2\n");
}

/* Permissions do not stop root, so a file that nobody may change takes their place. */
static void test_a_file_that_may_not_be_changed_stays_and_goes_back(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; echo 1 > d/a; echo 1 > d/b; echo 1 > c");
	sync_once(fixture);
	char *answer = ask(fixture, "chattr +i d/a d/b 2>&1 && echo yes || true");
	bool can = strcmp(answer, "yes\n") == 0;
	free(answer);
	if (!can) {
		skip(); // the file system has no such flag, or we are not root
	}
	run(fixture, "rm $R/d/a; echo 2 > $R/d/b; echo 2 > $R/c");
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	run(fixture, "chattr -i d/a d/b");
	assert_true(fixture->is_ok);
	assert_int_equal(fixture->result.conflict_count, 2);
	expect(fixture, "cat d/a d/b c; cat $P/*", "1\n1\n2\n2\n");
	expect_same(fixture);
}

/* A sync was cut off in these folders, and no file in them can be removed. */
static void leave_remains(struct fixture *fixture, const char *const *folders)
{
	struct place *place = fixture->place;
	struct journal journal;
	struct error err;
	journal_init(&journal, &place->store, place->root);
	for (; *folders; folders++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/.acp-broker-1.new.tmp", *folders);
		assert_int_equal(mkdir(place_path(place, *folders), 0755), 0);
		place_write(place, path, "x");
		assert_int_equal(chmod(place_path(place, *folders), 0555), 0);
		assert_true(journal_note(&journal, *folders, &err));
	}
	journal_finish(&journal);
	run(fixture, "echo a > a");
	if (geteuid() == 0) {
		run(fixture, "chown -R 65534:65534 \"$PLACE\"");
		assert_int_equal(seteuid(65534), 0);
	}
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_int_equal(seteuid(getuid()), 0);
	run(fixture, "chmod -R u+w .");
	if (!fixture->is_ok) {
		fail_msg("%s", fixture->err.text);
	}
}

static void test_what_cannot_be_removed_is_told_with_its_name_quoted(void **state)
{
	struct fixture *fixture = *state;
	leave_remains(fixture, (const char *const[]){"d\x1b[2J\nall is well", NULL});
	assert_names(fixture->note, "Permission denied | tries again: \"/");
	assert_non_null(strstr(fixture->note, "/d\\033[2J\\nall is well/.acp-broker-1.new.tmp\""));
	assert_null(strchr(fixture->note, '\x1b'));
	assert_null(strchr(fixture->note, '\n'));
}

static void fill_name(char name[NAME_MAX], char first, size_t count)
{
	memset(name, 0, NAME_MAX);
	memset(name, first, count);
	while (strlen(name) < NAME_MAX - 4) {
		memcpy(name + strlen(name), "\xe2\x82\xac", 4);
	}
}

/* Characters of three bytes: only one of three places to cut is between two characters. */
static void test_a_note_that_is_too_long_is_cut_between_characters(void **state)
{
	struct fixture *fixture = *state;
	char a[NAME_MAX];
	char b[NAME_MAX];
	for (size_t i = 0; i < 3; i++) {
		fill_name(a, (char)('1' + i), 1);
		fill_name(b, 'x', i + 1);
		leave_remains(fixture, (const char *const[]){a, b, NULL});
		size_t length = strlen(fixture->note);
		assert_true(length > 500 && length < 512);
		assert_int_equal(utf8_whole_length(span_of(fixture->note)), length);
	}
}

static void test_a_base_that_cannot_be_read_is_named_and_can_be_done_without(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = {
		"bases/runtime", "deliveries/runtime", "merges/runtime"};
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char script[128];
		snprintf(script, sizeof(script),
			"cd ../state/store/refs/acp-broker; mkdir -p deliveries merges; echo "
			"rubbish >%s",
			names[i]);
		run(fixture, script);
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
		ev_run(fixture->loop, 0);
		assert_false(fixture->is_ok);
		assert_non_null(strstr(fixture->err.text, names[i]));
		assert_non_null(strstr(fixture->err.text, "holds no id"));
		assert_non_null(
			strstr(fixture->err.text, "remove refs/acp-broker/bases/runtime, "
						  "refs/acp-broker/deliveries/runtime and "
						  "refs/acp-broker/merges/runtime in that store"));
		run(fixture, "rm $R/a; cd ../state/store/refs/acp-broker; "
			     "rm -f bases/runtime deliveries/runtime merges/runtime");
		sync_once(fixture);
		expect(fixture, "ls $R; ls", "a\nb\na\nb\n");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_a_question_changes_nothing),
		WORKSPACE_TEST(test_a_yes_is_followed_and_can_be_gone_back_on),
		WORKSPACE_TEST(test_a_yes_is_about_what_was_asked_alone),
		WORKSPACE_TEST(test_an_ignored_file_in_the_way_is_a_conflict_once),
		WORKSPACE_TEST(test_a_conflict_is_parked_once_while_something_else_is_stuck),
		WORKSPACE_TEST(test_what_was_merged_is_not_merged_again_while_something_is_stuck),
		WORKSPACE_TEST(test_what_is_stuck_is_no_part_of_the_base_until_both_sides_agree),
		WORKSPACE_TEST(test_folders_and_files_in_each_others_way_are_conflicts),
		WORKSPACE_TEST(test_a_file_that_may_not_be_changed_stays_and_goes_back),
		WORKSPACE_TEST(test_what_cannot_be_removed_is_told_with_its_name_quoted),
		WORKSPACE_TEST(test_a_note_that_is_too_long_is_cut_between_characters),
		WORKSPACE_TEST(test_a_base_that_cannot_be_read_is_named_and_can_be_done_without),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
