/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "providers/ssh/host_impl.h"

enum { REFUSALS_DOUBTED = 4 };

/* ---- sending ---- */

static void flush(struct ssh_slot *slot)
{
	struct span unsent = buf_span(&slot->unsent);
	if (unsent.len > 0) {
		buf_consume(&slot->unsent, ssh_channel_write(slot->channel, unsent));
	}
	if (slot->unsent.len == 0) {
		buf_wipe(&slot->unsent);
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
	assert(is_kept); // a request, or one piece of input; both are bounded
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

/* Frees a slot whose channel has ended; the link then has room for another. */
static void slot_free(struct ssh_slot *slot)
{
	slot->of->is_full = false;
	slot->of->doubts = REFUSALS_DOUBTED;
	ev_timer_again(slot->of->host->loop, &slot->of->host->warm);
	list_remove(&slot->link);
	buf_wipe(&slot->unsent);
	free(slot);
}

void ssh_slot_close(struct ssh_slot *slot)
{
	ssh_channel_close(slot->channel);
	slot_free(slot);
}

void ssh_slot_begin(struct ssh_slot *slot)
{
	struct buf line;
	struct error err;
	buf_init(&line, SSH_PREAMBLE_MAX);
	bool is_whole =
		buf_append(&line, SPAN_LITERAL(". "), &err) &&
		script_quote_append(&line, span_of(slot->of->host->control.run_folder), &err) &&
		buf_append(&line, SPAN_LITERAL("/library; acp_serve\n"), &err);
	assert(is_whole);
	ssh_slot_send(slot, buf_span(&line));
	buf_finish(&line);
}

/* ---- events of the channel ---- */

static size_t on_bytes(void *data, enum ssh_stream stream, struct span bytes)
{
	struct ssh_slot *slot = data;
	struct ssh_host *host = slot->of->host;
	size_t skipped = script_begin_skip(&slot->begin[stream], bytes);
	bytes.data += skipped;
	bytes.len -= skipped;
	if (bytes.len == 0 || !slot->process) {
		return skipped + bytes.len;
	}
	ssh_host_enter(host);
	stream = slot->is_stderr ? SSH_STREAM_ERR : stream;
	size_t taken = ssh_process_on_bytes(slot->process, stream, bytes);
	ssh_host_leave(host);
	return skipped + taken;
}

static void on_eof(void *data, enum ssh_stream stream)
{
	struct ssh_slot *slot = data;
	bool is_used = slot->process && (!slot->process->is_apart || stream == SSH_STREAM_OUT);
	if (is_used) {
		ssh_process_on_eof(slot->process, slot->is_stderr ? SSH_STREAM_ERR : stream);
	}
}

static void tell_room(struct ssh_slot *slot)
{
	if (slot->process && !slot->is_stderr && ssh_slot_has_room(slot)) {
		ssh_process_on_room(slot->process);
	}
}

static void on_writable(void *data)
{
	struct ssh_slot *slot = data;
	flush(slot);
	tell_room(slot);
}

static void on_open(void *data)
{
	struct ssh_slot *slot = data;
	slot->is_open = true;
	ssh_link_prove(slot->of);
	tell_room(slot);
}

/* Separates the ended channel from its process, and frees the slot. */
static struct ssh_process *end_slot(struct ssh_slot *slot)
{
	struct ssh_process *process = slot->process;
	if (process) {
		*(slot->is_stderr ? &process->err_slot : &process->slot) = NULL;
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
	bool is_stderr = slot->is_stderr;
	ssh_host_enter(host);
	struct ssh_process *process = end_slot(slot); // the next check comes soon
	if (err->code == ERROR_LIMIT) {
		link->is_full = doubts == 0;
		link->is_resting = doubts > 0;
		link->doubts = doubts > 0 ? doubts - 1 : 0;
	}
	if (process && err->code == ERROR_LIMIT) {
		if (!is_stderr) {
			ssh_process_on_refused(process);
		}
		ssh_links_dispatch(host);
	} else if (process && is_stderr) {
		ssh_process_on_stderr_refused(process, err);
	} else if (process) {
		ssh_process_on_failed(process, err);
	}
	ssh_host_leave(host);
}

static void on_closed(void *data, const struct ssh_channel_end *end)
{
	struct ssh_slot *slot = data;
	struct ssh_host *host = slot->of->host;
	struct ssh_channel_end copy = *end; // *end may belong to the channel
	ssh_host_enter(host);
	slot->of->is_resting = false; // there is room now, so try again without a pause
	bool is_stderr = slot->is_stderr;
	struct ssh_process *process = end_slot(slot);
	if (process && is_stderr) {
		ssh_process_on_stderr_closed(process, &copy);
	} else if (process) {
		ssh_process_on_closed(process, &copy);
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

struct ssh_slot *ssh_slot_open(struct ssh_link *link)
{
	struct ssh_host *host = link->host;
	char command[SSH_COMMAND_MAX];
	struct error err;
	ssh_process_command(command, host);
	struct ssh_slot *slot = mem_alloc_zero(sizeof(*slot));
	slot->of = link;
	buf_init(&slot->unsent, (size_t)2 * SSH_REQUEST_MAX);
	list_append(&link->slots, &slot->link);
	slot->channel = ssh_channel_open(link->client, command, &slot_listener, slot, &err);
	if (!slot->channel) {
		slot_free(slot);
		link->is_full = true; // until one of its channels ends
		link->doubts = 0;
		return NULL;
	}
	if (host->control.is_ready) {
		ssh_slot_begin(slot);
	}
	return slot;
}
