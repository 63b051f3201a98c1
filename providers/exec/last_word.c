/* SPDX-License-Identifier: MIT */
#include "providers/exec/last_word.h"

#include <signal.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/exec/ask.h"
#include "providers/impl.h"

enum { STATUS_TEXT_SIZE = 64 };

struct last_word {
	struct exec exec;
	struct exec *inner; // owned
	struct exec_instance *instance;
	const struct exec_listener *listener;
	void *data;
	struct exec_ask *ask; // while an end is held back; or NULL
	bool was_signalled;   // by us
	bool was_lost;        // perhaps after it has exited
	bool has_emptied;     // while its exit was held back
	bool *out_destroyed;  // on the stack of tell_exited; or NULL
	struct process_status status;
	struct error lost;
};

static struct last_word *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct last_word, exec);
}

/* ---- the end ---- */

static void tell_exited(struct last_word *self)
{
	bool was_destroyed = false;
	self->out_destroyed = &was_destroyed;
	self->listener->on_exited(self->data, self->status);
	if (was_destroyed) {
		return;
	}
	self->out_destroyed = NULL;
	if (self->has_emptied) {
		exec_raise_emptied(self->listener, self->data);
	}
}

static void on_state(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct last_word *self = data;
	char text[STATUS_TEXT_SIZE];
	self->ask = NULL;
	bool is_up = failure || status == EXEC_STATE_RUNNING;
	if (!self->was_lost && is_up) {
		tell_exited(self);
		return;
	}
	if (!self->was_lost) {
		error_set_reason(&self->lost, ERROR_UNAVAILABLE, "LINK_LOST", "the process %s",
			process_status_text(self->status, text, sizeof(text)));
	}
	if (!failure) {
		exec_instance_add_state(self->instance, status, words, &self->lost);
	}
	self->listener->on_lost(self->data, &self->lost);
}

/* False: the end must be told now. */
static bool ask(struct last_word *self)
{
	struct error ignored;
	self->ask = exec_instance_ask(self->instance, on_state, self, &ignored);
	return self->ask != NULL;
}

/* ---- what the process tells ---- */

static void on_started(void *data)
{
	const struct last_word *self = data;
	exec_raise_started(self->listener, self->data);
}

static void on_failed(void *data, const struct error *err)
{
	const struct last_word *self = data;
	self->listener->on_failed(self->data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct last_word *self = data;
	bool was_ended = status.signal == SIGTERM || status.signal == SIGKILL;
	self->status = status;
	if (!was_ended || self->was_signalled || !ask(self)) {
		tell_exited(self);
	}
}

static void on_emptied(void *data)
{
	struct last_word *self = data;
	if (self->ask) {
		self->has_emptied = true;
	} else {
		exec_raise_emptied(self->listener, self->data);
	}
}

static void on_lost(void *data, const struct error *err)
{
	struct last_word *self = data;
	self->was_lost = true;
	self->lost = *err;
	if (!self->ask && !ask(self)) {
		self->listener->on_lost(self->data, err);
	}
}

static void on_limit(void *data, enum limit_kind limit)
{
	const struct last_word *self = data;
	if (self->listener->on_limit) {
		self->listener->on_limit(self->data, limit);
	}
}

static const struct exec_listener inner_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
	.on_limit = on_limit,
};

/* ---- the process ---- */

static void signal_group(struct exec *exec, int signal)
{
	from_exec(exec)->was_signalled = true;
	exec_signal_group(from_exec(exec)->inner, signal);
}

static void kill_tree(struct exec *exec)
{
	from_exec(exec)->was_signalled = true;
	exec_kill_tree(from_exec(exec)->inner);
}

static void destroy(struct exec *exec)
{
	struct last_word *self = from_exec(exec);
	if (self->out_destroyed) {
		*self->out_destroyed = true;
	}
	exec_destroy(self->inner);
	exec_ask_cancel(self->ask);
	free(self);
}

static const struct exec_impl impl = {
	.signal_group = signal_group, .kill_tree = kill_tree, .destroy = destroy};

struct exec *last_word_inner(struct exec *exec)
{
	return from_exec(exec)->inner;
}

struct exec *last_word_exec(struct exec_instance *instance, struct remote *remote,
	const struct exec_spec *spec, const struct exec_listener *listener, void *data,
	struct error *err)
{
	struct last_word *self = mem_alloc_zero(sizeof(*self));
	self->instance = instance;
	self->listener = listener;
	self->data = data;
	self->inner = remote_exec(remote, spec, &inner_listener, self, err);
	if (!self->inner) {
		free(self);
		return NULL;
	}
	self->exec.impl = &impl;
	self->exec.pid = self->inner->pid;
	for (size_t i = 0; i < ARRAY_LENGTH(self->exec.fds); i++) {
		self->exec.fds[i] = self->inner->fds[i];
		self->inner->fds[i] = -1;
	}
	return &self->exec;
}
