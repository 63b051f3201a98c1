/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdlib.h>

#include "providers/ssh/host_impl.h"

/* ---- assigning channels ---- */

static bool is_first(const struct ssh_link *link)
{
	return link->host->links.next == &link->link;
}

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

static bool has_room(const struct ssh_link *link)
{
	size_t max = link->host->request.max_channels;
	size_t count = is_first(link); // the control's channel
	LIST_FOR_EACH(slot, &link->slots, struct ssh_slot, link) {
		count++;
	}
	return !link->is_full && !link->is_resting && (max == 0 || count < max);
}

static struct ssh_slot *open_somewhere(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		bool is_open = link->is_ready && has_room(link);
		struct ssh_slot *slot = is_open ? ssh_slot_open(link) : NULL;
		if (slot) {
			return slot;
		}
	}
	return NULL;
}

/* Whether a connection may soon have a free channel. */
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

/*
 * Finds all slots that the process needs, or none: a process that held one and waited for another
 * would block others.
 */
static bool find_slots(
	struct ssh_host *host, struct ssh_process *process, struct ssh_slot *found[2])
{
	size_t count = 0;
	size_t wanted = ssh_process_wants(process);
	while (count < wanted) {
		struct ssh_slot *slot = find_warm(host);
		slot = slot ? slot : open_somewhere(host);
		if (!slot) {
			break;
		}
		slot->process = process; // keeps it from being found again
		found[count++] = slot;
	}
	for (size_t i = 0; i < count; i++) {
		found[i]->process = NULL;
	}
	return count == wanted;
}

void ssh_links_dispatch(struct ssh_host *host)
{
	LIST_FOR_EACH(process, &host->processes, struct ssh_process, link) {
		struct ssh_slot *slots[2] = {NULL, NULL};
		if (!find_slots(host, process, slots)) {
			if (!is_promising(host) &&
				ssh_link_count(host) < host->request.max_connections) {
				connect_another(host);
			}
			return;
		}
		for (size_t i = 0; i < ARRAY_LENGTH(slots) && slots[i]; i++) {
			ssh_process_assign(process, slots[i]);
			ev_timer_again(host->loop, &host->warm);
		}
	}
}

void ssh_links_warm(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		size_t count = link->is_ready ? count_warm(link) : host->request.warm_channels;
		for (; count < host->request.warm_channels && has_room(link); count++) {
			if (!ssh_slot_open(link)) {
				return;
			}
		}
		return; // we warm only the first connection, which has the control
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
			ssh_slot_begin(slot);
		}
	}
}

/* ---- connections ---- */

static void link_free(struct ssh_link *link)
{
	assert(list_is_empty(&link->slots));
	ssh_admission_end(link->turn);
	list_remove(&link->link);
	free(link);
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
	} else if (!ssh_reattach_take_link(link) && !ssh_runner_open(host, &err)) {
		ssh_host_fail(host, &err);
	}
	ssh_host_leave(host);
}

void ssh_link_prove(struct ssh_link *link)
{
	if (!link->is_of_use) {
		link->is_of_use = true;
		ssh_admission_settle(link->turn);
		ssh_admission_forget(link->turn);
	}
}

void ssh_link_fail(struct ssh_link *link, const struct error *err)
{
	struct ssh_host *host = link->host;
	if (is_first(link)) {
		ssh_host_fail(host, err);
	} else {
		host->no_link = *err;
		ssh_client_close(link->client);
		link_free(link);
	}
}

/*
 * The connection is completely gone; this opens another one. It begins a new run, because the old
 * connection's control may end slowly, and kills every process with the name of its run.
 */
static void begin_again(struct ssh_link *link)
{
	struct ssh_host *host = link->host;
	ssh_host_name_run(host);
	ssh_runner_close(host);
	ssh_control_close(host);
	ssh_client_close(link->client);
	ssh_admission_end(link->turn);
	link->client = NULL;
	link->is_ready = link->is_full = link->is_resting = false;
	link->was_dropped = true;
	link->turn = ssh_admission_begin(link);
	ssh_host_progress(host, "The server dropped the connection after the login: connecting "
				"again with a new token");
}

static void on_link_lost(void *data, const struct error *err)
{
	struct ssh_link *link = data;
	struct ssh_host *host = link->host;
	struct error failure = *err; // a copy, because *err may belong to the client
	ssh_host_enter(host);
	if (is_first(link) && ssh_reattach_take_loss(link, err)) {
		ssh_host_leave(host);
		return;
	}
	bool is_in_vain =
		!host->is_over && link->turn && !link->is_of_use && ssh_admission_was_in_vain(err);
	if (is_in_vain && !link->was_dropped) {
		begin_again(link);
	} else {
		if (is_in_vain) {
			ssh_admission_explain(link, &failure);
		}
		ssh_link_fail(link, &failure);
	}
	ssh_host_leave(host);
}

static const struct ssh_client_listener link_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_lost = on_link_lost,
};

bool ssh_link_connect(struct ssh_link *link, const struct ssh_target *target, struct error *err)
{
	const struct ssh_host_request *request = &link->host->request;
	if (!is_first(link)) { // two connections must not want the same ports
		link->target = *target;
		link->target.omits_forwards = true;
		target = &link->target;
	}
	link->client = request->connect(request->context, target, &link_listener, link, err);
	return link->client != NULL;
}

bool ssh_link_open(struct ssh_host *host, struct error *err)
{
	struct ssh_link *link = mem_alloc_zero(sizeof(*link));
	link->host = host;
	list_init(&link->slots);
	list_append(&host->links, &link->link);
	if (host->request.admission) {
		link->turn = ssh_admission_begin(link);
	} else if (!ssh_link_connect(link, host->request.target, err)) {
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

void ssh_links_settle(struct ssh_host *host)
{
	LIST_FOR_EACH(link, &host->links, struct ssh_link, link) {
		ssh_admission_settle(link->turn);
	}
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
