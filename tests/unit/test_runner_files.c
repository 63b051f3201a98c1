/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "tests/unit/runner_fixture.h"

/* The folder has "root", which is the only root, and "beside" it. */
struct stage {
	struct test_runner runner;
	char folder[64];
	char root[128];
};

static const char *path_of(const struct stage *stage, const char *name)
{
	static char paths[8][PATH_MAX];
	static int next;
	char *path = paths[next++ % 8];
	snprintf(path, PATH_MAX, "%s/%s", stage->folder, name);
	return path;
}

static void put_file(const char *path, const char *text)
{
	struct error err;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && fd_write_all(fd, span_of(text), &err));
	close(fd);
}

static const struct runner_event *ask(struct stage *stage, enum runner_kind kind, const char *path,
	const struct runner_file *file)
{
	struct runner_message message = {.kind = kind, .id = ++stage->runner.last_id};
	if (file) {
		message.file = *file;
	}
	message.file.path = span_of(path);
	test_runner_send(&stage->runner, &message);
	size_t at = 0;
	for (;;) {
		for (; at < stage->runner.event_count; at++) {
			if (stage->runner.events[at].id == message.id) {
				return &stage->runner.events[at];
			}
		}
		test_runner_turn(&stage->runner);
	}
}

static const struct runner_event *read_file(
	struct stage *stage, const char *path, size_t most, struct test_stream *stream)
{
	struct runner_file file = {.size = most};
	file.stream = test_stream_open(&stage->runner, stream, MUX_IN, MUX_BULK, MUX_WINDOW_FILE);
	const struct runner_event *event = ask(stage, RUNNER_READ, path, &file);
	test_stream_await_end(&stage->runner, stream);
	return event;
}

/* Announces `size` bytes and sends the content. */
static const struct runner_event *write_file(
	struct stage *stage, const char *path, struct span content, size_t size)
{
	struct test_stream stream;
	struct runner_file file = {.size = size};
	file.stream = test_stream_open(&stage->runner, &stream, MUX_OUT, MUX_BULK, MUX_WINDOW_FILE);
	struct runner_message message = {
		.kind = RUNNER_WRITE, .id = ++stage->runner.last_id, .file = file};
	message.file.path = span_of(path);
	test_runner_send(&stage->runner, &message);
	test_stream_put(&stream, content, true);
	size_t at = 0;
	for (;;) {
		for (; at < stage->runner.event_count; at++) {
			if (stage->runner.events[at].id == message.id) {
				test_stream_finish(&stream);
				return &stage->runner.events[at];
			}
		}
		test_runner_turn(&stage->runner);
	}
}

