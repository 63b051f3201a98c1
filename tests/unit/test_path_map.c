/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "acp/path_map.h"

static char *translate(const struct path_map *map, enum path_direction direction, const char *path)
{
	size_t prefix;
	struct span with;
	struct span span = span_of(path);
	if (!path_map_find(map, direction, span, &prefix, &with)) {
		return mem_strdup(path);
	}
	struct buf out;
	buf_init(&out, 1 << 16);
	assert_true(buf_append(&out, with, NULL));
	assert_true(buf_append(&out, (struct span){path + prefix, span.len - prefix}, NULL));
	char *text = mem_strndup(buf_span(&out));
	buf_finish(&out);
	return text;
}

static void expect(const struct path_map *map, enum path_direction direction, const char *path,
	const char *want)
{
	char *got = translate(map, direction, path);
	assert_string_equal(got, want);
	free(got);
}

static void make(struct path_map *map)
{
	path_map_init(map);
	assert_true(path_map_add(map, "/home/u/ws", "/run/0"));
	assert_true(path_map_add(map, "/home/u/ws/sub/", "/run/1"));
	assert_true(path_map_add(map, "/home/u/größe", "/run/2"));
}

static void test_paths_match_on_component_boundaries_longest_root_first(void **state)
{
	struct path_map map;
	make(&map);
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws", "/run/0");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws/", "/run/0/");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws/a/b.c", "/run/0/a/b.c");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws/sub", "/run/1");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws/sub/x", "/run/1/x");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws/subway", "/run/0/subway");
	expect(&map, PATH_TO_RUNTIME, "/home/u/ws2/a", "/home/u/ws2/a");
	expect(&map, PATH_TO_RUNTIME, "/home/u", "/home/u");
	expect(&map, PATH_TO_RUNTIME, "/home/u/größe/ä", "/run/2/ä");
	expect(&map, PATH_TO_LOCAL, "/run/1/x", "/home/u/ws/sub/x");
	expect(&map, PATH_TO_LOCAL, "/run/10", "/run/10");
	path_map_finish(&map);
}

static void test_what_is_no_absolute_path_stays(void **state)
{
	struct path_map map;
	make(&map);
	static const char *const paths[] = {"", "a/b", "./home/u/ws", "C:\\home\\u\\ws",
		"\\\\host\\home", "~/ws", "home/u/ws/a"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		expect(&map, PATH_TO_RUNTIME, paths[i], paths[i]);
	}
	path_map_finish(&map);
}

static void test_the_root_directory_can_be_a_root(void **state)
{
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/", "/mnt/host"));
	expect(&map, PATH_TO_RUNTIME, "/", "/mnt/host/");
	expect(&map, PATH_TO_RUNTIME, "/etc", "/mnt/host/etc");
	expect(&map, PATH_TO_LOCAL, "/mnt/host/etc", "/etc");
	expect(&map, PATH_TO_LOCAL, "/mnt/host", "/");
	path_map_finish(&map);
}

static void expect_uri(const struct path_map *map, const char *uri, const char *want)
{
	size_t prefix = 0;
	struct buf out;
	buf_init(&out, 1 << 16);
	if (path_map_find_uri(map, PATH_TO_RUNTIME, span_of(uri), &prefix, &out)) {
		assert_true(buf_append(&out, span_of(uri + prefix), NULL));
	} else {
		buf_clear(&out);
		assert_true(buf_append(&out, span_of(uri), NULL));
	}
	assert_true(span_is(buf_span(&out), want));
	buf_finish(&out);
}

static void test_uris_are_decoded_to_compare_and_keep_their_spelling_behind_the_root(void **state)
{
	struct path_map map;
	make(&map);
	assert_true(path_map_add(&map, "/home/u/a b", "/run/ü 3"));
	expect_uri(&map, "file:///home/u/ws/x%20y?z", "file:///run/0/x%20y?z");
	expect_uri(&map, "file:///home/u/w%73/%C3%A4", "file:///run/0/%C3%A4");
	expect_uri(&map, "FILE://localhost/home/u/ws", "FILE://localhost/run/0");
	expect_uri(&map, "file:///home/u/gr%C3%B6%C3%9Fe/a", "file:///run/2/a");
	expect_uri(&map, "file:///home/u/a%20b/c", "file:///run/%C3%BC%203/c");
	expect_uri(&map, "file:///home/u/ws2", "file:///home/u/ws2");
	expect_uri(&map, "file://other/home/u/ws", "file://other/home/u/ws");
	expect_uri(&map, "https://h/home/u/ws", "https://h/home/u/ws");
	expect_uri(&map, "file:///home/u/ws/%zz", "file:///home/u/ws/%zz");
	expect_uri(&map, "file:///home/u/ws/%00", "file:///home/u/ws/%00");
	path_map_finish(&map);
}

