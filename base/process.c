/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/guard.h"
#include "base/launch.h"
#include "base/libc.h"
#include "base/limit_group.h"
#include "base/spawner.h"
#include "base/text.h"

enum process_state {
	PROCESS_STARTING,
	PROCESS_RUNNING, // on_started was called
	PROCESS_EXITED,  // on_exited was called
	PROCESS_OVER,    // no more callbacks follow
};

struct process {
	struct list link; // spawner.processes
	struct spawner *spawner;
	enum nest_kind nest;
	uint64_t id;
	const struct process_listener *listener;
	void *data;
	enum process_state state;
	pid_t pid;
	pid_t guard;    // 0 until started
	int control;    // -1 once the guard has ended
	int limit_fd;   // the group into which we move it; -1: none, or the guard has it
	int limit_lock; // limit_group_take; or -1
	ev_io io; // watches control; also fed by hand for reports that no guard can send any more
	bool kill_was_sent;
	bool is_orphaned;  // its spawner was killed, its tree is being swept
	bool tree_is_gone; // reported by somebody other than its guard
};

static void raise_exited(const struct process *process, struct process_status status)
{
	if (process->listener->on_exited) {
		process->listener->on_exited(process->data, status);
	}
}

static void raise_emptied(const struct process *process)
{
	if (process->listener->on_emptied) {
		process->listener->on_emptied(process->data);
	}
}

/*
 * The events after a guard was killed. Each step calls at most one callback and touches nothing
 * afterwards, because the handler may have destroyed the process. The next step is fed to the loop
 * before the call.
 */
static void raise_rest(struct process *process)
{
	if (process->state == PROCESS_STARTING) {
		process->state = PROCESS_OVER;
		struct error err;
		error_set(&err, ERROR_SYSTEM, "starting a process: its guard was killed");
		process->listener->on_failed(process->data, &err);
	} else if (process->state == PROCESS_RUNNING) {
		process->state = PROCESS_EXITED;
		process->pid = 0;
		ev_feed_event(process->spawner->loop, &process->io, EV_CUSTOM);
		raise_exited(process, (struct process_status){.signal = SIGKILL});
	} else if (process->state == PROCESS_EXITED && process->tree_is_gone) {
		process->state = PROCESS_OVER;
		raise_emptied(process);
	}
}

static void raise_failed(struct process *process, const struct guard_report *report)
{
	struct error err;
	error_set_reason(&err, report->error, report->lacks_folder ? "DIRECTORY_NOT_FOUND" : NULL,
		"%s", report->text);
	process->state = PROCESS_OVER;
	ev_io_stop(process->spawner->loop, &process->io);
	process->listener->on_failed(process->data, &err);
}

static void raise_frozen(struct process *process, const struct guard_report *report)
{
	struct error err;
	if (!process->listener->on_frozen) {
		return;
	}
	if (report->error != ERROR_NONE) {
		error_set(&err, report->error, "%s", report->text);
		process->listener->on_frozen(process->data, NULL, &err);
	} else {
		process->listener->on_frozen(
			process->data, report->text[0] ? report->text : NULL, NULL);
	}
}

static void raise_report(struct process *process, const struct guard_report *report)
{
	const struct process_listener *listener = process->listener;
	if (report->event == GUARD_FAILED && process->state == PROCESS_STARTING) {
		raise_failed(process, report);
	} else if (report->event == GUARD_STARTED && process->state == PROCESS_STARTING) {
		bool is_remote = process->spawner->is_remote; // its pids are from another namespace
		process->state = PROCESS_RUNNING;
		process->pid = is_remote ? 0 : report->pid;
		process->guard = is_remote ? 0 : report->guard;
		if (listener->on_started) {
			listener->on_started(process->data, process->pid);
		}
	} else if (report->event == GUARD_EXITED && process->state == PROCESS_RUNNING) {
		process->state = PROCESS_EXITED;
		process->pid = 0;
		struct process_status status = {.code = report->code,
			.signal = report->signal,
			.limit = report->limit,
			.usage = report->usage};
		raise_exited(process, status);
	} else if (report->event == GUARD_EMPTIED && process->state == PROCESS_EXITED) {
		process->state = PROCESS_OVER;
		ev_io_stop(process->spawner->loop, &process->io);
		raise_emptied(process);
	} else if (report->event == GUARD_FROZEN) {
		raise_frozen(process, report);
	} else if (report->event == GUARD_THAWED && listener->on_thawed) {
		listener->on_thawed(process->data);
	} else if (report->event == GUARD_LIMIT && process->state == PROCESS_RUNNING &&
		   listener->on_limit) {
		listener->on_limit(process->data, report->limit);
	}
}

