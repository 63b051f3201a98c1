/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_DOOR_H
#define BROKER_AGENT_MCP_DOOR_H

#include <ev.h>
#include <stdbool.h>

#include "acp/link.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/config/mcp_config.h"

/*
 * The broker's own MCP server, as far as its connections go. An agent starts the program of the
 * entry in mcpServers (mcp_entry below). That program only connects its stdin and stdout with a
 * socket of the broker, the door, and shows a secret. Each session has a place with its own secret,
 * so that a client of one session cannot act for another. Loop thread only.
 */
struct mcp_door;
struct mcp_place;

#define MCP_SERVER_NAME "acp-broker"
#define MCP_CONNECT_WORD "--acp-broker-mcp" // the program's only argument
#define MCP_SOCKET_VARIABLE "ACP_BROKER_MCP_SOCKET"
#define MCP_SECRET_VARIABLE "ACP_BROKER_MCP_SECRET"

/* The program's last line, after the end of its input. Then the client still waits for answers. */
#define MCP_END_LINE "\"end\""

enum {
	MCP_LINE_MAX = 1 << 20, // bytes of a message from a client
	MCP_QUEUE_MAX =
		1 << 20,       // bytes for a client that does not read; then it is not read either
	MCP_CLIENTS_MAX = 4,   // of a place
	MCP_STRANGERS_MAX = 8, // connections that have not shown a secret yet
	MCP_HELLO_MS = 10 * 1000,
};

/* A connection. The listener's data of its place stays valid as long as the client is open. */
struct mcp_client {
	struct list link; // mcp_place.clients, or a list of the door
	struct mcp_door *door;
	struct mcp_place *place; // NULL: it has not shown a secret yet, or is closed
	struct link line;
	ev_timer hello;  // until it has shown a secret
	int awaited;     // answers that mcp_client_await has announced
	bool is_greeted; // it has sent initialize (mcp_tools.h)
	bool has_ended;  // it sends nothing more, and goes with its last answer
	bool is_closed;
};

struct mcp_door_listener {
	/* A line has arrived: a frame of acp/frames.h. May close the client and the place. */
	void (*on_line)(void *data, struct mcp_client *client, const struct frame *frame);
	/* The client has gone, or does not take its answers. No further call is about it. */
	void (*on_gone)(void *data, struct mcp_client *client);
};

/*
 * Listens at a socket that does not exist yet. The listener is for all places. `checked` are the
 * places of acp/places.h, borrowed; a line is checked with them.
 */
struct mcp_door *mcp_door_create(struct ev_loop *loop, const char *socket,
	const struct json_places *checked, const struct mcp_door_listener *listener,
	struct error *err) ATTR_NODISCARD;

/* All places are closed before. NULL is fine. */
void mcp_door_destroy(struct mcp_door *door);

/* A place with a new secret; data is for the listener. */
struct mcp_place *mcp_place_open(struct mcp_door *door, void *data);

/* Closes its clients at once, without a call of the listener. NULL is fine. */
void mcp_place_close(struct mcp_place *place);

/* The entry for mcpServers that leads to the place; `program` is the broker's own. Finish it. */
void mcp_place_entry(const struct mcp_place *place, const char *program, struct mcp_server *entry);

/* Sends a message, which ends up empty. Does nothing if the client is closed. */
void mcp_client_send(struct mcp_client *client, struct buf *message);

/*
 * An answer will come later, or comes no more (after it was sent). Until then a client whose input
 * has ended stays connected.
 */
void mcp_client_await(struct mcp_client *client);
void mcp_client_await_no_more(struct mcp_client *client);

#endif
