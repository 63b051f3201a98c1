/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_REMOTE_REMOTE_IMPL_H
#define PROVIDERS_REMOTE_REMOTE_IMPL_H

#include "base/list.h"
#include "providers/mux/mux.h"
#include "providers/remote/remote.h"
#include "providers/runner/image.h"
#include "providers/script_line.h"

/*
 * Shared by remote.c, start.c, exec.c, files.c and forward.c. Every call from the loop, the carrier
 * or a caller enters the remote. When the last call leaves it, pending bytes are sent, and a closed
 * remote is freed. After raising an event, code may only use the remote itself.
 */
enum {
	REMOTE_LINE_MAX = 8192,    // of a line of the start
	REMOTE_SCRIPT_MAX = 65536, // size of start.sh, quoted
	REMOTE_COMMAND_MAX = 1024,
	REMOTE_MARK_MAX = 128,
	REMOTE_SENDS_MAX = 8, // uploads: one for each possible folder, and some more
};

/* Everything before the link begins (start.c). */
struct remote_start {
	struct script_begin begin;
	struct buf line;
	struct buf unsent; // rest of the script
	struct runner_image image;
	size_t image_left; // bytes not sent yet
	unsigned sends;
	ev_timer deadline;
	bool was_answered; // the host's shell, or the program, has begun
	bool was_late;     // a deadline has passed
	bool is_over;      // the runner has started
	bool is_further;   // the runner runs already, and a new stream to it begins (attach.c)
};

bool remote_start_begin(struct remote *remote, struct error *err) ATTR_NODISCARD;
void remote_start_finish(struct remote *remote);
/* Returns how many bytes belong to the start; the rest is for the link. */
size_t remote_start_take(struct remote *remote, struct span bytes);
void remote_start_flush(struct remote *remote);
bool remote_start_has_unsent(const struct remote *remote);

/* Begins a new stream to a runner that runs already. */
bool remote_start_further(struct remote *remote, struct error *err) ATTR_NODISCARD;

/* For further streams (attach.c). */
struct remote_attach {
	char key[RUNNER_KEY_SIZE]; // of this run
	uint64_t number;           // of the last attempt
	char *folder;              // of the program, there; owned
};
bool remote_attach_hello(const struct remote *remote, struct buf *text,
	struct error *err) ATTR_NODISCARD; // adds its lines to HELLO
bool remote_attach_script(
	const struct remote *remote, struct buf *out, struct error *err) ATTR_NODISCARD;
/* The script's answers "attach NONCE" and "gone WHY". */
void remote_attach_on_question(struct remote *remote, const char *nonce);
void remote_attach_on_gone(struct remote *remote, const char *why);

struct remote {
	struct remote_request request;
	const struct remote_listener *listener;
	void *data;
	struct remote_start start;
	struct remote_attach attach;
	struct sandbox *sandbox;       // borrowed; remote_set_sandbox
	struct carrier_stream *stream; // NULL once it has gone
	struct mux *mux;               // NULL before the runner starts and after the end
	ev_timer due;                  // when the link must send something by itself
	struct list execs;             // of struct remote_exec
	struct list files;             // of struct remote_file, in call order
	struct list forwards;          // of struct remote_forward
	struct list connections;       // of struct remote_connection
	size_t connection_count;
	bool was_full; // the listener knows about the limit of connections
	uint64_t last_id;
	uint64_t released_end; // mux_messages_end after the last release that counts
	int depth;
	bool is_ready;
	bool is_detached; // ready, but without a stream at present
	bool is_over;     // unfit, lost or closed
	bool was_busy;    // when it was lost
	bool has_said_end;
	char tied[ERROR_TEXT_MAX];  // remote_tied; empty: nothing
	void (*parted)(void *data); // remote_part; NULL: it does not part, or has parted
	void *parted_data;
	bool is_closed;
};

void remote_hold(struct remote *remote);
void remote_let_go(struct remote *remote);

/*
 * The stream has ended with this error: the remote is lost or detached. The caller must then
 * return.
 */
void remote_end_stream(struct remote *remote, const struct error *err);

/* Tells the listener once; the caller must then return. */
void remote_unfit(struct remote *remote, const char *why);
void remote_lose(struct remote *remote, const struct error *err);

/* The runner has started: the next bytes come from it. */
void remote_begin_link(struct remote *remote);

/* Sets LINK_LOST for a request to a remote that is over. */
void remote_set_lost(const struct remote *remote, const char *what, struct error *err);

/*
 * Passes the message to its exec or file request. False if it is for neither. Raises at most one
 * event.
 */
bool remote_execs_take(struct remote *remote, const struct runner_message *message);
bool remote_files_take(struct remote *remote, const struct runner_message *message);

/* Notifies all of them before it returns, unless a handler closes the remote. */
void remote_execs_lose(struct remote *remote, const struct error *err);
void remote_files_lose(struct remote *remote, const struct error *err);
void remote_execs_abandon(struct remote *remote); // raises nothing; handles remain
void remote_files_abandon(struct remote *remote); // raises nothing

/* Closes the ports and resets their connections. Raises nothing. */
void remote_forwards_end(struct remote *remote);

#endif
