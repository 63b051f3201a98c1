/* SPDX-License-Identifier: MIT */
#include "providers/local/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/file_io.h"
#include "tests/support/facts.h"

enum { SOMEBODY = 12345, SWAPS = 300 };

static const struct owner owner = {.is_other = true, .uid = SOMEBODY, .gid = SOMEBODY};
static const atomic_bool goes_on;
static char folder[64];
static struct error err;

static const char *below(const char *name)
{
	static char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, mode_t mode)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, "text\n", 5), 5);
	fd_close(&fd);
}

static struct stat status_of(const char *name)
{
	struct stat status;
	assert_int_equal(lstat(below(name), &status), 0);
	return status;
}

static int set_up(void **state)
{
	umask(022);
	text_whole(folder, sizeof(folder), "/tmp/test-local-owner-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(mkdir(below("outside"), 0755), 0);
	write_file("outside/file", 0600);
	assert_int_equal(mkdir(below("copy"), 0755), 0);
	assert_int_equal(mkdir(below("copy/deep"), 0700), 0);
	write_file("copy/deep/file", 04755);
	return 0;
}

static int tear_down(void **state)
{
	return remove_folder(folder, &err) ? 0 : -1;
}

static struct owner_left give(void)
{
	char copy[PATH_MAX];
	struct owner_left left = {0};
	text_whole(copy, sizeof(copy), "%s", below("copy"));
	err.text[0] = '\0';
	bool is_given = owner_give(copy, &owner, &goes_on, &left, &err);
	assert_string_equal(err.text, "");
	assert_true(is_given);
	return left;
}

static void assert_owner(const char *name, uid_t user)
{
	assert_int_equal(status_of(name).st_uid, user);
	assert_int_equal(status_of(name).st_gid, user);
}

static void test_all_in_it_is_given_and_no_set_user_id_stays(void **state)
{
	struct owner_left left = give();
	assert_owner("copy", SOMEBODY);
	assert_owner("copy/deep", SOMEBODY);
	assert_owner("copy/deep/file", SOMEBODY);
	assert_int_equal(status_of("copy/deep/file").st_mode & 07777, 0755);
	assert_int_equal(status_of("copy/deep").st_mode & 07777, 0700);
	assert_owner("outside", 0);
	assert_int_equal(left.linked + left.deep, 0);
}

static void test_a_link_is_given_and_not_what_it_leads_to(void **state)
{
	char target[PATH_MAX];
	text_whole(target, sizeof(target), "%s", below("outside"));
	assert_int_equal(symlink(target, below("copy/folder")), 0);
	text_whole(target, sizeof(target), "%s", below("outside/file"));
	assert_int_equal(symlink(target, below("copy/deep/link")), 0);
	give();
	assert_owner("copy/folder", SOMEBODY);
	assert_owner("copy/deep/link", SOMEBODY);
	assert_owner("outside", 0);
	assert_owner("outside/file", 0);
}

static void test_a_file_with_another_name_stays_and_is_counted(void **state)
{
	char from[PATH_MAX];
	text_whole(from, sizeof(from), "%s", below("outside/file"));
	assert_int_equal(link(from, below("copy/deep/second")), 0);
	assert_int_equal(give().linked, 1);
	assert_owner("outside/file", 0);
	assert_owner("copy/deep/file", SOMEBODY);
	assert_int_equal(status_of("outside/file").st_mode & 07777, 0600);
}

static void test_the_folder_itself_may_be_no_link(void **state)
{
	char path[PATH_MAX];
	struct owner_left left = {0};
	text_whole(path, sizeof(path), "%s", below("outside"));
	assert_int_equal(symlink(path, below("link")), 0);
	text_whole(path, sizeof(path), "%s", below("link"));
	assert_false(owner_give(path, &owner, &goes_on, &left, &err));
	assert_names(err.text, "link");
	assert_owner("outside/file", 0);
}

/* Two names are swapped all the time: a folder, and a link to a folder outside. */
static void test_who_swaps_names_meanwhile_gets_nothing(void **state)
{
	char one[PATH_MAX], other[PATH_MAX];
	text_whole(one, sizeof(one), "%s", below("outside"));
	text_whole(other, sizeof(other), "%s", below("copy/other"));
	assert_int_equal(symlink(one, other), 0);
	text_whole(one, sizeof(one), "%s", below("copy/deep"));
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // a failed assertion leaves this function
		while (getppid() == parent) {
			syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
		}
		_exit(0);
	}
	for (int i = 0; i < SWAPS; i++) {
		give();
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_owner("outside", 0);
	assert_owner("outside/file", 0);
}

/* In a mount namespace of its own: 77 where that is forbidden. */
static int try_mount(void)
{
	char outside[PATH_MAX];
	struct owner_left left = {0};
	text_whole(outside, sizeof(outside), "%s", below("outside"));
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount(outside, below("copy/deep"), NULL, MS_BIND, NULL) != 0) {
		return 77;
	}
	return owner_give(below("copy"), &owner, &goes_on, &left, &err) ? 0 : 1;
}

