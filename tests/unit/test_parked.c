/* SPDX-License-Identifier: MIT */
#include "sync/parked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/tree_fixture.h"

static struct parked_place place_of(struct place *place)
{
	return (struct parked_place){&place->store, "20260131T101502-3f2a91/000001", "src/main.c"};
}

static struct store_entry entry_of(struct place *place, const char *content, enum entry_mode mode)
{
	struct error err;
	struct store_entry entry = {.mode = mode};
	assert_true(store_put_bytes(&place->store, span_of(content), &entry.id, &err));
	return entry;
}

static void expect(const struct parked_place *parked, const char *script, const char *expected)
{
	char command[512];
	char output[256] = "";
	snprintf(command, sizeof(command), "cd '%s/parked' && %s", parked->store->path, script);
	FILE *shell = popen(command, "r");
	assert_non_null(shell);
	size_t len = fread(output, 1, sizeof(output) - 1, shell);
	output[len] = '\0';
	pclose(shell);
	assert_string_equal(output, expected);
}

static void test_a_version_keeps_the_name_and_nothing_else(void **state)
{
	struct error err;
	struct parked_place parked = place_of(*state);
	struct store_entry entry = entry_of(*state, "theirs", ENTRY_EXECUTABLE);
	assert_true(parked_write(&parked, PARKED_RUNTIME, &entry, &err));
	char *file = parked_file(&parked, PARKED_RUNTIME);
	const char *name = file + strlen(parked.store->path);
	assert_string_equal(name, "/parked/20260131T101502-3f2a91/000001/runtime/main.c");
	expect(&parked, "cat */*/runtime/main.c; stat -c ' %a' */*/runtime/main.c", "theirs 600\n");
	free(file);
}

/* A user who opens the file reads what the agent wrote, not the file that the link leads to. */
static void test_a_link_is_a_file_with_its_target(void **state)
{
	struct error err;
	struct parked_place parked = place_of(*state);
	struct store_entry entry = entry_of(*state, "/etc/passwd", ENTRY_LINK);
	assert_true(parked_write(&parked, PARKED_RUNTIME, &entry, &err));
	expect(&parked, "test -f */*/*/main.c && ! test -L */*/*/main.c && cat */*/*/main.c",
		"/etc/passwd");
	parked_remove(&parked, PARKED_RUNTIME, &entry);
	expect(&parked, "ls", "");
}

static void test_what_the_user_has_edited_is_neither_replaced_nor_removed(void **state)
{
	struct error err;
	struct parked_place parked = place_of(*state);
	struct store_entry entry = entry_of(*state, "theirs", ENTRY_FILE);
	struct store_entry read;
	assert_true(parked_write_once(&parked, PARKED_MERGED, &entry, &err));
	expect(&parked, "file=$(echo */*/merged/main.c); printf edited >$file", "");
	assert_true(parked_write_once(&parked, PARKED_MERGED, &entry, &err));
	parked_remove(&parked, PARKED_MERGED, &entry);
	expect(&parked, "cat */*/merged/main.c", "edited");
	assert_true(parked_read(&parked, PARKED_MERGED, &read, &err));
	entry = entry_of(*state, "edited", ENTRY_FILE);
	assert_true(store_entry_equal(&read, &entry));
}

static bool is_open(void *data, const char *id)
{
	return strcmp(id, data) == 0;
}

static void test_what_is_old_and_of_no_conflict_goes(void **state)
{
	struct error err;
	struct parked_place old = place_of(*state);
	struct parked_place open = old;
	struct parked_place young = old;
	struct store_entry entry = entry_of(*state, "x", ENTRY_FILE);
	open.id = "20260131T101502-3f2a91/000002";
	young.id = "20260131T101502-3f2a91/000003";
	assert_true(parked_write(&old, PARKED_LOCAL, &entry, &err));
	assert_true(parked_write(&open, PARKED_LOCAL, &entry, &err));
	assert_true(parked_write(&young, PARKED_LOCAL, &entry, &err));
	expect(&old, "touch -d @1000 */00000[12]/local; touch -d @3000 */000003/local", "");
	parked_sweep(old.store, &(struct parked_sweeping){2000, is_open, (char *)open.id});
	expect(&old, "ls *", "000002\n000003\n");
}

static void test_only_the_ending_makes_a_name_a_parked_one(void **state)
{
	assert_true(parked_is_name(SPAN_LITERAL(".acp-conflict")));
	assert_false(parked_is_name(SPAN_LITERAL("a.acp-conflict.c")));
	assert_false(parked_is_name(SPAN_LITERAL("acp-conflict")));
	assert_false(parked_is_name(SPAN_LITERAL("")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_version_keeps_the_name_and_nothing_else),
		TEST(test_a_link_is_a_file_with_its_target),
		TEST(test_what_the_user_has_edited_is_neither_replaced_nor_removed),
		TEST(test_what_is_old_and_of_no_conflict_goes),
		cmocka_unit_test(test_only_the_ending_makes_a_name_a_parked_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
