/* SPDX-License-Identifier: MIT */
#include "sync/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/text.h"
#include "sync/id.h"
#include "tests/unit/store_fixture.h"

/* A tree with one file that has this content. */
static git_oid tree_of(struct store *store, const char *name, const char *content)
{
	struct error err;
	struct buf raw;
	git_oid blob;
	git_oid tree;
	assert_true(store_put_bytes(store, span_of(content), &blob, &err));
	buf_init(&raw, 4096);
	assert_true(buf_append_format(&raw, &err, "100644 %s", name));
	assert_true(buf_append(&raw, (struct span){"", 1}, &err));
	assert_true(buf_append(&raw, (struct span){(char *)blob.id, sizeof(blob.id)}, &err));
	assert_int_equal(store->git->odb_write(
				 &tree, store->odb, buf_span(&raw).data, raw.len, GIT_OBJECT_TREE),
		0);
	buf_finish(&raw);
	return tree;
}

static unsigned add(struct store *store, const char *content, const char *reason)
{
	struct error err;
	unsigned number;
	git_oid tree = tree_of(store, "file", content);
	if (!checkpoint_add(store, &tree, reason, "s-1", &number, &err)) {
		fail_msg("%s", err.text);
	}
	return number;
}

/*
 * Adds a checkpoint as the sync before or after a turn does; returns the number of the checkpoint.
 */
static unsigned add_turn(struct store *store, const char *content, const char *session,
	const struct checkpoint_turn *turn)
{
	struct error err;
	unsigned number;
	git_oid tree = tree_of(store, "file", content);
	if (!checkpoint_add_turn(store, &tree, turn, session, &number, &err)) {
		fail_msg("%s", err.text);
	}
	return number;
}

static void test_checkpoints_are_numbered_and_listed_in_order(void **state)
{
	struct place *place = *state;
	struct error err;
	struct checkpoint *list;
	struct checkpoint_damage damage;
	size_t count;
	assert_true(checkpoint_list(&place->store, &list, &count, &damage, &err));
	assert_int_equal(count, 0);
	free(list);
	assert_int_equal(add(&place->store, "one\n", "start"), 1);
	assert_int_equal(add(&place->store, "two\n", "turn"), 2);
	assert_true(checkpoint_list(&place->store, &list, &count, &damage, &err));
	assert_int_equal(count, 2);
	assert_int_equal(list[0].number, 1);
	assert_string_equal(list[0].reason, "start");
	assert_string_equal(list[1].reason, "turn");
	assert_string_equal(list[1].session, "s-1");
	assert_true(list[1].time > 1600000000);
	git_oid tree = tree_of(&place->store, "file", "two\n");
	assert_true(id_equal(&list[1].tree, &tree));
	free(list);
}

static void test_an_unchanged_tree_makes_no_further_one(void **state)
{
	struct place *place = *state;
	assert_int_equal(add(&place->store, "one\n", "start"), 1);
	assert_int_equal(add(&place->store, "one\n", "turn"), 1);
	assert_int_equal(add(&place->store, "two\n", "turn"), 2);
	assert_int_equal(add(&place->store, "one\n", "turn"), 3);
}

struct turn_case {
	const char *content, *session;
	struct checkpoint_turn turn;
	unsigned number;    // of the checkpoint
	const char *reason; // of that one
	unsigned counted;   // its turn
};

static const struct turn_case turn_cases[] = {
	{"0", "s-1", {true, 1, NULL}, 1, "before turn 1", 0},
	{"1", "s-1", {false, 1, "Fix it"}, 2, "turn 1: Fix it", 1},
	{"1", "s-1", {true, 2, NULL}, 2, "turn 1: Fix it", 1}, // no edit of the user's between them
	{"1", "s-1", {false, 2, ""}, 3, "turn 2", 2},          // a turn that has changed nothing
	{"2", "s-2", {true, 1, NULL}, 4, "before turn 1", 0},
	{"2", "s-2", {false, 1, "Turn: 9"}, 5, "turn 1: Turn: 9", 1},
	{"3", "s-1", {true, 1, NULL}, 6, "before turn 3", 0}, // another broker has loaded it
	{"3", "s-1", {false, 1, NULL}, 7, "turn 3", 3},
	{"4", "s-1", {false, 9, NULL}, 8, "turn 9", 9}, // the syncs of some turns have failed
	{"4", "s-\nTurn: 7", {false, 1, NULL}, 9, "turn 1", 1},
};

