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
 * A cgroup of its own for what a guard freezes, or kills as a whole: cgroup v2, below the cgroup in
 * which the guard is, so that every limit of that one still holds. Who is in it can neither fork
 * out of it nor tell that it was frozen. The kernel's admin-guide/cgroup-v2 has the files' meaning.
 * Zero-initialise.
 */
enum {
	FREEZE_GROUP_END_MS = 1000, // for who was left in one to end
};

struct freeze_group {
	bool is_open;
	bool is_limited;           // lies in a limit group (base/limit_group.h)
	bool is_frozen;            // was told to be
	int own_fd;                // the cgroup in which we are
	int fd;                    // the one below it, locked (flock)
	char name[40];             // of that one
	char own[CGROUP_PATH_MAX]; // as /proc/self/cgroup has it
};

/*
 * Makes it, nobody in it. Fails where there is no cgroup v2, or we may not write there. Nothing
 * where it is there.
 */
bool freeze_group_open(struct freeze_group *group, struct error *err) ATTR_NODISCARD;

/* The same in the limit group of that descriptor: what is there can be ended as a whole. */
bool freeze_group_open_in(
	struct freeze_group *group, int limit_fd, struct error *err) ATTR_NODISCARD;

/* Who is in it stands still, with whoever comes, or goes on. */
bool freeze_group_set(struct freeze_group *group, bool is_frozen, struct error *err) ATTR_NODISCARD;

/* Once: later calls do nothing until it is frozen again. For one that may not be open. */
void freeze_group_thaw(struct freeze_group *group);

/*
 * Takes in whoever is marked as below in the tree and not in it yet. Fails for one that is in
 * another cgroup than we are: moving it would take it away from limits that others have set.
 */
bool freeze_group_take(struct freeze_group *group, const struct tree *tree, size_t *out_taken,
	struct error *err) ATTR_NODISCARD;

/* Whether all that is in it stands still. */
bool freeze_group_is_frozen(const struct freeze_group *group);

/* Kills all that is in it, whatever session they have made. For one that may not be open. */
void freeze_group_kill(const struct freeze_group *group);

/* The same for the one of a guard that does not do so itself. The caller is in its cgroup. */
void freeze_group_kill_of(pid_t guard);

/*
 * fork(2), the child being in the cgroup from the start. Where there is none, or the kernel has no
 * such call, it is where we are, as *out_is_inside says. For a process with one thread.
 */
pid_t freeze_group_fork(const struct freeze_group *group, bool *out_is_inside);

/* Lets go on who is left in it, and removes it once nobody is. Nothing where it is not open. */
void freeze_group_close(struct freeze_group *group);

/* The same for the one that a guard, now dead, has left. The caller is in its cgroup. */
void freeze_group_remove_of(pid_t guard);

/*
 * Ends those in the hierarchy whose guard is gone, and spawner and broker with it, so that nobody
 * has removed them: no guard holds their lock. Who is in one, frozen or not, is killed. Only what
 * belongs to our user. Blocks for FREEZE_GROUP_END_MS at most for each: not on the loop. Returns
 * how many of them had somebody in it and are gone.
 */
size_t freeze_group_end_left(void);

#endif
