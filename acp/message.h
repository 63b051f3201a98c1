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
	MESSAGE_METHOD_MAX = 128,      // no known method has a longer name
	MESSAGE_SESSION_ID_MAX = 1024, // bytes; a longer one is refused
};

/*
 * A checked frame, read as JSON-RPC 2.0. Everything in it borrows from the frame and is valid as
 * long as the frame's bytes are.
 */
struct message {
	enum message_kind kind;
	struct span text;                // the whole message
	struct span id;                  // raw, with the quotes of a string; empty if there is none
	char method[MESSAGE_METHOD_MAX]; // decoded; "" in a response
	bool is_error;                   // a response with an error
	const struct json_check *check;
};

/*
 * Reads the envelope. ERROR_PROTOCOL says which rule was broken: the version, the type of a member,
 * or members that exclude each other.
 */
bool message_read(
	struct message *message, const struct frame *frame, struct error *err) ATTR_NODISCARD;

/*
 * What is known about a frame that message_read or the frame reader refused: its id (raw; empty if
 * unknown), whether it had a method, and whether it was a response (which needs no answer).
 */
struct span message_broken_id(const struct frame *frame);
bool message_broken_has_method(const struct frame *frame);
bool message_broken_is_response(const struct frame *frame);

/* The raw bytes of a place; empty if the message does not have it. */
struct span message_place(const struct message *message, enum place place);
const struct json_hit *message_hit(const struct message *message, enum place place);

/*
 * The string at a place, decoded into out (terminated, at most size - 1 bytes). False if the place
 * is missing, is not a string, is too long, or contains a NUL.
 */
bool message_string(const struct message *message, enum place place, char *out, size_t size);

/* The same for one hit, for places that may occur several times. */
bool message_hit_string(
	const struct message *message, const struct json_hit *hit, char *out, size_t size);

#endif
