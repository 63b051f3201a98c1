/* SPDX-License-Identifier: MIT */
#include "base/shared.h"

#include <stdlib.h>

struct shared {
	size_t references;
	struct buf bytes;
};

struct shared *shared_take(struct buf *bytes)
{
	struct shared *shared = mem_alloc_zero(sizeof(*shared));
	shared->references = 1;
	buf_init(&shared->bytes, bytes->max);
	buf_move(&shared->bytes, bytes);
	return shared;
}

struct shared *shared_copy(struct span bytes)
{
	struct buf copy;
	buf_init(&copy, bytes.len);
	buf_add(&copy, bytes);
	return shared_take(&copy);
}

struct shared *shared_reference(struct shared *shared)
{
	shared->references++;
	return shared;
}

void shared_release(struct shared *shared)
{
	if (shared && --shared->references == 0) {
		buf_finish(&shared->bytes);
		free(shared);
	}
}

struct span shared_span(const struct shared *shared)
{
	return shared ? buf_span(&shared->bytes) : (struct span){NULL, 0};
}
