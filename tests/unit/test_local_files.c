/* SPDX-License-Identifier: MIT */
#include "base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/libc.h"

/*
 * Cases that the conformance table cannot make from outside: killed writers, and names that are
 * swapped quickly.
 */
static char folder[PATH_MAX];
static struct confine *confine;

static const char *below(const char *name)
{
	static char paths[8][PATH_MAX];
	static int next;
	char *path = paths[next++ % 8];
	snprintf(path, PATH_MAX, "%.4000s/%s", folder, name);
	return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-local-files-XXXXXX");
	if (!mkdtemp(folder) || mkdir(below("root"), 0755) != 0) {
		return -1;
	}
	struct confine *empty = confine_create();
	confine = confine_extend(empty, below("root"), below("root"));
	confine_release(empty);
	return 0;
}

static int tear_down(void **state)
{
	confine_release(confine);
	return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void expect_write(const char *name, struct span content)
{
	struct error err;
	if (!file_write(confine, below(name), FILE_LINKS_FOLLOWED, content, &err)) {
		fail_msg("%s", err.text);
	}
}

static struct buf expect_read(const char *name)
{
	struct buf content;
	struct error err;
	if (!file_read(confine, below(name), FILE_LINKS_FOLLOWED, SIZE_MAX / 2, &content, &err)) {
		fail_msg("%s", err.text);
	}
	return content;
}

static int count_entries(const char *name)
{
	DIR *dir = opendir(below(name));
	int count = -2;
	assert_non_null(dir);
	while (readdir(dir)) {
		count++;
	}
	closedir(dir);
	return count;
}

/* ---- killed writers ---- */

enum { LARGE = 2 << 20, KILLS = 60 };

static void write_for_ever(void) __attribute__((noreturn));
static void write_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); // not longer than the test, which may fail
	char *content = mem_alloc(LARGE);
	for (int i = 0;; i++) {
		struct error err;
		memset(content, 'a' + i % 26, LARGE);
		if (!file_write(confine, below("root/file"), FILE_LINKS_FOLLOWED,
			    (struct span){content, LARGE}, &err)) {
			_exit(1);
		}
	}
}

static void test_a_killed_writer_leaves_the_old_or_the_new(void **state)
{
	char *content = mem_alloc_zero(LARGE);
	memset(content, 'z', LARGE);
	expect_write("root/file", (struct span){content, LARGE});
	free(content);
	for (int i = 0; i < KILLS; i++) {
		pid_t writer = fork();
		if (writer == 0) {
			write_for_ever();
		}
		usleep((useconds_t)(1000 + i * 397 % 20000));
		assert_int_equal(kill(writer, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(writer, &status, 0), writer);
		assert_true(WIFSIGNALED(status));
		struct buf read = expect_read("root/file");
		struct span bytes = buf_span(&read);
		assert_int_equal(bytes.len, LARGE);
		assert_true(memcmp(bytes.data, bytes.data + 1, LARGE - 1) == 0); // all alike
		buf_finish(&read);
	}
	/* A writer can leave only one name, if it is killed between link and rename. */
	assert_in_range(count_entries("root"), 1, 4);
}

/* ---- swapped names ---- */

static void swap_for_ever(void) __attribute__((noreturn));
static void swap_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (libc_rename(AT_FDCWD, below("root/swap"), AT_FDCWD, below("root/link"),
			    RENAME_EXCHANGE) != 0) {
			_exit(1);
		}
	}
}

/* Two processes on purpose: at one name, a folder and a link to the outside replace each other. */
static void test_swapped_links_lead_nowhere(void **state)
{
	assert_int_equal(mkdir(below("outside"), 0755) | mkdir(below("root/swap"), 0755), 0);
	assert_int_equal(symlink("../outside", below("root/link")), 0);
	int fd = open(below("outside/secret"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "secret", 6), 6);
	close(fd);
	expect_write("root/swap/secret", SPAN_LITERAL("inside"));
	pid_t swapper = fork();
	if (swapper == 0) {
		swap_for_ever();
	}
	int refused = 0;
	int done = 0;
	long long end_ms = clock_now_ms() + 1500;
	while (clock_now_ms() < end_ms) {
		struct buf content;
		struct error err;
		if (file_read(confine, below("root/swap/secret"), FILE_LINKS_FOLLOWED, 100,
			    &content, &err)) {
			assert_int_equal(content.len, 6);
			assert_memory_equal(buf_span(&content).data, "inside", 6);
			buf_finish(&content);
			done++;
		} else {
			assert_int_equal(err.code, ERROR_DENIED);
			refused++;
		}
		if (!file_write(confine, below("root/swap/new/deep"), FILE_LINKS_FOLLOWED,
			    SPAN_LITERAL("x"), &err)) {
			assert_int_equal(err.code, ERROR_DENIED);
		}
	}
	assert_int_equal(kill(swapper, SIGKILL), 0);
	assert_int_equal(waitpid(swapper, NULL, 0), swapper);
	assert_true(done > 10);
	assert_true(refused > 10);
	assert_int_equal(count_entries("outside"), 1);
	char secret[8] = "";
	fd = open(below("outside/secret"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, secret, sizeof(secret)), 6);
	close(fd);
	assert_string_equal(secret, "secret");
}

