/* SPDX-License-Identifier: MIT */
#ifndef TESTS_AGENT_AGENT_H
#define TESTS_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/span.h"

/*
 * A scripted ACP agent: the prompt says what it does in a turn, one command per line (see --help).
 * It needs no network, its output is the same every time, and it misbehaves on demand. It answers
 * requests while turns run, and blocks only if a command says so.
 */
enum {
	AGENT_OUT_PAUSE = 256 * 1024, // from this many queued bytes on, turns wait for the reader
	AGENT_LEFTOVER_SECONDS = 600, // nothing this program leaves behind lives longer
};

struct agent_options {
	const char *journal;     // gets every line received and sent; may be NULL
	const char *pids;        // gets every process id that the agent has; may be NULL
	const char *load_replay; // updates before session/load is answered
	const char *load_size;   // bytes of each of them
	const char *list_page;   // sessions on one of session/list
	const char *protocol_version;
	const char *exit_at_once; // the exit status
	const char *slow_exit;    // seconds between the end of input and leaving
	const char *meta;         // JSON for the _meta of the initialize result
	const char *sessions;     // file of the sessions it remembers; NULL: accepts any session
	const char *modes;        // JSON members of session/new's result instead of its modes
	bool never_answer;
	bool garbage_first;
	bool ignore_eof;
	bool ignore_term;
	bool terminal_auth;
	const char *auth_methods;
	bool need_auth;
	bool no_load;
	bool no_resume;
	bool late_replay;
	bool error_data;
	bool only_stdio;
	bool refuse_modes; // session/set_mode and set_config_option are errors
	bool silent_modes; // these are never answered
	bool null_results; // null for a result without required members
	bool own_names;    // session ids that no other agent has
	bool login;        // not an agent but a user's login
	bool help;
};

struct agent {
	struct agent_options options;
	int argc;
	char **argv;
	struct buf in;
	size_t scanned; // bytes of in known to hold no newline
	struct buf out;
	int journal; // -1 without one
	int pids;    // -1 without one
	bool in_ended;
	bool stopped_reading; // until SIGUSR1
	bool crlf;            // ends its lines with CRLF
	bool authenticated;
	bool must_leave;
	int exit_status;
	int session_count;
	int request_count;
	int call_count;
	struct list sessions; // of struct session
	struct list turns;    // of struct turn
};

struct session {
	struct list link;
	char *id;
	char *quoted_id;
	char *cwd;  // raw JSON
	char *mode; // raw JSON
	bool closed;
};

void agent_init(struct agent *agent, const struct agent_options *options);
void agent_finish(struct agent *agent);
int agent_run(struct agent *agent); // returns the exit status

/* Queues one message, with its line end, and writes it to the journal. */
void agent_send(struct agent *agent, const char *format, ...) ATTR_PRINTF(2, 3);
void agent_send_line(struct agent *agent, struct span line);

/* Queues bytes as they are. */
void agent_send_raw(struct agent *agent, struct span bytes);

/*
 * Writes all queued messages, and waits for the reader. Call it before a command that ends or stops
 * the agent.
 */
void agent_flush(struct agent *agent);

void agent_note_pid(struct agent *agent, int pid);
void agent_stop_on_signal(void); // SIGUSR1 makes the agent read again

/* memory.c: sessions that outlive the process (--sessions). */
void memory_read(struct agent *agent);
void memory_add(struct agent *agent, const struct session *session);

/* A session of the agent's; id is taken. */
struct session *agent_make_session(struct agent *agent, char *id, struct span cwd);
struct session *agent_find_session(struct agent *agent, const char *id);

/* The two arguments of "%.*s": a span's, or a buffer's from which nothing was consumed. */
#define PRINTF_BYTES(bytes) (int)(bytes).len, (bytes).len > 0 ? (bytes).data : ""

/* Appends to a buffer; the caller guarantees that it is large enough. */
void text_add(struct buf *text, const char *format, ...) ATTR_PRINTF(2, 3);
void text_fill(struct buf *text, size_t count); // count letters

/* methods.c: one complete line from the client. */
void agent_handle_line(struct agent *agent, struct span line);
void agent_answer(struct agent *agent, struct span id, const char *format, ...) ATTR_PRINTF(3, 4);
void agent_answer_error(struct agent *agent, struct span id, int code, const char *message);

#endif
