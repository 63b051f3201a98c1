/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLIENT_CLIENT_H
#define BROKER_CLIENT_CLIENT_H

/*
 * This folder is the other side of the relay: an ACP client for a person's terminal, which starts
 * a broker as its agent. It knows pipes, a process, JSON-RPC's envelope, and how to write the few
 * requests that every client makes (methods.h). It does not know what is shown, nor any part of the
 * relay, which does not know of it either. broker/cli and broker/chat use it.
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
 * The first word of the command line of a broker that such a client starts: the client tells the
 * user why an agent has not started, so the broker does not log it as well.
 */
#define CLIENT_WORD "__client"

/* How the program ended: by exit(code) when signal is 0, by that signal otherwise. */
struct client_end {
	int code;
	int signal;
	const struct error *err; // why nothing more could be read or written, or NULL
};

struct client_listener {
	/*
	 * A request, a notification or a response; borrowed until it returns. False: not now; the
	 * program is not read from until client_resume, which brings the same message again.
	 */
	bool (*on_message)(void *data, const struct message *message);
	/* Once, last: the program has ended and all that it wrote was read. May destroy. */
	void (*on_ended)(void *data, const struct client_end *end);
};

struct client_config {
	struct ev_loop *loop;
	const char *const *argv;        // argv[0] is a path; not looked up
	const char *const *environment; // complete
	size_t max_message;             // bytes; a longer one ends it
	bool is_quiet;                  // its stderr is dropped
	int stderr_fd;                  // where its stderr goes otherwise; 0: to ours
	int drain_ms;                   // for what still holds its stdout after its end
	const struct client_listener *listener;
	void *data;
};

enum { CLIENT_DRAIN_MS = 5000 }; // good for drain_ms

/*
 * Starts the program in a session (setsid) of its own: a terminal's Ctrl-C is for the client alone,
 * which decides what becomes of it. Its stderr is ours, unless it is quiet. It is not killed when
 * this process dies: it sees the end of its stdin, and a broker then ends in order. SIGCHLD has its
 * default.
 */
struct client *client_create(const struct client_config *config, struct error *err) ATTR_NODISCARD;

/* Closes what is open; a program that has not ended is left to the end of its stdin. */
void client_destroy(struct client *client);

/* `params` and `result` are JSON; what is sent is copied. Nothing blocks. */
void client_request(struct client *client, long id, const char *method, struct span params);
void client_notify(struct client *client, const char *method, struct span params);
void client_answer(struct client *client, struct span id, struct span result); // id is raw
void client_refuse_method(struct client *client, struct span id, const char *method);

/* The id of a response to one of ours; -1: of none. */
long client_id_of(const struct message *message);

void client_resume(struct client *client);

/* Closes its stdin when all that was sent is written: a broker ends its sessions. Idempotent. */
void client_close(struct client *client);

/* To the program alone; nothing where it has ended. */
void client_signal(struct client *client, int signal);

/*
 * The path of the program that runs here, owned by the caller, for client_config.argv. Not by
 * PATH or argv[0], which say what somebody else calls it: it is the same file even where an upgrade
 * has replaced it since. Then it is in /proc.
 */
char *client_own_program(void);

/*
 * A JSON-RPC error (raw) as one line: the message, what it is for programs (code and stage of a
 * broker's, the number of an agent's), and the detail.
 */
void client_error_text(struct span error, char *out, size_t size);

#endif
