/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PROBE_H
#define PROVIDERS_LOCAL_CELL_PROBE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Explains why this machine allows no cells, and how to change that. There are few ways to forbid
 * cells, and files of the kernel show each of them.
 */
enum probe_step {
	PROBE_NAMESPACES, // unshare(2)
	PROBE_IDENTITY,   // uid_map and gid_map, and the first use of a capability
	PROBE_MOUNTS,     // the cell's files
	PROBE_PROC,       // its own /proc
	PROBE_PORTS,      // its sockets, if ports_are_unknown says that nf_tables is missing
};

/* What the machine reports. -1: it does not have this setting. */
struct probe_facts {
	int allows_users;     // kernel.unprivileged_userns_clone, on Debian and others
	int namespaces_max;   // user.max_user_namespaces
	int apparmor_forbids; // kernel.apparmor_restrict_unprivileged_userns
	int is_filtered;      // this process has a seccomp filter, as in a container
};

void probe_read(struct probe_facts *facts);

/*
 * Sets ERROR_UNAVAILABLE with CELL_UNAVAILABLE if the machine forbids cells. Causes that other
 * processes can produce, such as an exhausted limit or memory, are ERROR_LIMIT without a reason:
 * otherwise an agent could get the next one started unconfined. `errnum` is from the call that
 * failed in `step`. Returns false.
 */
bool probe_explain(
	struct error *err, enum probe_step step, int errnum, const struct probe_facts *facts);

/*
 * Sets CELL_UNAVAILABLE: explains why this machine's abstract sockets cannot be kept from the cell.
 * `version` and `errnum` come from limits_landlock. Returns false.
 */
bool probe_explain_landlock(
	struct error *err, int version, int errnum, const struct probe_facts *facts);

#endif
