/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIFE_H
#define PROVIDERS_SSH_LIFE_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/buf.h"

/*
 * Tells whether an object still exists after it has raised a handler, which may have freed it. The
 * code that raises holds the life meanwhile:
 *
 * struct life *life = life_hold(self->life); self->listener->on_bytes(…); if (life_let_go(life)) {
 * return; } // it was freed
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

/* Whether the owner was freed. If so, the life must not be used any more. */
static inline bool life_let_go(struct life *life) ATTR_NODISCARD;
static inline bool life_let_go(struct life *life)
{
	bool is_over = life->is_over;
	if (--life->holders == 0 && is_over) {
		free(life);
	}
	return is_over;
}

/* Its owner is being freed. */
static inline void life_end(struct life *life)
{
	life->is_over = true;
	if (life->holders == 0) {
		free(life);
	}
}

#endif
