/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_EXEC_METHODS_H
#define BROKER_METHODS_EXEC_METHODS_H

#include "broker/session/hop.h"

/*
 * Run a program's command in a session's sandbox (docs/schemas/exec.json). _broker/exec answers
 * when the command has ended. _broker/exec/start answers at once with a name for the other two
 * methods.
 */
void exec_methods_exec(struct relay *relay, const struct call *call);
void exec_methods_start(struct relay *relay, const struct call *call);
void exec_methods_status(struct relay *relay, const struct call *call);
void exec_methods_kill(struct relay *relay, const struct call *call);

#endif
