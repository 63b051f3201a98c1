/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_EXEC_H
#define PROVIDERS_LOCAL_EXEC_H

#include "base/list.h"
#include "providers/local/limits.h"
#include "providers/suspension.h"

/*
 * Starts a process on this machine, connected by pipes, for any sandbox on this machine. `execs` is
 * the sandbox's list of processes, which local_execs_abandon needs. `limits` may be NULL.
 */
struct exec *local_exec_start(struct spawner *spawner, struct list *execs,
	const struct exec_spec *spec, const struct local_limits *limits,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* From now on the process is frozen whenever its sandbox is. */
void local_exec_join(struct exec *exec, struct suspension *suspension);

/*
 * Kills the process trees of the list. The handles stay until they are destroyed, and raise
 * nothing.
 */
void local_execs_abandon(struct list *execs);

#endif