static void test_another_mount_is_not_entered(void **state)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		_exit(try_mount());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77) {
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_owner("copy", SOMEBODY);
	assert_owner("outside", 0);
	assert_owner("outside/file", 0);
}

static void test_it_can_be_given_up(void **state)
{
	const atomic_bool is_cancelled = true;
	struct owner_left left = {0};
	assert_false(owner_give(below("copy"), &owner, &is_cancelled, &left, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_owner("copy", 0);
}

static void test_the_owner_of_a_folder_is_never_root(void **state)
{
	struct owner found = owner_find(folder);
	assert_true(found.is_other);
	assert_int_equal(found.uid, OWNER_OF_ROOTS);
	assert_int_equal(found.gid, OWNER_OF_ROOTS);
	assert_int_equal(chown(folder, SOMEBODY, 0), 0);
	found = owner_find(folder);
	assert_int_equal(found.uid, SOMEBODY);
	assert_int_not_equal(found.gid, 0);
	assert_int_equal(owner_find(below("missing")).uid, OWNER_OF_ROOTS);
}

/* ---- file operations for somebody ---- */

static bool write_as_owner(const struct confine *confine, const char *name)
{
	bool is_written =
		owner_enter(&owner, &err) &&
		file_write(confine, below(name), FILE_LINKS_FOLLOWED, span_of("new\n"), &err);
	owner_leave(&owner);
	return is_written;
}

/*
 * The way to the root does not belong to the owner. Files in it that are not the owner's stay
 * closed.
 */
static void test_files_are_used_with_the_owners_permissions(void **state)
{
	struct buf content;
	struct confine *none = confine_create();
	none->owner = owner;
	struct confine *confine = confine_extend(none, below("copy"), below("copy"));
	write_file("copy/deep/closed", 0600);
	assert_int_equal(chown(below("copy"), SOMEBODY, SOMEBODY), 0);
	assert_int_equal(chown(below("copy/deep"), SOMEBODY, SOMEBODY), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_true(write_as_owner(confine, "copy/deep/one/two/new"));
	assert_owner("copy/deep/one", SOMEBODY);
	assert_owner("copy/deep/one/two", SOMEBODY);
	assert_owner("copy/deep/one/two/new", SOMEBODY);
	assert_int_equal(status_of("copy/deep/one/two/new").st_mode & 07777, 0644);
	assert_false(write_as_owner(confine, "copy/deep/closed"));
	assert_true(owner_enter(&owner, &err));
	assert_false(file_read(
		confine, below("copy/deep/closed"), FILE_LINKS_FOLLOWED, 100, &content, &err));
	owner_leave(&owner);
	assert_owner("copy/deep/closed", 0);
	int fd = open(below("copy/deep/closed"), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0); // root again
	fd_close(&fd);
	confine_release(confine);
	confine_release(none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_in_it_is_given_and_no_set_user_id_stays),
		TEST(test_a_link_is_given_and_not_what_it_leads_to),
		TEST(test_a_file_with_another_name_stays_and_is_counted),
		TEST(test_the_folder_itself_may_be_no_link),
		TEST(test_who_swaps_names_meanwhile_gets_nothing),
		TEST(test_another_mount_is_not_entered),
		TEST(test_it_can_be_given_up),
		TEST(test_the_owner_of_a_folder_is_never_root),
		TEST(test_files_are_used_with_the_owners_permissions),
	};
	if (geteuid() != 0) {
		return 77; // only a broker that runs as root has such an owner
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
