/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/remote/remote_impl.h"
#include "providers/suspension.h"

enum exec_state {
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_EXITED,
	EXEC_OVER, // no more events follow
};

/* Connects a stream of the link to a pipe; the caller has the other end of the pipe. */
struct exec_pipe {
	struct remote_exec *exec;
	struct mux_stream *stream; // NULL: the stream has ended
	int fd;                    // ours; -1: closed
	ev_io io;
};

struct remote_exec {
	struct exec exec;
	struct suspension_member suspends;
	struct list link;      // remote.execs
	struct remote *remote; // NULL once the remote is closed
	const struct exec_listener *listener;
	void *data;
	uint64_t id;
	enum exec_state state;
	bool is_agents; // not a script of the broker's
	int pending_signal;
	char *command; // for messages
	struct exec_pipe pipes[3];
};

static struct remote_exec *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct remote_exec, exec);
}

/* ---- pipes ---- */

static void close_pipe(struct exec_pipe *pipe)
{
	if (pipe->fd >= 0) {
		ev_io_stop(pipe->exec->remote->request.loop, &pipe->io);
		fd_close(&pipe->fd);
	}
	mux_stream_close(pipe->stream);
	pipe->stream = NULL;
}

static void close_pipes(struct remote_exec *self)
{
	for (size_t i = 0; self->remote && i < ARRAY_LENGTH(self->pipes); i++) {
		close_pipe(&self->pipes[i]);
	}
}

static void follow(struct exec_pipe *pipe, enum mux_pump state)
{
	struct ev_loop *loop = pipe->exec->remote->request.loop;
	if (state == MUX_PUMP_FD) {
		ev_io_start(loop, &pipe->io);
	} else if (state == MUX_PUMP_LINK) {
		ev_io_stop(loop, &pipe->io);
	} else {
		close_pipe(pipe);
	}
}

static void pump_in(struct exec_pipe *pipe)
{
	enum mux_pump state = mux_pump_out(pipe->stream, pipe->fd, NULL);
	if (state == MUX_PUMP_OVER) {
		pipe->stream = NULL; // the link owns it from now on
	}
	follow(pipe, state);
}

static void pump_out(struct exec_pipe *pipe)
{
	follow(pipe, mux_pump_in(pipe->stream, pipe->fd));
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
	struct exec_pipe *pipe = CONTAINER_OF(io, struct exec_pipe, io);
	struct remote *remote = pipe->exec->remote;
	remote_hold(remote);
	if (events & EV_READ) {
		pump_in(pipe);
	} else {
		pump_out(pipe);
	}
	remote_let_go(remote);
}

static void on_readable(void *data)
{
	struct exec_pipe *pipe = data;
	if (pipe->fd >= 0 && !ev_is_active(&pipe->io)) {
		pump_out(pipe);
	}
}

static void on_writable(void *data)
{
	struct exec_pipe *pipe = data;
	if (pipe->fd >= 0) {
		pump_in(pipe);
	}
}

static void on_reset(void *data)
{
	close_pipe(data);
}

static const struct mux_stream_listener stream_listener = {
	.on_readable = on_readable, .on_writable = on_writable, .on_reset = on_reset};

/*
 * Makes a pipe for descriptor `index` of the process, its stream, and the description for the
 * runner.
 */
