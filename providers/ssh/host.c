/* SPDX-License-Identifier: MIT */
#include "providers/ssh/host.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/random.h"
#include "providers/ssh/host_impl.h"

static const double warm_pause_s = 0.05; // keeps warming from delaying other work

const char *ssh_host_name(const struct ssh_host *host)
{
	const char *alias = host->request.target->alias;
	return alias ? alias : host->request.target->host;
}

const char *ssh_host_sh(const struct ssh_host *host)
{
	return host->request.sh ? host->request.sh : "/bin/sh";
}

/* ---- lifetime: the memory stays while a call uses it ---- */

static void host_free(struct ssh_host *host)
{
	assert(list_is_empty(&host->processes) && list_is_empty(&host->links));
	words_wipe_free(host->texts);
	words_free(host->environment);
	words_wipe_free(host->agent_environment);
	login_env_finish(&host->login_env);
	free(host->no_runner);
	free(host);
}

static void bury(struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->dead, struct ssh_process, link) {
		list_remove(&process->link);
		free(process);
	}
}

void ssh_host_enter(struct ssh_host *host)
{
	host->depth++;
}

void ssh_host_leave(struct ssh_host *host)
{
	host->depth--;
	if (host->depth == 0) {
		bury(host);
		if (host->is_closed) {
			host_free(host);
		}
	}
}

/* ---- events for the listener ---- */

void ssh_host_progress(struct ssh_host *host, const char *text)
{
	if (host->listener->on_progress && !host->is_over) {
		host->listener->on_progress(host->data, text);
	}
}

void ssh_host_become_ready(struct ssh_host *host)
{
	host->awaits_note = ssh_noting_is_pending(host->noting);
	if (host->awaits_note) {
		return;
	}
	host->is_ready = true;
	host->listener->on_ready(host->data);
}

static void on_noted(void *data, const struct error *err)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err,
			"%s: %s; if this broker is killed, the next one cannot end what runs there",
			ssh_host_name(host), err->text);
	}
	if (host->awaits_note) {
		ssh_host_become_ready(host);
	}
	ssh_host_leave(host);
}

void ssh_host_note_run(struct ssh_host *host)
{
	const struct ssh_runs *runs = host->request.runs;
	const char *node = host->control.node;
	struct error err;
	if (!runs || !runs->state_folder || !host->control.run_folder) {
		return;
	}
	struct ssh_run_note note = {.place = mem_strdup(host->request.place),
		.folder = mem_strdup(host->control.run_folder),
		.node = mem_strdup(node ? node : ""),
		.grace_ms = ssh_longest_grace_ms(host),
		.lock_fd = -1};
	memcpy(note.token, host->token, sizeof(note.token));
	host->noting =
		ssh_noting_start(host->request.context->pool, runs, &note, on_noted, host, &err);
	if (!host->noting) {
		on_noted(host, &err);
	}
}

/*
 * Whether the host has said that every process there has ended. Scripts of the broker do not count
 * once they are destroyed.
 */
static bool has_ended_all(const struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		bool counts = process->is_held || process->is_agents;
		if (counts && process->state != SSH_PROCESS_OVER) {
			return false;
		}
	}
	return !host->remote || remote_has_ended_all(host->remote);
}

/*
 * Processes may still run there; makes the next connection to the same place end them. If the run
 * was closed and its note stays, any broker may do that, so we free the note's lock.
 */
static void leave_run(struct ssh_host *host, bool was_lost)
{
	const struct ssh_control *control = &host->control;
	struct ssh_run_note note;
	ssh_noting_end(host->noting, !was_lost && has_ended_all(host), &note);
	host->noting = NULL;
	bool is_ours = was_lost || note.lock_fd < 0;
	if (host->request.runs && is_ours && (control->is_ready || control->has_runner)) {
		ssh_runs_add(host->request.runs,
			&(struct ssh_run_end){.place = host->request.place,
				.folder = control->run_folder,
				.node = control->node ? control->node : "",
				.grace_ms = ssh_longest_grace_ms(host),
				.was_lost = was_lost,
				.was_idle = host->remote && !remote_is_busy(host->remote),
				.note = &note});
	}
	ssh_run_note_keep(&note); // unless ssh_runs_add has taken it
}

