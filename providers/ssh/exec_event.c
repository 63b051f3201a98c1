/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/ssh/host_impl.h"

/*
 * Handles what the control reports about a process, and what its channel shows. Each handler raises
 * at most one event, as its last action.
 */

/* Time between the first look that does not find a shell and the look that draws the conclusion. */
enum { LEFT_MS = 3000 };

static bool is_heard(const struct ssh_process *process)
{
	return process->is_held && !process->is_silenced;
}

/* No more events follow. The channel stays for output that is still to come. */
static void become_over(struct ssh_process *process)
{
	process->state = SSH_PROCESS_OVER;
	suspension_leave(&process->suspends);
	ev_timer_stop(process->host->loop, &process->deadline);
	if (!process->is_held) {
		ssh_process_free(process);
	}
}

void ssh_process_on_failed(struct ssh_process *process, const struct error *err)
{
	const struct exec_listener *listener = process->listener;
	void *data = process->data;
	bool is_told = is_heard(process);
	if (!process->slot) {
		ssh_process_drop_slots(process);
		ssh_process_close_fds(process);
	}
	become_over(process);
	if (is_told) {
		listener->on_failed(data, err);
	}
}

void ssh_process_on_stderr_refused(struct ssh_process *process, const struct error *err)
{
	if (process->state == SSH_PROCESS_WAITING || process->state == SSH_PROCESS_STARTING) {
		ssh_process_drop_slots(process);
		ssh_process_on_failed(process, err);
	}
}

/*
 * The shell for stderr has ended. Unless it failed, it had met the process' shell, which may not
 * have reported the start yet: another shell for stderr would wait for ever.
 */
void ssh_process_on_stderr_closed(struct ssh_process *process, const struct ssh_channel_end *end)
{
	bool has_failed = end->is_known && (end->code != 0 || end->signal > 0);
	process->is_pairing = process->is_pairing && has_failed;
	ssh_process_on_eof(process, SSH_STREAM_ERR);
}

static void lose(struct ssh_process *process, const struct error *err)
{
	const struct exec_listener *listener = process->listener;
	void *data = process->data;
	bool is_told = is_heard(process);
	ssh_process_close_fds(process);
	suspension_leave(&process->suspends);
	process->is_silenced = true;
	ev_timer_stop(process->host->loop, &process->deadline);
	if (is_told) {
		listener->on_lost(data, err);
	}
}

/* The channel stays open, and is closed with the host. */
static void detach(struct ssh_slot **at)
{
	if (*at) {
		(*at)->process = NULL;
		*at = NULL;
	}
}

void ssh_process_on_lost(struct ssh_process *process, const struct error *err)
{
	struct ssh_host *host = process->host;
	if (!host->is_over) {
		ssh_process_drop_slots(process); // the other slot may belong to another connection
	}
	detach(&process->slot);
	detach(&process->err_slot);
	ssh_process_close_fds(process);
	if (host->is_over) {
		const struct exec_listener *listener = process->listener;
		void *data = process->data;
		bool is_told = is_heard(process) && process->state != SSH_PROCESS_OVER;
		become_over(process);
		if (is_told) {
			listener->on_lost(data, err);
		}
	} else if (process->state != SSH_PROCESS_OVER) {
		/*
		 * The control still works: running processes are killed now, a starting one when it
		 * appears.
		 */
		ssh_process_kill(process);
		lose(process, err);
	}
}

/* ---- the end, if its shell did not report it ---- */

void ssh_process_on_closed(struct ssh_process *process, const struct ssh_channel_end *end)
{
	process->end = *end;
	ssh_process_close_main(process);
	if (process->state == SSH_PROCESS_STARTING || process->state == SSH_PROCESS_RUNNING ||
		process->state == SSH_PROCESS_EXITED) {
		/*
		 * If the shell reported anything, that is already in the FIFO, and so arrives
		 * before this answer.
		 */
		ssh_control_order(process->host, "sync %u\n", process->id);
	}
}