static void test_each_turn_has_one_that_is_numbered_within_its_session(void **state)
{
	struct place *place = *state;
	for (size_t i = 0; i < ARRAY_LENGTH(turn_cases); i++) {
		const struct turn_case *one = &turn_cases[i];
		struct checkpoint found;
		struct error err;
		char which[16];
		unsigned number = add_turn(&place->store, one->content, one->session, &one->turn);
		text_whole(which, sizeof(which), "%u", number);
		assert_int_equal(number, one->number);
		assert_true(checkpoint_find(&place->store, which, &found, &err));
		assert_string_equal(found.reason, one->reason);
		assert_int_equal(found.turn, one->counted);
	}
	add(&place->store, "5", "turn 10: mine");
	struct checkpoint found;
	struct error err;
	assert_true(checkpoint_find(&place->store, "-1", &found, &err));
	assert_int_equal(found.turn, 0);
}

static void test_texts_cannot_forge_others(void **state)
{
	struct place *place = *state;
	struct error err;
	struct checkpoint found;
	unsigned number;
	git_oid tree = tree_of(&place->store, "file", "x");
	assert_true(checkpoint_add(
		&place->store, &tree, "mine\nSession: other", "s\nSession: x", &number, &err));
	assert_true(checkpoint_find(&place->store, "1", &found, &err));
	assert_string_equal(found.reason, "mine Session: other");
	assert_non_null(strstr(found.session, "s Session: x"));
}

static void expect_missing(
	struct place *place, const char *which, enum error_code code, const char *words)
{
	struct error err;
	struct checkpoint found;
	assert_false(checkpoint_find(&place->store, which, &found, &err));
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.text, words));
}

static void test_checkpoints_are_found_by_number_and_from_the_newest(void **state)
{
	struct place *place = *state;
	struct error err;
	struct checkpoint found;
	expect_missing(place, "-1", ERROR_NOT_FOUND, "only 0");
	add(&place->store, "one\n", "start");
	add(&place->store, "two\n", "turn");
	assert_true(checkpoint_find(&place->store, "1", &found, &err));
	assert_int_equal(found.number, 1);
	assert_true(checkpoint_find(&place->store, "-1", &found, &err));
	assert_int_equal(found.number, 2);
	assert_true(checkpoint_find(&place->store, "-2", &found, &err));
	assert_int_equal(found.number, 1);
	expect_missing(place, "-3", ERROR_NOT_FOUND, "only 2");
	expect_missing(place, "3", ERROR_NOT_FOUND, "no checkpoint 3");
	expect_missing(place, "0", ERROR_CONFIG, "\"0\"");
	expect_missing(place, "../../HEAD", ERROR_CONFIG, "expected its number");
	expect_missing(place, "999999999999999999999", ERROR_CONFIG, "expected its number");
}

static bool collect(void *data, struct span text)
{
	return buf_append(data, text, NULL);
}

