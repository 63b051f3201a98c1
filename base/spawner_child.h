/* SPDX-License-Identifier: MIT */
#ifndef BASE_SPAWNER_CHILD_H
#define BASE_SPAWNER_CHILD_H

#include "base/attr.h"

/* base/spawner.h explains the two kinds. */
enum nest_kind { NEST_BACKGROUND, NEST_FOREGROUND, NEST_COUNT };

/*
 * Runs the spawner, in a freshly forked child of the broker or the runner, with all signals
 * blocked. It takes a struct guard_request (base/guard.h) for each process. Ends when the other end
 * of `socket` is closed and all trees are gone.
 */
void spawner_run(int socket, enum nest_kind kind) ATTR_NORETURN;

#endif
