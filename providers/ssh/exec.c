/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "providers/ssh/host_impl.h"

static const double empty_pause_s = 0.5;

static struct ssh_process *from_exec(struct exec *exec)
{
	return CONTAINER_OF(exec, struct ssh_process, exec);
}

/* ---- end ---- */

static void drop_slot(struct ssh_slot **at)
{
	struct ssh_slot *slot = *at;
	*at = NULL;
	if (slot) {
		slot->process = NULL;
		ssh_slot_close(slot);
	}
}

void ssh_process_drop_slots(struct ssh_process *process)
{
	if (process->is_pairing && process->host) {
		process->is_pairing = false;
		ssh_control_order(process->host, "release %u\n", process->id);
	}
	drop_slot(&process->slot);
	drop_slot(&process->err_slot);
}

void ssh_process_free(struct ssh_process *process)
{
	struct ssh_host *host = process->host;
	suspension_leave(&process->suspends);
	ssh_process_close_fds(process);
	ssh_process_drop_slots(process);
	if (host) {
		ev_timer_stop(host->loop, &process->deadline);
	}
	buf_wipe(&process->request);
	free(process->command);
	free(process->path);
	free(process->cwd);
	free(process->file);
	free(process->interpreter);
	list_remove(&process->link);
	if (host && host->depth > 0) {
		process->state = SSH_PROCESS_OVER;
		process->id = 0;
		list_append(&host->dead, &process->link);
	} else {
		free(process);
	}
}

void ssh_process_kill(struct ssh_process *process)
{
	bool is_there =
		process->state == SSH_PROCESS_RUNNING || process->state == SSH_PROCESS_EXITED;
	if (process->shell > 0 && is_there && !process->was_killed) {
		ssh_control_order(process->host, "kill %u %ld\n", process->id, process->shell);
	}
	process->was_killed =
		true; // if it is still starting, it is killed once it reports its start
}

static void arm(struct ssh_process *process, double seconds)
{
	ev_timer_stop(process->host->loop, &process->deadline);
	ev_timer_set(&process->deadline, seconds, 0.);
	ev_timer_start(process->host->loop, &process->deadline);
}

/* ---- the interface ---- */

static void ssh_exec_signal_group(struct exec *exec, int signal)
{
	struct ssh_process *process = from_exec(exec);
	if (!process->host || process->state > SSH_PROCESS_RUNNING || signal <= 0) {
		return;
	}
	if (process->state != SSH_PROCESS_RUNNING) {
		process->pending_signal = signal;
	} else if (signal == SIGKILL) {
		ssh_control_order(
			process->host, "kill-group %u %ld\n", process->id, process->shell);
	} else {
		ssh_control_order(
			process->host, "signal %u %ld %d\n", process->id, process->shell, signal);
	}
}

static void ssh_exec_kill_tree(struct exec *exec)
{
	struct ssh_process *process = from_exec(exec);
	if (process->host) {
		ssh_process_kill(process);
	}
}

static void ssh_exec_destroy(struct exec *exec)
{
	struct ssh_process *process = from_exec(exec);
	process->is_held = false;
	suspension_leave(&process->suspends);
	ssh_process_close_fds(process);
	if (!process->host || process->state == SSH_PROCESS_OVER ||
		process->state == SSH_PROCESS_WAITING) {
		ssh_process_free(process);
	} else if (process->state == SSH_PROCESS_EXITED && process->slot) {
		/*
		 * Its shell also looks for processes that it left behind. There are rarely any, so
		 * the control waits before it looks, too.
		 */
		arm(process, empty_pause_s);
	} else {
		ssh_process_kill(process);
	}
}

static const struct exec_impl ssh_exec_impl = {
	.signal_group = ssh_exec_signal_group,
	.kill_tree = ssh_exec_kill_tree,
	.destroy = ssh_exec_destroy,
};

/* ---- start ---- */

static double channel_timeout_s(const struct ssh_host *host)
{
	return (double)host->request.channel_timeout_ms / 1000.;
}

size_t ssh_process_wants(const struct ssh_process *process)
{
	bool is_waiting = process->state == SSH_PROCESS_WAITING;
	bool wants_err = process->is_apart && !process->err_slot &&
	                 (is_waiting || (process->state == SSH_PROCESS_STARTING &&
						process->is_pairing && process->slot));
	return (size_t)is_waiting + (size_t)wants_err;
}

static void assign_stderr(struct ssh_process *process, struct ssh_slot *slot)
{
	char request[64];
	int len = snprintf(request, sizeof(request), "acp_id=%u acp_carry_stderr\n", process->id);
	slot->is_stderr = true;
	process->err_slot = slot;
	ssh_slot_send(slot, (struct span){request, (size_t)len});
}

