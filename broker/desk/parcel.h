/* SPDX-License-Identifier: MIT */
#ifndef BROKER_DESK_PARCEL_H
#define BROKER_DESK_PARCEL_H

#include <stddef.h>

#include "acp/frames.h"
#include "acp/splice.h"
#include "base/attr.h"

struct method;

/*
 * A message set aside, to be handled once something else is known (a user's
 * answer, a directory in the sandbox). It keeps the bytes; opening it gives the
 * frame again.
 */
struct parcel;

/* `from` has just returned the frame; a large message is moved, not copied. */
struct parcel *parcel_create(
	struct frame_reader *from, const struct frame *frame, const struct json_places *places);

/* The same of a message's bytes, whose memory is taken; they must have been checked before. */
struct parcel *parcel_of(struct buf *message, const struct json_places *places);

void parcel_destroy(struct parcel *parcel);

/*
 * What each message takes besides its bytes, at the most: the parcel, and what the desk and the
 * stage know of it. So that many short messages are not held as if they were few.
 */
enum { PARCEL_OVERHEAD = 1024 };

/* What is held for it, until it is opened: its bytes, and PARCEL_OVERHEAD. */
size_t parcel_size(const struct parcel *parcel);

/* The frame, once; and the reader it may be forwarded from. Both borrow from the parcel. */
const struct frame *parcel_open(struct parcel *parcel, struct frame_reader **out_reader);

/* What is changed of it on its way: nothing at first. */
struct splice *parcel_edits(struct parcel *parcel);

/* What the message's method means, which is not looked up again; NULL at first. */
void parcel_set_method(struct parcel *parcel, const struct method *method);
const struct method *parcel_method(const struct parcel *parcel);

#endif
