/* SPDX-License-Identifier: MIT */
#ifndef ACP_MESSAGE_H
#define ACP_MESSAGE_H

#include <stdbool.h>

#include "acp/frames.h"
#include "acp/places.h"
#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

enum message_kind {
	MESSAGE_REQUEST,
	MESSAGE_NOTIFICATION,
	MESSAGE_RESPONSE, // with a result or an error
};

enum {
	MESSAGE_METHOD_MAX = 128,      // a longer name is a method nobody knows
	MESSAGE_SESSION_ID_MAX = 1024, // bytes; a longer one is refused
};

/*
 * A checked frame read as JSON-RPC 2.0. Everything borrows from the frame; it
 * is valid as long as the frame's bytes are.
 */
struct message {
	enum message_kind kind;
	struct span text;                // the whole message
	struct span id;                  // raw, with quotes where it is a string; empty without one
	char method[MESSAGE_METHOD_MAX]; // decoded; "" in a response
	bool is_error;                   // a response with an error
	const struct json_check *check;
};

/*
 * Reads the envelope. ERROR_PROTOCOL says which rule was broken: the version,
 * the type of a member, members that exclude each other.
 */
bool message_read(
	struct message *message, const struct frame *frame, struct error *err) ATTR_NODISCARD;

/*
 * What can still be said of a frame that message_read or the frame reader
 * refused: its id (raw; empty where unknown), whether it had a method, and
 * whether it was a response, which nobody answers.
 */
struct span message_broken_id(const struct frame *frame);
bool message_broken_has_method(const struct frame *frame);
bool message_broken_is_response(const struct frame *frame);

/* The raw bytes of a place; empty where the message has none. */
struct span message_place(const struct message *message, enum place place);
const struct json_hit *message_hit(const struct message *message, enum place place);

/*
 * The string at a place, decoded into out (terminated, at most size - 1 bytes).
 * False where there is none, where it is no string, too long, or holds a NUL.
 */
bool message_string(const struct message *message, enum place place, char *out, size_t size);

/* The same of one hit, for places that come several times. */
bool message_hit_string(
	const struct message *message, const struct json_hit *hit, char *out, size_t size);

#endif