/* ---- the rest ---- */

static void append_for_ever(void) __attribute__((noreturn));
static void append_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = open(below("root/file"), O_WRONLY | O_TRUNC | O_CLOEXEC);
		for (int i = 0; i < 400; i++) {
			if (write(fd, "0123456789", 10) != 10) {
				_exit(1);
			}
		}
		close(fd);
	}
}

static void test_a_file_that_grows_while_it_is_read_is_limited(void **state)
{
	expect_write("root/file", SPAN_LITERAL(""));
	pid_t appender = fork();
	if (appender == 0) {
		append_for_ever();
	}
	for (int i = 0; i < 3000; i++) {
		struct buf content;
		struct error err;
		if (file_read(confine, below("root/file"), FILE_LINKS_FOLLOWED, 1000, &content,
			    &err)) {
			assert_in_range(content.len, 0, 1000);
			buf_finish(&content);
		} else {
			assert_int_equal(err.code, ERROR_LIMIT);
		}
	}
	assert_int_equal(kill(appender, SIGKILL), 0);
	assert_int_equal(waitpid(appender, NULL, 0), appender);
}

/* The end of the file costs no memory, because a large content would have to move. */
static void test_a_file_is_read_into_memory_of_its_size(void **state)
{
	char *bytes = mem_alloc_zero(LARGE);
	const size_t sizes[] = {1, 1000, 4096, LARGE};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		expect_write("root/file", (struct span){bytes, sizes[i]});
		struct buf content = expect_read("root/file");
		assert_int_equal(content.len, sizes[i]);
		assert_in_range(content.capacity, sizes[i], sizes[i] + 512);
		buf_finish(&content);
	}
	free(bytes);
}

static void test_a_hard_link_keeps_its_content(void **state)
{
	expect_write("root/one", SPAN_LITERAL("old"));
	assert_int_equal(link(below("root/one"), below("root/two")), 0);
	expect_write("root/one", SPAN_LITERAL("new"));
	struct buf two = expect_read("root/two");
	assert_int_equal(two.len, 3);
	assert_memory_equal(buf_span(&two).data, "old", 3);
	buf_finish(&two);
}

static void test_setuid_does_not_survive_a_write(void **state)
{
	expect_write("root/file", SPAN_LITERAL("old"));
	assert_int_equal(chmod(below("root/file"), 06755), 0);
	expect_write("root/file", SPAN_LITERAL("new"));
	struct stat status;
	assert_int_equal(stat(below("root/file"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0755);
}

static void test_a_read_only_file_is_not_replaced(void **state)
{
	expect_write("root/file", SPAN_LITERAL("old"));
	assert_int_equal(chmod(below("root/file"), 0444), 0);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(below("root"), 0777), 0);
	pid_t child = fork();
	if (child == 0) {
		struct error err = {0};
		if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
			_exit(3);
		}
		bool is_written = file_write(confine, below("root/file"), FILE_LINKS_FOLLOWED,
			SPAN_LITERAL("new"), &err);
		_exit(is_written || !strstr(err.text, "Permission denied"));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct buf content = expect_read("root/file");
	assert_memory_equal(buf_span(&content).data, "old", 3);
	buf_finish(&content);
}

static void test_a_full_disk_leaves_the_old_file(void **state)
{
	expect_write("root/file", SPAN_LITERAL("old"));
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit = {1000, 1000};
		struct error err = {0};
		char content[2000] = "";
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
			_exit(3);
		}
		bool is_written = file_write(confine, below("root/file"), FILE_LINKS_FOLLOWED,
			(struct span){content, sizeof(content)}, &err);
		_exit(is_written || !strstr(err.text, "writing"));
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct buf content = expect_read("root/file");
	assert_int_equal(content.len, 3);
	buf_finish(&content);
	assert_int_equal(count_entries("root"), 1);
}

