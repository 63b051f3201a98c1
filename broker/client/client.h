/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLIENT_CLIENT_H
#define BROKER_CLIENT_CLIENT_H

/*
 * This folder is the other side of the relay: an ACP client for a person's terminal, which starts a
 * broker as its agent. It knows pipes, a process, the envelope of JSON-RPC, and how to write the
 * few requests that every client makes (methods.h). It does not know what is shown. It knows
 * nothing of the relay, and the relay nothing of it. broker/cli and broker/chat use it.
 */

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "acp/message.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

struct client;

/*
 * The first argument of a broker that such a client starts. The client tells the user why an agent
 * has not started, so the broker does not log that too.
 */
#define CLIENT_WORD "__client"

/* How the program ended: by exit(code) if signal is 0, else by that signal. */
struct client_end {
	int code;
	int signal;
	const struct error *err; // why reading or writing failed, or NULL
};

struct client_listener {
	/*
	 * A request, a notification or a response; borrowed during the call. False: not now. Then
	 * the client stops reading until client_resume, which delivers the same message again.
	 */
	bool (*on_message)(void *data, const struct message *message);
	/*
	 * Called once, last: the program has ended and all of its output was read. May destroy the
	 * client.
	 */
	void (*on_ended)(void *data, const struct client_end *end);
};

struct client_config {
	struct ev_loop *loop;
	const char *const *argv;        // argv[0] is a path and is not searched for
	const char *const *environment; // complete
	size_t max_message;             // bytes; a longer message ends the client
	bool is_quiet;                  // discards its stderr
	int stderr_fd;                  // where its stderr goes otherwise; 0: to ours
	int drain_ms;                   // after its end, for processes that still hold its stdout
	const struct client_listener *listener;
	void *data;
};

enum { CLIENT_DRAIN_MS = 5000 }; // a good value for drain_ms

/*
 * Starts the program in its own session (setsid), so that a terminal's Ctrl-C reaches only the
 * client, which decides what to do. Its stderr is ours, unless it is quiet. The program is not
 * killed if this process dies: it sees the end of its stdin, and a broker then ends in order.
 * SIGCHLD is reset to its default.
 */
struct client *client_create(const struct client_config *config, struct error *err) ATTR_NODISCARD;

/* Closes what is open. A program that still runs sees the end of its stdin. */
void client_destroy(struct client *client);

/* `params` and `result` are JSON. Copies what it sends. Does not block. */
void client_request(struct client *client, long id, const char *method, struct span params);
void client_notify(struct client *client, const char *method, struct span params);
void client_answer(struct client *client, struct span id, struct span result); // id is raw
void client_refuse_method(struct client *client, struct span id, const char *method);

/* The id of our request that this response answers, or -1. */
long client_id_of(const struct message *message);

void client_resume(struct client *client);

/*
 * Closes the program's stdin once everything is written; a broker then ends its sessions.
 * Idempotent.
 */
void client_close(struct client *client);

/* Signals the program only; does nothing if it has ended. */
void client_signal(struct client *client, int signal);

/*
 * The path of the running program, for client_config.argv; the caller owns it. It does not come
 * from PATH or argv[0], which somebody else has chosen. It leads to the same file even if an
 * upgrade has replaced that since; then the path is in /proc.
 */
char *client_own_program(void);

/* Reasons of an agent's own errors: codes that docs/errors.md does not have (docs/doctor.md). */
#define CLIENT_AGENT_ERROR "AGENT_ERROR"
#define CLIENT_LOGIN_NEEDED "LOGIN_NEEDED"

/*
 * Sets err to a JSON-RPC error (raw), as one line: the message, then its code and stage (from a
 * broker) or its number (from an agent), then the detail. Its reason is the broker's code, if it is
 * one of acp/failure.h or of the provider's `reasons`; else the error is the agent's own. Returns
 * false, like error_set.
 */
bool client_error_read(struct error *err, struct span error, const struct error_reason *reasons,
	size_t reason_count);

#endif
