/* SPDX-License-Identifier: MIT */
#ifndef BASE_SLEEP_WATCH_H
#define BASE_SLEEP_WATCH_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Tells that this machine is about to be suspended, and that it runs again: the signal
 * PrepareForSleep of systemd-logind on the system bus (org.freedesktop.login1(5)). Delays the
 * suspend for a moment, so that the handler can still send something (a "delay" lock of
 * systemd-inhibit(1)). Speaks just as much of the bus's protocol as that takes. Loop thread.
 *
 * Every program of this machine can send such a signal to us. So a signal must only make us
 * careful.
 */
enum {
	/* How long the suspend is delayed; logind waits for at most 5 s. */
	SLEEP_DELAY_MS = 500,
	SLEEP_MESSAGE_MAX = 64 * 1024, // of the bus; after a longer one the watch gives up
};

struct sleep_watch {
	struct ev_loop *loop;
	void (*on_sleep)(struct sleep_watch *watch, bool begins);
	ev_io io;       // fd -1: no bus
	ev_timer delay; // until the lock is released
	struct buf in;
	unsigned lines;  // of the bus's greeting
	uint32_t serial; // of our last message
	int lock;        // -1: none
	bool is_asleep;  // the signal said so
};

/*
 * Never fails: if there is no such bus, or the bus closes the connection, no event comes. `bus` is
 * the value of DBUS_SYSTEM_BUS_ADDRESS, or NULL. The handler may call sleep_watch_stop.
 */
void sleep_watch_start(struct sleep_watch *watch, struct ev_loop *loop, const char *bus,
	void (*on_sleep)(struct sleep_watch *watch, bool begins));

/* A zeroed or stopped watch is fine. */
void sleep_watch_stop(struct sleep_watch *watch);

#endif
