/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_ASK_H
#define PROVIDERS_EXEC_ASK_H

#include "providers/exec/command.h"

/*
 * Asks `state` for the state of an instance. While it is EXEC_STATE_WAITING, this asks again and
 * again, less and less often. Loop thread.
 */
struct exec_ask;

struct exec_ask_config {
	const struct provider_context *context;
	const struct exec_profile *profile; // has `state`; borrowed until the end
	struct exec_values values;          // the texts are borrowed until the end
	long long wait_ms;                  // for the end of EXEC_STATE_WAITING
	/* Each time that the words differ. It must not cancel the asking. May be NULL. */
	void (*on_waiting)(void *data, const char *words);
};

/*
 * `done` is called once, after exec_ask_start has returned, as for exec_command_start. The status
 * EXEC_STATE_WAITING means that wait_ms have passed. While the instance waits, a failure of `state`
 * only means that it is asked again: a queue of hours must survive a restart of the platform's
 * service.
 */
struct exec_ask *exec_ask_start(const struct exec_ask_config *config, exec_command_done *done,
	void *data, struct error *err) ATTR_NODISCARD;
void exec_ask_cancel(struct exec_ask *ask); // no more calls; NULL is fine

#endif
