/* SPDX-License-Identifier: MIT */
#include "providers/local/exec.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/process.h"
#include "providers/impl.h"

struct local_exec {
	struct exec exec;
	struct list link;        // the sandbox's list
	struct process *process; // NULL once abandoned
	struct suspension_member suspends;
	const struct exec_listener *listener;
	void *data;
};

static struct local_exec *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct local_exec, exec);
}

/* ---- events, forwarded as they come ---- */

static void on_started(void *data, pid_t pid)
{
	struct local_exec *self = data;
	self->exec.pid = pid;
	exec_raise_started(self->listener, self->data);
}

static void on_failed(void *data, const struct error *err)
{
	struct local_exec *self = data;
	suspension_leave(&self->suspends);
	self->listener->on_failed(self->data, err);
}

static void on_exited(void *data, struct process_status status)
{
	struct local_exec *self = data;
	self->exec.pid = 0;
	self->listener->on_exited(self->data, status);
}

static void on_emptied(void *data)
{
	struct local_exec *self = data;
	suspension_leave(&self->suspends);
	exec_raise_emptied(self->listener, self->data);
}

static void on_frozen(void *data, const char *by_signals, const struct error *err)
{
	struct local_exec *self = data;
	suspension_note_signals(&self->suspends, by_signals);
	suspension_answer(&self->suspends, err);
}

static void on_thawed(void *data)
{
	struct local_exec *self = data;
	suspension_answer(&self->suspends, NULL);
}

static void on_limit(void *data, enum limit_kind limit)
{
	struct local_exec *self = data;
	if (self->listener->on_limit) {
		self->listener->on_limit(self->data, limit);
	}
}

static const struct process_listener process_listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
	.on_frozen = on_frozen,
	.on_thawed = on_thawed,
	.on_limit = on_limit,
};

/* ---- descriptors ---- */

/*
 * Makes a pipe. We keep its end number `own`, which does not block; the process gets the other end.
 */
static bool connect(int own, int *out_own, int *out_theirs, struct error *err)
{
	int fds[2];
	if (!fd_pipe(fds, err)) {
		return false;
	}
	if (!fd_set_nonblock(fds[own], true, err)) {
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		return false;
	}
	*out_own = fds[own];
	*out_theirs = fds[1 - own];
	return true;
}

static bool connect_all(const struct exec_spec *spec, int own[3], int theirs[3], struct error *err)
{
	if (spec->want_stdin && !connect(1, &own[0], &theirs[0], err)) {
		return false;
	}
	if (!connect(0, &own[1], &theirs[1], err)) {
		return false;
	}
	if (spec->merge_stderr) {
		theirs[2] = theirs[1];
		return true;
	}
	return connect(0, &own[2], &theirs[2], err);
}

static void close_all(int fds[3])
{
	if (fds[2] == fds[1]) {
		fds[2] = -1;
	}
	for (int i = 0; i < 3; i++) {
		fd_close(&fds[i]);
	}
}

static bool start(struct local_exec *self, struct spawner *spawner, const struct exec_spec *spec,
	const struct local_limits *limits, struct error *err)
{
	int theirs[3] = {-1, -1, -1};
	if (!spec->foreground && !connect_all(spec, self->exec.fds, theirs, err)) {
		error_prefix(err, "starting \"%s\"", spec->argv[0]);
		close_all(theirs);
		return false;
	}
	struct process_spec process = {
		.argv = spec->argv,
		.env = spec->env,
		.cwd = spec->cwd,
		.cwd_root = spec->cwd_root,
		.in = spec->foreground ? STDIN_FILENO : theirs[0],
		.out = spec->foreground ? STDOUT_FILENO : theirs[1],
		.err = spec->foreground ? STDERR_FILENO : theirs[2],
		.foreground = spec->foreground,
		.is_grouped = spec->suspends,
		.limits = limits ? &limits->each : NULL,
		.has_limit_group = limits && limits->group.is_open,
		.limit_group = limits ? limits->group.fd : -1,
	};
	self->process = process_start(spawner, &process, &process_listener, self, err);
	close_all(theirs);
	return self->process != NULL;
}

/* ---- the interface ---- */

static void local_exec_signal_group(struct exec *exec, int signal)
{
	struct local_exec *self = from_exec(exec);
	if (self->process) {
		process_signal(self->process, signal);
	}
}

static void local_exec_kill_tree(struct exec *exec)
{
	struct local_exec *self = from_exec(exec);
	if (self->process) {
		process_kill_tree(self->process);
	}
}

static void local_exec_destroy(struct exec *exec)
{
	struct local_exec *self = from_exec(exec);
	suspension_leave(&self->suspends);
	process_destroy(self->process);
	list_remove(&self->link);
	free(self);
}

static const struct exec_impl local_exec_impl = {
	.signal_group = local_exec_signal_group,
	.kill_tree = local_exec_kill_tree,
	.destroy = local_exec_destroy,
};

struct exec *local_exec_start(struct spawner *spawner, struct list *execs,
	const struct exec_spec *spec, const struct local_limits *limits,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct local_exec *self = mem_alloc_zero(sizeof(*self));
	self->exec = (struct exec){.impl = &local_exec_impl, .fds = {-1, -1, -1}};
	self->listener = listener;
	self->data = data;
	list_append(execs, &self->link);
	if (!start(self, spawner, spec, limits, err)) {
		exec_destroy(&self->exec);
		return NULL;
	}
	return &self->exec;
}

/* A process that has ended counts as frozen at once; its end is reported separately. */
static bool order(struct suspension_member *member, bool freezes)
{
	struct local_exec *self = CONTAINER_OF(member, struct local_exec, suspends);
	return freezes ? process_freeze(self->process) : process_thaw(self->process);
}

void local_exec_join(struct exec *exec, struct suspension *suspension)
{
	struct local_exec *self = from_exec(exec);
	self->suspends.order = order;
	suspension_join(suspension, &self->suspends);
}

void local_execs_abandon(struct list *execs)
{
	LIST_FOR_EACH(self, execs, struct local_exec, link) {
		process_destroy(self->process);
		self->process = NULL;
		list_remove(&self->link);
	}
}
