/* SPDX-License-Identifier: MIT */
#include "providers/local/net/wire.h"

#include <string.h>

#include "base/fd_pass.h"
#include "providers/local/helper.h"

enum { STATUS_MAX = 999 };

static bool name_is_whole(const char *text)
{
	char name[NAME_SIZE];
	return host_name_read(name, span_of(text)) && strcmp(name, text) == 0;
}

static bool address_is_whole(const char *text)
{
	struct address address;
	char printed[ADDRESS_TEXT_SIZE];
	if (!address_parse(&address, text)) {
		return false;
	}
	address_print(&address, printed);
	return strcmp(printed, text) == 0;
}

/* A service is always named "localhost". */
static bool target_fits(const struct wire_message *message)
{
	switch (message->target) {
	case NETWORK_TO_NAME:
		return name_is_whole(message->name);
	case NETWORK_TO_ADDRESS:
		return address_is_whole(message->name);
	case NETWORK_TO_SERVICE:
		return strcmp(message->name, "localhost") == 0;
	default:
		return false;
	}
}

static bool is_of_connection(const struct wire_message *message)
{
	return message->id != 0 && message->port > 0 && message->port <= UINT16_MAX &&
	       message->client_port <= UINT16_MAX && message->way <= NETWORK_BY_REQUEST &&
	       target_fits(message);
}

bool wire_read(struct span packet, struct wire_message *out)
{
	if (packet.len != sizeof(*out)) {
		return false;
	}
	memcpy(out, packet.data, sizeof(*out));
	if (!helper_text_is_whole(out->text, sizeof(out->text)) ||
		!helper_text_is_whole(out->name, sizeof(out->name))) {
		return false;
	}
	switch (out->kind) {
	case WIRE_READY:
	case WIRE_FAILED:
		return true;
	case WIRE_ASK:
		return is_of_connection(out);
	case WIRE_GONE:
		return out->id != 0;
	case WIRE_TELL:
		return is_of_connection(out) && out->result <= NETWORK_PROXY_UNREACHABLE &&
		       out->status <= STATUS_MAX;
	case WIRE_SERVER_NAME:
		return out->id != 0 && name_is_whole(out->name);
	case WIRE_LIMIT:
		return out->limit <= NETWORK_LIMIT_NAMES;
	default:
		return false;
	}
}

bool wire_read_start(struct span packet, struct wire_start *out)
{
	if (packet.len != sizeof(*out)) {
		return false;
	}
	memcpy(out, packet.data, sizeof(*out));
	bool is_valid = out->service_count <= PORTS_SERVICES_MAX &&
	                out->network_count <= NETWORK_NETWORKS_MAX &&
	                upstream_is_whole(&out->upstream);
	for (uint32_t i = 0; is_valid && i < out->network_count; i++) {
		const struct address_network *network = &out->networks[i];
		is_valid = (network->address.family == AF_INET && network->bits <= 32) ||
		           (network->address.family == AF_INET6 && network->bits <= 128);
	}
	return is_valid;
}

struct network_connection wire_connection(const struct wire_message *message)
{
	struct network_connection connection = {
		.id = message->id,
		.target = message->target,
		.way = message->way,
		.name = message->name,
		.port = (uint16_t)message->port,
		.client_port = (uint16_t)message->client_port,
		.proxy_status = (uint16_t)message->status,
	};
	if (message->target == NETWORK_TO_ADDRESS &&
		!address_parse(&connection.address, message->name)) {
		connection.address = (struct address){.family = AF_UNSPEC};
	}
	return connection;
}

/* ---- the start ---- */

bool wire_send_start(int control, const struct wire_start *start, const int fds[PORTS_MAX])
{
	return fd_pass(control, (struct span){(const char *)start, sizeof(*start)}, fds,
		PORTS_SERVICES + start->service_count);
}

bool wire_take_start(int control, struct wire_start *out, int out_fds[PORTS_MAX])
{
	static struct wire_start packet;
	size_t count = 0;
	for (size_t i = 0; i < PORTS_MAX; i++) {
		out_fds[i] = -1;
	}
	ssize_t size = fd_take(control, &packet, sizeof(packet), out_fds, PORTS_MAX, &count);
	bool is_read = size > 0 &&
	               wire_read_start((struct span){(const char *)&packet, (size_t)size}, out) &&
	               count == PORTS_SERVICES + out->service_count;
	explicit_bzero(&packet, sizeof(packet));
	return is_read;
}