static bool connect_pipe(struct remote_exec *self, size_t index, bool is_bulk,
	struct runner_stream *out, struct error *err)
{
	int fds[2];
	bool is_in = index == 0;
	struct exec_pipe *pipe = &self->pipes[index];
	struct mux *mux = self->remote->mux;
	if (!fd_pipe(fds, err)) {
		return false;
	}
	self->exec.fds[index] = fds[is_in ? 1 : 0];
	pipe->fd = fds[is_in ? 0 : 1];
	ev_io_set(&pipe->io, pipe->fd, is_in ? EV_READ : EV_WRITE);
	uint64_t agent_bytes = self->remote->request.agent_bytes;
	bool is_agents = index != 2 && !is_bulk && agent_bytes > 0;
	*out = (struct runner_stream){.stream = mux_next_stream(mux),
		.window = is_agents ? agent_bytes
	                  : is_in   ? MUX_WINDOW_INPUT
	                            : MUX_WINDOW_TERMINAL};
	pipe->stream = mux_open(mux, out, is_in ? MUX_OUT : MUX_IN, is_bulk ? MUX_BULK : MUX_AGENT,
		&stream_listener, pipe, err);
	return pipe->stream && fd_set_nonblock(fds[0], true, err) &&
	       fd_set_nonblock(fds[1], true, err);
}

static bool connect(struct remote_exec *self, const struct exec_spec *spec,
	struct runner_exec *message, struct error *err)
{
	bool is_bulk = message->is_bulk != 0;
	return (!spec->want_stdin || connect_pipe(self, 0, is_bulk, &message->in, err)) &&
	       connect_pipe(self, 1, is_bulk, &message->out, err) &&
	       (spec->merge_stderr || connect_pipe(self, 2, is_bulk, &message->err, err));
}

/* ---- orders ---- */

/* False: the runner has stopped reading; its grace period will end the processes. */
static bool send(struct remote_exec *self, const struct runner_message *message)
{
	struct error ignored;
	remote_hold(self->remote);
	bool is_sent = mux_send(self->remote->mux, message, &ignored);
	remote_let_go(self->remote);
	return is_sent;
}

static bool send_kind(struct remote_exec *self, enum runner_kind kind)
{
	return send(self, &(struct runner_message){.kind = kind, .id = self->id});
}

static bool is_there(const struct remote_exec *self)
{
	return self->remote && !self->remote->is_over && self->state != EXEC_OVER;
}

static void signal_group(struct exec *exec, int signal)
{
	struct remote_exec *self = from_exec(exec);
	if (!is_there(self) || signal <= 0 || self->state > EXEC_RUNNING) {
		return;
	}
	if (self->state == EXEC_STARTING) {
		self->pending_signal = signal;
	} else {
		send(self,
			&(struct runner_message){
				.kind = RUNNER_SIGNAL, .id = self->id, .signal = (uint64_t)signal});
	}
}

static void kill_tree(struct exec *exec)
{
	struct remote_exec *self = from_exec(exec);
	if (is_there(self)) {
		send_kind(self, RUNNER_KILL);
	}
}

static struct runner_size wire_size(const struct terminal_size *size)
{
	return (struct runner_size){.rows = size->rows, .columns = size->columns};
}

static void resize(struct exec *exec, const struct terminal_size *size)
{
	struct remote_exec *self = from_exec(exec);
	if (is_there(self)) {
		send(self,
			&(struct runner_message){
				.kind = RUNNER_RESIZE, .id = self->id, .resize = wire_size(size)});
	}
}

static void exec_free(struct remote_exec *self)
{
	suspension_leave(&self->suspends);
	list_remove(&self->link);
	free(self->command);
	free(self);
}

/* The runner ends what is left of the process, once it has this message. */
static void release(struct remote_exec *self)
{
	struct remote *remote = self->remote;
	bool is_sent = send_kind(self, RUNNER_RELEASE);
	if (self->is_agents) {
		remote->released_end = is_sent ? mux_messages_end(remote->mux) : UINT64_MAX;
	}
}

static void destroy(struct exec *exec)
{
	struct remote_exec *self = from_exec(exec);
	struct remote *remote = self->remote;
	if (!remote) {
		exec_free(self);
		return;
	}
	remote_hold(remote);
	close_pipes(self);
	if (is_there(self)) {
		release(self);
	}
	exec_free(self);
	remote_let_go(remote);
}

static const struct exec_impl exec_impl = {
	.signal_group = signal_group,
	.kill_tree = kill_tree,
	.resize = resize,
	.destroy = destroy,
};