static void conclude(struct ssh_process *process)
{
	struct error err;
	const struct ssh_channel_end *end = &process->end;
	if (process->is_silenced) {
		become_over(process);
	} else if (process->state == SSH_PROCESS_STARTING) {
		error_set(&err, ERROR_UNAVAILABLE,
			"starting \"%s\": the shell for it on %s has ended", process->command,
			ssh_host_name(process->host));
		ssh_process_on_failed(process, &err);
	} else if (process->state == SSH_PROCESS_RUNNING && end->is_known && end->signal > 0) {
		/* A signal has killed the whole group, including its shell. */
		struct process_status status = {.signal = end->signal};
		process->state = SSH_PROCESS_EXITED;
		ssh_process_kill(process);
		if (is_heard(process)) {
			process->listener->on_exited(process->data, status);
		}
	} else if (process->state == SSH_PROCESS_RUNNING) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
			"\"%s\": the shell that watches it on %s was killed, so nobody "
			"knows how it ended",
			process->command, ssh_host_name(process->host));
		ssh_process_kill(process);
		lose(process, &err);
	} else if (process->state == SSH_PROCESS_EXITED) {
		/*
		 * Nobody watches the processes that it left behind any more; EMPTIED follows when
		 * they end.
		 */
		ssh_process_kill(process);
	}
}

/* ---- reports of the control ---- */

static void on_started(struct ssh_process *process, const char *rest)
{
	if (process->state != SSH_PROCESS_STARTING) {
		return;
	}
	process->state = SSH_PROCESS_RUNNING;
	process->is_pairing = false;
	process->shell = strtol(rest, NULL, 10);
	ev_timer_stop(process->host->loop, &process->deadline);
	if (process->was_killed) {
		process->was_killed = false;
		ssh_process_kill(process);
	}
	if (process->pending_signal > 0) {
		exec_signal_group(&process->exec, process->pending_signal);
	}
	if (is_heard(process)) {
		exec_raise_started(process->listener, process->data);
	}
}

static void keep_file(struct ssh_process *process, const char *rest)
{
	mem_set_text(&process->file, rest);
}

static void keep_interpreter(struct ssh_process *process, const char *rest)
{
	mem_set_text(&process->interpreter, rest);
}

static void describe(const struct ssh_process *process, const char *rest, struct error *err)
{
	const char *command = process->command;
	const char *file = process->file ? process->file : command;
	if (strcmp(rest, "directory link") == 0) {
		error_set_reason(err, ERROR_DENIED, "SECURITY_VIOLATION",
			"starting \"%s\": %s: refused, because it has become a link", command,
			process->cwd);
	} else if (strncmp(rest, "directory ", 10) == 0 &&
		   strcmp(rest + 10, "permission denied") != 0) {
		error_set_reason(err, ERROR_NOT_FOUND, "DIRECTORY_NOT_FOUND",
			"starting \"%s\": changing to directory %s: %s", command, process->cwd,
			rest + 10);
	} else if (strncmp(rest, "directory ", 10) == 0) {
		error_set(err, ERROR_SYSTEM, "starting \"%s\": changing to directory %s: %s",
			command, process->cwd, rest + 10);
	} else if (strcmp(rest, "folder") == 0) {
		error_set(err, ERROR_DENIED, "starting \"%s\": %s is a directory", command, file);
	} else if (strcmp(rest, "denied") == 0) {
		error_set(err, ERROR_DENIED,
			"starting \"%s\": %s may not be executed: permission denied", command,
			file);
	} else if (strcmp(rest, "interpreter") == 0) {
		error_set(err, ERROR_DENIED,
			"starting \"%s\": %s cannot be executed: its interpreter \"%s\" does not "
			"exist",
			command, file, process->interpreter ? process->interpreter : "");
	} else if (strchr(command, '/')) {
		error_set(err, ERROR_NOT_FOUND, "starting \"%s\": no such file", command);
	} else {
		error_set(err, ERROR_NOT_FOUND, "starting \"%s\": no such command in PATH %s",
			command, process->path);
	}
}

