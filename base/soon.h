/* SPDX-License-Identifier: MIT */
#ifndef BASE_SOON_H
#define BASE_SOON_H

#include <ev.h>
#include <stdbool.h>

/*
 * A call that the loop makes in its next turn, with no caller above it. For an outcome that is
 * known now but must be reported later, and for a step that begins after its caller returned.
 * Embedded in its owner, which must stop it before the owner is freed. All functions are for the
 * loop thread.
 */
struct soon {
	ev_timer timer; // without a delay
	struct ev_loop *loop;
	void (*call)(struct soon *soon); // may free the owner
};

void soon_init(struct soon *soon, struct ev_loop *loop, void (*call)(struct soon *soon));

/* Schedules the call once, even if it was started before. The call itself may start it again. */
void soon_start(struct soon *soon);

/* Cancels the call. Fine on zeroed memory. */
void soon_stop(struct soon *soon);

/* It was started, and the call has not been made. */
bool soon_is_due(const struct soon *soon);

#endif
