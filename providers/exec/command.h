/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_COMMAND_H
#define PROVIDERS_EXEC_COMMAND_H

#include "base/span.h"
#include "providers/exec/profile.h"

/*
 * Runs one of the platform's commands, but exec: without a shell, with no input, in the user's
 * home. A daemon that it leaves goes on (base/detached.h). What it prints is untrusted. Loop
 * thread.
 */
struct exec_command;

enum { EXEC_OUTPUT_MAX = 256 * 1024 };

/*
 * Raised once, not before exec_command_start returns. `err` where it could not be started, was
 * killed, took too long (TIMEOUT_EXCEEDED) or printed too much (EXEC_COMMAND_FAILED). `out` is
 * borrowed. With another status than 0, `words` is the last of its stderr as one printable line.
 * The status of `state` is an enum exec_state or a failure, also where the platform prints it.
 */
typedef void exec_command_done(
	void *data, int status, struct span out, const char *words, const struct error *err);

struct exec_command *exec_command_start(const struct provider_context *context,
	const struct exec_profile *profile, enum exec_verb verb, const struct exec_values *values,
	exec_command_done *done, void *data, struct error *err) ATTR_NODISCARD;

/* Kills it; raises nothing more. NULL is fine. */
void exec_command_cancel(struct exec_command *command);

/* EXEC_COMMAND_FAILED, for a status that means nothing good. Returns false. */
bool exec_command_refuse(const struct exec_profile *profile, enum exec_verb verb, int status,
	const char *words, struct error *err);

#endif