void ssh_process_assign(struct ssh_process *process, struct ssh_slot *slot)
{
	assert(!slot->process && ssh_process_wants(process) > 0);
	slot->process = process;
	process->is_pairing = process->is_apart;
	if (process->state != SSH_PROCESS_WAITING) {
		assign_stderr(process, slot);
		return;
	}
	process->slot = slot;
	process->state = SSH_PROCESS_STARTING;
	arm(process, channel_timeout_s(process->host));
	ssh_slot_send(slot, buf_span(&process->request));
	if (ssh_slot_has_room(slot)) {
		ssh_process_read_stdin(process);
	}
}

void ssh_process_on_refused(struct ssh_process *process)
{
	process->state = SSH_PROCESS_WAITING;
}

static void fail_waiting(struct ssh_process *process)
{
	struct ssh_host *host = process->host;
	struct error err;
	error_set_reason(&err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		"starting \"%s\": for %lld s no channel was free on %zu connections to %s: end "
		"another process there%s%s%s",
		process->command, host->request.channel_timeout_ms / 1000, ssh_link_count(host),
		ssh_host_name(host),
		host->request.max_channels > 0 ? ""
					       : ", raise MaxSessions in its sshd_config, or "
						 "max-connections in the profile",
		host->no_link.text[0] ? "; opening another connection failed: " : "",
		host->no_link.text);
	ssh_process_on_failed(process, &err);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_process *process = CONTAINER_OF(timer, struct ssh_process, deadline);
	struct ssh_host *host = process->host;
	ssh_host_enter(host);
	if (process->state == SSH_PROCESS_WAITING) {
		fail_waiting(process);
	} else if (process->state == SSH_PROCESS_EXITED) {
		ssh_process_kill(process);
	} else {
		struct error err;
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"starting \"%s\": %s did not start it within %lld s", process->command,
			ssh_host_name(host), host->request.channel_timeout_ms / 1000);
		bool is_told = process->is_held && !process->is_silenced;
		process->is_silenced = true; // it may still start
		ssh_process_close_fds(process);
		ssh_process_drop_slots(process);
		ssh_process_kill(process);
		if (is_told) {
			process->listener->on_failed(process->data, &err);
		}
	}
	ssh_host_leave(host);
}

static struct ssh_process *process_create(struct ssh_host *host, const struct exec_spec *spec)
{
	struct ssh_process *process = mem_alloc_zero(sizeof(*process));
	const char *path = ssh_environment_get(spec->env, "PATH");
	process->exec = (struct exec){.impl = &ssh_exec_impl, .fds = {-1, -1, -1}};
	process->host = host;
	process->id = ++host->last_id;
	process->is_held = true;
	process->is_agents = spec->suspends;
	process->is_apart = host->request.stderr_apart && !spec->merge_stderr;
	process->in = process->out[0] = process->out[1] = -1;
	process->command = mem_strdup(spec->argv[0]);
	process->path = mem_strdup(path ? path : "/bin:/usr/bin");
	process->cwd = mem_strdup(spec->cwd);
	buf_init(&process->request, SSH_REQUEST_MAX);
	ev_init(&process->deadline, on_deadline);
	list_append(&host->processes, &process->link);
	return process;
}

struct exec *ssh_host_exec(struct ssh_host *host, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	if (spec->foreground || (spec->terminal && !host->remote)) {
		error_set(err, ERROR_UNAVAILABLE,
			"starting \"%s\": %s cannot use this terminal: start it in a "
			"terminal of that host, or copy the files that it makes to the "
			"host with the key copy",
			spec->argv[0], ssh_host_name(host));
		return NULL;
	}
	if (!ssh_host_is_up(host)) {
		error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST",
			"starting \"%s\": there is no connection to %s", spec->argv[0],
			ssh_host_name(host));
		return NULL;
	}
	if (host->remote) {
		return remote_exec(host->remote, spec, listener, data, err);
	}
	ssh_host_enter(host);
	struct ssh_process *process = process_create(host, spec);
	process->listener = listener;
	process->data = data;
	bool is_ready = ssh_request_append(&process->request, host, process->id, spec, err) &&
	                ssh_process_connect(process, spec, err);
	if (is_ready) {
		arm(process, channel_timeout_s(process->host));
		ssh_links_dispatch(host);
	} else {
		error_prefix(err, "starting \"%s\"", spec->argv[0]);
		exec_destroy(&process->exec);
	}
	ssh_host_leave(host);
	return is_ready ? &process->exec : NULL;
}

/* ---- all of them ---- */

void ssh_processes_lose(struct ssh_host *host, const struct error *err)
{
	bool is_one_left = true;
	while (is_one_left) {
		is_one_left = false;
		LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
			if (process->state != SSH_PROCESS_OVER) {
				is_one_left = true;
				ssh_process_on_lost(process, err);
				break; // its handler may have changed the list
			}
		}
	}
}

void ssh_processes_abandon(struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		if (!process->is_held) {
			ssh_process_free(process);
			continue;
		}
		ssh_process_close_fds(process);
		ssh_process_drop_slots(process);
		ev_timer_stop(host->loop, &process->deadline);
		process->state = SSH_PROCESS_OVER;
		process->host = NULL;
		list_remove(&process->link);
	}
}
