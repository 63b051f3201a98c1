/* SPDX-License-Identifier: MIT */
#ifndef BASE_SOON_H
#define BASE_SOON_H

#include <ev.h>
#include <stdbool.h>

/*
 * A call that the loop makes in its next turn, from inside nothing: for an outcome that is known
 * at once and told later, and for a step that begins once its caller has returned. Embedded in
 * its owner, which stops it before it goes. All functions are for the loop thread.
 */
struct soon {
	ev_timer timer; // without a delay
	struct ev_loop *loop;
	void (*call)(struct soon *soon); // may free the owner
};

void soon_init(struct soon *soon, struct ev_loop *loop, void (*call)(struct soon *soon));

/* Makes the call once, also where it was started before. In the call it may be started anew. */
void soon_start(struct soon *soon);

/* No call comes any more. Fine on zeroed memory. */
void soon_stop(struct soon *soon);

/* It was started and has not been called. */
bool soon_is_due(const struct soon *soon);

#endif
