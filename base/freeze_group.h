/* SPDX-License-Identifier: MIT */
#ifndef BASE_FREEZE_GROUP_H
#define BASE_FREEZE_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/cgroup.h"
#include "base/error.h"
#include "base/tree.h"

/*
 * A guard's own cgroup, in which it freezes or kills processes as a whole. It is a cgroup v2 below
 * the guard's own cgroup, so that every limit of that one still applies. Processes in it cannot
 * leave it by forking, and cannot notice that they were frozen. The kernel's admin-guide/cgroup-v2
 * describes the files. Zero-initialise.
 */
enum {
	FREEZE_GROUP_END_MS = 1000, // how long the processes in an abandoned group may take to end
};

struct freeze_group {
	bool is_open;
	bool is_limited;           // lies in a limit group (base/limit_group.h)
	bool is_frozen;            // the last order was to freeze
	int own_fd;                // the cgroup that this process is in
	int fd;                    // the group, a child of own_fd; locked (flock)
	char name[40];             // the group's name
	char own[CGROUP_PATH_MAX]; // path of own_fd, as in /proc/self/cgroup
};

/*
 * Creates the group without processes. Fails if there is no cgroup v2, or if we may not write
 * there. Does nothing if the group is open.
 */
bool freeze_group_open(struct freeze_group *group, struct error *err) ATTR_NODISCARD;

/* The same inside of a limit group, so that the kernel can kill the group as a whole. */
bool freeze_group_open_in(
	struct freeze_group *group, int limit_fd, struct error *err) ATTR_NODISCARD;

/* Freezes all processes in the group, including those that join later, or lets them continue. */
bool freeze_group_set(struct freeze_group *group, bool is_frozen, struct error *err) ATTR_NODISCARD;

/* Lets them continue if they are frozen; further calls do nothing. The group may be closed. */
void freeze_group_thaw(struct freeze_group *group);

/*
 * Moves into the group each process that is marked as below in the tree and not yet inside. Fails
 * if one of them is in another cgroup than we are: moving it would remove it from limits that
 * others have set.
 */
bool freeze_group_take(struct freeze_group *group, const struct tree *tree, size_t *out_taken,
	struct error *err) ATTR_NODISCARD;

/* Whether all processes in the group are frozen. */
bool freeze_group_is_frozen(const struct freeze_group *group);

/*
 * Kills all processes in the group, even those with sessions of their own. The group may be closed.
 */
void freeze_group_kill(const struct freeze_group *group);

/*
 * The same for the group of a guard that cannot do so itself. The caller is in the guard's cgroup.
 */
void freeze_group_kill_of(pid_t guard);

/*
 * fork(2); the child starts inside of the group. If the group is closed, or the kernel has no
 * clone3(2) for this, the child is in the caller's cgroup, and *out_is_inside is false. For a
 * process with one thread.
 */
pid_t freeze_group_fork(const struct freeze_group *group, bool *out_is_inside);

/*
 * Lets the remaining processes continue, and removes the group if it is empty. Does nothing if it
 * is closed.
 */
void freeze_group_close(struct freeze_group *group);

/* The same for the group that a dead guard left. The caller is in the guard's cgroup. */
void freeze_group_remove_of(pid_t guard);

/*
 * Ends the groups that nobody removed because guard, spawner and broker are dead: no guard holds
 * their lock. Kills all processes in them, frozen or not. Touches only groups that belong to our
 * user. Blocks for at most FREEZE_GROUP_END_MS per group: not for the loop thread. Returns how many
 * groups had processes and are gone now.
 */
size_t freeze_group_end_left(void);

#endif
