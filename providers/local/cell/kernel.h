/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_KERNEL_H
#define PROVIDERS_LOCAL_CELL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The system calls about mounts that a cell needs, by descriptor, so that no name is resolved
 * twice. Linux 5.12 has them all. Each fails with ERROR_SYSTEM and errno's text; `errno` is kept.
 */

/* What a file system in memory may hold: its size, in percent of this machine's memory. */
struct kernel_room {
	const char *size;
	int inodes;
};

/* A new file system that is mounted nowhere: its descriptor, or -1. `attributes`: MOUNT_ATTR_… */
int kernel_new_tmpfs(
	const char *mode, const struct kernel_room *room, uint64_t attributes, struct error *err);
int kernel_new_proc(struct error *err);
int kernel_new_devpts(struct error *err);

/*
 * A copy of the mounts at and below a path, mounted nowhere: its descriptor, or -1. No part of the
 * path may be a link (ELOOP): somebody who was in a cell may have made it.
 */
int kernel_copy_mounts(int folder_fd, const char *path, struct error *err);

/* Mounts what the two above have made on `target`. */
bool kernel_attach(int mount_fd, int target_fd, struct error *err) ATTR_NODISCARD;

/* MOUNT_ATTR_… of a mount, and, where `is_deep`, of all below it. */
struct kernel_change {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation; // MS_PRIVATE, MS_SLAVE, MS_SHARED; 0: as it is
	bool is_deep;
};
bool kernel_change(
	int mount_fd, const struct kernel_change *change, struct error *err) ATTR_NODISCARD;

/* openat2(2): a path as it is below `root_fd`, with `root_fd` as "/". -1 where it fails. */
int kernel_open_in(int root_fd, const char *path, uint64_t flags, bool follows_links);

/* Takes the topmost mount off a path, for all that happens later. */
void kernel_take_off(const char *path);

/* The current folder becomes the root; what was the root is not reachable any more. */
bool kernel_enter_root(struct error *err) ATTR_NODISCARD;

#endif