/* ---- reading what is in memory ---- */

/* Empty if file_read has to read the file. */
static struct buf read_cached(const char *path, enum file_links links, size_t max_bytes)
{
	struct buf content;
	if (!file_read_cached(confine, path, links, max_bytes, &content)) {
		buf_init(&content, 0);
	}
	return content;
}

static void expect_not_cached(const char *path, size_t max_bytes)
{
	for (int links = FILE_LINKS_FOLLOWED; links <= FILE_LINKS_REFUSED; links++) {
		struct buf content = read_cached(path, (enum file_links)links, max_bytes);
		assert_int_equal(content.len, 0);
		buf_finish(&content);
	}
}

/*
 * The test pretends that the root's disk can be read like this; if it cannot, the test shows
 * nothing.
 */
static bool can_read_cached(void)
{
	expect_write("root/file", SPAN_LITERAL("abc"));
	confine_set_disk(confine, file_disk_of(below("root")));
	struct buf once = expect_read("root/file");
	struct buf content = read_cached(below("root/file"), FILE_LINKS_FOLLOWED, 3);
	bool can = content.len > 0;
	assert_true(!can || span_is(buf_span(&content), "abc"));
	buf_finish(&once);
	buf_finish(&content);
	return can;
}

static void test_a_file_in_memory_is_read_at_once(void **state)
{
	if (!can_read_cached()) {
		skip();
	}
	struct buf content = read_cached(below("root//file"), FILE_LINKS_REFUSED, 3);
	assert_true(span_is(buf_span(&content), "abc"));
	buf_finish(&content);
	expect_not_cached(below("root/file"), 2);   // ERROR_LIMIT
	expect_not_cached(below("root/none"), 100); // ERROR_NOT_FOUND
	expect_not_cached(below("root"), 100);      // a folder
	expect_not_cached(below("root/"), 100);
	expect_not_cached("relative", 100);
	confine_set_disk(confine, 0); // a file system that may wait
	expect_not_cached(below("root/file"), 100);
}

static void test_a_file_in_memory_is_never_one_out_of_the_root(void **state)
{
	if (!can_read_cached()) {
		skip();
	}
	expect_write("root/in", SPAN_LITERAL("inside"));
	int fd = open(below("out"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "secret", 6), 6);
	close(fd);
	assert_int_equal(symlink("../out", below("root/link")), 0);
	assert_int_equal(symlink("..", below("root/up")), 0);
	assert_int_equal(mkfifo(below("root/fifo"), 0600), 0);
	expect_not_cached(below("out"), 100);
	expect_not_cached(below("root/link"), 100);
	expect_not_cached(below("root/up/out"), 100);
	expect_not_cached(below("root/../out"), 100);
	expect_not_cached(below("root/up/root/in"), 100);
	expect_not_cached(below("rootless"), 100);
	expect_not_cached(below("root/fifo"), 100);
}

/* If another folder, or a link, has replaced the root, a walk finds the new one. */
static void test_a_file_in_memory_is_that_of_the_present_root(void **state)
{
	if (!can_read_cached()) {
		skip();
	}
	assert_int_equal(rename(below("root"), below("old")), 0);
	assert_int_equal(symlink("old", below("root")), 0);
	expect_not_cached(below("root/file"), 100);
	assert_int_equal(unlink(below("root")), 0);
	assert_int_equal(mkdir(below("root"), 0700), 0);
	expect_not_cached(below("root/file"), 100);
}

static void test_roots_are_folders(void **state)
{
	char real[PATH_MAX];
	struct error err;
	expect_write("root/file", SPAN_LITERAL("x"));
	assert_int_equal(symlink("root", below("link")), 0);
	assert_true(file_find_root(below("link"), real, &err));
	assert_string_equal(real, below("root"));
	assert_false(file_find_root(below("none"), real, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_false(file_find_root(below("root/file"), real, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_killed_writer_leaves_the_old_or_the_new, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_swapped_links_lead_nowhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_grows_while_it_is_read_is_limited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_is_read_into_memory_of_its_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_hard_link_keeps_its_content, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_setuid_does_not_survive_a_write, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_read_only_file_is_not_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_full_disk_leaves_the_old_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_in_memory_is_read_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_in_memory_is_never_one_out_of_the_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_file_in_memory_is_that_of_the_present_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_roots_are_folders, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
