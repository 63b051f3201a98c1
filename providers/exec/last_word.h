/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_LAST_WORD_H
#define PROVIDERS_EXEC_LAST_WORD_H

#include "providers/exec/instance.h"
#include "providers/remote/remote.h"

/*
 * A process of an instance that may end by itself, such as a job with a time limit. If the link to
 * the process is lost, or a signal that we did not send ends it, this asks for the state of the
 * instance before it tells the listener. If the instance has ended, the process is lost, with the
 * platform's word in the error.
 * The instance outlives the process. Loop thread.
 */
struct exec *last_word_exec(struct exec_instance *instance, struct remote *remote,
	const struct exec_spec *spec, const struct exec_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/* The process in `remote`. */
struct exec *last_word_inner(struct exec *exec);

#endif
