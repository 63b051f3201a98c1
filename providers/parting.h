/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_PARTING_H
#define PROVIDERS_PARTING_H

#include <ev.h>

#include "base/list.h"

/*
 * A sandbox that its user has closed, and whose last message to the other side is still under way.
 * A program on the way, such as ssh, loses that message if we end it at once; then what runs there
 * waits for a broker that never comes back. So the sandbox stays, unseen, until the other side has
 * closed the stream or PARTING_MS have passed, and the broker does not end before that.
 *
 * Loop thread.
 */
struct partings {
	struct ev_loop *loop;
	struct list list; // of struct parting
};

/* Embedded in its owner. */
struct parting {
	struct list link;
	struct partings *of;
	ev_timer due;
	void (*end)(struct parting *parting); // frees the owner
};

void partings_init(struct partings *partings, struct ev_loop *loop);

/* Runs the loop until every parting has ended; partings_hurry ends them at once. */
void partings_wait(struct partings *partings);
void partings_hurry(struct partings *partings);

/*
 * `end` is called once, with no caller above it: after PARTING_MS, or after parting_is_over, whose
 * argument is the parting.
 */
enum { PARTING_MS = 5000 };
void parting_begin(
	struct partings *partings, struct parting *parting, void (*end)(struct parting *parting));
void parting_is_over(void *data);

#endif