/* A small random generator of its own, so that a failure can be repeated. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static void test_there_and_back_is_the_identity(void **state)
{
	static const char *const parts[] = {"ws", "sub", "ws2", "a", "..", "größe", "u", "x y"};
	struct path_map map;
	make(&map);
	uint32_t seed = 7;
	for (int round = 0; round < 20000; round++) {
		struct buf path;
		buf_init(&path, 4096);
		assert_true(buf_append(&path, SPAN_LITERAL("/home/u"), NULL));
		for (uint32_t i = next_random(&seed) % 6; i > 0; i--) {
			assert_true(buf_append(&path, SPAN_LITERAL("/"), NULL));
			const char *part = parts[next_random(&seed) % ARRAY_LENGTH(parts)];
			assert_true(buf_append(&path, span_of(part), NULL));
		}
		char *here = mem_strndup(buf_span(&path));
		char *there = translate(&map, PATH_TO_RUNTIME, here);
		expect(&map, PATH_TO_LOCAL, there, here);
		free(there);
		free(here);
		buf_finish(&path);
	}
	path_map_finish(&map);
}

static void test_roots_that_are_the_same_on_both_sides_are_the_identity(void **state)
{
	struct path_map map;
	path_map_init(&map);
	assert_true(map.is_identity);
	assert_true(path_map_add(&map, "/a", "/a/"));
	assert_true(map.is_identity);
	assert_true(path_map_has_local(&map, "/a/"));
	assert_false(path_map_has_local(&map, "/a/b"));
	assert_true(path_map_add(&map, "/b", "/c"));
	assert_false(map.is_identity);
	path_map_finish(&map);
}

static void test_of_two_names_here_the_preferred_one_is_told(void **state)
{
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/data/other", "/r/0"));
	assert_true(path_map_add(&map, "/data/w", "/r/1"));
	static const char *const names[] = {"/home/link", "/data/w", "/home/link/"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		path_map_prefer(&map, names[i], "/r/1");
		assert_int_equal(map.count, 3);
		char *here = path_map_apply(&map, PATH_TO_LOCAL, "/r/1/a");
		assert_string_equal(here, i == 1 ? "/data/w/a" : "/home/link/a");
		free(here);
		char *there = path_map_apply(&map, PATH_TO_RUNTIME, "/data/w/a");
		assert_string_equal(there, "/r/1/a");
		free(there);
	}
	path_map_finish(&map);
}

static void test_a_path_is_told_as_the_other_side_calls_it(void **state)
{
	static const char *const samples[][2] = {
		{"/l/w", "/r"},
		{"/l/w/", "/r/"},
		{"/l/w/a b", "/r/a b"},
		{"/l/w2", "/l/w2"},
		{"w/a", "w/a"},
		{"", ""},
	};
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/l/w", "/r"));
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		char *there = path_map_apply(&map, PATH_TO_RUNTIME, samples[i][0]);
		char *back = path_map_apply(&map, PATH_TO_LOCAL, there);
		assert_string_equal(there, samples[i][1]);
		assert_string_equal(back, samples[i][0]);
		free(back);
		free(there);
	}
	path_map_finish(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths_match_on_component_boundaries_longest_root_first),
		cmocka_unit_test(test_what_is_no_absolute_path_stays),
		cmocka_unit_test(test_the_root_directory_can_be_a_root),
		cmocka_unit_test(
			test_uris_are_decoded_to_compare_and_keep_their_spelling_behind_the_root),
		cmocka_unit_test(test_of_two_names_here_the_preferred_one_is_told),
		cmocka_unit_test(test_a_path_is_told_as_the_other_side_calls_it),
		cmocka_unit_test(test_there_and_back_is_the_identity),
		cmocka_unit_test(test_roots_that_are_the_same_on_both_sides_are_the_identity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