static int set_up(void **state)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	snprintf(stage->folder, sizeof(stage->folder), "/tmp/test-runner-files-XXXXXX");
	assert_non_null(mkdtemp(stage->folder));
	snprintf(stage->root, sizeof(stage->root), "%s/root", stage->folder);
	assert_int_equal(mkdir(stage->root, 0755), 0);
	assert_int_equal(mkdir(path_of(stage, "beside"), 0755), 0);
	put_file(path_of(stage, "beside/secret"), "secret");
	test_runner_start(&stage->runner, "");
	assert_int_equal(ask(stage, RUNNER_ROOT_ADD, stage->root, NULL)->kind, RUNNER_PATH);
	*state = stage;
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int tear_down(void **state)
{
	struct stage *stage = *state;
	test_runner_stop(&stage->runner);
	nftw(stage->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(stage);
	return 0;
}

static void assert_refused(const struct runner_event *event)
{
	assert_int_equal(event->kind, RUNNER_FAILED);
	assert_int_equal(event->number, ERROR_DENIED);
	assert_string_equal(event->reason, "SECURITY_VIOLATION");
}

static void assert_failed(const struct runner_event *event, enum error_code code)
{
	assert_int_equal(event->kind, RUNNER_FAILED);
	assert_int_equal(event->number, code);
}

static void test_written_file_can_be_read(void **state)
{
	struct stage *stage = *state;
	struct test_stream stream;
	const char *path = path_of(stage, "root/new/folder/file");
	struct span content = SPAN_LITERAL("two\nlines\0and a NUL");
	assert_int_equal(write_file(stage, path, content, content.len)->kind, RUNNER_DONE);
	const struct runner_event *event = read_file(stage, path, 1000, &stream);
	assert_int_equal(event->kind, RUNNER_DONE);
	assert_int_equal(event->number, content.len);
	assert_true(stream.is_over && span_equals(buf_span(&stream.bytes), content));
	test_stream_finish(&stream);
	assert_int_equal(write_file(stage, path, (struct span){0}, 0)->kind, RUNNER_DONE);
	event = read_file(stage, path, 1000, &stream);
	assert_int_equal(event->number, 0);
	assert_true(stream.is_over && stream.bytes.len == 0);
	test_stream_finish(&stream);
}

static void test_large_files_go_through(void **state)
{
	struct stage *stage = *state;
	struct test_stream stream;
	enum { SIZE = 9 << 20 };
	char *content = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		content[i] = (char)(i * 2654435761U >> 24);
	}
	const char *path = path_of(stage, "root/large");
	assert_int_equal(
		write_file(stage, path, (struct span){content, SIZE}, SIZE)->kind, RUNNER_DONE);
	assert_int_equal(read_file(stage, path, SIZE, &stream)->kind, RUNNER_DONE);
	assert_int_equal(stream.bytes.len, SIZE);
	assert_memory_equal(buf_span(&stream.bytes).data, content, SIZE);
	test_stream_finish(&stream);
	assert_failed(read_file(stage, path, SIZE - 1, &stream), ERROR_LIMIT);
	assert_true(stream.is_reset);
	test_stream_finish(&stream);
	free(content);
}

/* More reads at once than memory may hold contents; all but the last wait for a reader. */
static void test_many_reads_take_turns(void **state)
{
	enum { COUNT = 12 };
	struct stage *stage = *state;
	struct test_stream streams[COUNT];
	struct runner_message message = {.kind = RUNNER_READ};
	const char *path = path_of(stage, "root/file");
	put_file(path, "content");
	for (int i = 0; i < COUNT; i++) {
		message.id = ++stage->runner.last_id;
		message.file = (struct runner_file){.path = span_of(path), .size = 100};
		message.file.stream = test_stream_open(
			&stage->runner, &streams[i], MUX_IN, MUX_BULK, MUX_WINDOW_FILE);
		test_runner_send(&stage->runner, &message);
	}
	for (int i = 0; i < COUNT; i++) {
		test_stream_await_end(&stage->runner, &streams[i]);
		assert_true(span_is(buf_span(&streams[i].bytes), "content"));
		test_stream_finish(&streams[i]);
	}
}

static void test_ways_out_of_the_roots_are_refused(void **state)
{
	struct stage *stage = *state;
	struct test_stream stream;
	struct span content = SPAN_LITERAL("x");
	assert_int_equal(symlink("../beside", path_of(stage, "root/link")), 0);
	assert_int_equal(symlink("../beside/secret", path_of(stage, "root/name")), 0);
	const char *const ways[] = {"beside/secret", "root/../beside/secret", "root/link/secret",
		"root/name", "rootless", "root/link/new"};
	for (size_t i = 0; i < ARRAY_LENGTH(ways); i++) {
		const char *path = path_of(stage, ways[i]);
		assert_refused(read_file(stage, path, 100, &stream));
		test_stream_finish(&stream);
		assert_refused(write_file(stage, path, content, content.len));
		assert_refused(ask(stage, RUNNER_STAT, path, NULL));
		assert_refused(ask(stage, RUNNER_RESOLVE, path, NULL));
	}
	assert_refused(read_file(stage, "/proc/self/environ", 100, &stream));
	test_stream_finish(&stream);
}