/* ---- freezing ---- */

static bool order(struct suspension_member *member, bool freezes)
{
	struct remote_exec *self = CONTAINER_OF(member, struct remote_exec, suspends);
	if (!is_there(self) || self->state == EXEC_STARTING) {
		return false;
	}
	send_kind(self, freezes ? RUNNER_FREEZE : RUNNER_THAW);
	return true;
}

void remote_exec_join(struct exec *exec, struct suspension *suspension)
{
	struct remote_exec *self = from_exec(exec);
	self->suspends.order = order;
	suspension_join(suspension, &self->suspends);
}

/* ---- reports of the runner ---- */

/* The process has ended or was not started; its output may still come. */
static void become_over(struct remote_exec *self)
{
	self->state = EXEC_OVER;
	suspension_leave(&self->suspends);
}

static void on_started(struct remote_exec *self, const struct runner_message *message)
{
	if (self->state != EXEC_STARTING) {
		return;
	}
	self->state = EXEC_RUNNING;
	if (self->pending_signal > 0) {
		signal_group(&self->exec, self->pending_signal);
	}
	exec_raise_started(self->listener, self->data);
}

static void on_failed(struct remote_exec *self, const struct runner_message *message)
{
	struct error err;
	runner_get_failure(&message->failure, &err);
	if (self->state == EXEC_STARTING) {
		close_pipes(self);
		become_over(self);
		self->listener->on_failed(self->data, &err);
	} else if (self->state != EXEC_OVER) {
		error_prefix(
			&err, "freezing \"%s\" on %s", self->command, self->remote->request.name);
		suspension_answer(&self->suspends, &err);
	}
}

static void on_exited(struct remote_exec *self, const struct runner_message *message)
{
	if (self->state != EXEC_RUNNING) {
		return;
	}
	struct process_status status = {.code = (int)(message->exit.code & 0xff),
		.signal = (int)(message->exit.signal & 0x7f)};
	self->state = EXEC_EXITED;
	self->listener->on_exited(self->data, status);
}

static void on_emptied(struct remote_exec *self, const struct runner_message *message)
{
	if (self->state == EXEC_EXITED) {
		become_over(self);
		exec_raise_emptied(self->listener, self->data);
	}
}

static void on_frozen(struct remote_exec *self, const struct runner_message *message)
{
	struct error told;
	runner_get_failure(&message->failure, &told);
	suspension_note_signals(&self->suspends, told.text[0] ? told.text : NULL);
	suspension_answer(&self->suspends, NULL);
}

static void on_thawed(struct remote_exec *self, const struct runner_message *message)
{
	suspension_answer(&self->suspends, NULL);
}

static const struct {
	enum runner_kind kind;
	void (*handle)(struct remote_exec *self, const struct runner_message *message);
} reports[] = {{RUNNER_STARTED, on_started}, {RUNNER_FAILED, on_failed}, {RUNNER_EXITED, on_exited},
	{RUNNER_EMPTIED, on_emptied}, {RUNNER_FROZEN, on_frozen}, {RUNNER_THAWED, on_thawed}};

bool remote_execs_take(struct remote *remote, const struct runner_message *message)
{
	LIST_FOR_EACH(self, &remote->execs, struct remote_exec, link) {
		for (size_t i = 0; self->id == message->id && i < ARRAY_LENGTH(reports); i++) {
			if (reports[i].kind == message->kind) {
				reports[i].handle(self, message);
				return true;
			}
		}
	}
	return false;
}

/* ---- all of them ---- */

void remote_execs_lose(struct remote *remote, const struct error *err)
{
	bool is_one_left = true;
	while (is_one_left) {
		is_one_left = false;
		LIST_FOR_EACH(self, &remote->execs, struct remote_exec, link) {
			close_pipes(self);
			if (self->state != EXEC_OVER) {
				is_one_left = true;
				become_over(self);
				self->listener->on_lost(self->data, err);
				break; // its handler may have changed the list
			}
		}
	}
}