static void test_a_diff_is_as_gits(void **state)
{
	struct place *place = *state;
	struct error err;
	struct buf text;
	git_oid from = tree_of(&place->store, "file", "one\ntwo\n");
	git_oid to = tree_of(&place->store, "file", "one\n2\n");
	buf_init(&text, 1 << 20);
	assert_true(checkpoint_diff(&place->store, &from, &to, CHECKPOINT_PATCH,
		&(struct checkpoint_reader){collect, &text}, &err));
	assert_true(buf_append(&text, (struct span){"", 1}, &err));
	const char *patch = buf_span(&text).data;
	assert_non_null(strstr(patch, "diff --git a/file b/file\n"));
	assert_non_null(strstr(patch, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
	buf_clear(&text);
	assert_true(checkpoint_diff(&place->store, &from, &to, CHECKPOINT_STAT,
		&(struct checkpoint_reader){collect, &text}, &err));
	assert_true(buf_append(&text, (struct span){"", 1}, &err));
	assert_non_null(
		strstr(buf_span(&text).data, "1 file changed, 1 insertion(+), 1 deletion(-)"));
	buf_finish(&text);
}

static void expect_stat(
	struct place *place, const git_oid *from, const git_oid *to, const char *expected)
{
	struct error err;
	struct buf text;
	buf_init(&text, 1 << 20);
	assert_true(checkpoint_diff(&place->store, from, to, CHECKPOINT_STAT,
		&(struct checkpoint_reader){collect, &text}, &err));
	assert_true(buf_append(&text, (struct span){"", 1}, &err));
	assert_string_equal(buf_span(&text).data, expected);
	buf_finish(&text);
}

static void test_a_stat_quotes_names_and_counts_lines(void **state)
{
	struct place *place = *state;
	git_oid from = tree_of(&place->store, "a\nb", "one\ntwo\n");
	git_oid to = tree_of(&place->store, "a\nb", "one\n2\n3\n");
	expect_stat(place, &from, &to,
		" \"a\\nb\" | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n");
	expect_stat(place, &store_empty_tree, &to,
		" \"a\\nb\" | 3 +++\n 1 file changed, 3 insertions(+)\n");
	expect_stat(place, &to, &store_empty_tree,
		" \"a\\nb\" | 3 ---\n 1 file changed, 3 deletions(-)\n");
	expect_stat(place, &to, &to, "");
}

static void test_changed_files_are_counted(void **state)
{
	struct place *place = *state;
	struct error err;
	size_t files;
	git_oid one = tree_of(&place->store, "a", "one\n");
	git_oid other = tree_of(&place->store, "b", "one\n");
	assert_true(checkpoint_count_changed(&place->store, &one, &one, &files, &err));
	assert_int_equal(files, 0);
	assert_true(checkpoint_count_changed(&place->store, &one, &other, &files, &err));
	assert_int_equal(files, 2);
	git_oid missing = {.id = {1}};
	assert_false(checkpoint_count_changed(&place->store, &one, &missing, &files, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_int_equal(files, 2);
}

static bool refuse(void *data, struct span text)
{
	(*(int *)data)++;
	return false;
}

static void test_a_reader_that_leaves_ends_the_diff(void **state)
{
	struct place *place = *state;
	struct error err;
	int calls = 0;
	git_oid from = tree_of(&place->store, "file", "one\ntwo\n");
	git_oid to = tree_of(&place->store, "file", "one\n2\n");
	assert_false(checkpoint_diff(&place->store, &from, &to, CHECKPOINT_PATCH,
		&(struct checkpoint_reader){refuse, &calls}, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_int_equal(calls, 1);
}

static void test_the_oldest_are_forgotten_but_never_the_newest(void **state)
{
	struct place *place = *state;
	struct error err;
	struct checkpoint *list;
	struct checkpoint_damage damage;
	size_t count;
	struct checkpoint_forgotten forgotten;
	struct checkpoint_limits limits = {3, 3600};
	for (int i = 0; i < 5; i++) {
		char content[8];
		snprintf(content, sizeof(content), "%d", i);
		add(&place->store, content, "turn");
	}
	long long now = (long long)time(NULL);
	assert_true(checkpoint_forget(&place->store, &limits, now, &forgotten, &damage, &err));
	assert_int_equal(forgotten.count, 2);
	assert_in_range(forgotten.before, now - 3660, now - 3500);
	limits.count_max = 1;
	assert_true(checkpoint_forget(&place->store, &limits, now, &forgotten, &damage, &err));
	assert_int_equal(forgotten.count, 2);
	assert_true(checkpoint_list(&place->store, &list, &count, &damage, &err));
	assert_int_equal(count, 1);
	assert_int_equal(list[0].number, 5);
	free(list);
	assert_int_equal(add(&place->store, "next", "turn"), 6);
}

/* The numbers of those that are left, as "1 4 ". */
static void expect_left(struct place *place, size_t count_max, const char *expected)
{
	struct error err;
	struct checkpoint *list;
	struct checkpoint_damage damage;
	struct checkpoint_forgotten forgotten;
	struct checkpoint_limits limits = {count_max, 0};
	size_t count;
	char left[128] = "";
	assert_true(checkpoint_forget(&place->store, &limits, 0, &forgotten, &damage, &err));
	assert_true(checkpoint_list(&place->store, &list, &count, &damage, &err));
	for (size_t i = 0; i < count; i++) {
		text_append(left, sizeof(left), "%u ", list[i].number);
	}
	free(list);
	assert_string_equal(left, expected);
}

static void test_turns_that_change_nothing_push_no_older_state_out(void **state)
{
	struct place *place = *state;
	struct store *store = &place->store;
	const struct checkpoint_turn turn = {false, 1, "go on"};
	add(store, "one", "start");
	add_turn(store, "two", "s-1", &turn);
	add_turn(store, "two", "s-1", &turn);
	add_turn(store, "two", "s-2", &turn);
	add_turn(store, "three", "s-1", &turn);
	add_turn(store, "three", "s-1", &turn);
	expect_left(place, 6, "1 2 3 4 5 6 ");
	expect_left(place, 5, "1 2 4 5 6 "); // the oldest of those that changed nothing
	expect_left(place, 4, "1 2 5 6 ");
	expect_left(place, 3, "1 2 6 "); // never the newest, whose state is the same
	add_turn(store, "three", "s-1", &turn);
	expect_left(place, 3, "1 2 7 ");
	add_turn(store, "three", "s-1", &turn);
	expect_left(place, 3, "1 2 8 ");
	expect_left(place, 2, "2 8 ");
	add_turn(store, "one", "s-1", &turn); // a state again
	expect_left(place, 2, "8 9 ");
	expect_left(place, 1, "9 ");
}

static void test_a_clock_that_jumps_expires_nothing(void **state)
{
	struct place *place = *state;
	struct error err;
	struct checkpoint_damage damage;
	struct checkpoint_forgotten forgotten;
	struct checkpoint_limits limits = {100, 3600};
	for (int i = 0; i < 5; i++) {
		char content[8];
		snprintf(content, sizeof(content), "%d", i);
		add(&place->store, content, "turn");
	}
	long long now = (long long)time(NULL);
	static const long long jumps[] = {10LL * 365 * 86400, -10LL * 365 * 86400};
	for (size_t i = 0; i < ARRAY_LENGTH(jumps); i++) {
		assert_true(checkpoint_forget(
			&place->store, &limits, now + jumps[i], &forgotten, &damage, &err));
		assert_int_equal(forgotten.count, 0);
		assert_true(forgotten.before < now - 3000); // nor the agent's commits
	}
}

static void test_what_is_old_is_older_by_the_steps_between(void **state)
{
	static const struct {
		long long times[12];
		long long now;
		size_t count, old;
		long long before;
	} cases[] = {
		{{0}, 1000, 0, 0, 900},
		{{1000}, 1000, 1, 0, 900},
		{{890, 899, 901, 910, 920, 930, 940, 950, 960, 970, 980, 990}, 1000, 12, 2, 901},
		/* The clock jumps ahead, checkpoints are made, and it jumps back. */
		{{980, 990, 9000, 9005, 1000}, 1010, 5, 0, 916},
		{{10, 20, 30}, 5000, 3, 0, -59},
		/* Long absences: each counts as a tenth of the age. */
		{{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200}, 1300, 12, 3, 400},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct checkpoint list[12] = {0};
		for (size_t j = 0; j < cases[i].count; j++) {
			list[j].time = cases[i].times[j];
		}
		struct checkpoint_horizon horizon =
			checkpoint_horizon(list, cases[i].count, 100, cases[i].now);
		assert_int_equal(horizon.old, cases[i].old);
		assert_int_equal(horizon.before, cases[i].before);
	}
}

/* ---- damage ---- */

static void expect_damage(struct place *place, size_t readable, unsigned first, const char *why)
{
	struct error err;
	struct checkpoint *list;
	struct checkpoint_damage damage;
	char text[CHECKPOINT_DAMAGE_MAX];
	char name[32];
	size_t count;
	assert_true(checkpoint_list(&place->store, &list, &count, &damage, &err));
	free(list);
	assert_int_equal(count, readable);
	assert_int_equal(damage.first, first);
	assert_non_null(strstr(checkpoint_damage_text(&damage, text), why));
	snprintf(name, sizeof(name), "checkpoint %u", first);
	assert_non_null(strstr(text, name));
	expect_missing(place, first == 2 ? "2" : "3", ERROR_SYSTEM, why);
}

static void test_one_that_is_damaged_is_in_no_ones_way_and_stays(void **state)
{
	struct place *place = *state;
	struct checkpoint_limits limits = {1, 0};
	struct checkpoint_damage damage;
	struct error err;
	struct checkpoint_forgotten forgotten;
	add(&place->store, "one\n", "start");
	add(&place->store, "two\n", "turn");
	add(&place->store, "three\n", "turn");
	place_run(
		place, "echo rubbish >\"$PLACE/state/store\"/refs/acp-broker/checkpoints/00000002");
	expect_damage(place, 2, 2, "holds no id");
	assert_int_equal(add(&place->store, "four\n", "turn"), 4);
	assert_true(checkpoint_forget(&place->store, &limits, 0, &forgotten, &damage, &err));
	assert_int_equal(forgotten.count, 2); // 1 and 3
	expect_damage(place, 1, 2, "holds no id");
}

static void test_a_newest_whose_object_is_gone_does_not_hold_up_the_next(void **state)
{
	struct place *place = *state;
	struct error err;
	add(&place->store, "one\n", "start");
	add(&place->store, "two\n", "turn");
	add(&place->store, "three\n", "turn");
	place_run(place, "ref=\"$PLACE/state/store\"/refs/acp-broker/checkpoints/00000003; "
			 "id=$(cat \"$ref\"); "
			 "rest=${id#??}; rm -f \"$PLACE/state/store/objects/${id%$rest}/$rest\"");
	store_close(&place->store); // it remembers the object
	assert_true(store_open(&place->store, place->store_path, 0, &err));
	assert_int_equal(add(&place->store, "four\n", "turn"), 4);
	expect_damage(place, 3, 3, "not found");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_checkpoints_are_numbered_and_listed_in_order),
		TEST(test_an_unchanged_tree_makes_no_further_one),
		TEST(test_each_turn_has_one_that_is_numbered_within_its_session),
		TEST(test_texts_cannot_forge_others),
		TEST(test_checkpoints_are_found_by_number_and_from_the_newest),
		TEST(test_a_diff_is_as_gits),
		TEST(test_a_stat_quotes_names_and_counts_lines),
		TEST(test_changed_files_are_counted),
		TEST(test_a_reader_that_leaves_ends_the_diff),
		TEST(test_the_oldest_are_forgotten_but_never_the_newest),
		TEST(test_turns_that_change_nothing_push_no_older_state_out),
		TEST(test_a_clock_that_jumps_expires_nothing),
		TEST(test_what_is_old_is_older_by_the_steps_between),
		TEST(test_one_that_is_damaged_is_in_no_ones_way_and_stays),
		TEST(test_a_newest_whose_object_is_gone_does_not_hold_up_the_next),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
