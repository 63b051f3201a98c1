/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/ssh/host_impl.h"

enum { REFUSALS_DOUBTED = 4 };

/* ---- slots ---- */

static void flush(struct ssh_slot *slot)
{
	struct span unsent = buf_span(&slot->unsent);
	if (unsent.len > 0) {
		buf_consume(&slot->unsent, ssh_channel_write(slot->channel, unsent));
	}
	if (slot->unsent.len == 0) {
		ssh_wipe(&slot->unsent);
		if (slot->wants_eof) {
			slot->wants_eof = false;
			ssh_channel_send_eof(slot->channel);
		}
	}
}

bool ssh_slot_send(struct ssh_slot *slot, struct span bytes)
{
	if (slot->unsent.len == 0) {
		size_t taken = ssh_channel_write(slot->channel, bytes);
		bytes.data += taken;
		bytes.len -= taken;
	}
	struct error ignored;
	bool is_kept = bytes.len == 0 || buf_append(&slot->unsent, bytes, &ignored);
	assert(is_kept); // a request, or one piece of input: both are bounded
	return slot->unsent.len == 0;
}

bool ssh_slot_has_room(const struct ssh_slot *slot)
{
	return slot->is_open && slot->unsent.len == 0;
}

void ssh_slot_send_eof(struct ssh_slot *slot)
{
	slot->wants_eof = true;
	flush(slot);
}

/* Frees what is left of a slot whose channel has ended; the link has room again. */
static void slot_free(struct ssh_slot *slot)
{
	slot->of->is_full = false;
	slot->of->doubts = REFUSALS_DOUBTED;
	ev_timer_again(slot->of->host->loop, &slot->of->host->warm);
	list_remove(&slot->link);
	ssh_wipe(&slot->unsent);
	free(slot);
}

void ssh_slot_close(struct ssh_slot *slot)
{
	ssh_channel_close(slot->channel);
	slot_free(slot);
}

static void send_preamble(struct ssh_slot *slot)
{
	struct buf line;
	struct error err;
	buf_init(&line, SSH_PREAMBLE_MAX);
	bool is_whole =
		buf_append(&line, SPAN_LITERAL(". "), &err) &&
		ssh_quote_append(&line, span_of(slot->of->host->control.run_folder), &err) &&
		buf_append(&line, SPAN_LITERAL("/library; acp_serve\n"), &err);
	assert(is_whole);
	ssh_slot_send(slot, buf_span(&line));
	buf_finish(&line);
}

/* ---- what a channel tells ---- */

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct ssh_slot *slot = data;
	struct ssh_host *host = slot->of->host;
	size_t skipped = ssh_begin_skip(&slot->begin[stream], bytes);
	bytes.data += skipped;
	bytes.len -= skipped;
	if (bytes.len == 0 || !slot->process) {
		return skipped + bytes.len;
	}
	ssh_host_enter(host);
	size_t taken = ssh_process_on_bytes(slot->process, stream, bytes);
	ssh_host_leave(host);
	return skipped + taken;
}

static void on_eof(void *data, enum ssh_stream stream)
{
	struct ssh_slot *slot = data;
	if (slot->process) {
		ssh_process_on_eof(slot->process, stream);
	}
}

static void on_writable(void *data)
{
	struct ssh_slot *slot = data;
	flush(slot);
	if (slot->process && ssh_slot_has_room(slot)) {
		ssh_process_on_room(slot->process);
	}
}

static void on_open(void *data)
{
	struct ssh_slot *slot = data;
	slot->is_open = true;
	if (slot->process && ssh_slot_has_room(slot)) {
		ssh_process_on_room(slot->process);
	}
}

/* Takes the channel's end apart from its process, and frees the slot. */
static struct ssh_process *end_slot(struct ssh_slot *slot)
{
	struct ssh_process *process = slot->process;
	if (process) {
		process->slot = NULL;
	}
	ssh_channel_close(slot->channel);
	slot_free(slot);
	return process;
}

static void on_refused(void *data, const struct error *err)
{
	struct ssh_slot *slot = data;
	struct ssh_link *link = slot->of;
	struct ssh_host *host = link->host;
	unsigned doubts = link->doubts;
	ssh_host_enter(host);
	struct ssh_process *process = end_slot(slot); // the next look comes soon
	if (err->code == ERROR_LIMIT) {
		link->is_full = doubts == 0;
		link->is_resting = doubts > 0;
		link->doubts = doubts > 0 ? doubts - 1 : 0;
	}
	if (process && err->code == ERROR_LIMIT) {
		ssh_process_on_refused(process);
		ssh_links_dispatch(host);
	} else if (process) {
		ssh_process_on_failed(process, err);
	}
	ssh_host_leave(host);
}

static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct ssh_slot *slot = data;
	struct ssh_host *host = slot->of->host;
	ssh_host_enter(host);
	struct ssh_process *process = end_slot(slot);
	if (process) {
		ssh_process_on_closed(process, end);
	}
	if (!host->is_over) {
		ssh_links_dispatch(host);
	}
	ssh_host_leave(host);
}

static void on_lost(void *data, const struct error *err)
{
	struct ssh_slot *slot = data;
	struct ssh_host *host = slot->of->host;
	ssh_host_enter(host);
	struct ssh_process *process = end_slot(slot);
	if (process) {
		ssh_process_on_lost(process, err);
	}
	ssh_host_leave(host);
}