static void on_failed(struct ssh_process *process, const char *rest)
{
	if (process->state == SSH_PROCESS_STARTING) {
		struct error err;
		process->is_pairing = false;
		describe(process, rest, &err);
		ssh_process_on_failed(process, &err);
	}
}

static void on_emptied(struct ssh_process *process, const char *rest)
{
	process->has_emptied = true;
	if (process->state != SSH_PROCESS_EXITED) {
		return;
	}
	const struct exec_listener *listener = process->listener;
	void *data = process->data;
	bool is_told = is_heard(process);
	become_over(process);
	if (is_told) {
		exec_raise_emptied(listener, data);
	}
}

/* "unclear 143": the shell that watches it could not record how it ended. */
static void lose_unclear(struct ssh_process *process, const char *rest)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
		"\"%s\": it has ended on %s with the status %s, and the host could not record "
		"whether a signal ended it: is the disk for its temporary files full?",
		process->command, ssh_host_name(process->host), rest + strcspn(rest, "0123456789"));
	ssh_process_kill(process);
	lose(process, &err);
}

static void on_exited(struct ssh_process *process, const char *rest)
{
	struct process_status status = {0};
	bool is_code = strncmp(rest, "code ", 5) == 0;
	bool is_signal = strncmp(rest, "signal ", 7) == 0;
	if (process->state != SSH_PROCESS_RUNNING) {
		return;
	}
	if (!is_code && !is_signal) {
		lose_unclear(process, rest);
		return;
	}
	*(is_code ? &status.code : &status.signal) = (int)strtol(strchr(rest, ' '), NULL, 10);
	process->state = SSH_PROCESS_EXITED;
	struct ssh_host *host = process->host;
	unsigned id = process->id;
	bool has_emptied = process->has_emptied;
	if (is_heard(process)) {
		process->listener->on_exited(process->data, status);
	}
	if (has_emptied && !host->is_over) {
		ssh_process_on_event(host, id, "emptied");
	}
}

/* Its shell is gone, and everything that it reported has been read. */
static void on_gone(struct ssh_process *process, const char *rest)
{
	if (!process->slot) {
		conclude(process);
	}
}

void ssh_processes_look(struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		bool runs = process->state == SSH_PROCESS_RUNNING ||
		            process->state == SSH_PROCESS_EXITED;
		if (runs && process->shell > 0 && is_heard(process)) {
			ssh_control_order(host, "look %u %ld\n", process->id, process->shell);
		}
	}
}

/*
 * Its shell was killed, and processes that it started may keep the channel open, so no report would
 * ever come. A channel that is just closing has better information, so it gets LEFT_MS.
 */
static void on_left(struct ssh_process *process, const char *rest)
{
	if (!is_heard(process) ||
		(process->state != SSH_PROCESS_RUNNING && process->state != SSH_PROCESS_EXITED)) {
		return;
	}
	if (process->left_ms == 0) {
		process->left_ms = clock_now_ms();
	} else if (clock_now_ms() - process->left_ms >= LEFT_MS) {
		process->left_ms = 0;
		conclude(process);
	}
}

static const struct {
	const char *name;
	void (*handle)(struct ssh_process *process, const char *rest);
} events[] = {
	{"started", on_started},
	{"file", keep_file},
	{"interpreter", keep_interpreter},
	{"failed", on_failed},
	{"exited", on_exited},
	{"emptied", on_emptied},
	{"gone", on_gone},
	{"left", on_left},
	{"synced", on_gone},
	{"frozen", ssh_process_on_frozen},
	{"unfrozen", ssh_process_on_unfrozen},
	{"thawed", ssh_process_on_obeyed},
};

void ssh_process_on_event(struct ssh_host *host, unsigned id, const char *event)
{
	size_t len = strcspn(event, " ");
	const char *rest = event[len] ? event + len + 1 : event + len;
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		if (process->id != id) {
			continue;
		}
		for (size_t i = 0; i < ARRAY_LENGTH(events); i++) {
			if (span_is((struct span){event, len}, events[i].name)) {
				events[i].handle(process, rest);
				return;
			}
		}
		return;
	}
}
