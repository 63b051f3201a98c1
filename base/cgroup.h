/* SPDX-License-Identifier: MIT */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

/*
 * Files of cgroup v2 (the kernel's admin-guide/cgroup-v2): where the hierarchy is, and what stands
 * in them. For base/freeze_group.c and base/limit_group.c.
 */
enum { CGROUP_PATH_MAX = 1024 };

/* Where the hierarchy is, alone or beside those of v1; "" where it is not to be found. */
const char *cgroup_mount(void);

/* The cgroup of a process, as in the hierarchy; false where it has ended, or there is no v2. */
bool cgroup_path_of(pid_t pid, char out[CGROUP_PATH_MAX]) ATTR_NODISCARD;

/* The cgroup of that path, where we are: its descriptor, or -1. */
int cgroup_open_own(const char *path) ATTR_NODISCARD;

/* The path of a cgroup that we have open, as in the hierarchy. */
bool cgroup_path(int group_fd, char out[CGROUP_PATH_MAX]) ATTR_NODISCARD;

/* False with errno. */
bool cgroup_write(int group_fd, const char *file, const char *text) ATTR_NODISCARD;

/* A file of one number; "max" is UINT64_MAX. */
bool cgroup_read(int group_fd, const char *file, uint64_t *out_number) ATTR_NODISCARD;

/* The number of a file whose lines are KEY NUMBER; 0 where it has none. */
uint64_t cgroup_read_key(int group_fd, const char *file, const char *key);

/*
 * Takes in the change that poll(2) told of an event file (POLLPRI), so that the next one is told.
 * Once the cgroup was removed there is none: the kernel would tell of it for ever, so *fd is
 * closed and -1. Nothing where it is -1.
 */
void cgroup_take_event(int *fd);

/* Kills all that is in it. */
void cgroup_kill(int group_fd);

#endif
