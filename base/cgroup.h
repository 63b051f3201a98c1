/* SPDX-License-Identifier: MIT */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

/*
 * Finds the hierarchy of cgroup v2, and reads and writes the files in it (the kernel's
 * admin-guide/cgroup-v2). For base/freeze_group.c and base/limit_group.c.
 */
enum { CGROUP_PATH_MAX = 1024 };

/* Where cgroup v2 is mounted, alone or beside cgroup v1; "" if it is not mounted. */
const char *cgroup_mount(void);

/*
 * The path of a process's cgroup in the hierarchy. False if the process has ended, or there is no
 * cgroup v2.
 */
bool cgroup_path_of(pid_t pid, char out[CGROUP_PATH_MAX]) ATTR_NODISCARD;

/*
 * Opens the cgroup of this path, which must be the cgroup of the process (or of this process).
 * Returns its file descriptor, or -1.
 */
int cgroup_open_of(const char *path, pid_t pid) ATTR_NODISCARD;
int cgroup_open_own(const char *path) ATTR_NODISCARD;

/* The path of an open cgroup in the hierarchy. */
bool cgroup_path(int group_fd, char out[CGROUP_PATH_MAX]) ATTR_NODISCARD;

/* False with errno. */
bool cgroup_write(int group_fd, const char *file, const char *text) ATTR_NODISCARD;

/* Reads a file that holds one number; "max" is UINT64_MAX. */
bool cgroup_read(int group_fd, const char *file, uint64_t *out_number) ATTR_NODISCARD;

/* Reads the number of a key from a file with lines "KEY NUMBER"; 0 if the key is missing. */
uint64_t cgroup_read_key(int group_fd, const char *file, const char *key);

/*
 * Reads an event file after poll(2) reported a change (POLLPRI), so that poll reports the next
 * change. Once the cgroup is removed, poll would report a change forever; in that case the function
 * closes *fd and sets it to -1. Does nothing if *fd is -1.
 */
void cgroup_take_event(int *fd);

/* Kills all processes in the cgroup. */
void cgroup_kill(int group_fd);

#endif