/* Receives a report. *out_sender is the sender's pid on our side if the socket tells it, else 0. */
static ssize_t receive(
	const struct process *process, struct guard_report *report, pid_t *out_sender)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct ucred sender;
	struct iovec part = {.iov_base = report, .iov_len = sizeof(*report)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t size = recvmsg(process->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	*out_sender = 0;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&sender, CMSG_DATA(head), sizeof(sender));
		*out_sender = sender.pid;
	}
	return size;
}

static void answer_join(struct process *process, pid_t pid)
{
	struct guard_order order;
	memset(&order, 0, sizeof(order)); // the gaps go along
	order.command = GUARD_JOINED;
	int lock = -1;
	order.signal = pid > 0 ? limit_group_take(process->limit_fd, pid, &lock) : EPERM;
	fd_close(&process->limit_fd);
	process->limit_lock = lock;
	(void)!send(process->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void read_report(struct process *process)
{
	struct guard_report report = {0};
	pid_t sender;
	ssize_t size = receive(process, &report, &sender);
	/* A guard that ended without reading our last order: its reports still follow the reset. */
	if (size < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) {
		return;
	}
	if (size >= (ssize_t)offsetof(struct guard_report, text)) {
		report.text[sizeof(report.text) - 1] = '\0';
		if (report.event == GUARD_JOIN && process->limit_fd >= 0) {
			answer_join(process, sender);
			return;
		}
		raise_report(process, &report);
		return;
	}
	ev_io_stop(process->spawner->loop, &process->io);
	fd_close(&process->control);
	raise_rest(process);
}

static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	struct process *process = CONTAINER_OF(io, struct process, io);
	if (process->control >= 0) {
		read_report(process);
	} else {
		raise_rest(process);
	}
}

void process_guard_lost(struct spawner *spawner, uint64_t id)
{
	LIST_FOR_EACH(process, &spawner->processes, struct process, link) {
		if (process->id == id) {
			process->tree_is_gone = true;
			ev_feed_event(spawner->loop, &process->io, EV_CUSTOM);
		}
	}
}

void process_mark_orphans(struct spawner *spawner, enum nest_kind kind)
{
	LIST_FOR_EACH(process, &spawner->processes, struct process, link) {
		process->is_orphaned = process->is_orphaned || process->nest == kind;
	}
}

void process_orphans_swept(struct spawner *spawner)
{
	LIST_FOR_EACH(process, &spawner->processes, struct process, link) {
		if (process->is_orphaned) {
			process->tree_is_gone = true;
			ev_feed_event(spawner->loop, &process->io, EV_CUSTOM);
		}
	}
}

/* Sends the request and its file descriptors; closes the guard's end of the socket here. */
static bool request_guard(struct process *process, const struct process_spec *spec,
	int guard_control, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int launch_fd = launch_pack(spec, err);
	if (launch_fd < 0) {
		return false;
	}
	int limit_fd = process->limit_fd < 0 && spec->has_limit_group ? spec->limit_group : -1;
	struct guard_request request;
	memset(&request, 0, sizeof(request)); // also clears the padding, which is sent too
	request.id = process->id;
	request.foreground = spec->foreground;
	request.owns_terminal = spec->owns_terminal;
	request.is_grouped = spec->is_grouped;
	request.is_limited = spec->limits != NULL;
	if (spec->limits) {
		request.limits = *spec->limits;
	}
	request.has_fds[0] = spec->in >= 0;
	request.has_fds[1] = spec->out >= 0;
	request.has_fds[2] = spec->err >= 0;
	request.has_fds[3] = limit_fd >= 0;
	request.has_fds[4] = spec->has_program;
	request.joins = process->limit_fd >= 0;
	request.stays_outside = spec->stays_outside;
	const int fds[GUARD_FDS_MAX] = {guard_control, launch_fd, spec->in, spec->out, spec->err,
		limit_fd, spec->has_program ? spec->program : -1};
	return spawner_send(process->spawner, &request, fds, err);
}

/* Processes of a remote spawner get no file descriptor that leads out of their namespaces. */
static bool check_remote(const struct process_spec *spec, struct error *err)
{
	const int fds[] = {spec->in, spec->out, spec->err};
	struct stat status;
	if (spec->foreground) {
		return error_set(err, ERROR_UNAVAILABLE,
			"starting \"%s\": a confined process cannot have a terminal",
			spec->argv[0]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++) {
		if (fds[i] >= 0 &&
			(fstat(fds[i], &status) != 0 ||
				!(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))) {
			return error_set(err, ERROR_DENIED,
				"starting \"%s\": a confined process can only have pipes and "
				"sockets",
				spec->argv[0]);
		}
	}
	return true;
}

/* The process will ask, and the socket will say who it is. */
static bool prepare_join(
	struct process *process, const struct process_spec *spec, struct error *err)
{
	const int on = 1;
	process->limit_fd = fcntl(spec->limit_group, F_DUPFD_CLOEXEC, 0);
	if (process->limit_fd < 0 ||
		setsockopt(process->control, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
		int errnum = errno;
		fd_close(&process->limit_fd);
		return error_set_errno(err, errnum, "starting \"%s\"", spec->argv[0]);
	}
	return true;
}

struct process *process_start(struct spawner *spawner, const struct process_spec *spec,
	const struct process_listener *listener, void *data, struct error *err)
{
	assert(spawner->loop && spec->argv[0] && spec->cwd[0] == '/');
	int sockets[2];
	if (spawner->is_remote && !check_remote(spec, err)) {
		return NULL;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "starting \"%s\"", spec->argv[0]);
		return NULL;
	}
	struct process *process = mem_alloc_zero(sizeof(*process));
	process->spawner = spawner;
	process->nest = spec->foreground ? NEST_FOREGROUND : NEST_BACKGROUND;
	process->id = ++spawner->last_id;
	process->listener = listener;
	process->data = data;
	process->control = sockets[0];
	process->limit_fd = process->limit_lock = -1;
	if (spawner->is_remote && spec->has_limit_group && !prepare_join(process, spec, err)) {
		fd_close(&process->control);
		fd_close(&sockets[1]);
		free(process);
		return NULL;
	}
	bool is_sent = request_guard(process, spec, sockets[1], err);
	fd_close(&sockets[1]);
	if (!is_sent) {
		error_prefix(err, "starting \"%s\"", spec->argv[0]);
		fd_close(&process->control);
		fd_close(&process->limit_fd);
		free(process);
		return NULL;
	}
	ev_io_init(&process->io, on_control, process->control, EV_READ);
	ev_io_start(spawner->loop, &process->io);
	list_append(&spawner->processes, &process->link);
	return process;
}

/* The guarded processes belong to the same user, and may have stopped the guard. */
static void wake_guard(const struct process *process)
{
	spawner_wake(process->spawner, process->nest);
	if (process->guard > 0) {
		kill(process->guard, SIGCONT);
	}
}

static void send_order(const struct process *process, enum guard_command command, int signal)
{
	struct guard_order order = {.command = command, .signal = signal};
	if (process->control >= 0) {
		wake_guard(process);
		/*
		 * A guard that does not read is dead, or is stopped again and again: the spawner
		 * deals with that.
		 */
		(void)!send(process->control, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

void process_signal(struct process *process, int signal)
{
	if (process->state <= PROCESS_RUNNING) {
		send_order(process, GUARD_SIGNAL, signal);
	}
}

void process_kill_tree(struct process *process)
{
	if (process->state != PROCESS_OVER && !process->kill_was_sent) {
		process->kill_was_sent = true;
		send_order(process, GUARD_KILL_TREE, 0);
	}
}

static bool order(struct process *process, enum guard_command command)
{
	if (process->state == PROCESS_OVER || process->control < 0) {
		return false;
	}
	send_order(process, command, 0);
	return true;
}

bool process_freeze(struct process *process)
{
	return order(process, GUARD_FREEZE);
}

bool process_thaw(struct process *process)
{
	return order(process, GUARD_THAW);
}

/* The guard takes the closed socket as an order to kill the tree. */
void process_destroy(struct process *process)
{
	if (!process) {
		return;
	}
	ev_io_stop(process->spawner->loop, &process->io);
	if (process->control >= 0) {
		wake_guard(process);
	}
	fd_close(&process->control);
	fd_close(&process->limit_fd);
	fd_close(&process->limit_lock);
	list_remove(&process->link);
	free(process);
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

const char *process_status_text(struct process_status status, char *text, size_t size)
{
	const char *name = status.signal != 0 ? libc_signal_name(status.signal) : NULL;
	if (status.signal == 0) {
		snprintf(text, size, "exited with status %d", status.code);
	} else if (name) {
		text_format(text, size, "was killed by SIG%s", name);
	} else {
		snprintf(text, size, "was killed by signal %d", status.signal);
	}
	return text;
}
