/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_COMMAND_H
#define PROVIDERS_EXEC_COMMAND_H

#include "base/span.h"
#include "providers/exec/profile.h"

/*
 * Runs any of the platform's commands except exec: without a shell, with the profile's input or
 * none, in the user's home. A daemon that it starts survives it (base/detached.h). Its output is
 * untrusted. Loop thread.
 */
struct exec_command;

enum { EXEC_OUTPUT_MAX = 256 * 1024 };

/*
 * Called once, after exec_command_start has returned. `err` is set if the command could not be
 * started, was killed, took too long (TIMEOUT_EXCEEDED) or printed too much (EXEC_COMMAND_FAILED).
 * `out` and `words` are borrowed. `words` is the end of its stderr as one printable line. The
 * status of `state` is an enum exec_state or a failure, even if the platform prints the state
 * instead of exiting with it; then `words` is the state in the platform's words, if it has any.
 */
typedef void exec_command_done(
	void *data, int status, struct span out, const char *words, const struct error *err);

struct exec_command *exec_command_start(const struct provider_context *context,
	const struct exec_profile *profile, enum exec_verb verb, const struct exec_values *values,
	exec_command_done *done, void *data, struct error *err) ATTR_NODISCARD;

/*
 * For EXEC_BUILD, right after exec_command_start: gets each line of the output that begins a step
 * of the build, as printable text. It must not cancel the command. The output is not limited;
 * `words` is its end, and `out` is empty.
 */
void exec_command_tell_steps(
	struct exec_command *command, void (*on_step)(void *data, const char *line));

/* Kills it; `done` is not called any more. NULL is fine. */
void exec_command_cancel(struct exec_command *command);

/* Sets EXEC_COMMAND_FAILED for a status that the caller takes as a failure. Returns false. */
bool exec_command_refuse(const struct exec_profile *profile, enum exec_verb verb, int status,
	const char *words, struct error *err);

#endif
