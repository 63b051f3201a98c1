/* SPDX-License-Identifier: MIT */
#ifndef BASE_SLEEP_WATCH_H
#define BASE_SLEEP_WATCH_H

#include <ev.h>
#include <stdbool.h>

/*
 * Tells that this machine is about to be suspended, and that it runs again: the signal
 * PrepareForSleep of systemd-logind on the system bus (org.freedesktop.login1(5)). Delays the
 * suspend for a moment, so that the handler can still send something (a "delay" lock of
 * systemd-inhibit(1)). Loop thread.
 *
 * Programs of this machine can send such a signal to us, too. So a signal must only make us
 * careful.
 */
enum { SLEEP_DELAY_MS = 500 }; // logind waits for at most 5 s

struct sleep_watch {
	struct ev_loop *loop;
	void (*on_sleep)(struct sleep_watch *watch, bool begins);
	struct sd_bus *bus;          // NULL: no bus
	struct sd_bus_message *lock; // has the descriptor whose end lets the suspend go on; or NULL
	ev_io io;
	ev_timer timer;   // of the bus
	ev_timer delay;   // until the lock is released
	bool is_asleep;   // as the handler knows
	bool said_asleep; // the last signal
};

/*
 * Never fails: without libsystemd or such a bus, or if the bus closes the connection, no event
 * comes, except that a suspend that was announced is over then: its end would not come.
 * `address` is the value of DBUS_SYSTEM_BUS_ADDRESS, or NULL. The handler may call
 * sleep_watch_stop.
 */
void sleep_watch_start(struct sleep_watch *watch, struct ev_loop *loop, const char *address,
	void (*on_sleep)(struct sleep_watch *watch, bool begins));

/* A zeroed or stopped watch is fine. */
void sleep_watch_stop(struct sleep_watch *watch);

#endif