static void test_links_inside_are_followed_or_refused(void **state)
{
	struct stage *stage = *state;
	struct test_stream stream;
	put_file(path_of(stage, "root/file"), "content");
	assert_int_equal(symlink("file", path_of(stage, "root/link")), 0);
	const struct runner_event *event =
		ask(stage, RUNNER_RESOLVE, path_of(stage, "root/./link"), NULL);
	assert_int_equal(event->kind, RUNNER_PATH);
	assert_string_equal(event->text, path_of(stage, "root/file"));
	assert_int_equal(
		read_file(stage, path_of(stage, "root/link"), 100, &stream)->kind, RUNNER_DONE);
	test_stream_finish(&stream);
	struct runner_file file = {.size = 100, .no_links = 1};
	file.stream = test_stream_open(&stage->runner, &stream, MUX_IN, MUX_BULK, MUX_WINDOW_FILE);
	assert_refused(ask(stage, RUNNER_READ, path_of(stage, "root/link"), &file));
	test_stream_finish(&stream);
}

static void test_stat_tells_what_is_there(void **state)
{
	struct stage *stage = *state;
	struct stat status;
	const char *path = path_of(stage, "root/file");
	put_file(path, "seven b");
	assert_int_equal(stat(path, &status), 0);
	const struct runner_event *event = ask(stage, RUNNER_STAT, path, NULL);
	assert_int_equal(event->kind, RUNNER_STATUS_OF);
	assert_int_equal(event->status.mode, status.st_mode);
	assert_int_equal(event->status.size, 7);
	assert_int_equal(event->status.inode, status.st_ino);
	assert_int_equal(event->status.mtime_s, status.st_mtim.tv_sec);
	assert_int_equal(event->status.mtime_ns, status.st_mtim.tv_nsec);
	assert_int_equal(event->status.is_read_only, 0);
	assert_failed(
		ask(stage, RUNNER_STAT, path_of(stage, "root/missing"), NULL), ERROR_NOT_FOUND);
	struct runner_file file = {.asks_mount = 1};
	event = ask(stage, RUNNER_STAT, path, &file);
	assert_int_equal(event->kind, RUNNER_STATUS_OF);
	assert_int_equal(event->status.inode, status.st_ino);
	assert_int_equal(event->status.is_read_only, 0);
	assert_failed(
		ask(stage, RUNNER_STAT, path_of(stage, "root/missing"), &file), ERROR_NOT_FOUND);
}

static void test_list_tells_names_and_types(void **state)
{
	struct stage *stage = *state;
	struct test_stream stream;
	struct runner_file file = {0};
	put_file(path_of(stage, "root/file\n"), "");
	assert_int_equal(mkdir(path_of(stage, "root/folder"), 0755), 0);
	assert_int_equal(symlink("nowhere", path_of(stage, "root/link")), 0);
	file.stream = test_stream_open(&stage->runner, &stream, MUX_IN, MUX_BULK, MUX_WINDOW_FILE);
	assert_int_equal(ask(stage, RUNNER_LIST, stage->root, &file)->kind, RUNNER_DONE);
	test_stream_await_end(&stage->runner, &stream);
	const char *const entries[] = {"ffile\n", "dfolder", "llink"};
	size_t size = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(entries); i++) {
		size_t len = strlen(entries[i]) + 1;
		size += len;
		assert_non_null(
			memmem(buf_span(&stream.bytes).data, stream.bytes.len, entries[i], len));
	}
	assert_int_equal(stream.bytes.len, size);
	test_stream_finish(&stream);
}

static void test_roots_come_and_go(void **state)
{
	struct stage *stage = *state;
	const char *path = path_of(stage, "beside/secret");
	assert_refused(ask(stage, RUNNER_STAT, path, NULL));
	assert_int_equal(
		ask(stage, RUNNER_ROOT_ADD, path_of(stage, "beside/"), NULL)->kind, RUNNER_PATH);
	assert_int_equal(ask(stage, RUNNER_STAT, path, NULL)->kind, RUNNER_STATUS_OF);
	assert_int_equal(
		ask(stage, RUNNER_ROOT_REMOVE, path_of(stage, "beside"), NULL)->kind, RUNNER_DONE);
	assert_refused(ask(stage, RUNNER_STAT, path, NULL));
	assert_failed(
		ask(stage, RUNNER_ROOT_ADD, path_of(stage, "missing"), NULL), ERROR_NOT_FOUND);
}