void ssh_host_fail(struct ssh_host *host, const struct error *err)
{
	if (host->is_over) {
		remote_cut(host->remote, err); // it may be parting
		return;
	}
	struct error failure = *err; // a copy, because *err may belong to the client
	host->is_over = true;
	leave_run(host, true);
	ssh_login_stop(host);
	ssh_reattach_stop(host);
	ssh_links_settle(host);
	ssh_processes_lose(host, &failure);
	remote_cut(host->remote, &failure);
	if (!host->is_closed) {
		host->listener->on_failed(host->data, &failure);
	}
}

/* ---- life ---- */

static void on_warm(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_host *host = CONTAINER_OF(timer, struct ssh_host, warm);
	ev_timer_stop(loop, timer);
	ssh_links_wake(host);
	if (!host->is_over && host->control.is_ready) {
		ssh_host_enter(host);
		ssh_links_dispatch(host);
		ssh_links_warm(host);
		ssh_host_leave(host);
	}
}

void ssh_host_name_run(struct ssh_host *host)
{
	random_fill_hex(host->token, SSH_TOKEN_SIZE - 1);
}

struct ssh_host *ssh_host_open(const struct ssh_host_request *request,
	const struct ssh_host_listener *listener, void *data, struct error *err)
{
	assert(listener->on_ready && listener->on_failed && request->max_connections > 0);
	assert(!request->runs || request->place);
	assert(!request->admission || request->max_connections == 1);
	struct ssh_host *host = mem_alloc_zero(sizeof(*host));
	host->request = *request;
	host->listener = listener;
	host->data = data;
	host->loop = request->context->loop;
	list_init(&host->links);
	list_init(&host->processes);
	list_init(&host->dead);
	ev_init(&host->warm, on_warm);
	host->warm.repeat = warm_pause_s;
	ssh_reattach_init(host);
	ssh_host_name_run(host);
	if (!ssh_link_open(host, err)) {
		host_free(host);
		return NULL;
	}
	return host;
}

bool ssh_host_is_up(const struct ssh_host *host)
{
	return !host->is_over && (host->control.is_ready || host->control.has_runner);
}

struct remote *ssh_host_remote(const struct ssh_host *host)
{
	return host->remote;
}

const char *ssh_host_no_runner(const struct ssh_host *host)
{
	return host->no_runner;
}

const struct ssh_host_facts *ssh_host_facts(const struct ssh_host *host)
{
	return &host->facts;
}

struct span ssh_host_said(const struct ssh_host *host)
{
	return buf_span(&host->control.said);
}

/* What comes first when its user leaves it. */
static void leave(struct ssh_host *host)
{
	if (!host->is_over) {
		leave_run(host, host->reattach.lost_ms > 0);
	}
	ssh_reattach_stop(host);
	host->is_over = true;
	ssh_login_stop(host);
	ssh_processes_abandon(host);
}

bool ssh_host_part(struct ssh_host *host, void (*parted)(void *data), void *data)
{
	if (!host || host->is_over || !remote_outlives(host->remote)) {
		return false;
	}
	ssh_host_enter(host);
	leave(host);
	bool waits = remote_part(host->remote, parted, data);
	ssh_host_leave(host);
	return waits;
}

void ssh_host_close(struct ssh_host *host)
{
	if (!host) {
		return;
	}
	assert(!host->is_closed);
	ssh_host_enter(host);
	leave(host);
	host->is_closed = true;
	ssh_runner_close(host);
	ssh_control_close(host);
	ssh_links_close(host);
	ssh_host_leave(host);
}
