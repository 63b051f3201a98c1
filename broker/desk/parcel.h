/* SPDX-License-Identifier: MIT */
#ifndef BROKER_DESK_PARCEL_H
#define BROKER_DESK_PARCEL_H

#include <stddef.h>

#include "acp/frames.h"
#include "acp/splice.h"
#include "base/attr.h"

struct method;

/*
 * A message that is set aside until something else is known, such as a user's answer or a directory
 * in the sandbox. It keeps the bytes. Opening it gives the frame again.
 */
struct parcel;

/* `from` has just returned the frame. A large message is moved, not copied. */
struct parcel *parcel_create(
	struct frame_reader *from, const struct frame *frame, const struct json_places *places);

/* The same for a message's bytes; takes their memory. The caller has checked the bytes before. */
struct parcel *parcel_of(struct buf *message, const struct json_places *places);

void parcel_destroy(struct parcel *parcel);

/*
 * Bytes that each message takes at most besides its content: the parcel, and what the desk and the
 * stage keep about it. Without this constant, many short messages would count as almost nothing.
 */
enum { PARCEL_OVERHEAD = 1024 };

/* Bytes held until it is opened: the message's, and PARCEL_OVERHEAD. */
size_t parcel_size(const struct parcel *parcel);

/* The frame, possible once, and the reader to forward it from. Both borrow from the parcel. */
const struct frame *parcel_open(struct parcel *parcel, struct frame_reader **out_reader);

/* The edits of the message on its way; empty at first. */
struct splice *parcel_edits(struct parcel *parcel);

/* The row of the message's method, so that nobody looks it up again; NULL at first. */
void parcel_set_method(struct parcel *parcel, const struct method *method);
const struct method *parcel_method(const struct parcel *parcel);

#endif