static const struct ssh_channel_listener slot_listener = {
	.on_open = on_open,
	.on_refused = on_refused,
	.on_bytes = on_bytes,
	.on_eof = on_eof,
	.on_writable = on_writable,
	.on_closed = on_closed,
	.on_lost = on_lost,
};

static struct ssh_slot *slot_open(struct ssh_link *link)
{
	struct ssh_host *host = link->host;
	char command[SSH_COMMAND_MAX];
	struct error err;
	ssh_process_command(command, host->token, ssh_host_sh(host));
	struct ssh_slot *slot = mem_alloc_zero(sizeof(*slot));
	slot->of = link;
	buf_init(&slot->unsent, 2 * SSH_REQUEST_MAX);
	list_append(&link->slots, &slot->link);
	slot->channel = ssh_channel_open(link->client, command, &slot_listener, slot, &err);
	if (!slot->channel) {
		slot_free(slot);
		link->is_full = true; // until something of it ends
		link->doubts = 0;
		return NULL;
	}
	if (host->control.is_ready) {
		send_preamble(slot);
	}
	return slot;
}

/* ---- giving channels out ---- */

static size_t count_warm(const struct ssh_link *link)
{
	size_t count = 0;
	LIST_FOR_EACH(slot, &link->slots, struct ssh_slot, link) {
		count += slot->process == NULL;
	}
	return count;
}

static struct ssh_slot *find_warm(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		LIST_FOR_EACH(slot, &link->slots, struct ssh_slot, link) {
			if (!slot->process) {
				return slot;
			}
		}
	}
	return NULL;
}

static struct ssh_slot *open_somewhere(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		bool is_open = link->is_ready && !link->is_full && !link->is_resting;
		struct ssh_slot *slot = is_open ? slot_open(link) : NULL;
		if (slot) {
			return slot;
		}
	}
	return NULL;
}

/* Whether one of them may soon have room. */
static bool is_promising(const struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		if (!link->is_ready || link->is_resting) {
			return true;
		}
	}
	return false;
}

static void connect_another(struct ssh_host *host)
{
	struct error err;
	if (!ssh_link_open(host, &err)) {
		host->no_link = err;
	}
}

void ssh_links_dispatch(struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		if (process->state != SSH_PROCESS_WAITING) {
			continue;
		}
		struct ssh_slot *slot = find_warm(host);
		slot = slot ? slot : open_somewhere(host);
		if (!slot) {
			if (!is_promising(host) &&
				ssh_link_count(host) < host->request.max_connections) {
				connect_another(host);
			}
			return;
		}
		ssh_process_assign(process, slot);
		ev_timer_again(host->loop, &host->warm);
	}
}

void ssh_links_warm(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		size_t count = link->is_ready ? count_warm(link) : host->request.warm_channels;
		bool is_open = !link->is_full && !link->is_resting;
		for (; count < host->request.warm_channels && is_open; count++) {
			is_open = slot_open(link) != NULL;
		}
		return; // the control's connection alone
	}
}

void ssh_links_wake(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		link->is_resting = false;
	}
}

void ssh_links_begin(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		LIST_FOR_EACH(slot, &link->slots, struct ssh_slot, link) {
			send_preamble(slot);
		}
	}
}

/* ---- connections ---- */

static void link_free(struct ssh_link *link)
{
	assert(list_is_empty(&link->slots));
	list_remove(&link->link);
	free(link);
}

static bool is_first(const struct ssh_link *link)
{
	return link->host->links.next == &link->link;
}

static void on_progress(void *data, const char *text)
{
	const struct ssh_link *link = data;
	ssh_host_progress(link->host, text);
}

static void on_ready(void *data)
{
	struct ssh_link *link = data;
	struct ssh_host *host = link->host;
	link->is_ready = true;
	ssh_host_enter(host);
	struct error err;
	if (!is_first(link)) {
		ssh_links_dispatch(host);
	} else if (ssh_control_open(host, &err)) {
		ssh_links_warm(host);
	} else {
		ssh_host_fail(host, &err);
	}
	ssh_host_leave(host);
}

static void on_link_lost(void *data, const struct error *err)
{
	struct ssh_link *link = data;
	struct ssh_host *host = link->host;
	ssh_host_enter(host);
	if (is_first(link)) {
		ssh_host_fail(host, err);
	} else {
		host->no_link = *err;
		ssh_client_close(link->client);
		link_free(link);
	}
	ssh_host_leave(host);
}

static const struct ssh_client_listener link_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_lost = on_link_lost,
};

bool ssh_link_open(struct ssh_host *host, struct error *err)
{
	struct ssh_link *link = mem_alloc_zero(sizeof(*link));
	link->host = host;
	list_init(&link->slots);
	list_append(&host->links, &link->link);
	link->client = host->request.connect(
		host->request.context, host->request.target, &link_listener, link, err);
	if (!link->client) {
		link_free(link);
		return false;
	}
	return true;
}

size_t ssh_link_count(const struct ssh_host *host)
{
	size_t count = 0;
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		count++;
	}
	return count;
}

void ssh_links_close(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		LIST_FOR_EACH(slot, &link->slots, struct ssh_slot, link) {
			ssh_slot_close(slot);
		}
		ssh_client_close(link->client);
		link_free(link);
	}
	ev_timer_stop(host->loop, &host->warm);
}
