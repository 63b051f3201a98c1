/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "tests/support/fake/internal.h"

/* A process of this machine whose events come late and can be lost. */
struct fake_exec {
	struct exec exec;
	struct list link;             // fake_sandbox.execs
	struct fake_sandbox *sandbox; // NULL once that is closed
	struct exec *inner;           // NULL: refused, or lost
	const struct exec_listener *listener;
	void *data;
	struct list events; // of struct fake_event
	ev_timer timer;     // raises the first of them
	struct ev_loop *loop;
};

enum event_kind { EVENT_STARTED, EVENT_FAILED, EVENT_EXITED, EVENT_EMPTIED, EVENT_LOST };

struct fake_event {
	struct list link;
	enum event_kind kind;
	struct process_status status;
	struct error err;
};

static struct fake_exec *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct fake_exec, exec);
}

/* ---- events ---- */

static void arm(struct fake_exec *self, double seconds)
{
	ev_timer_stop(self->loop, &self->timer);
	ev_timer_set(&self->timer, seconds, 0.);
	ev_timer_start(self->loop, &self->timer);
}

static struct fake_event *push(struct fake_exec *self, enum event_kind kind)
{
	struct fake_event *event = mem_alloc_zero(sizeof(*event));
	event->kind = kind;
	if (list_is_empty(&self->events)) {
		arm(self, self->sandbox ? self->sandbox->behaviour->delay_ms / 1000. : 0.);
	}
	list_append(&self->events, &event->link);
	return event;
}

static void drop_events(struct fake_exec *self)
{
	LIST_FOR_EACH(event, &self->events, struct fake_event, link) {
		list_remove(&event->link);
		free(event);
	}
	ev_timer_stop(self->loop, &self->timer);
}

/* The handler may destroy the process, so nothing touches the process afterwards. */
static void raise_event(const struct fake_exec *self, const struct fake_event *event)
{
	const struct exec_listener *listener = self->listener;
	void *data = self->data;
	switch (event->kind) {
	case EVENT_STARTED:
		exec_raise_started(listener, data);
		break;
	case EVENT_FAILED:
		listener->on_failed(data, &event->err);
		break;
	case EVENT_EXITED:
		listener->on_exited(data, event->status);
		break;
	case EVENT_EMPTIED:
		exec_raise_emptied(listener, data);
		break;
	case EVENT_LOST:
		listener->on_lost(data, &event->err);
		break;
	}
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct fake_exec *self = CONTAINER_OF(timer, struct fake_exec, timer);
	struct fake_event *event = LIST_FIRST(&self->events, struct fake_event, link);
	list_remove(&event->link);
	if (!list_is_empty(&self->events)) {
		arm(self, self->sandbox ? self->sandbox->behaviour->delay_ms / 1000. : 0.);
	}
	raise_event(self, event);
	free(event);
}

static void on_started(void *data)
{
	push(data, EVENT_STARTED);
}

static void on_failed(void *data, const struct error *err)
{
	push(data, EVENT_FAILED)->err = *err;
}

static void on_exited(void *data, struct process_status status)
{
	push(data, EVENT_EXITED)->status = status;
}

static void on_emptied(void *data)
{
	push(data, EVENT_EMPTIED);
}

static void on_lost(void *data, const struct error *err)
{
	push(data, EVENT_LOST)->err = *err;
}

static const struct exec_listener inner_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_lost = on_lost,
};

/* ---- the interface ---- */

static void fake_exec_signal_group(struct exec *exec, int signal)
{
	if (from_exec(exec)->inner) {
		exec_signal_group(from_exec(exec)->inner, signal);
	}
}

static void fake_exec_kill_tree(struct exec *exec)
{
	if (from_exec(exec)->inner) {
		exec_kill_tree(from_exec(exec)->inner);
	}
}

static void fake_exec_destroy(struct exec *exec)
{
	struct fake_exec *self = from_exec(exec);
	exec_destroy(self->inner);
	drop_events(self);
	list_remove(&self->link);
	free(self);
}

static const struct exec_impl fake_exec_impl = {
	.signal_group = fake_exec_signal_group,
	.kill_tree = fake_exec_kill_tree,
	.destroy = fake_exec_destroy,
};

/* Connects the inner process's ends of the pipes, or pumps between those and the caller's. */
static bool connect(struct fake_exec *self, struct error *err)
{
	size_t chunk = self->sandbox->behaviour->read_chunk;
	self->exec.fds[0] = exec_take_stdin(self->inner);
	self->exec.fds[1] = exec_take_stdout(self->inner);
	self->exec.fds[2] = exec_take_stderr(self->inner);
	for (int i = 1; i < 3 && chunk > 0; i++) {
		if (self->exec.fds[i] < 0) {
			continue;
		}
		int from = self->exec.fds[i];
		self->exec.fds[i] = fake_pump_start(self->sandbox, from, chunk, err);
		if (self->exec.fds[i] < 0) {
			return false;
		}
	}
	return true;
}

static bool start(struct fake_exec *self, const struct exec_spec *spec, struct error *err)
{
	struct sandbox *sandbox = &self->sandbox->host.sandbox;
	if (fake_fails(self->sandbox, FAKE_EXEC, err)) {
		return false;
	}
	self->inner = host_exec(sandbox, spec, &inner_listener, self, err);
	if (!self->inner || !connect(self, err)) {
		return false;
	}
	struct error failure;
	if (fake_fails(self->sandbox, FAKE_START, &failure)) {
		exec_destroy(self->inner);
		self->inner = NULL;
		push(self, EVENT_FAILED)->err = failure;
	}
	return true;
}

struct exec *fake_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct fake_exec *self = mem_alloc_zero(sizeof(*self));
	self->exec = (struct exec){.impl = &fake_exec_impl, .fds = {-1, -1, -1}};
	self->sandbox = fake_from_sandbox(sandbox);
	self->listener = listener;
	self->data = data;
	self->loop = sandbox->loop;
	list_init(&self->events);
	ev_init(&self->timer, on_timer);
	list_append(&self->sandbox->execs, &self->link);
	if (!start(self, spec, err)) {
		exec_destroy(&self->exec);
		return NULL;
	}
	return &self->exec;
}

void fake_execs_lose(struct fake_sandbox *sandbox, const struct error *err)
{
	LIST_FOR_EACH(self, &sandbox->execs, struct fake_exec, link) {
		if (self->inner) {
			exec_destroy(self->inner);
			self->inner = NULL;
			drop_events(self);
			push(self, EVENT_LOST)->err = *err;
		}
	}
}

void fake_execs_abandon(struct fake_sandbox *sandbox)
{
	LIST_FOR_EACH(self, &sandbox->execs, struct fake_exec, link) {
		exec_destroy(self->inner);
		self->inner = NULL;
		drop_events(self);
		self->sandbox = NULL;
		list_remove(&self->link);
	}
}
