/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PROBE_H
#define PROVIDERS_LOCAL_CELL_PROBE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Why this machine makes no cell, and the one thing to do. Machines forbid it in few ways; each is
 * told by a file of the kernel's.
 */
enum probe_step {
	PROBE_NAMESPACES, // unshare(2)
	PROBE_IDENTITY,   // uid_map and gid_map, and what needs a capability first
	PROBE_MOUNTS,     // the cell's files
	PROBE_PROC,       // its own /proc
	PROBE_PORTS,      // its sockets, of a kernel that ports_are_unknown says has no nf_tables
};

/* What a machine says of itself. -1: it says nothing of that kind. */
struct probe_facts {
	int allows_users;     // kernel.unprivileged_userns_clone, of Debian and others
	int namespaces_max;   // user.max_user_namespaces
	int apparmor_forbids; // kernel.apparmor_restrict_unprivileged_userns
	int is_filtered;      // a seccomp filter is on this process: a container's
};

void probe_read(struct probe_facts *facts);

/*
 * Sets ERROR_UNAVAILABLE with CELL_UNAVAILABLE where the machine forbids it. What other processes
 * can cause, such as a used up limit or memory, is ERROR_LIMIT and has no reason: an agent could
 * have caused it so that the next one is not confined. `errnum` is of the call that failed at the
 * step. Returns false.
 */
bool probe_explain(
	struct error *err, enum probe_step step, int errnum, const struct probe_facts *facts);

/*
 * Sets CELL_UNAVAILABLE: why abstract sockets of this machine cannot be kept apart. `version` and
 * `errnum` are limits_landlock's. Returns false.
 */
bool probe_explain_landlock(
	struct error *err, int version, int errnum, const struct probe_facts *facts);

#endif
