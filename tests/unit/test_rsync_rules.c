/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "sync/rsync/filter.h"
#include "tests/support/campaign.h"
#include "tests/unit/random_fixture.h"
#include "tests/unit/store_fixture.h"

static void assert_glob(const char *pattern, const char *text, bool matches)
{
	if (rules_glob(pattern, text) != matches) {
		fail_msg("\"%s\" and \"%s\": expected %d", pattern, text, (int)matches);
	}
}

static void test_a_pattern_is_matched_as_rsync_does(void **state)
{
	assert_glob("*.o", "a.o", true);
	assert_glob("*.o", "d/a.o", false);
	assert_glob("**.o", "d/a.o", true);
	assert_glob("a/**/b", "a/x/y/b", true);
	assert_glob("a/**/b", "a/b", false);
	assert_glob("a?b", "a/b", false);
	assert_glob("[a-c]x", "bx", true);
	assert_glob("[!a-c]x", "bx", false);
	assert_glob("[]]", "]", true);
	assert_glob("[[:digit:]]", "7", true);
	assert_glob("a[/]b", "a/b", false);
	assert_glob("\\*", "*", true);
	assert_glob("[", "[", false);
	assert_glob(
		"*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false);
}

static void assert_rules(const char *folder, const char *text, const char *expected)
{
	struct rules rules;
	struct buf out;
	rules_init(&rules);
	buf_init(&out, 1 << 16);
	rules_add_ignore_file(&rules, folder, span_of(text));
	assert_true(rules_write(&rules, &out, NULL));
	char *words = mem_strndup(buf_span(&out));
	for (size_t i = 0; i < out.len; i++) {
		words[i] = words[i] == '\0' ? '|' : words[i];
	}
	assert_string_equal(words, expected);
	free(words);
	buf_finish(&out);
	rules_finish(&rules);
}

static void test_a_line_of_git_becomes_rules_of_rsync(void **state)
{
	assert_rules("", "# no\n\n*.o\n!keep.o\n", "+ keep.o|- *.o|");
	assert_rules("", "/a\nb/\nc/d\n/e/\n", "- /e/|- /c/d|- b/|- /a|");
	assert_rules("x", "*.o\n/a\n", "- /x/a|- /x/*.o|- /x/**/*.o|");
	assert_rules("", "**/a\na/**\na/**/b\n", "- /a/b|- /a/**/b|- /a/**|- /a|- /**/a|");
	assert_rules("", "a  \nb\\ \n\\#c\n\\!d\n", "- !d|- #c|- b |- a|");
	assert_rules("", "a\\*b\nc**d\n\\\\e\n", "- \\e|- c*d|- a[*]b|");
	assert_rules("", "open[\nends\\\n/\n//\n", "");
	assert_rules("w*d", "a\n", "- /w[*]d/a|- /w[*]d/**/a|");
}

/* ---- against git and rsync themselves ---- */

enum { TRIALS = 60, TRIALS_PART = 5, LINES_MAX = 8 };

static const char *const names[] = {"a", "b", "a.o", "b.o", "foo", "bar", "x y", "a*b", "[z]", "#h",
	"!n", "c\\d", "-n", "build", "l\nn", "\xff\xfe"};

static const char *const patterns[] = {"a", "*.o", "!a.o", "/foo", "foo/", "!foo/", "build/",
	"/build/", "**/a", "a/**", "!a/**", "a/**/b", "foo/*", "!foo/a", "foo/bar", "*", "!*/",
	"!*.o", "b*", "[ab]", "[!a]", "\\#h", "\\!n", "a\\*b", "x y", "x\\ y  ", "\\[z]", "[z",
	"c\\\\d", "-n", "?", "??", "**", "foo/**/a", "**/foo/**", "/*", "!/foo", "bar/b.o", "!bar/",
	"*/a", "!**/b", "/**/a", "a**o", "[[:alpha:]]", "ends\\", "foo//a", "./a", "**/foo/bar",
	"!/**/bar"};

static void make_level(struct random_worker *worker, struct place *place, const char *folder)
{
	char path[FIXTURE_PATH_MAX];
	for (unsigned i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "%s%s", folder,
			names[random_pick(worker, ARRAY_LENGTH(names))]);
		const char *at = place_path(place, path);
		bool is_folder = random_pick(worker, 5) < 2 && strlen(folder) < 9;
		if (access(at, F_OK) == 0) {
			continue;
		}
		if (is_folder) {
			assert_int_equal(mkdir(at, 0755), 0);
			strncat(path, "/", sizeof(path) - strlen(path) - 1);
			make_level(worker, place, path);
		} else {
			place_write(place, path, "x");
		}
	}
	if (random_pick(worker, 3) == 0 || !*folder) {
		char text[1024] = "";
		int length = 0;
		for (unsigned i = random_pick(worker, LINES_MAX); i > 0; i--) {
			length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%s",
				patterns[random_pick(worker, ARRAY_LENGTH(patterns))],
				random_pick(worker, 9) ? "\n" : "\r\n");
		}
		snprintf(path, sizeof(path), "%s.gitignore", folder);
		place_write(place, path, text);
	}
}

