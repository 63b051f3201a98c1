/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIFE_H
#define PROVIDERS_SSH_LIFE_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/buf.h"

/*
 * Tells whether an object still exists after it has called a handler, which may have freed the
 * object. The code that calls the handler holds the life during the call:
 *
 *     struct life *life = life_hold(self->life);
 *     self->listener->on_bytes(…);
 *     if (life_let_go(life)) {
 *             return; // it was freed
 *     }
 */
struct life {
	unsigned holders;
	bool is_over;
};

static inline struct life *life_begin(void)
{
	return mem_alloc_zero(sizeof(struct life));
}

static inline struct life *life_hold(struct life *life)
{
	life->holders++;
	return life;
}

/* Whether the owner was freed. If so, do not use the life any more. */
static inline bool life_let_go(struct life *life) ATTR_NODISCARD;
static inline bool life_let_go(struct life *life)
{
	bool is_over = life->is_over;
	if (--life->holders == 0 && is_over) {
		free(life);
	}
	return is_over;
}

/* The owner calls it when it is being freed. */
static inline void life_end(struct life *life)
{
	life->is_over = true;
	if (life->holders == 0) {
		free(life);
	}
}

#endif
