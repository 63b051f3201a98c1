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

static struct reach read_in(int mirror, struct span words, const char *ignored)
{
	struct reach reach;
	struct rules rules;
	rules_init(&rules);
	rules_add_ignore_file(&rules, "", span_of(ignored));
	assert_true(reach_read(&reach, words, &rules, mirror));
	rules_finish(&rules);
	return reach;
}

static void assert_reach(int mirror, struct span words, const char *ignored, const char *folders)
{
	char text[512] = "";
	struct reach reach = read_in(mirror, words, ignored);
	for (size_t i = 0; i < reach.count; i++) {
		snprintf(
			text + strlen(text), sizeof(text) - strlen(text), "[%s]", reach.folders[i]);
	}
	for (char **gone = reach.gone; gone && *gone; gone++) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "-[%s]", *gone);
	}
	assert_string_equal(text, folders);
	reach_finish(&reach);
}

static void test_a_file_is_reached_by_its_folders(void **state)
{
	assert_reach(-1, WORDS("differs"), "", "");
	assert_reach(-1, WORDS("differs\0./a"), "", "[]");
	assert_reach(-1, WORDS("differs\0./d/e/a\0./d/e/b\0./d/x\0./c/-\n f"), "", "[][c][d][d/e]");
	assert_reach(-1,
		WORDS("differs\0"
		      "0./d\0"
		      "1./d/e"),
		"", "[][d]");
	assert_reach(-1,
		WORDS("differs\0"
		      "0."),
		"", "[]");
}

static void test_what_the_rules_leave_out_is_not_reached(void **state)
{
	static const char ignored[] = "node_modules\n/out/*\n";
	assert_reach(-1, WORDS("differs\0./node_modules/a\0./d/node_modules/x/y"), ignored, "");
	assert_reach(-1,
		WORDS("differs\0./out/o/f\0./d/f\0"
		      "0./out/o"),
		ignored, "[][d]");
}

static void test_what_is_gone_is_found_in_the_mirror(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p d/e/deep d/f node_modules n; echo > d/file; ln -s / d/link");
	int mirror ATTR_CLEANUP(fd_cleanup) = open(place->root, O_PATH | O_DIRECTORY);
	assert_reach(mirror,
		WORDS("differs\0"
		      "0./d\0"
		      "1./d/f"),
		"", "[][d]-[d/e]");
	assert_reach(mirror,
		WORDS("differs\0"
		      "0./d\0"
		      "1./d/f\0"
		      "1./d/e"),
		"", "[][d]");
	assert_reach(mirror,
		WORDS("differs\0"
		      "0.\0"
		      "1./d"),
		"node_modules", "[]-[n]");
	/* Nothing outside is read. */
	assert_reach(mirror,
		WORDS("differs\0"
		      "0./d/link\0"
		      "0./../state"),
		"", "[][..][../state][d][d/link]");
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
	buf_finish(&many);
}

static void test_the_rules_are_those_within_the_reach(void **state)
{
	struct rules rules, narrow;
	struct buf out;
	static const char *const gone[] = {"d/g", NULL}, *const folders[] = {"", "*", "d"};
	struct reach reach = {.folders = (char **)folders, .count = 3, .gone = (char **)gone};
	rules_init(&rules);
	rules_init(&narrow);
	buf_init(&out, 1 << 16);
	rules_add(&rules, false, "*.o", false);
	reach_add_rules(&reach, &rules, &narrow);
	assert_true(rules_write(&narrow, &out, NULL));
	static const char expected[] = "+ /[*]/\0+ /d/\0+ /d/g/\0+ /d/g/**/\0- */\0- *.o";
	assert_int_equal(out.len, sizeof(expected));
	assert_memory_equal(buf_span(&out).data, expected, sizeof(expected));
	rules_finish(&rules);
	rules_finish(&narrow);
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_is_reached_by_its_folders),
		cmocka_unit_test(test_what_the_rules_leave_out_is_not_reached),
		cmocka_unit_test_setup_teardown(
			test_what_is_gone_is_found_in_the_mirror, place_setup, place_teardown),
		cmocka_unit_test(test_what_cannot_be_told_so_is_not),
		cmocka_unit_test(test_the_rules_are_those_within_the_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
