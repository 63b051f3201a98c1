/* SPDX-License-Identifier: MIT */
#include "broker/ledger/sync_text.h"
#include "tests/support/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char text[SYNC_TEXT_MAX];
static struct list conflicts;

static struct sync_result quiet(void)
{
	list_init(&conflicts);
	return (struct sync_result){
		.reason = SYNC_REASON_TURN, .conflicts = &conflicts, .note = "", .duration_ms = 12};
}

static void test_a_sync_without_news_is_for_the_log(void **state)
{
	struct sync_result result = quiet();
	result.to_local = (struct merge_counts){.added = 1, .changed = 1, .deleted = 1};
	result.to_runtime.changed = 1;
	assert_false(sync_text_write(text, "/w", &result, NULL));
	result.received_bytes = 812;
	result.sent_bytes = 1;
	assert_false(sync_text_write(text, "/w", &result, NULL));
	assert_string_equal(text,
		"/w: synced (turn): 3 files from the agent (1 deleted), 1 to it, 812 bytes "
		"received, 1 sent, 12 ms");
}

static void test_every_number_of_a_sync_is_told(void **state)
{
	struct sync_result result = quiet();
	static char path[] = "c";
	struct conflict conflict = {.path = path};
	list_append(&conflicts, &conflict.link);
	result.reason = SYNC_REASON_CRASH;
	result.conflict_count = 1;
	result.to_local.changed = 1;
	result.to_runtime = (struct merge_counts){.added = 10, .deleted = 7};
	result.received_bytes = 1;
	result.sent_bytes = 1ULL << 40;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_int_equal(strncmp(text, "/w: ", 4), 0);
	assert_names(text, "(crash) | 1 file | 17 to it (7 deleted) | 1 byte received | "
			   "1099511627776 sent | 1 conflict | 12 ms | both sides");
}

static void test_an_error_is_told_as_it_is(void **state)
{
	struct error err;
	error_set(&err, ERROR_SYSTEM, "syncing /w: no space left");
	assert_true(sync_text_write(text, "/w", NULL, &err));
	assert_string_equal(text, "syncing /w: no space left");
}

/* The agent chooses the names of its files, so no name may end the line or hide a part of it. */
static void test_a_conflict_with_a_hostile_name_is_quoted(void **state)
{
	struct sync_result result = quiet();
	static char path[] = "a\n\x1b[2J\xe2\x80\xae";
	struct conflict conflict = {.path = path};
	list_append(&conflicts, &conflict.link);
	result.conflict_count = 1;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_non_null(strstr(text, " \"a\\n\\033[2J\\342\\200\\256\""));
}

static void test_conflicts_are_named_up_to_a_few(void **state)
{
	struct conflict found[SYNC_TEXT_NAMED + 2];
	struct sync_result result = quiet();
	static char paths[SYNC_TEXT_NAMED + 2][8];
	for (int i = 0; i < SYNC_TEXT_NAMED + 2; i++) {
		paths[i][0] = 'f';
		paths[i][1] = (char)('0' + i);
		found[i] = (struct conflict){.path = paths[i]};
		list_append(&conflicts, &found[i].link);
		result.conflict_count++;
	}
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_non_null(strstr(text, " f0, f1, f2, f3, f4 and 2 more"));
	assert_null(strstr(text, "f5"));
}

static void test_what_is_held_is_named_when_it_is_news_and_at_the_end(void **state)
{
	struct sync_result result = quiet();
	struct list held;
	static char path[] = "a\033[2J/.envrc";
	struct held_change one = {.path = path};
	list_init(&held);
	list_append(&held, &one.link);
	result.held = &held;
	result.held_count = 1;
	assert_false(sync_text_write(text, "/w", &result, NULL));
	assert_null(strstr(text, ".envrc"));
	result.is_held_news = true;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_names(text, "guard-paths | \"a\\033[2J/.envrc\"");
	assert_null(strstr(text, "conflicts list"));
	result.is_held_news = false;
	result.reason = SYNC_REASON_STOP;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_names(text, ".envrc | acp-broker conflicts list");
}

static void test_what_was_kept_and_what_is_to_be_known_is_news(void **state)
{
	struct sync_result result = quiet();
	result.kept = 250;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_non_null(strstr(text, "deleted 250 of your files"));
	result = quiet();
	result.note = "the index is split";
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_non_null(strstr(text, "; the index is split"));
}

static void test_what_is_stuck_is_told_apart_and_why(void **state)
{
	struct sync_result result = quiet();
	static char both[] = "both";
	static char stuck[] = "stuck";
	static char file[] = "/state/both";
	struct conflict found[2] = {
		{.path = both, .file = file}, {.path = stuck, .why = "Permission denied"}};
	result.conflict_count = 2;
	list_append(&conflicts, &found[0].link);
	list_append(&conflicts, &found[1].link);
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_non_null(strstr(text, "both (the agent's: /state/both) (acp-broker"));
	assert_non_null(strstr(text, "is kept: stuck (Permission denied) (acp-broker"));
}

static void test_deletions_that_were_followed_are_news(void **state)
{
	struct sync_result result = quiet();
	result.followed = 250;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_names(text, "250 of your files | deleted");
}

static void test_deletions_below_the_guard_are_news_with_what_brings_them_back(void **state)
{
	struct sync_result result = quiet();
	result.checkpoint = 7;
	result.gone = SYNC_DELETIONS_MIN - 1;
	assert_false(sync_text_write(text, "/w", &result, NULL));
	result.gone = 199;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_names(text, "199 of your files | acp-broker checkpoints undelete 6");
	result.followed = 199; // that has a text of its own
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_null(strstr(text, "undelete"));
}

static void test_a_text_never_outgrows_its_place(void **state)
{
	static char path[SYNC_TEXT_MAX * 2];
	struct conflict conflict = {.path = path};
	struct sync_result result = quiet();
	memset(path, 'x', sizeof(path) - 1);
	list_append(&conflicts, &conflict.link);
	result.conflict_count = 1;
	assert_true(sync_text_write(text, "/w", &result, NULL));
	assert_int_equal(strlen(text), SYNC_TEXT_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sync_without_news_is_for_the_log),
		cmocka_unit_test(test_every_number_of_a_sync_is_told),
		cmocka_unit_test(test_an_error_is_told_as_it_is),
		cmocka_unit_test(test_a_conflict_with_a_hostile_name_is_quoted),
		cmocka_unit_test(test_conflicts_are_named_up_to_a_few),
		cmocka_unit_test(test_what_is_held_is_named_when_it_is_news_and_at_the_end),
		cmocka_unit_test(test_what_was_kept_and_what_is_to_be_known_is_news),
		cmocka_unit_test(test_what_is_stuck_is_told_apart_and_why),
		cmocka_unit_test(test_deletions_that_were_followed_are_news),
		cmocka_unit_test(
			test_deletions_below_the_guard_are_news_with_what_brings_them_back),
		cmocka_unit_test(test_a_text_never_outgrows_its_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
