/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

/* <sys/mount.h> defines these, but with some C libraries it conflicts with <linux/mount.h>. */
enum { UMOUNT_DETACH = 2, UMOUNT_NO_LINK = 8 };

static bool set_option(int fs_fd, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, key, value, 0) == 0;
}

static int open_fs(const char *type, struct error *err)
{
	int fd = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a file system of type %s", type);
		errno = errnum;
	}
	return fd;
}

static int mount_fs(int fs_fd, const char *type, uint64_t attributes, struct error *err)
{
	int fd = -1;
	if (syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
		fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, (unsigned)attributes);
	}
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a file system of type %s", type);
		errno = errnum;
	}
	return fd;
}

int kernel_new_tmpfs(
	const char *mode, const struct kernel_room *room, uint64_t attributes, struct error *err)
{
	char inodes[16];
	ATTR_CLEANUP(fd_cleanup) int fs_fd = open_fs("tmpfs", err);
	text_whole(inodes, sizeof(inodes), "%d", room->inodes);
	if (fs_fd < 0) {
		return -1;
	}
	if (!set_option(fs_fd, "mode", mode) || !set_option(fs_fd, "size", room->size) ||
		!set_option(fs_fd, "nr_inodes", inodes)) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a file system in memory");
		errno = errnum;
		return -1;
	}
	return mount_fs(fs_fd, "tmpfs", attributes, err);
}

int kernel_new_proc(struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fs_fd = open_fs("proc", err);
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	return fs_fd < 0 ? -1 : mount_fs(fs_fd, "proc", attributes, err);
}

int kernel_new_devpts(struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fs_fd = open_fs("devpts", err);
	if (fs_fd < 0) {
		return -1;
	}
	if (!set_option(fs_fd, "mode", "0620") || !set_option(fs_fd, "ptmxmode", "0666")) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a file system for terminals");
		errno = errnum;
		return -1;
	}
	return mount_fs(fs_fd, "devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
}

int kernel_copy_mounts(int folder_fd, const char *path, struct error *err)
{
	const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int place = (int)syscall(SYS_openat2, folder_fd, path, &how, sizeof(how));
	int fd = place < 0 ? -1 : (int)syscall(SYS_open_tree, place, "", flags);
	int errnum = errno;
	fd_close(&place);
	if (fd < 0) {
		error_set_errno(err, errnum, "showing %s", path);
		errno = errnum;
	}
	return fd;
}

bool kernel_attach(int mount_fd, int target_fd, struct error *err)
{
	const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
	if (syscall(SYS_move_mount, mount_fd, "", target_fd, "", flags) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "mounting");
	}
	return true;
}

bool kernel_change(int mount_fd, const struct kernel_change *change, struct error *err)
{
	struct mount_attr attr = {.attr_set = change->set,
		.attr_clr = change->clear,
		.propagation = change->propagation};
	unsigned flags = AT_EMPTY_PATH | (change->is_deep ? AT_RECURSIVE : 0);
	if (syscall(SYS_mount_setattr, mount_fd, "", flags, &attr, sizeof(attr)) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "changing the attributes of a mount");
		errno = errnum;
		return false;
	}
	return true;
}

int kernel_open_in(int root_fd, const char *path, uint64_t flags, bool follows_links)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
	                   (follows_links ? 0 : RESOLVE_NO_SYMLINKS)};
	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

void kernel_take_off(const char *path)
{
	(void)syscall(SYS_umount2, path, UMOUNT_DETACH | UMOUNT_NO_LINK);
}

bool kernel_enter_root(struct error *err)
{
	if (syscall(SYS_pivot_root, ".", ".") != 0 ||
		syscall(SYS_umount2, ".", UMOUNT_DETACH) != 0 || chdir("/") != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "leaving this machine's root folder");
	}
	return true;
}
