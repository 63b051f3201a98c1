/* SPDX-License-Identifier: MIT */
#include "tests/unit/scripts_fixture.h"

#include "providers/ssh/files_impl.h"

/* The scripts, run here; the conformance table has the rest ("scripted"). */
static struct ssh_files files;

static int set_up(void **state)
{
	int failed = fixture_set_up(state);
	struct fixture *fixture = *state;
	sandbox_add_root(fixture->sandbox, fixture->root, on_done, fixture);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	ssh_files_init(&files, fixture->sandbox, fixture->sandbox);
	return failed;
}

static int tear_down(void **state)
{
	ssh_files_finish(&files);
	return fixture_tear_down(state);
}

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct fixture *fixture = data;
	on_done(data, err);
	if (!err) {
		buf_finish(&fixture->output);
		buf_move(&fixture->output, content);
	}
}

static void put(const struct fixture *fixture, const char *name, const char *text)
{
	FILE *file = fopen(below(fixture, name), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void expect_file(const struct fixture *fixture, const char *name, const char *text)
{
	char content[100] = "";
	FILE *file = fopen(below(fixture, name), "r");
	assert_non_null(file);
	size_t len = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[len] = '\0';
	assert_string_equal(content, text);
}

/* ---- a stream that was cut ---- */

static void on_end(void *data, struct buf *output, const char *words, const struct error *err)
{
	struct fixture *fixture = data;
	on_done(data, err);
	buf_finish(&fixture->output);
	buf_move(&fixture->output, output);
}

/* Runs the script for a write of ten bytes; only these bytes arrive. */
static void write_cut(struct fixture *fixture, const char *name, const char *content)
{
	static const struct script_listener listener = {.on_end = on_end};
	struct error err;
	const char *argv[] = {"sh", "-c", file_script_text(FILE_SCRIPT_WRITE), "x", "followed",
		below(fixture, name), "10 token", fixture->root, NULL};
	struct script_order order = {.argv = argv,
		.input = span_of(content),
		.output_max = FILE_ANSWER_MAX,
		.deadline_ms = DEADLINE_MS};
	fixture->is_done = false;
	struct script_run *run = script_run_start(
		fixture->context.loop, fixture->sandbox, &order, &listener, fixture, &err);
	assert_non_null(run);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	script_run_destroy(run);
}

static void test_a_stream_that_was_cut_never_becomes_the_file(void **state)
{
	struct fixture *fixture = *state;
	struct file_answer answer;
	struct error err;
	put(fixture, "file", "old");
	static const char *const cut[] = {"", "123456789", "12345678901"};
	for (size_t i = 0; i < ARRAY_LENGTH(cut); i++) {
		write_cut(fixture, "file", cut[i]);
		assert_false(file_answer_read(
			FILE_SCRIPT_WRITE, "file", 0, &fixture->output, "", &answer, &err));
		assert_non_null(strstr(err.text, "cut off"));
		expect_file(fixture, "file", "old");
		assert_int_equal(access(below(fixture, ".acp-broker-token.tmp"), F_OK), -1);
	}
	write_cut(fixture, "file", "1234567890");
	assert_true(file_answer_read(
		FILE_SCRIPT_WRITE, "file", 0, &fixture->output, "", &answer, &err));
	expect_file(fixture, "file", "1234567890");
}

/* ---- answers ---- */

static void expect_bad(enum file_script script, struct span bytes)
{
	struct buf output;
	struct file_answer answer;
	struct error err = {0};
	buf_init(&output, 1000);
	assert_true(buf_append(&output, bytes, NULL));
	assert_false(file_answer_read(script, "/p", 5, &output, "words", &answer, &err));
	assert_non_null(strstr(err.text, "/p"));
	buf_finish(&output);
}

static void test_answers_that_are_not_whole_are_errors(void **state)
{
	expect_bad(FILE_SCRIPT_WRITE, (struct span){NULL, 0});
	expect_bad(FILE_SCRIPT_WRITE, SPAN_LITERAL("written"));
	expect_bad(FILE_SCRIPT_WRITE, SPAN_LITERAL("written\0"));
	expect_bad(FILE_SCRIPT_WRITE, SPAN_LITERAL("written\0end"));
	expect_bad(FILE_SCRIPT_WRITE, SPAN_LITERAL("written\0end\0more\0"));
	expect_bad(FILE_SCRIPT_WRITE, SPAN_LITERAL("path\0/x\0end\0"));
	expect_bad(FILE_SCRIPT_RESOLVE, SPAN_LITERAL("path\0/x\0"));
	expect_bad(FILE_SCRIPT_STAT, SPAN_LITERAL("facts\0"
						  "81a4 5\0end\0"));
	expect_bad(FILE_SCRIPT_STAT, SPAN_LITERAL("facts\0what\0end\0"));
	expect_bad(FILE_SCRIPT_READ, SPAN_LITERAL("content\0"));
	expect_bad(FILE_SCRIPT_READ, SPAN_LITERAL("content\0abc"));
	expect_bad(FILE_SCRIPT_READ, SPAN_LITERAL("content\0abc\0whol"));
	expect_bad(FILE_SCRIPT_READ, SPAN_LITERAL("content\0abcdef\0whole\0")); // more than 5
}

static void test_a_file_may_hold_what_ends_an_answer(void **state)
{
	struct fixture *fixture = *state;
	struct span content = SPAN_LITERAL("content\0x\0whole\0y\0whole");
	struct shared *shared = shared_copy(content);
	fixture->is_done = false;
	ssh_files_write(
		&files, below(fixture, "file"), FILE_LINKS_FOLLOWED, shared, on_done, fixture);
	shared_release(shared);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	fixture->is_done = false;
	ssh_files_read(
		&files, below(fixture, "file"), FILE_LINKS_REFUSED, content.len, on_read, fixture);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	assert_true(span_equals(buf_span(&fixture->output), content));
}

/* ---- links that are refused ---- */

static void test_a_resolved_path_goes_through_no_link(void **state)
{
	struct fixture *fixture = *state;
	char link[200];
	assert_int_equal(mkdir(below(fixture, "real"), 0755), 0);
	put(fixture, "real/file", "x");
	snprintf(link, sizeof(link), "%s/link", fixture->root);
	assert_int_equal(symlink("real", link), 0);
	static const char *const names[] = {"link/file", "real/../real/file", "../x", "link"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		fixture->is_done = false;
		ssh_files_read(
			&files, below(fixture, names[i]), FILE_LINKS_REFUSED, 10, on_read, fixture);
		run_until(fixture, &fixture->is_done);
		assert_false(fixture->is_ok);
		assert_string_equal(fixture->err.reason, "SECURITY_VIOLATION");
	}
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_stream_that_was_cut_never_becomes_the_file, set_up, tear_down),
		cmocka_unit_test(test_answers_that_are_not_whole_are_errors),
		cmocka_unit_test_setup_teardown(
			test_a_file_may_hold_what_ends_an_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_resolved_path_goes_through_no_link, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
	return run_with_loop(run);
}
