/* SPDX-License-Identifier: MIT */
#ifndef BASE_NETWORK_WATCH_H
#define BASE_NETWORK_WATCH_H

#include <ev.h>
#include <stdbool.h>

/*
 * Tells when connections of this machine may have lost their way: an address, a link or a route of
 * its network namespace has changed (rtnetlink(7)), or the machine was suspended and runs again.
 * Costs nothing while nothing changes. Loop thread.
 */
enum {
	/* Changes come in groups: the event follows the first of a group after this time. */
	NETWORK_SETTLE_MS = 300,
	/* No two events come in a shorter time. */
	NETWORK_PAUSE_MS = 2000,
	/* A suspend that is shorter than this does not count. */
	NETWORK_SLEPT_MS = 1000,
};

struct network_watch {
	struct ev_loop *loop;
	void (*on_change)(struct network_watch *watch, bool has_slept);
	ev_io changes; // fd -1: this machine does not report changes
	ev_io clock;   // fd -1: it does not report a suspend
	ev_timer settle;
	long long suspended_ms; // how long this machine was suspended since its start
	long long last_ms;      // clock_now_ms of the last event; 0: none yet
	bool has_slept;
};

/*
 * Never fails: if the machine does not report its changes, no event comes. The handler may call
 * network_watch_stop.
 */
void network_watch_start(struct network_watch *watch, struct ev_loop *loop,
	void (*on_change)(struct network_watch *watch, bool has_slept));

/* A zeroed or stopped watch is fine. */
void network_watch_stop(struct network_watch *watch);

#endif
