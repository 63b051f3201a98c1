/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_CALL_IMPL_H
#define SYNC_RSYNC_CALL_IMPL_H

#include "base/buf.h"
#include "base/soon.h"
#include "sync/rsync/call.h"
#include "sync/rsync/shell.h"

/* Shared by call.c (a run and its end) and call_start.c (its socket). */
struct call {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	struct process *process; // the local half
	struct exec *exec;       // the other half; NULL: not requested yet, or gone
	char **before;           // owned
	char token[RSYNC_SHELL_TOKEN_LENGTH + 1];
	uint64_t received_max;
	int folder;          // -1 once the socket is gone
	ev_io listener;      // fd -1: closed
	ev_io shell;         // the connected remote shell; fd -1: none
	ev_io output, words; // stdout and stderr of the local half; fd -1: closed
	ev_io far_words;     // stderr of the other half
	ev_timer silence;
	long long away_ms;  // sandbox_extend_timer
	struct soon finish; // ends the call after the handler has returned
	struct buf said;    // its stderr
	struct buf printed;
	char tail[CALL_WORDS_MAX + 1], far_tail[CALL_WORDS_MAX + 1];
	bool has_asked, has_exited;
	struct call_result result;
	struct error err; // ERROR_NONE: none
	call_done *done;
	void *data;
};

/* ---- call.c ---- */

/* Only the first error is reported. Ends both halves. */
void call_fail(struct call *call, const struct error *err);

/* ---- call_start.c ---- */

/* Creates the socket in the folder and listens. */
bool call_listen(struct call *call, const char *folder, struct error *err) ATTR_NODISCARD;
/* Closes and removes it. */
void call_unlisten(struct call *call);
void call_on_shell(struct ev_loop *loop, ev_io *io, int events);

#endif
