/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/words.h"
#include "sync/rsync/reach.h"
#include "tests/unit/store_fixture.h"

#define WORDS(text) ((struct span){text "\0", sizeof(text)})

static bool read_in(
	struct reach *reach, const struct place *place, struct span words, const char *ignored)
{
	struct rules rules;
	int mirror ATTR_CLEANUP(fd_cleanup) = open(place->root, O_PATH | O_DIRECTORY);
	assert_true(mirror >= 0);
	rules_init(&rules);
	rules_add_ignore_file(&rules, "", span_of(ignored));
	bool is_read = reach_read(reach, words, &rules, mirror);
	rules_finish(&rules);
	return is_read;
}

static void assert_everything(const struct place *place, struct span words)
{
	struct reach reach;
	assert_false(read_in(&reach, place, words, ""));
}

static void assert_reach(
	const struct place *place, struct span words, const char *ignored, const char *folders)
{
	char text[512] = "";
	struct reach reach;
	assert_true(read_in(&reach, place, words, ignored));
	for (size_t i = 0; i < reach.count; i++) {
		snprintf(
			text + strlen(text), sizeof(text) - strlen(text), "[%s]", reach.folders[i]);
	}
	assert_string_equal(text, folders);
	reach_finish(&reach);
}

static void test_a_file_is_reached_by_its_folders(void **state)
{
	const struct place *place = *state;
	assert_reach(place, WORDS("differs"), "", "");
	assert_reach(place, WORDS("differs\0./a"), "", "[]");
	assert_reach(
		place, WORDS("differs\0./d/e/a\0./d/e/b\0./d/x\0./c/-\n f"), "", "[][c][d][d/e]");
	assert_reach(place,
		WORDS("differs\0"
		      "0./d\0"
		      "1./d/e"),
		"", "[][d]");
	assert_reach(place,
		WORDS("differs\0"
		      "0."),
		"", "[]");
}

static void test_what_the_rules_leave_out_is_not_reached(void **state)
{
	const struct place *place = *state;
	static const char ignored[] = "node_modules\n/out/*\n";
	assert_reach(place, WORDS("differs\0./node_modules/a\0./d/node_modules/x/y"), ignored, "");
	assert_reach(place,
		WORDS("differs\0./out/o/f\0./d/f\0"
		      "0./out/o"),
		ignored, "[][d]");
}

static void test_where_a_folder_is_gone_everything_is_looked_at(void **state)
{
	const struct place *place = *state;
	place_run(*state, "mkdir -p d/e/deep d/f node_modules n; echo > d/file; ln -s / d/link");
	assert_everything(place, WORDS("differs\0"
				       "0./d\0"
				       "1./d/f"));
	assert_reach(place,
		WORDS("differs\0"
		      "0./d\0"
		      "1./d/f\0"
		      "1./d/e"),
		"", "[][d]");
	assert_reach(place,
		WORDS("differs\0"
		      "0.\0"
		      "1./d\0"
		      "1./n"),
		"node_modules", "[]");
	/* New paths, and a path that is not a folder in the mirror. */
	assert_reach(place,
		WORDS("differs\0"
		      "0./new\0"
		      "0./d/file\0"
		      "0./d/link"),
		"", "[][d][d/file][d/link][new]");
}

static void test_where_the_mirror_cannot_be_read_everything_is_looked_at(void **state)
{
	struct rules none;
	struct reach reach;
	rules_init(&none);
	assert_false(reach_read(&reach,
		WORDS("differs\0"
		      "0./d"),
		&none, -1));
	assert_everything(*state, WORDS("differs\0"
					"0./../state"));
}

static void test_what_cannot_be_told_so_is_not(void **state)
{
	static const struct span words[] = {{"", 0}, WORDS("many"), WORDS("differ"),
		WORDS("differs\0a"), WORDS("differs\0/etc/passwd"), WORDS("differs\0.//etc"),
		WORDS("differs\0"),
		WORDS("differs\0"
		      "1./a/b"),
		WORDS("differs\0"
		      "0./d\0"
		      "1/x"),
		WORDS("differs\0"
		      "2./a"),
		WORDS("differs\0./.gitignore"), WORDS("differs\0./d/.gitignore")};
	struct rules none;
	struct reach reach;
	rules_init(&none);
	for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
		assert_false(reach_read(&reach, words[i], &none, -1));
	}
	struct buf many;
	buf_init(&many, 1 << 20);
	assert_true(buf_append(&many, WORDS("differs"), NULL));
	for (int i = 0; i < REACH_FOLDERS_MAX; i++) {
		assert_true(buf_append_format(&many, NULL, "./%d/f%c", i, 0));
	}
	assert_false(reach_read(&reach, buf_span(&many), &none, -1));
	buf_clear(&many);
	assert_true(buf_append(&many, WORDS("differs"), NULL));
	for (int i = 0; i <= REACH_FOLDERS_MAX; i++) { // the same folder again and again
		assert_true(buf_append_format(&many, NULL, "0.%c", 0));
	}
	assert_everything(*state, buf_span(&many));
	buf_finish(&many);
}

static void test_the_rules_are_those_within_the_reach(void **state)
{
	struct rules rules, narrow;
	struct buf out;
	static const char *const folders[] = {"", "*", "d"};
	struct reach reach = {.folders = (char **)folders, .count = 3};
	rules_init(&rules);
	rules_init(&narrow);
	buf_init(&out, 1 << 16);
	rules_add(&rules, false, "*.o", false);
	reach_add_rules(&reach, &rules, &narrow);
	assert_true(rules_write(&narrow, &out, NULL));
	static const char expected[] = "+ /[*]/\0+ /d/\0- */\0- *.o";
	assert_int_equal(out.len, sizeof(expected));
	assert_memory_equal(buf_span(&out).data, expected, sizeof(expected));
	rules_finish(&rules);
	rules_finish(&narrow);
	buf_finish(&out);
}

#define REACH_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REACH_TEST(test_a_file_is_reached_by_its_folders),
		REACH_TEST(test_what_the_rules_leave_out_is_not_reached),
		REACH_TEST(test_where_a_folder_is_gone_everything_is_looked_at),
		REACH_TEST(test_where_the_mirror_cannot_be_read_everything_is_looked_at),
		REACH_TEST(test_what_cannot_be_told_so_is_not),
		cmocka_unit_test(test_the_rules_are_those_within_the_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
