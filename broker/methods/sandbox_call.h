/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_SANDBOX_CALL_H
#define BROKER_METHODS_SANDBOX_CALL_H

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "broker/session/hop.h"

/*
 * The common part of the methods with which a program itself uses a session's sandbox
 * (_broker/exec…, _broker/fs/…, _broker/forward…): their session, params and end. A call ends with
 * its session, with the session's agent, and when its request is cancelled. The program on the
 * editor's side has the user's rights, so no policy decides about its calls, but the audit log
 * lists each of them.
 */
struct sandbox_call {
	struct list link; // of all that are in progress or kept
	struct relay *relay;
	struct peer *peer;
	struct sandbox *sandbox;
	char *session_id;        // owned; the id that the editor uses
	char *id;                // owned, raw; NULL: nobody waits for an answer
	bool is_base64;          // encoding of bytes in the answer
	struct json_doc *params; // owned; until sandbox_call_keep or its end
	/* Stops the work, and frees the struct around it and what that owns. */
	void (*destroy)(struct sandbox_call *call);
};

enum {
	SANDBOX_CALLS_MAX = 64, // of a broker at once, including commands and ports that are kept
	SANDBOX_BYTES_MAX = 1 << 20, // of a file, or of one output, in an answer
};

/*
 * Allocates `size` zeroed bytes, which begin with a struct sandbox_call, and reads the session,
 * params and `encoding`. NULL if the request was answered with an error.
 */
void *sandbox_call_begin(struct relay *relay, const struct call *call, size_t size,
	void (*destroy)(struct sandbox_call *call));

/* Whether SANDBOX_CALLS_MAX allows another call; otherwise the call was refused and freed. */
bool sandbox_call_has_room(struct sandbox_call *call);

/* Call it when the request is answered but the call goes on: frees `id` and `params`. */
void sandbox_call_keep(struct sandbox_call *call);

/* These answer the request and destroy the call. */
void sandbox_call_answer(struct sandbox_call *call, const struct buf *result);
void sandbox_call_fail(struct sandbox_call *call, const struct error *err);
void sandbox_call_refuse(struct sandbox_call *call, const char *code, const char *format, ...)
	ATTR_PRINTF(3, 4);

/* For `destroy`: removes the call from the list and frees the members of this struct. */
void sandbox_call_finish(struct sandbox_call *call);

/* ---- params; they return false or NULL if the call was refused and freed ---- */

/*
 * A path in the sandbox. A path in one of the session's directories on this machine is translated;
 * any other path is used as it is. Owned.
 */
char *sandbox_call_path(struct sandbox_call *call, const char *name, bool is_optional);

/* A number from `lowest` to `highest`; `fallback` if the member is missing. */
bool sandbox_call_number(struct sandbox_call *call, const char *name, const long long range[2],
	long long fallback, long long *out);

/*
 * Bytes, encoded as `encoding` says; none if the member is missing. The buffer must be initialised.
 */
bool sandbox_call_bytes(struct sandbox_call *call, const char *name, struct buf *out);

/* ---- */

/* Writes a member with bytes: as base64, or as text with U+FFFD in place of invalid UTF-8. */
void sandbox_call_write(const struct sandbox_call *call, struct json_writer *writer,
	const char *key, struct span bytes);

/* Writes a line of the audit log. */
void sandbox_call_audit(
	const struct sandbox_call *call, const char *operation, const char *subject);

struct list *sandbox_calls_of(struct relay *relay);
int sandbox_calls_count(struct relay *relay);

/*
 * Ends the calls of a peer (NULL: all peers) and a session (the editor's id; NULL: all sessions).
 * Waiting requests are answered with the failure (NULL: they get no answer).
 */
void sandbox_calls_end(struct relay *relay, const struct peer *peer, const char *session_id,
	const struct error *failure);

/* $/cancel_request: true if a call had this id (raw). */
bool sandbox_calls_cancel(struct relay *relay, struct span id);

#endif
