/* SPDX-License-Identifier: MIT */
#include "providers/mux/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "providers/mux/mux.h"

static const char *seeds; // the folder of the fuzz target's

static void test_message_keeps_every_field(void **state)
{
	static const char *const argv[] = {"program", "", "two\nlines", NULL};
	static const char *const env[] = {"A=\xff\n", NULL};
	struct buf bytes;
	struct error err;
	struct runner_message out = {.kind = RUNNER_EXEC,
		.id = UINT64_MAX,
		.exec = {.argv = {.list = argv},
			.env = {.list = env},
			.cwd = SPAN_LITERAL("/folder"),
			.cwd_root = 3,
			.in = {1, 2},
			.out = {3, 4},
			.err = {5, 1ULL << 40},
			.is_bulk = 1,
			.is_grouped = 1,
			.has_terminal = 1,
			.size = {.rows = 6, .columns = 7}}};
	struct runner_message in;
	buf_init(&bytes, 4096);
	assert_true(runner_message_write(&bytes, &out, &err));
	assert_true(runner_message_read(buf_span(&bytes), &in, &err));
	const char **words = runner_words_list(in.exec.argv.packed);
	assert_string_equal(words[0], "program");
	assert_string_equal(words[1], "");
	assert_string_equal(words[2], "two\nlines");
	assert_null(words[3]);
	free(words);
	assert_int_equal(in.exec.env.packed.len, sizeof("A=\xff\n"));
	assert_true(span_is(in.exec.cwd, "/folder"));
	assert_true(in.id == UINT64_MAX && in.exec.cwd_root == 3 && in.exec.err.stream == 5 &&
		    in.exec.err.window == 1ULL << 40 && in.exec.is_bulk && in.exec.is_grouped);
	assert_true(in.exec.has_terminal && in.exec.size.rows == 6 && in.exec.size.columns == 7);
	/*
	 * A message of a newer version may have more fields; a message that was cut off is invalid.
	 */
	size_t size = bytes.len;
	assert_true(buf_append(&bytes, SPAN_LITERAL("more"), &err));
	assert_true(runner_message_read(buf_span(&bytes), &in, &err));
	for (size_t len = 0; len < size; len++) {
		assert_false(
			runner_message_read((struct span){buf_span(&bytes).data, len}, &in, &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
	}
	buf_finish(&bytes);
}

static void test_failure_keeps_code_reason_and_text(void **state)
{
	struct error err;
	struct error back;
	struct runner_message message;
	error_set_reason(&err, ERROR_DENIED, "SECURITY_VIOLATION", "%s", "no way");
	runner_set_failure(&message, 3, &err);
	runner_get_failure(&message.failure, &back);
	assert_int_equal(back.code, ERROR_DENIED);
	assert_true(error_has_reason(&back, "SECURITY_VIOLATION"));
	assert_string_equal(back.text, "no way");
	message.failure.text = SPAN_LITERAL("a\x1b[2J\xff\xe2\x80\xae\nb\xc3\xa4");
	runner_get_failure(&message.failure, &back);
	assert_string_equal(back.text, "a?[2J???b\xc3\xa4");
	message.failure.reason = SPAN_LITERAL("MADE_UP");
	message.failure.code = 9999;
	runner_get_failure(&message.failure, &back);
	assert_int_equal(back.code, ERROR_SYSTEM);
	assert_null(back.reason);
}

/* ---- the seeds of the fuzz target ---- */

enum { SEED_KINDS_MAX = 8 };

struct seen {
	enum runner_kind kinds[SEED_KINDS_MAX];
	size_t count;
};

static void on_text(void *data, struct span text)
{
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
	assert_true(is_same_version);
}

static void on_message(void *data, const struct runner_message *message)
{
	struct seen *seen = data;
	assert_true(seen->count < SEED_KINDS_MAX);
	seen->kinds[seen->count++] = message->kind;
}

/* The first byte is for the fuzz target: an odd one means a runner. */
static bool receive_seed(const char *name, struct seen *seen)
{
	static const struct mux_listener listener = {on_hello, on_message, on_text, on_text};
	char path[4096];
	char bytes[4096];
	struct error err;
	snprintf(path, sizeof(path), "%s/%s", seeds, name);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	size_t size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_true(size > 1 && size < sizeof(bytes));
	struct mux *mux = mux_create(bytes[0] % 2 ? MUX_RUNNER : MUX_BROKER, &listener, seen, 1);
	mux_hello(mux, SPAN_LITERAL("build=0\n"));
	bool is_fine = mux_receive(mux, (struct span){bytes + 1, size - 1}, 1, &err);
	mux_destroy(mux);
	return is_fine;
}

/* A seed that no longer fits the format is refused at once, and the fuzz target learns nothing. */
static void test_the_fuzz_target_s_seeds_are_the_messages_that_they_were_made_as(void **state)
{
	static const struct {
		const char *name;
		enum runner_kind kinds[SEED_KINDS_MAX]; // up to a 0
	} made[] = {
		{"runner-exec", {RUNNER_EXEC, RUNNER_SIGNAL, RUNNER_KILL, RUNNER_RELEASE}},
		{"runner-files", {RUNNER_READ, RUNNER_WRITE, RUNNER_CANCEL}},
		{"runner-terminal",
			{RUNNER_EXEC, RUNNER_RESIZE, RUNNER_RESIZE, RUNNER_RESIZE, RUNNER_RESIZE}},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		struct seen seen = {.count = 0};
		assert_true(receive_seed(made[i].name, &seen));
		assert_memory_equal(seen.kinds, made[i].kinds, sizeof(seen.kinds));
	}
}

int main(int argc, char **argv)
{
	seeds = argc == 2 ? argv[1] : "tests/fuzz/corpus/mux";
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message_keeps_every_field),
		cmocka_unit_test(test_failure_keeps_code_reason_and_text),
		cmocka_unit_test(
			test_the_fuzz_target_s_seeds_are_the_messages_that_they_were_made_as),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
