/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_MUX_H
#define PROVIDERS_SSH_OPENSSH_MUX_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "providers/ssh/life.h"

/*
 * One conversation with an ssh that listens at a control socket, in OpenSSH's own protocol
 * (PROTOCOL.mux, version 4, unchanged since OpenSSH 5.4). We talk to the master ourselves instead
 * of starting another ssh program for each channel. So we can tell a refusal by the server from the
 * command's own output, we need no further process, and no second connection can be opened.
 */
enum mux_type {
	MUX_HELLO = 0x00000001,
	MUX_NEW_SESSION = 0x10000002,
	MUX_ALIVE_CHECK = 0x10000004,
	MUX_PERMISSION_DENIED = 0x80000002,
	MUX_FAILURE = 0x80000003,
	MUX_EXIT_MESSAGE = 0x80000004,
	MUX_ALIVE = 0x80000005,
	MUX_SESSION_OPENED = 0x80000006,
};

struct mux_message {
	uint32_t type;
	uint32_t id;      // of the request; of the session for MUX_EXIT_MESSAGE
	uint32_t value;   // MUX_EXIT_MESSAGE: exit(value)
	struct span text; // MUX_FAILURE, MUX_PERMISSION_DENIED: the reason
};

/* Handlers may close the mux. */
struct mux_listener {
	void (*on_message)(void *data, const struct mux_message *message);
	/* The master has closed the conversation, or broken the protocol. Nothing follows. */
	void (*on_end)(void *data);
};

struct mux {
	struct ev_loop *loop;
	int fd; // -1: closed
	ev_io io;
	struct buf in;
	struct life *life; // NULL: closed
	const struct mux_listener *listener;
	void *data;
};

/*
 * Connects and says hello. Does not block. ERROR_NOT_FOUND if nobody listens, ERROR_UNAVAILABLE if
 * the master takes no connections now; then there is nothing to close.
 */
bool openssh_mux_open(struct mux *mux, struct ev_loop *loop, const char *path,
	const struct mux_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * Asks for a session that runs the command on the three descriptors, which are duplicated. With
 * `forwards_agent` the command gets the user's ssh-agent, if the master's configuration allows it.
 */
bool mux_request_session(struct mux *mux, const char *command, const int fds[3],
	bool forwards_agent, struct error *err) ATTR_NODISCARD;

/* MUX_ALIVE with this id answers it. */
bool mux_request_alive(struct mux *mux, uint32_t id, struct error *err) ATTR_NODISCARD;

void mux_close(struct mux *mux); // the master ends the session that was requested here

#endif
