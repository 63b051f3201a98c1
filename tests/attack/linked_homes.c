/* SPDX-License-Identifier: MIT */
#include "tests/attack/linked_homes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/local/cell/mounts.h"

static bool write_text(const char *path, const char *text)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool make_namespaces(void)
{
	char users[64], groups[64];
	text_whole(users, sizeof(users), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
	text_whole(groups, sizeof(groups), "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) == 0 &&
	       write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", users) &&
	       write_text("/proc/self/gid_map", groups) &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Takes a folder or link into the current folder, unchanged. */
static bool take(const char *name)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat status;
	text_whole(from, sizeof(from), "/%s", name);
	if (lstat(from, &status) != 0) {
		return errno == ENOENT;
	}
	if (S_ISLNK(status.st_mode)) {
		ssize_t len = readlink(from, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		return symlink(to, name) == 0;
	}
	return mkdir(name, 0755) == 0 && mount(from, name, NULL, MS_BIND | MS_REC, NULL) == 0;
}

static bool make_machine(const char *folder)
{
	static const char *const taken[] = {
		"bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "usr"};
	static const char *const made[] = {
		"tmp", "run", "var", "var/home", "var/home/u", "var/home/other"};
	bool is_made = mount("none", folder, "tmpfs", 0, NULL) == 0 && chdir(folder) == 0;
	for (size_t i = 0; i < ARRAY_LENGTH(taken); i++) {
		is_made = is_made && take(taken[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(made); i++) {
		is_made = is_made && mkdir(made[i], 0755) == 0;
	}
	return is_made && symlink("var/home", "home") == 0 &&
	       write_text("var/home/other/key", "SECRET\n") &&
	       syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
	       chdir("/") == 0;
}

static enum linked_homes look(void)
{
	struct error err;
	const struct cell_plan plan = {
		.user = "u", .home = "/home/u", .uid = geteuid(), .gid = getegid()};
	static struct mounts_taken taken; // too large for a stack
	bool is_built = mounts_take(&taken, &plan, (struct span){NULL, 0}, false, &err) &&
	                mounts_build(&taken, &plan, &err);
	ATTR_CLEANUP(fd_cleanup) int root = is_built ? taken.root_fd : -1;
	if (root < 0) {
		fprintf(stderr, "%s\n", err.text);
		return LINKED_HOMES_FAILED;
	}
	bool is_shown = faccessat(root, "var/home/other/key", F_OK, 0) == 0 || fchdir(root) != 0 ||
	                chroot(".") != 0 || access("/home/other/key", F_OK) == 0 ||
	                access("/home/u", F_OK) != 0;
	return is_shown ? LINKED_HOMES_SHOWN : LINKED_HOMES_HIDDEN;
}

static int wait_for(pid_t pid)
{
	int status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : LINKED_HOMES_FAILED;
}

enum linked_homes linked_homes(const char *folder)
{
	pid_t pid = fork();
	if (pid != 0) {
		return (enum linked_homes)wait_for(pid);
	}
	if (!make_namespaces() || !make_machine(folder)) {
		perror("another machine");
		_exit(LINKED_HOMES_UNKNOWN);
	}
	pid = fork(); // the child is in the PID namespace, which /proc needs
	_exit(pid == 0 ? (int)look() : wait_for(pid));
}