static void make_filter(struct place *place, const git_oid *base, const char *const *include)
{
	struct error err;
	struct filter filter;
	struct filter_request request = {.mirror = place->root,
		.local_root = place->root,
		.home = place->folder,
		.include = include};
	filter_init(&filter);
	if (!filter_read(&filter, &place->store, &request, &err) ||
		!filter_make(&filter, &place->store, &request, &base, base ? 1 : 0, &err)) {
		fail_msg("%s", err.text);
	}
	int folder = open(place->folder, O_RDONLY | O_DIRECTORY);
	assert_true(filter_write(&filter, folder, "filter", &err));
	close(folder);
	filter_finish(&filter);
}

/* Compares the files that rsync transfers with those that are untracked and not ignored for git. */
static const char compare[] =
	"rm -rf ../got; mkdir ../got\n"
	"rsync -r -0 --filter='merge ../filter' ./ ../got/\n"
	"(cd ../got && find . ! -type d ! -name .gitignore -print0 | LC_ALL=C sort -z) >../come\n"
	"git -c core.quotePath=false ls-files -oz --exclude-standard | grep -zv "
	"'\\(^\\|/\\).gitignore$' |"
	" sed -z 's,^,./,' | LC_ALL=C sort -z >../want || :\n"
	"cmp ../want ../come >&2 || { tr '\\0' '@' <../want; echo; tr '\\0' '@' <../come; echo;"
	" find . -name .gitignore | while read f; do echo \"== $f\"; cat \"$f\"; done; }\n";

static void test_the_same_travels_that_git_does_not_ignore(void **state)
{
	struct place *place = *state;
	struct random_worker worker = {.state = campaign_seed("ACP_BROKER_SEED")};
	for (int i = 0; i < campaign_count(TRIALS_PART, TRIALS); i++) {
		unsigned long long at = worker.state;
		place_run(place, "rm -rf ./* .[!.]* ; git init -q");
		make_level(&worker, place, "");
		make_filter(place, NULL, NULL);
		char *said = place_ask(place, compare);
		if (*said) {
			fail_msg("ACP_BROKER_SEED=%llu, trial %d:\n%s", at, i, said);
		}
		free(said);
	}
}

static void expect(struct place *place, const char *expected)
{
	char *come = place_ask(place, "rm -rf ../got; mkdir ../got\n"
				      "rsync -r -0 --filter='merge ../filter' ./ ../got/\n"
				      "cd ../got; find . ! -type d | LC_ALL=C sort");
	assert_string_equal(come, expected);
	free(come);
}

static void test_what_is_in_the_base_travels_whatever_the_rules_say(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p build/deep 'w[*]d'; echo m > build/deep/m; echo n > build/n;"
			 "echo t > a.o; echo w > 'w[*]d/x'");
	git_oid base = place_take(place, NULL);
	place_run(place, "printf 'build\\n*.o\\nw*\\n' > .gitignore; echo o > b.o;"
			 "echo more > build/more; echo more > build/deep/more; echo y > 'w[*]d/y'");
	make_filter(place, &base, NULL);
	expect(place, "./.gitignore\n./a.o\n./build/deep/m\n./build/n\n./w[*]d/x\n");
}

static void test_many_ignored_members_open_their_folder(void **state)
{
	struct place *place = *state;
	place_run(place, "mkdir -p v/w; for i in $(seq 1100); do echo > v/w/$i; done");
	git_oid base = place_take(place, NULL);
	place_run(place, "echo v > .gitignore; echo > v/more; echo > other");
	make_filter(place, &base, NULL);
	char *count = place_ask(place, "rm -rf ../got; mkdir ../got\n"
				       "rsync -r -0 --filter='merge ../filter' ./ ../got/\n"
				       "find ../got -type f | wc -l");
	assert_string_equal(count, "1103\n");
	free(count);
}

static void test_included_paths_travel_although_they_are_ignored(void **state)
{
	struct place *place = *state;
	static const char *const include[] = {"out/report", "*.env", NULL};
	static const char *const plain[] = {"out/report", NULL};
	place_run(place,
		"mkdir -p out/report node_modules/m d; echo r > out/report/r; echo o > out/o\n"
		"echo m > node_modules/m/m; echo e > d/x.env; echo e > node_modules/m/n.env\n"
		"printf 'out\\nnode_modules/\\n*.env\\n' > .gitignore; echo .git > .GIT");
	make_filter(place, NULL, plain);
	expect(place, "./.gitignore\n./out/report/r\n");
	make_filter(place, NULL, include);
	expect(place, "./.gitignore\n./d/x.env\n./node_modules/m/n.env\n./out/report/r\n");
}

#define RULES_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pattern_is_matched_as_rsync_does),
		cmocka_unit_test(test_a_line_of_git_becomes_rules_of_rsync),
		RULES_TEST(test_the_same_travels_that_git_does_not_ignore),
		RULES_TEST(test_what_is_in_the_base_travels_whatever_the_rules_say),
		RULES_TEST(test_many_ignored_members_open_their_folder),
		RULES_TEST(test_included_paths_travel_although_they_are_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
