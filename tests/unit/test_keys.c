/* SPDX-License-Identifier: MIT */
#include "broker/chat/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

/* Reads the bytes in pieces; returns each key as it comes: "c:a s:^[[A p:x y". */
static char *read_keys(struct span bytes, size_t piece)
{
	static const char kinds[] = {
		[KEY_CHARACTER] = 'c', [KEY_SEQUENCE] = 's', [KEY_PASTE] = 'p'};
	struct keys keys;
	struct key key;
	struct buf all;
	keys_init(&keys);
	buf_init(&all, SIZE_MAX / 2);
	while (bytes.len > 0) {
		size_t len = piece < bytes.len ? piece : bytes.len;
		assert_true(keys_has_room(&keys));
		keys_add(&keys, (struct span){bytes.data, len});
		bytes = (struct span){bytes.data + len, bytes.len - len};
		while (keys_next(&keys, &key)) {
			assert_true(buf_append_format(&all, NULL, "%c:%.*s%s ", kinds[key.kind],
				(int)key.text.len, key.text.data, key.is_cut ? "..." : ""));
		}
	}
	char *text = mem_strndup(buf_span(&all));
	buf_finish(&all);
	keys_finish(&keys);
	return text;
}

static void assert_keys(const char *bytes, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(bytes); piece++) {
		char *all = read_keys(span_of(bytes), piece);
		assert_string_equal(all, expected);
		free(all);
	}
}

static void test_characters_and_sequences_are_whole(void **state)
{
	assert_keys("a\xc3\xa4\xe2\x82\xac", "c:a c:\xc3\xa4 c:\xe2\x82\xac ");
	assert_keys(
		"\033[A\033OH\033[3~\033[1;5Cx", "s:\033[A s:\033OH s:\033[3~ s:\033[1;5C c:x ");
	assert_keys("\033bx", "s:\033b c:x ");
	assert_keys("\033\xc3\xa4x", "s:\033\xc3\xa4 c:x ");
	assert_keys("\003\004\r", "c:\003 c:\004 c:\r ");
	assert_keys("\xff"
		    "a",
		"c:\xff c:a ");
}

static void test_a_paste_is_one_key(void **state)
{
	assert_keys("a\033[200~one\rtwo\r\nthree\033[201~b", "c:a p:one\ntwo\nthree c:b ");
	assert_keys("\033[200~\033[31m\003\033[201~\r", "p:\033[31m\003 c:\r ");
	assert_keys("\033[200~\033[201~", "p: ");
}

static void test_a_paste_that_is_too_long_is_cut(void **state)
{
	struct buf bytes;
	buf_init(&bytes, SIZE_MAX / 2);
	assert_true(buf_append(&bytes, SPAN_LITERAL("\033[200~"), NULL));
	for (size_t i = 0; i <= KEYS_PASTE_MAX; i++) {
		assert_true(buf_append(&bytes, SPAN_LITERAL("x"), NULL));
	}
	assert_true(buf_append(&bytes, SPAN_LITERAL("\033[201~y"), NULL));
	char *all = read_keys(buf_span(&bytes), KEYS_READ_MAX);
	assert_int_equal(strlen(all), KEYS_PASTE_MAX + strlen("p:... c:y "));
	assert_non_null(strstr(all, "x... c:y "));
	free(all);
	buf_finish(&bytes);
}

/* Keys that were typed before a question could be read do not answer it. */
static void test_the_rest_of_a_forgotten_paste_is_no_key(void **state)
{
	struct keys keys;
	struct key key;
	keys_init(&keys);
	keys_add(&keys, SPAN_LITERAL("ab\033[200~y"));
	keys_forget(&keys);
	keys_add(&keys, SPAN_LITERAL("y\033[201~n"));
	assert_true(keys_next(&keys, &key));
	assert_int_equal(key.kind, KEY_PASTE);
	assert_true(keys_next(&keys, &key));
	assert_true(key.kind == KEY_CHARACTER && span_is(key.text, "n"));
	assert_false(keys_next(&keys, &key));
	keys_finish(&keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters_and_sequences_are_whole),
		cmocka_unit_test(test_a_paste_is_one_key),
		cmocka_unit_test(test_a_paste_that_is_too_long_is_cut),
		cmocka_unit_test(test_the_rest_of_a_forgotten_paste_is_no_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
