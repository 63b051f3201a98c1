/* SPDX-License-Identifier: MIT */
#include "providers/local/net/network.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/local/helper.h"
#include "providers/local/net/relay.h"
#include "providers/local/net/wire.h"

struct network {
	const struct network_listener *listener;
	void *data;
	struct helper *helper;
};

static const struct helper_kind kind = {.argument = RELAY_ARGUMENT,
	.name = "the process of the cell's network",
	.packet_size = sizeof(struct wire_message)};

/* ---- messages of the process ---- */

/* The owner may stop the network in each callback, so nothing is used after it. */
static void take(struct network *network, const struct wire_message *message)
{
	const struct network_listener *listener = network->listener;
	const struct network_connection connection = wire_connection(message);
	switch (message->kind) {
	case WIRE_READY:
		helper_is_ready(network->helper);
		listener->on_ready(network->data);
		break;
	case WIRE_FAILED:
		helper_fail(network->helper, message->text, message->is_unavailable);
		break;
	case WIRE_ASK:
		listener->on_ask(network->data, &connection);
		break;
	case WIRE_GONE:
		listener->on_gone(network->data, message->id);
		break;
	case WIRE_TELL:
		listener->on_tell(network->data, &connection, message->result);
		break;
	case WIRE_SERVER_NAME:
		listener->on_server_name(network->data, message->id, message->name);
		break;
	default:
		listener->on_limit(network->data, message->limit);
		break;
	}
}

static bool on_packet(void *data, struct span packet)
{
	struct wire_message message;
	if (!wire_read(packet, &message)) {
		return false;
	}
	take(data, &message);
	return true;
}

static void on_end(void *data, const struct error *err)
{
	struct network *network = data;
	network->listener->on_end(network->data, err);
}

static const struct helper_listener helper_listener = {.on_packet = on_packet, .on_end = on_end};

void network_decide(struct network *network, uint32_t id, bool is_allowed)
{
	const struct wire_verdict verdict = {.id = id, .is_allowed = is_allowed};
	helper_send(network->helper, (struct span){(const char *)&verdict, sizeof(verdict)});
}

/* ---- its life ---- */

struct network *network_create(struct ev_loop *loop, struct spawner *spawner,
	struct network_user user, const struct network_listener *listener, void *data,
	struct error *err)
{
	const struct wire_user packet = {.uid = user.uid, .gid = user.gid};
	struct network *network = mem_alloc_zero(sizeof(*network));
	network->listener = listener;
	network->data = data;
	network->helper = helper_create(loop, &kind, &helper_listener, network, err);
	if (network->helper) {
		helper_send(network->helper, (struct span){(const char *)&packet, sizeof(packet)});
	}
	if (network->helper && helper_start(network->helper, spawner, err)) {
		return network;
	}
	network_stop(network);
	return NULL;
}

bool network_serve(
	struct network *network, const struct network_options *options, struct error *err)
{
	assert(options->service_count <= PORTS_SERVICES_MAX &&
		options->network_count <= NETWORK_NETWORKS_MAX);
	struct wire_start *start = mem_alloc_zero(sizeof(*start));
	start->service_count = (uint32_t)options->service_count;
	start->network_count = (uint32_t)options->network_count;
	for (size_t i = 0; i < options->service_count; i++) {
		start->services[i] = options->services[i];
	}
	for (size_t i = 0; i < options->network_count; i++) {
		start->networks[i] = options->networks[i];
	}
	if (options->upstream) {
		start->upstream = *options->upstream;
	}
	bool is_sent = wire_send_start(helper_channel(network->helper), start, options->fds);
	int errnum = errno;
	explicit_bzero(start, sizeof(*start));
	free(start);
	return is_sent || error_set_errno(err, errnum, "starting the network of a cell");
}

void network_stop(struct network *network)
{
	if (network) {
		helper_destroy(network->helper);
		free(network);
	}
}
