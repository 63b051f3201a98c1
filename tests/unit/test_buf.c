/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

static void append(struct buf *buf, const char *text)
{
	struct error err;
	assert_true(buf_append(buf, span_of(text), &err));
}

static void assert_holds(const struct buf *buf, const char *text)
{
	assert_true(span_is(buf_span(buf), text));
}

static void test_new_buffer_is_empty_and_owns_nothing(void **state)
{
	struct buf buf;
	buf_init(&buf, 10);
	assert_int_equal(buf_span(&buf).len, 0);
	assert_null(buf_span(&buf).data);
	assert_null(buf.data);
	assert_int_equal(buf.max, 10);
}

static void test_bytes_come_out_as_they_went_in(void **state)
{
	struct buf buf;
	buf_init(&buf, 100);
	append(&buf, "abc");
	append(&buf, "");
	append(&buf, "defg");
	assert_holds(&buf, "abcdefg");
	buf_consume(&buf, 2);
	assert_holds(&buf, "cdefg");
	append(&buf, "h");
	assert_holds(&buf, "cdefgh");
	buf_consume(&buf, 6);
	assert_holds(&buf, "");
	buf_finish(&buf);
}

static void test_bytes_put_before_others_use_what_was_consumed(void **state)
{
	struct buf buf;
	struct error err;
	buf_init(&buf, 10);
	append(&buf, "....cd");
	buf_consume(&buf, 4);
	const char *live = buf_span(&buf).data;
	assert_true(buf_prepend(&buf, SPAN_LITERAL("ab"), &err));
	assert_holds(&buf, "abcd");
	assert_ptr_equal(buf_span(&buf).data, live - 2);
	assert_true(buf_prepend(&buf, SPAN_LITERAL(""), &err));
	assert_true(buf_prepend(&buf, SPAN_LITERAL("123456"), &err)); // more than was consumed
	assert_holds(&buf, "123456abcd");
	assert_false(buf_prepend(&buf, SPAN_LITERAL("x"), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_holds(&buf, "123456abcd");
	buf_finish(&buf);
	assert_true(buf_prepend(&buf, SPAN_LITERAL("new"), &err));
	assert_holds(&buf, "new");
	buf_finish(&buf);
}

static void test_append_refuses_more_than_max(void **state)
{
	struct buf buf;
	struct error err = {0};
	buf_init(&buf, 5);
	append(&buf, "abc");
	assert_false(buf_append(&buf, SPAN_LITERAL("def"), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "more than 5 bytes");
	assert_holds(&buf, "abc");
	append(&buf, "de");
	assert_holds(&buf, "abcde");
	assert_false(buf_append(&buf, SPAN_LITERAL("f"), NULL));
	buf_consume(&buf, 1);
	append(&buf, "f");
	assert_holds(&buf, "bcdef");
	buf_finish(&buf);
}

static void test_reserve_refuses_lengths_that_would_overflow(void **state)
{
	struct buf buf;
	struct error err = {0};
	buf_init(&buf, SIZE_MAX - 1);
	append(&buf, "abc");
	buf_consume(&buf, 1);
	assert_null(buf_reserve(&buf, SIZE_MAX, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_null(buf_reserve(&buf, SIZE_MAX - 2, NULL));
	assert_holds(&buf, "bc");
	append(&buf, "d");
	assert_holds(&buf, "bcd");
	buf_finish(&buf);
}

static void test_nothing_can_be_reserved_and_appended(void **state)
{
	struct buf buf;
	struct error err;
	buf_init(&buf, 0);
	assert_non_null(buf_reserve(&buf, 0, &err));
	buf_commit(&buf, 0);
	assert_true(buf_append(&buf, (struct span){NULL, 0}, &err));
	assert_null(buf_reserve(&buf, 1, &err));
	buf_finish(&buf);
	buf_init(&buf, 10);
	assert_non_null(buf_reserve(&buf, 0, &err));
	buf_finish(&buf);
}

static void test_reserved_bytes_count_once_committed(void **state)
{
	struct buf buf;
	struct error err;
	buf_init(&buf, 10);
	char *to = buf_reserve(&buf, 10, &err);
	assert_non_null(to);
	struct span letters = SPAN_LITERAL("abcdefghij");
	memcpy(to, letters.data, letters.len);
	assert_int_equal(buf_span(&buf).len, 0);
	buf_commit(&buf, 4);
	assert_holds(&buf, "abcd");
	to = buf_reserve(&buf, 6, &err);
	assert_non_null(to);
	memcpy(to, letters.data + 4, 6);
	buf_commit(&buf, 6);
	assert_holds(&buf, "abcdefghij");
	buf_finish(&buf);
}

static void test_format_appends_without_its_terminator(void **state)
{
	struct buf buf;
	struct error err = {0};
	buf_init(&buf, 10);
	assert_true(buf_append_format(&buf, &err, "%d-%s", 42, "ab"));
	assert_true(buf_append_format(&buf, &err, "%s", ""));
	assert_holds(&buf, "42-ab");
	assert_true(buf_append_format(&buf, &err, "%05d", 7));
	assert_holds(&buf, "42-ab00007");
	assert_false(buf_append_format(&buf, &err, "%c", 'x'));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_holds(&buf, "42-ab00007");
	buf_finish(&buf);
}

static void test_format_may_use_the_buffer_itself(void **state)
{
	struct buf buf;
	struct error err;
	buf_init(&buf, 1 << 20);
	append(&buf, "ab");
	for (int i = 0; i < 15; i++) {
		struct span all = buf_span(&buf);
		assert_true(buf_append_format(&buf, &err, "%.*s", (int)all.len, all.data));
	}
	struct span all = buf_span(&buf);
	assert_int_equal(all.len, 2 << 15);
	for (size_t i = 0; i < all.len; i++) {
		assert_int_equal(all.data[i], i % 2 == 0 ? 'a' : 'b');
	}
	buf_finish(&buf);
}

static void test_clear_keeps_the_memory_and_finish_does_not(void **state)
{
	struct buf buf;
	buf_init(&buf, 100);
	append(&buf, "abc");
	char *data = buf.data;
	buf_clear(&buf);
	assert_holds(&buf, "");
	assert_ptr_equal(buf.data, data);
	append(&buf, "x");
	buf_finish(&buf);
	assert_null(buf.data);
	assert_int_equal(buf.capacity, 0);
	assert_int_equal(buf.max, 100);
	append(&buf, "again");
	assert_holds(&buf, "again");
	buf_finish(&buf);
}

static void test_trim_frees_only_what_is_large_and_empty(void **state)
{
	struct buf buf;
	struct error err;
	buf_init(&buf, 1 << 20);
	assert_non_null(buf_reserve(&buf, 100000, &err));
	append(&buf, "x");
	buf_trim(&buf, 1000);
	assert_true(buf.capacity >= 100000);
	buf_consume(&buf, 1);
	buf_trim(&buf, buf.capacity);
	assert_true(buf.capacity >= 100000);
	buf_trim(&buf, 1000);
	assert_int_equal(buf.capacity, 0);
	assert_int_equal(buf.max, 1 << 20);
	append(&buf, "y");
	assert_holds(&buf, "y");
	buf_finish(&buf);
}

static void test_move_hands_the_memory_over_and_each_keeps_its_maximum(void **state)
{
	struct buf from;
	struct buf to;
	struct error err;
	buf_init(&from, 20);
	buf_init(&to, 8);
	append(&from, "abcdefghij");
	buf_consume(&from, 3);
	append(&to, "old");
	buf_clear(&to);
	const char *data = buf_span(&from).data;
	buf_move(&to, &from);
	assert_ptr_equal(buf_span(&to).data, data);
	assert_holds(&to, "defghij");
	assert_holds(&from, "");
	assert_int_equal(to.max, 8);
	assert_int_equal(from.max, 20);
	append(&to, "k");
	assert_false(buf_append(&to, SPAN_LITERAL("l"), &err));
	append(&from, "new");
	assert_holds(&to, "defghijk");
	assert_holds(&from, "new");
	buf_finish(&from);
	buf_finish(&to);
}

static void test_memory_of_a_filled_buffer_never_exceeds_its_maximum(void **state)
{
	static const size_t sizes[] = {1, 511, 512, 513, 5000, 100000};
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		struct buf buf;
		buf_init(&buf, sizes[i]);
		for (size_t j = 0; j < sizes[i]; j++) {
			append(&buf, "x");
			assert_true(buf.capacity <= sizes[i]);
		}
		assert_false(buf_append(&buf, SPAN_LITERAL("x"), NULL));
		buf_finish(&buf);
	}
}

/* While bytes are live, a return of the head to 0 shows a compaction. */
static void test_full_buffer_moves_its_bytes_seldom(void **state)
{
	enum { MAX = 4096, ROUNDS = 100 * MAX };
	struct buf buf;
	struct error err;
	buf_init(&buf, MAX);
	for (int i = 0; i < MAX; i++) {
		append(&buf, "x");
	}
	size_t moves = 0;
	for (int i = 0; i < ROUNDS; i++) {
		buf_consume(&buf, 1);
		size_t head = buf.head;
		assert_true(buf_append(&buf, SPAN_LITERAL("x"), &err));
		moves += buf.head < head;
	}
	assert_true(buf.capacity <= MAX + MAX / 4);
	assert_true(moves > 0 && moves <= ROUNDS / (MAX / 4) + 2);
	buf_finish(&buf);
}

/* The same appends and consumes on a plain array must give the same bytes. */
static void test_any_order_of_calls_keeps_every_byte(void **state)
{
	enum { MAX = 3000, STEPS = 20000 };
	static char model[MAX];
	static char chunk[MAX];
	size_t model_len = 0;
	unsigned int seed = 1;
	struct buf buf;
	buf_init(&buf, MAX);
	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1103515245U + 12345U;
		size_t count = (seed >> 16) % (step % 7 == 0 ? MAX : 200);
		if (seed & 0x80000000U) {
			memset(chunk, 'a' + step % 26, count);
			bool ok = buf_append(&buf, (struct span){chunk, count}, NULL);
			assert_int_equal(ok, count <= MAX - model_len);
			if (ok) {
				memcpy(model + model_len, chunk, count);
				model_len += count;
			}
		} else {
			count = count < model_len ? count : model_len;
			buf_consume(&buf, count);
			memmove(model, model + count, model_len - count);
			model_len -= count;
		}
		assert_true(span_equals(buf_span(&buf), (struct span){model, model_len}));
		assert_true(buf.capacity <= MAX + MAX / 4);
	}
	buf_finish(&buf);
}

static void test_memory_helpers_copy_and_zero(void **state)
{
	unsigned char *zero = mem_alloc_zero(100);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(zero[i], 0);
	}
	free(zero);
	char *grown = mem_alloc(3);
	memcpy(grown, "ab", 3);
	grown = mem_realloc(grown, 1000);
	assert_string_equal(grown, "ab");
	free(grown);
	char *copy = mem_strdup("text");
	assert_string_equal(copy, "text");
	free(copy);
	copy = mem_strndup((struct span){"textual", 4});
	assert_string_equal(copy, "text");
	free(copy);
	copy = mem_strndup((struct span){NULL, 0});
	assert_string_equal(copy, "");
	free(copy);
	void *nothing = mem_alloc(0);
	assert_non_null(nothing);
	nothing = mem_realloc(nothing, 0);
	assert_non_null(nothing);
	free(nothing);
}

static void consume_too_much(void)
{
	struct buf buf;
	buf_init(&buf, 10);
	buf_consume(&buf, 1);
}

static void commit_too_much(void)
{
	struct buf buf;
	buf_init(&buf, 3);
	assert_non_null(buf_reserve(&buf, 2, NULL));
	buf_commit(&buf, 4);
}

static void move_onto_bytes(void)
{
	struct buf from;
	struct buf to;
	buf_init(&from, 10);
	buf_init(&to, 10);
	append(&to, "a");
	buf_move(&to, &from);
}

static void allocate_too_much(void)
{
	volatile size_t size = SIZE_MAX / 4;
	free(mem_alloc(size));
}

/* Whether the function ends its process; runs it in a child. */
static bool dies(void (*function)(void))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		function();
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void test_mistakes_and_the_end_of_memory_abort(void **state)
{
	assert_true(dies(consume_too_much));
	assert_true(dies(commit_too_much));
	assert_true(dies(move_onto_bytes));
	assert_true(dies(allocate_too_much));
}

static void test_fit_gives_back_what_is_not_used_and_keeps_the_bytes(void **state)
{
	struct buf buf;
	buf_init(&buf, 1 << 20);
	assert_non_null(buf_reserve(&buf, 100000, NULL));
	assert_true(buf_append(&buf, SPAN_LITERAL("abcdef"), NULL));
	buf_consume(&buf, 2);
	buf_fit(&buf, 1 << 20);
	assert_true(buf.capacity >= 100000);
	buf_fit(&buf, 64);
	assert_int_equal(buf.capacity, 6); // moves nothing for the two consumed bytes
	assert_true(span_is(buf_span(&buf), "cdef"));
	buf_fit(&buf, 1);
	assert_int_equal(buf.capacity, 4);
	assert_true(span_is(buf_span(&buf), "cdef"));
	buf_finish(&buf);
}

static void test_a_wiped_buffer_is_as_new(void **state)
{
	struct buf buf;
	buf_init(&buf, 10);
	buf_wipe(&buf);
	assert_true(buf_append(&buf, SPAN_LITERAL("secret"), NULL));
	buf_wipe(&buf);
	assert_null(buf.data);
	assert_int_equal(buf.len, 0);
	assert_int_equal(buf.max, 10);
}

static void test_a_text_is_replaced_also_by_a_part_of_itself(void **state)
{
	char *text = NULL;
	mem_set_text(&text, "one");
	assert_string_equal(text, "one");
	mem_set_text(&text, text + 1);
	assert_string_equal(text, "ne");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wiped_buffer_is_as_new),
		cmocka_unit_test(test_a_text_is_replaced_also_by_a_part_of_itself),
		cmocka_unit_test(test_fit_gives_back_what_is_not_used_and_keeps_the_bytes),
		cmocka_unit_test(test_new_buffer_is_empty_and_owns_nothing),
		cmocka_unit_test(test_bytes_come_out_as_they_went_in),
		cmocka_unit_test(test_bytes_put_before_others_use_what_was_consumed),
		cmocka_unit_test(test_append_refuses_more_than_max),
		cmocka_unit_test(test_reserve_refuses_lengths_that_would_overflow),
		cmocka_unit_test(test_nothing_can_be_reserved_and_appended),
		cmocka_unit_test(test_reserved_bytes_count_once_committed),
		cmocka_unit_test(test_format_appends_without_its_terminator),
		cmocka_unit_test(test_format_may_use_the_buffer_itself),
		cmocka_unit_test(test_clear_keeps_the_memory_and_finish_does_not),
		cmocka_unit_test(test_trim_frees_only_what_is_large_and_empty),
		cmocka_unit_test(test_move_hands_the_memory_over_and_each_keeps_its_maximum),
		cmocka_unit_test(test_memory_of_a_filled_buffer_never_exceeds_its_maximum),
		cmocka_unit_test(test_full_buffer_moves_its_bytes_seldom),
		cmocka_unit_test(test_any_order_of_calls_keeps_every_byte),
		cmocka_unit_test(test_memory_helpers_copy_and_zero),
		cmocka_unit_test(test_mistakes_and_the_end_of_memory_abort),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
