/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_news.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/facts.h"

/* What a walk has found; a copy, because the news take a list over. */
static struct pin_list list_of(const struct pin_found *found, size_t count)
{
	struct pin_list list = {
		.found = mem_alloc_zero((count + 1) * sizeof(*found)), .count = count};
	for (size_t i = 0; i < count; i++) {
		list.found[i] = found[i];
		list.found[i].path = mem_strdup(found[i].path);
	}
	return list;
}

static void begin(struct pin_news *news, const struct pin_found *found, size_t count)
{
	struct pin_list list = list_of(found, count);
	pin_news_begin(news, &list);
	assert_null(list.found);
}

/* The text about this list; "": there is no news. */
static const char *told(struct pin_news *news, const struct pin_found *found, size_t count)
{
	static char text[4096];
	struct buf buf;
	struct pin_list list = list_of(found, count);
	buf_init(&buf, PIN_NEWS_MAX);
	bool is_news = pin_news_write(news, "/work", &list, &buf);
	assert_true(buf.len < sizeof(text));
	memcpy(text, is_news ? buf.data : "", is_news ? buf.len : 1);
	buf_finish(&buf);
	pin_list_finish(&list);
	return text;
}

static void test_a_file_that_takes_the_place_of_a_pinned_one_is_told_once(void **state)
{
	static const struct pin_found before[] = {{.kind = PIN_FILE,
		.path = (char *)".envrc",
		.inode = 1,
		.born = {5, 0},
		.changed = {5, 0}}};
	/* Changed by its owner; another file; another one of the same number. */
	static const struct pin_found edited[] = {{.kind = PIN_FILE,
		.path = (char *)".envrc",
		.inode = 1,
		.born = {5, 0},
		.changed = {6, 0}}};
	static const struct pin_found other[] = {{.kind = PIN_FILE,
		.path = (char *)".envrc",
		.inode = 2,
		.born = {7, 0},
		.changed = {7, 0}}};
	static const struct pin_found reborn[] = {{.kind = PIN_FILE,
		.path = (char *)".envrc",
		.inode = 1,
		.born = {8, 0},
		.changed = {8, 0}}};
	static const struct pin_found *const later[] = {other, reborn};
	for (size_t i = 0; i < 2; i++) {
		struct pin_news news = {.is_renewed = false};
		begin(&news, before, 1);
		assert_string_equal(told(&news, before, 1), "");
		assert_string_equal(told(&news, edited, 1), "");
		assert_names(told(&news, later[i], 1), "/work | .envrc | direnv");
		assert_string_equal(told(&news, later[i], 1), "");
		/* Nobody protects it any longer, but the broker does not write it either. */
		struct pin_found changed = later[i][0];
		changed.changed.tv_sec++;
		assert_names(told(&news, &changed, 1), ".envrc");
		assert_true(pin_news_has(&news, "/work", "/work/.envrc"));
		pin_news_finish(&news);
	}
	struct pin_news renewed = {.is_renewed = true};
	begin(&renewed, before, 1);
	assert_string_equal(told(&renewed, other, 1), "");
	pin_news_finish(&renewed);
}

static void test_a_repository_that_may_be_written_is_no_news(void **state)
{
	static const struct pin_found before[] = {
		{.kind = PIN_REPOSITORY, .path = (char *)".git", .inode = 1, .born = {5, 0}}};
	static const struct pin_found other[] = {
		{.kind = PIN_REPOSITORY, .path = (char *)".git", .inode = 2, .born = {7, 0}}};
	struct pin_news news = {.writes_git = true};
	begin(&news, before, 1);
	assert_string_equal(told(&news, other, 1), "");
	assert_false(pin_news_has(&news, "/work", "/work/.git/config"));
	pin_news_finish(&news);
	news = (struct pin_news){.writes_git = false};
	begin(&news, before, 1);
	assert_true(pin_news_has(&news, "/work", "/work/.git/config"));
	assert_false(pin_news_has(&news, "/work", "/work/.gitx"));
	assert_names(told(&news, other, 1), ".git | hooks");
	pin_news_finish(&news);
}

static void test_links_and_later_files_are_news_until_they_are_pinned(void **state)
{
	static const struct pin_found found[] = {
		{.kind = PIN_FILE, .path = (char *)".envrc", .inode = 1},
		{.kind = PIN_LINK, .path = (char *)".vscode", .inode = 2},
		{.kind = PIN_FOLDER, .path = (char *)".zed", .inode = 3}};
	struct pin_news news = {.is_renewed = true};
	begin(&news, found, 2);
	assert_names(told(&news, found, 3), ".vscode: a symbolic link | .zed | Zed");
	assert_false(pin_news_has(&news, "/work", "/work/.zed/tasks.json"));
	struct pin_list list = list_of(found, 3);
	pin_news_pin(&news, &list);
	pin_list_finish(&list);
	assert_true(pin_news_has(&news, "/work", "/work/.zed/tasks.json"));
	assert_false(pin_news_has(&news, "/work", "/work/.vscode"));
	pin_news_finish(&news);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_takes_the_place_of_a_pinned_one_is_told_once),
		cmocka_unit_test(test_a_repository_that_may_be_written_is_no_news),
		cmocka_unit_test(test_links_and_later_files_are_news_until_they_are_pinned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