bool remote_is_busy(const struct remote *remote)
{
	LIST_FOR_EACH(self, &remote->execs, struct remote_exec, link) {
		if (self->state != EXEC_OVER && !remote->is_over) {
			return true;
		}
	}
	return remote->is_over && remote->was_busy;
}

bool remote_has_ended_all(const struct remote *remote)
{
	return remote->mux && !remote_is_busy(remote) &&
	       mux_has_arrived(remote->mux, remote->released_end);
}

void remote_execs_abandon(struct remote *remote)
{
	LIST_FOR_EACH(self, &remote->execs, struct remote_exec, link) {
		close_pipes(self);
		become_over(self);
		list_remove(&self->link);
		self->remote = NULL;
	}
}

/* ---- start ---- */

static struct remote_exec *exec_create(struct remote *remote, const struct exec_spec *spec)
{
	struct remote_exec *self = mem_alloc_zero(sizeof(*self));
	self->exec = (struct exec){.impl = &exec_impl, .fds = {-1, -1, -1}};
	self->remote = remote;
	self->id = ++remote->last_id;
	self->command = mem_strdup(spec->argv[0]);
	self->is_agents = spec->suspends || spec->terminal;
	for (size_t i = 0; i < ARRAY_LENGTH(self->pipes); i++) {
		self->pipes[i].exec = self;
		self->pipes[i].fd = -1;
		ev_init(&self->pipes[i].io, on_ready);
	}
	list_append(&remote->execs, &self->link);
	return self;
}

/* Adds the mark by which we can find the processes that it starts there. */
static char **mark_environment(const struct remote_exec *self, const char *const *env)
{
	char mark[REMOTE_MARK_MAX];
	char **marked = words_copy(env);
	text_whole(mark, sizeof(mark), "ACP_BROKER_RUN=%s.%llu.", self->remote->request.token,
		(unsigned long long)self->id);
	words_append(&marked, mark);
	return marked;
}

static bool start(struct remote_exec *self, const struct exec_spec *spec, struct error *err)
{
	char **env = mark_environment(self, spec->env);
	struct runner_message message = {.kind = RUNNER_EXEC,
		.id = self->id,
		.exec = {.argv = {.list = spec->argv},
			.env = {.list = (const char *const *)env},
			.cwd = span_of(spec->cwd),
			.cwd_root = spec->cwd_root,
			/* The agent's own messages go before the output of its commands. */
			.is_bulk = !(spec->suspends && spec->want_stdin),
			.is_grouped = spec->suspends}};
	if (spec->terminal) {
		message.exec.has_terminal = 1;
		message.exec.size = wire_size(spec->terminal);
	}
	bool is_sent = connect(self, spec, &message.exec, err) &&
	               mux_send(self->remote->mux, &message, err);
	words_wipe_free(env);
	if (is_sent && spec->want_stdin) {
		pump_in(&self->pipes[0]);
	}
	return is_sent;
}

struct exec *remote_exec(struct remote *remote, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	assert(spec->argv[0] && spec->env && spec->cwd && !spec->foreground);
	assert(!spec->terminal || (spec->want_stdin && spec->merge_stderr));
	if (!remote->is_ready || remote->is_over) {
		remote_set_lost(remote, spec->argv[0], err);
		return NULL;
	}
	remote_hold(remote);
	struct remote_exec *self = exec_create(remote, spec);
	self->listener = listener;
	self->data = data;
	bool is_sent = start(self, spec, err);
	if (!is_sent) {
		error_prefix(err, "starting \"%s\"", spec->argv[0]);
		self->state = EXEC_OVER;
		exec_destroy(&self->exec);
	}
	remote_let_go(remote);
	return is_sent ? &self->exec : NULL;
}
