/* SPDX-License-Identifier: MIT */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/span.h"

/*
 * Cases that the conformance table cannot see from outside: roots that overlap, that are links, or
 * that are swapped; and kernels without openat2.
 */
static char folder[PATH_MAX];

static const char *below(const char *name)
{
	static char paths[8][PATH_MAX];
	static int next;
	char *path = paths[next++ % 8];
	snprintf(path, PATH_MAX, "%.4000s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *content)
{
	struct error err;
	int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, span_of(content), &err));
	close(fd);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-confine-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct confine *confine_of(const char *name, const char *real)
{
	struct confine *empty = confine_create();
	struct confine *confine = confine_extend(empty, name, real);
	confine_release(empty);
	return confine;
}

static void expect_walk(const struct confine *confine, const char *path, const char *expected)
{
	struct confined found;
	struct error err;
	if (!confine_walk(confine, path, CONFINE_MUST_EXIST, FILE_LINKS_FOLLOWED, &found, &err)) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(found.path, expected);
	confined_finish(&found);
}

static void expect_refused(const struct confine *confine, const char *path)
{
	struct confined found;
	struct error err;
	assert_false(
		confine_walk(confine, path, CONFINE_MAY_MISS, FILE_LINKS_FOLLOWED, &found, &err));
	assert_int_equal(err.code, ERROR_DENIED);
	assert_string_equal(err.reason, "SECURITY_VIOLATION");
	assert_non_null(strstr(err.text, path));
}

static void test_nothing_is_inside_without_roots(void **state)
{
	struct confine *confine = confine_create();
	expect_refused(confine, "/");
	expect_refused(confine, "/etc/passwd");
	confine_release(confine);
	confine_release(NULL);
}

static void test_a_root_may_be_reached_by_a_link(void **state)
{
	assert_int_equal(mkdir(below("real"), 0755), 0);
	assert_int_equal(symlink("real", below("link")), 0);
	put("real/file", "x");
	struct confine *confine = confine_of(below("link"), below("real"));
	expect_walk(confine, below("link/file"), below("link/file"));
	expect_walk(confine, below("real/file"), below("link/file")); // what getcwd(3) says
	expect_walk(confine, below("link/../real/file"), below("link/file"));
	expect_refused(confine, below("other"));
	confine_release(confine);
}

static void test_a_link_leads_from_one_root_to_another(void **state)
{
	assert_int_equal(mkdir(below("one"), 0755) | mkdir(below("two"), 0755), 0);
	assert_int_equal(symlink("../two/file", below("one/relative")), 0);
	assert_int_equal(symlink(below("two/file"), below("one/absolute")), 0);
	assert_int_equal(symlink("../three/file", below("one/out")), 0);
	put("two/file", "x");
	struct confine *one = confine_of(below("one"), below("one"));
	expect_refused(one, below("one/relative"));
	struct confine *both = confine_extend(one, below("two"), below("two"));
	expect_walk(both, below("one/relative"), below("two/file"));
	expect_walk(both, below("one/absolute"), below("two/file"));
	expect_refused(both, below("one/out"));
	expect_refused(one, below("one/absolute")); // a set of roots does not change
	confine_release(one);
	confine_release(both);
}

static void test_a_set_knows_what_is_in_it(void **state)
{
	struct confine *confine = confine_of("/name", "/real");
	assert_true(confine_has(confine, "/name", "/real"));
	assert_false(confine_has(confine, "/name", "/other"));
	assert_false(confine_has(confine, "/real", "/real"));
	confine_release(confine);
}

static void test_roots_may_lie_in_each_other(void **state)
{
	assert_int_equal(mkdir(below("one"), 0755) | mkdir(below("one/two"), 0755), 0);
	put("one/two/file", "x");
	struct confine *outer = confine_of(below("one"), below("one"));
	struct confine *both = confine_extend(outer, below("one/two"), below("one/two"));
	expect_walk(both, below("one/two/../two/file"), below("one/two/file"));
	struct confine *inner = confine_of(below("one/two"), below("one/two"));
	expect_walk(inner, below("one/two/file"), below("one/two/file"));
	expect_refused(inner, below("one/file"));
	expect_refused(inner, below("one/two/../file"));
	confine_release(outer);
	confine_release(both);
	confine_release(inner);
}

static void test_a_root_replaced_by_a_link_is_refused(void **state)
{
	assert_int_equal(mkdir(below("root"), 0755) | mkdir(below("outside"), 0755), 0);
	put("outside/file", "x");
	struct confine *confine = confine_of(below("root"), below("root"));
	assert_int_equal(rmdir(below("root")), 0);
	assert_int_equal(symlink("outside", below("root")), 0);
	expect_refused(confine, below("root/file"));
	assert_int_equal(unlink(below("root")), 0);
	assert_int_equal(mkdir(below("root"), 0755), 0); // made anew, as by git clone
	put("root/file", "y");
	expect_walk(confine, below("root/file"), below("root/file"));
	confine_release(confine);
}

static void test_the_root_of_all_has_no_proc(void **state)
{
	put("file", "x");
	struct confine *confine = confine_of("/", "/");
	expect_walk(confine, below("file"), below("file"));
	expect_walk(confine, "/", "/");
	expect_walk(confine, "/..", "/");
	expect_walk(confine, "/tmp/../tmp", "/tmp");
	expect_refused(confine, "/proc/self/environ");
	expect_refused(confine, "/proc/self/root/etc/passwd");
	expect_refused(confine, "/proc/self/fd/0");
	confine_release(confine);
}

static void test_what_was_swapped_is_not_opened(void **state)
{
	put("file", "x");
	put("secret", "y");
	struct confine *confine = confine_of(folder, folder);
	struct confined found;
	struct error err;
	assert_true(confine_walk(
		confine, below("file"), CONFINE_MUST_EXIST, FILE_LINKS_FOLLOWED, &found, &err));
	assert_int_equal(unlink(below("file")), 0);
	assert_int_equal(symlink("secret", below("file")), 0);
	assert_int_equal(confined_open(&found, O_RDONLY, &err), -1);
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	confined_finish(&found);
	confine_release(confine);
}

static void test_descriptors_do_not_leak(void **state)
{
	assert_int_equal(mkdir(below("a"), 0755) | mkdir(below("a/b"), 0755), 0);
	assert_int_equal(symlink("../../..", below("a/b/out")), 0);
	assert_int_equal(symlink(below("a"), below("a/b/in")), 0);
	put("a/file", "x");
	struct confine *confine = confine_of(folder, folder);
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(before);
	static const char *const names[] = {"a/b/in/file", "a/b/out", "a/../a/b/../file",
		"a/b/none", "a/file/x", "a/b/in/b/in/b/in/none/none"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int missing = 0; missing < 2; missing++) {
			struct confined found;
			if (confine_walk(confine, below(names[i]), (enum confine_missing)missing,
				    FILE_LINKS_FOLLOWED, &found, NULL)) {
				confined_finish(&found);
			}
		}
	}
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(after);
	assert_int_equal(after, before);
	confine_release(confine);
}