static void test_content_of_another_size_is_not_written(void **state)
{
	struct stage *stage = *state;
	const char *path = path_of(stage, "root/file");
	struct span content = SPAN_LITERAL("content");
	assert_failed(write_file(stage, path, content, content.len + 1), ERROR_PROTOCOL);
	assert_failed(write_file(stage, path, content, content.len - 1), ERROR_PROTOCOL);
	assert_failed(ask(stage, RUNNER_STAT, path, NULL), ERROR_NOT_FOUND);
}

/* The last write wins, even if its content arrives first. */
static void test_writes_of_one_path_keep_their_order(void **state)
{
	struct stage *stage = *state;
	struct test_stream streams[2];
	struct test_stream stream;
	uint64_t ids[2];
	const char *path = path_of(stage, "root/file");
	for (int i = 0; i < 2; i++) {
		struct runner_message message = {
			.kind = RUNNER_WRITE, .id = ids[i] = ++stage->runner.last_id};
		message.file = (struct runner_file){.path = span_of(path), .size = 5};
		message.file.stream = test_stream_open(
			&stage->runner, &streams[i], MUX_OUT, MUX_BULK, MUX_WINDOW_FILE);
		test_runner_send(&stage->runner, &message);
	}
	test_stream_put(&streams[1], SPAN_LITERAL("later"), true);
	assert_int_equal(ask(stage, RUNNER_STAT, stage->root, NULL)->kind, RUNNER_STATUS_OF);
	test_stream_put(&streams[0], SPAN_LITERAL("first"), true);
	test_runner_await(&stage->runner, RUNNER_DONE, ids[0]);
	test_runner_await(&stage->runner, RUNNER_DONE, ids[1]);
	(void)read_file(stage, path, 100, &stream);
	assert_true(span_is(buf_span(&stream.bytes), "later"));
	test_stream_finish(&stream);
	test_stream_finish(&streams[0]);
	test_stream_finish(&streams[1]);
}

static void test_cancelled_write_does_not_hold_up_others(void **state)
{
	enum { COUNT = 8 }; // more than are in memory at once
	struct stage *stage = *state;
	struct test_stream streams[COUNT];
	uint64_t first = stage->runner.last_id + 1;
	for (int i = 0; i < COUNT; i++) {
		struct runner_message message = {
			.kind = RUNNER_WRITE, .id = ++stage->runner.last_id};
		message.file = (struct runner_file){
			.path = span_of(path_of(stage, "root/file")), .size = 5};
		message.file.stream = test_stream_open(
			&stage->runner, &streams[i], MUX_OUT, MUX_BULK, MUX_WINDOW_FILE);
		test_runner_send(&stage->runner, &message);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		test_runner_send(&stage->runner,
			&(struct runner_message){.kind = RUNNER_CANCEL, .id = first + i});
	}
	struct span content = SPAN_LITERAL("other");
	assert_int_equal(
		write_file(stage, path_of(stage, "root/other"), content, content.len)->kind,
		RUNNER_DONE);
	for (int i = 0; i < COUNT; i++) {
		test_stream_finish(&streams[i]);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_written_file_can_be_read),
		CASE(test_large_files_go_through),
		CASE(test_many_reads_take_turns),
		CASE(test_ways_out_of_the_roots_are_refused),
		CASE(test_links_inside_are_followed_or_refused),
		CASE(test_stat_tells_what_is_there),
		CASE(test_list_tells_names_and_types),
		CASE(test_roots_come_and_go),
		CASE(test_content_of_another_size_is_not_written),
		CASE(test_writes_of_one_path_keep_their_order),
		CASE(test_cancelled_write_does_not_hold_up_others),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
