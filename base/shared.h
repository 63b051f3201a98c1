/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHARED_H
#define BASE_SHARED_H

#include "base/buf.h"
#include "base/span.h"

/*
 * Bytes that no longer change and that several owners keep; the last one to release them frees
 * them. So a large content is not copied for each owner. Only the loop's thread counts references;
 * other threads may read the bytes while their owner keeps a reference.
 */
struct shared;

struct shared *shared_take(struct buf *bytes); // one reference; the buffer is as new afterwards
struct shared *shared_copy(struct span bytes); // one reference
struct shared *shared_reference(struct shared *shared);
void shared_release(struct shared *shared); // NULL is fine

struct span shared_span(const struct shared *shared); // NULL: no bytes

#endif
