/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/text.h"
#include "providers/ssh/host_impl.h"

/*
 * The runner replaces the control and does all the work of the scripts. If it cannot run on a host,
 * the broker opens the control instead.
 */

static bool open_control(struct ssh_host *host, struct error *err)
{
	if (!ssh_control_open(host, err)) {
		return false;
	}
	ssh_links_warm(host);
	return true;
}

static void on_fact(void *data, const char *line)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	ssh_link_prove(LIST_FIRST(&host->links, struct ssh_link, link));
	(void)ssh_control_take_fact(host, line);
	ssh_host_leave(host);
}

static void on_progress(void *data, const char *text)
{
	ssh_host_progress(data, text);
}

static void on_notice(void *data, const char *text)
{
	const struct ssh_host *host = data;
	if (host->listener->on_notice && !host->is_over) {
		host->listener->on_notice(host->data, text);
	}
}

static void on_ready(void *data)
{
	struct ssh_host *host = data;
	struct error err;
	ssh_host_enter(host);
	if (!host->control.run_folder) {
		error_set(&err, ERROR_PROTOCOL,
			"preparing %s: it does not name the folder of the run",
			ssh_host_name(host));
		ssh_host_fail(host, &err);
		ssh_host_leave(host);
		return;
	}
	host->control.has_runner = true;
	ssh_control_forget_runs(host);
	ssh_reattach_begin(host);
	ssh_host_note_run(host);
	ssh_login_start(host);
	ssh_host_leave(host);
}

static void on_unfit(void *data, const char *why)
{
	struct ssh_host *host = data;
	struct error err;
	ssh_host_enter(host);
	if (host->request.first_timeout_ms > 0 && remote_start_was_late(host->remote)) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED", "%s: %s",
			ssh_host_name(host), why);
		ssh_host_fail(host, &err); // scripts would wait for the same answer
		ssh_host_leave(host);
		return;
	}
	mem_set_text(&host->no_runner, why);
	unsigned ended = host->control.ended; // the control finds nothing more to end
	ssh_runner_close(host);
	host->control.ended = ended;
	if (!host->is_over && !open_control(host, &err)) {
		ssh_host_fail(host, &err);
	}
	ssh_host_leave(host);
}

static void on_lost(void *data, const struct error *err)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	ssh_host_fail(host, err);
	ssh_host_leave(host);
}

static void on_detached(void *data, const struct error *err)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	ssh_reattach_on_detached(host, err);
	ssh_host_leave(host);
}

static void on_attached(void *data)
{
	struct ssh_host *host = data;
	ssh_host_enter(host);
	ssh_reattach_on_attached(host);
	ssh_host_leave(host);
}

static const struct remote_listener remote_listener = {
	.on_fact = on_fact,
	.on_progress = on_progress,
	.on_notice = on_notice,
	.on_ready = on_ready,
	.on_unfit = on_unfit,
	.on_lost = on_lost,
	.on_detached = on_detached,
	.on_attached = on_attached,
};

bool ssh_runner_open(struct ssh_host *host, struct error *err)
{
	const struct ssh_host_request *request = &host->request;
	if (!request->wants_runner) {
		return open_control(host, err);
	}
	ssh_carrier_init(&host->carrier, LIST_FIRST(&host->links, struct ssh_link, link)->client);
	struct buf before;
	host->control.told_runs = request->runs ? request->runs->added : 0;
	buf_init(&before, SSH_BEFORE_MAX);
	bool ends_earlier = !request->runs || ssh_runs_append_function(request->runs,
						      request->place, "acp_before", &before, err);
	if (!ends_earlier || !buf_append(&before, (struct span){"", 1}, err)) {
		buf_finish(&before);
		return false;
	}
	host->remote = remote_open(&(struct remote_request){.loop = host->loop,
					   .carrier = &host->carrier.carrier,
					   .name = ssh_host_name(host),
					   .sh = ssh_host_sh(host),
					   .token = host->token,
					   .before = buf_span(&before).data,
					   .variables = ssh_host_more_variables(host),
					   .grace_ms = request->grace_ms,
					   .outlives = request->outlives,
					   .orphan_ms = request->orphan_ms,
					   .agent_bytes = request->link_buffer,
					   .timeout_ms = request->channel_timeout_ms,
					   .first_ms = request->first_timeout_ms},
		&remote_listener, host, err);
	buf_finish(&before);
	if (!host->remote) {
		mem_set_text(&host->no_runner, err->text);
		return open_control(host, err);
	}
	return true;
}

void ssh_runner_close(struct ssh_host *host)
{
	struct remote *remote = host->remote;
	host->remote = NULL;
	remote_close(remote);
	host->control.has_runner = false;
	ssh_control_drop_facts(host);
}
