/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/local/local.h"
#include "providers/ssh/files_impl.h"

/* The scripts, run here; the conformance table has the rest ("scripted"). */
enum { DEADLINE_MS = 30000 };

struct fixture {
	struct provider_context context;
	struct provider *provider;
	struct sandbox *sandbox;
	struct ssh_files files;
	char root[64];
	bool is_ready, is_done, is_ok;
	struct error err;
	struct buf output;
};

static void run_until(struct fixture *fixture, const bool *flag)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!*flag && clock_now_ms() < deadline_ms) {
		ev_run(fixture->context.loop, EVRUN_ONCE);
	}
	assert_true(*flag);
}

static void on_ready(void *data)
{
	((struct fixture *)data)->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static void on_done(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	assert_false(fixture->is_done);
	fixture->is_done = true;
	fixture->is_ok = !err;
	if (err) {
		fixture->err = *err;
	}
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

static struct spawner *spawner;
static struct ev_loop *loop;

static int set_up(void **state)
{
	struct error err;
	struct settings none;
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	*state = fixture;
	fixture->context = (struct provider_context){.loop = loop,
		.spawner = spawner,
		.pool = pool_create(loop),
		.environment = (const char *const *)environ};
	snprintf(fixture->root, sizeof(fixture->root), "/tmp/ssh-files-XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	buf_init(&fixture->output, SIZE_MAX / 2);
	fixture->provider = local_provider_create(&fixture->context);
	settings_init(&none);
	fixture->sandbox = sandbox_prepare(fixture->provider,
		&(struct sandbox_request){.profile = "p", .settings = &none}, &sandbox_listener,
		fixture, &err);
	assert_non_null(fixture->sandbox);
	run_until(fixture, &fixture->is_ready);
	sandbox_add_root(fixture->sandbox, fixture->root, on_done, fixture);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	ssh_files_init(&fixture->files, fixture->sandbox, fixture->sandbox);
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	ssh_files_finish(&fixture->files);
	sandbox_close(fixture->sandbox);
	provider_destroy(fixture->provider);
	pool_destroy(fixture->context.pool);
	buf_finish(&fixture->output);
	nftw(fixture->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture);
	return 0;
}

static const char *below(const struct fixture *fixture, const char *name)
{
	static char path[200];
	snprintf(path, sizeof(path), "%s/%s", fixture->root, name);
	return path;
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

/* The script for a write of ten bytes, of which so many come. */
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
	fixture->is_done = false;
	ssh_files_write(&fixture->files, below(fixture, "file"), FILE_LINKS_FOLLOWED, content,
		on_done, fixture);
	run_until(fixture, &fixture->is_done);
	assert_true(fixture->is_ok);
	fixture->is_done = false;
	ssh_files_read(&fixture->files, below(fixture, "file"), FILE_LINKS_REFUSED, content.len,
		on_read, fixture);
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
		ssh_files_read(&fixture->files, below(fixture, names[i]), FILE_LINKS_REFUSED, 10,
			on_read, fixture);
		run_until(fixture, &fixture->is_done);
		assert_false(fixture->is_ok);
		assert_string_equal(fixture->err.reason, "SECURITY_VIOLATION");
	}
}

int main(void)
{
	struct error err;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_stream_that_was_cut_never_becomes_the_file, set_up, tear_down),
		cmocka_unit_test(test_answers_that_are_not_whole_are_errors),
		cmocka_unit_test_setup_teardown(
			test_a_file_may_hold_what_ends_an_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_resolved_path_goes_through_no_link, set_up, tear_down),
	};
	spawner = spawner_create(&err);
	assert_non_null(spawner);
	loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, loop);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	return failed;
}
