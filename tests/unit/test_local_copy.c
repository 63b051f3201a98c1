/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/remove_folder.h"
#include "providers/local/copy_lock.h"

/* Cases that the conformance table does not see: which files are copied, and which are not. */
static char folder[64];

/* A shell script in the test's folder, which has to succeed. */
static void run(const char *script)
{
	char all[2048];
	snprintf(all, sizeof(all), "set -e; cd %s; %s", folder, script);
	if (system(all) != 0) {
		fail_msg("%s", script);
	}
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-local-copy-XXXXXX");
	if (!mkdtemp(folder)) {
		return -1;
	}
	run("mkdir from to home; cd from; printf 'node_modules\\n*.o\\n!keep.o\\n' > .gitignore\n"
	    "mkdir -p node_modules/a/.git src/node_modules .git/info sub\n"
	    "echo n > node_modules/a/n; echo g > node_modules/a/.git/g; echo s > src/s\n"
	    "echo m > src/node_modules/m; echo o > src/x.o; echo k > keep.o; echo e > env\n"
	    "echo ref: refs/heads/main > .git/HEAD; echo env > .git/info/exclude\n"
	    "echo mine > sub/.gitignore; echo i > sub/mine\n"
	    "ln -s /etc/passwd node_modules/link; mkfifo node_modules/fifo\n"
	    "echo '#' > node_modules/run; chmod 755 node_modules/run\n"
	    "touch -d 2001-02-03 node_modules/run");
	return 0;
}

static int tear_down(void **state)
{
	struct error err;
	return remove_folder(folder, &err) ? 0 : -1;
}

static bool copy(bool is_cancelled, struct error *err)
{
	char from[128], to[128], own[128], home[128];
	atomic_bool cancelled = is_cancelled;
	snprintf(from, sizeof(from), "%s/from", folder);
	snprintf(to, sizeof(to), "%s/to", folder);
	snprintf(own, sizeof(own), "%s/own", folder);
	snprintf(home, sizeof(home), "%s/home", folder);
	struct ignored_copy request = {
		.from = from, .to = to, .own = own, .home = home, .is_cancelled = &cancelled};
	return copy_ignored(&request, err);
}

static void test_what_is_ignored_is_copied_and_nothing_else(void **state)
{
	struct error err;
	run("find from -exec stat -c '%n %a %Y' {} + | sort > before");
	assert_true(copy(false, &err));
	run("cd to; find . ! -type d | sort > ../got; printf '%s\\n' ./.gitignore ./env "
	    "./node_modules/a/.git/g ./node_modules/a/n ./node_modules/link ./node_modules/run "
	    "./src/node_modules/m ./src/x.o ./sub/.gitignore ./sub/mine | sort > ../wanted\n"
	    "diff ../wanted ../got >&2");
	run("test -L to/node_modules/link; test -x to/node_modules/run\n"
	    "test $(stat -c %Y to/node_modules/run) = $(stat -c %Y from/node_modules/run)\n"
	    "test ! -e own; find from -exec stat -c '%n %a %Y' {} + | sort | diff before -");
}

static void test_what_is_there_stays(void **state)
{
	struct error err;
	run("mkdir to/node_modules outside; echo other > to/env; ln -s ../outside to/src");
	assert_true(copy(false, &err));
	run("test $(cat to/env) = other; test -e to/node_modules/a/n; test -z \"$(ls outside)\"");
}

static void test_a_cancelled_copy_ends(void **state)
{
	struct error err;
	assert_false(copy(true, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	run("test -z \"$(ls -A to)\"; test ! -e own");
}

static void test_removing_takes_folders_that_are_not_writable(void **state)
{
	struct error err;
	char path[128];
	run("mkdir -p gone/a/b; echo x > gone/a/b/c; chmod 500 gone/a/b gone/a; ln -s ../from "
	    "gone/l");
	snprintf(path, sizeof(path), "%s/gone", folder);
	assert_true(remove_folder(path, &err));
	run("test ! -e gone; test -e from/env");
	assert_true(remove_folder(path, &err)); // already done
	run("d=gone; for i in $(seq 300); do d=$d/x; done; mkdir -p $d/y; echo x > $d/z\n"
	    "mkdir gone/.acp-broker-removed-1; chmod 0 gone/x");
	assert_true(remove_folder(path, &err));
	run("test ! -e gone");
}

/* git's configuration says where the user's own ignore rules are. */
static void test_what_the_users_own_rules_ignore_is_copied(void **state)
{
	struct error err;
	run("printf '[core]\\n\\texcludesFile = ~/mine\\n' > home/.gitconfig\n"
	    "echo '*.secret' > home/mine; echo x > from/sub/a.secret");
	assert_true(copy(false, &err));
	run("test -f to/sub/a.secret");
}

/* A killed broker's unfinished files are in its own folder, and go with the folder. */
static void test_what_a_killed_copy_left_is_removed(void **state)
{
	struct error err;
	run("mkdir own; echo half > own/file-0; echo half > own/file-1");
	assert_true(copy(false, &err));
	run("test ! -e own; ! grep -rq half to");
}

/* ---- one at a time ---- */

static int hold(void)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void test_a_folder_is_locked_until_the_descriptor_is_closed(void **state)
{
	atomic_bool cancelled = false;
	struct error err;
	int first = -1, second = -1;
	assert_true(copy_lock(folder, 1, &cancelled, &first, &err));
	assert_false(copy_lock(folder, 1, &cancelled, &second, &err));
	assert_int_equal(err.code, ERROR_TIMEOUT);
	assert_string_equal(err.reason, "TIMEOUT_EXCEEDED");
	assert_non_null(strstr(err.text, "prepare-timeout"));
	assert_int_equal(second, -1);
	fd_close(&first);
	assert_true(copy_lock(folder, 1, &cancelled, &second, &err));
	fd_close(&second);
}

static void test_who_waits_for_a_lock_gives_up_when_cancelled(void **state)
{
	atomic_bool cancelled = true;
	struct error err;
	int held = hold(), fd = -1;
	assert_false(copy_lock(folder, 0, &cancelled, &fd, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	fd_close(&held);
}

static void *replace_and_release(void *data)
{
	run("mv to away; mkdir to");
	fd_close(data);
	return NULL;
}

/* The one who had the lock has removed the folder, and somebody else has made it again. */
static void test_the_lock_of_a_folder_that_is_gone_is_none(void **state)
{
	atomic_bool cancelled = false;
	struct error err;
	char path[128];
	pthread_t thread;
	int fd = -1;
	snprintf(path, sizeof(path), "%s/to", folder);
	int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(pthread_create(&thread, NULL, replace_and_release, &held), 0);
	bool locked = copy_lock(path, 0, &cancelled, &fd, &err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	struct stat have, there;
	assert_int_equal(stat(path, &there), 0);
	assert_true(locked ? fstat(fd, &have) == 0 && have.st_ino == there.st_ino
			   : err.code == ERROR_NOT_FOUND);
	fd_close(&fd);
	snprintf(path, sizeof(path), "%s/nowhere", folder);
	assert_false(copy_lock(path, 0, &cancelled, &fd, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_what_the_users_own_rules_ignore_is_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_ignored_is_copied_and_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_there_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_cancelled_copy_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_a_killed_copy_left_is_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_folder_is_locked_until_the_descriptor_is_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_who_waits_for_a_lock_gives_up_when_cancelled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_lock_of_a_folder_that_is_gone_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_removing_takes_folders_that_are_not_writable, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
