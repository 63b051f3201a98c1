/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_EXEC_H
#define PROVIDERS_LOCAL_EXEC_H

#include "base/list.h"
#include "providers/local/limits.h"
#include "providers/suspension.h"

/*
 * Processes of this machine, connected by pipes: the exec of every sandbox
 * that lives here. `execs` is the sandbox's list of them, for the day it is
 * closed before they are destroyed. `limits` may be NULL.
 */
struct exec *local_exec_start(struct spawner *spawner, struct list *execs,
	const struct exec_spec *spec, const struct local_limits *limits,
	const struct exec_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* It is frozen with the sandbox from now on. */
void local_exec_join(struct exec *exec, struct suspension *suspension);

/* Kills the trees of the list; the handles stay until they are destroyed, and raise nothing. */
void local_execs_abandon(struct list *execs);

#endif
