/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_KERNEL_H
#define PROVIDERS_LOCAL_CELL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * System calls about mounts, by descriptor, so that no path is resolved twice. They need Linux
 * 5.12. Each function fails with ERROR_SYSTEM and errno's text, and keeps `errno`.
 */

/* The limits of a file system in memory; the size is a percentage of this machine's memory. */
struct kernel_room {
	const char *size;
	int inodes;
};

/*
 * Makes a file system and mounts it nowhere. Returns its descriptor, or -1. `attributes`:
 * MOUNT_ATTR_…
 */
int kernel_new_tmpfs(
	const char *mode, const struct kernel_room *room, uint64_t attributes, struct error *err);
int kernel_new_proc(struct error *err);
int kernel_new_devpts(struct error *err);

/*
 * Copies the mounts at and below a path, and mounts the copy nowhere. Returns its descriptor, or
 * -1. Fails with ELOOP if a part of the path is a link, because a process in an earlier cell may
 * have made it.
 */
int kernel_copy_mounts(int folder_fd, const char *path, struct error *err);

/* Mounts what the two functions above made on `target`. */
bool kernel_attach(int mount_fd, int target_fd, struct error *err) ATTR_NODISCARD;

/* Changes MOUNT_ATTR_… of a mount and, with `is_deep`, of all mounts below it. */
struct kernel_change {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation; // MS_PRIVATE, MS_SLAVE, MS_SHARED; 0: unchanged
	bool is_deep;
};
bool kernel_change(
	int mount_fd, const struct kernel_change *change, struct error *err) ATTR_NODISCARD;

/* openat2(2): resolves a path with `root_fd` as "/". Returns -1 on failure. */
int kernel_open_in(int root_fd, const char *path, uint64_t flags, bool follows_links);

/* Unmounts the topmost mount at a path, for all later uses of the path. */
void kernel_take_off(const char *path);

/* Makes the current folder the root. The old root cannot be reached any more. */
bool kernel_enter_root(struct error *err) ATTR_NODISCARD;

#endif