/* ---- without links ---- */

static void expect_plain(const struct confine *confine, const char *path)
{
	struct confined found;
	struct error err;
	if (!confine_walk(confine, path, CONFINE_MAY_MISS, FILE_LINKS_REFUSED, &found, &err)) {
		fail_msg("%s", err.text);
	}
	assert_string_equal(found.path, path);
	confined_finish(&found);
}

static void expect_not_plain(const struct confine *confine, const char *path, const char *rule)
{
	struct confined found;
	struct error err;
	assert_false(
		confine_walk(confine, path, CONFINE_MAY_MISS, FILE_LINKS_REFUSED, &found, &err));
	assert_int_equal(err.code, ERROR_DENIED);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, rule));
}

static void test_where_links_are_refused_only_plain_names_lead_on(void **state)
{
	static const char *const plain[] = {"one", "one/a", "one/a/file", "one/none/at/all"};
	static const char *const others[] = {
		"one/in", "one/in/file", "one/in/none", "one/loop", "one/a/../a/file", "one/a/.."};
	assert_int_equal(mkdir(below("one"), 0755) | mkdir(below("one/a"), 0755), 0);
	assert_int_equal(symlink("a", below("one/in")) | symlink("loop", below("one/loop")), 0);
	put("one/a/file", "x");
	struct confine *confine = confine_of(below("one"), below("one"));
	for (size_t i = 0; i < ARRAY_LENGTH(plain); i++) {
		expect_plain(confine, below(plain[i]));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		expect_not_plain(confine, below(others[i]), "free of links");
	}
	expect_not_plain(confine, below("one-more"), "leads out of");
	confine_release(confine);
}

/* The result of a walk can be walked again, even if the root's own name goes through a link. */
static void test_a_resolved_path_begins_with_the_longest_root(void **state)
{
	assert_int_equal(mkdir(below("one"), 0755) | mkdir(below("two"), 0755), 0);
	assert_int_equal(symlink("../two", below("one/link")), 0);
	put("two/file", "x");
	struct confine *one = confine_of(below("one"), below("one"));
	struct confine *both = confine_extend(one, below("one/link"), below("two"));
	expect_walk(both, below("one/link/file"), below("one/link/file"));
	expect_plain(both, below("one/link/file"));
	expect_not_plain(one, below("one/link/file"), "free of links");
	confine_release(both);
	confine_release(one);
	struct confine *all = confine_of("/", "/");
	expect_plain(all, below("two/file"));
	expect_not_plain(all, below("one/link/file"), "free of links");
	confine_release(all);
}

/* ---- without openat2 ---- */

/* From here on openat2 does not exist for this process. */
static bool forbid_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const struct CMUnitTest walk_tests[] = {
	cmocka_unit_test_setup_teardown(test_nothing_is_inside_without_roots, set_up, tear_down),
	cmocka_unit_test_setup_teardown(test_a_root_may_be_reached_by_a_link, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_a_link_leads_from_one_root_to_another, set_up, tear_down),
	cmocka_unit_test(test_a_set_knows_what_is_in_it),
	cmocka_unit_test_setup_teardown(test_roots_may_lie_in_each_other, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_a_root_replaced_by_a_link_is_refused, set_up, tear_down),
	cmocka_unit_test_setup_teardown(test_the_root_of_all_has_no_proc, set_up, tear_down),
	cmocka_unit_test_setup_teardown(test_what_was_swapped_is_not_opened, set_up, tear_down),
	cmocka_unit_test_setup_teardown(test_descriptors_do_not_leak, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_where_links_are_refused_only_plain_names_lead_on, set_up, tear_down),
	cmocka_unit_test_setup_teardown(
		test_a_resolved_path_begins_with_the_longest_root, set_up, tear_down),
};

int main(void)
{
	int failed = cmocka_run_group_tests_name("with openat2", walk_tests, NULL, NULL);
	if (!forbid_openat2()) {
		fputs("no seccomp here: the way without openat2 was not tested\n", stderr);
		return failed;
	}
	return failed + cmocka_run_group_tests_name("without openat2", walk_tests, NULL, NULL);
}
