/* SPDX-License-Identifier: MIT */
#include "base/sleep_watch.h"

#include <assert.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/library.h"

#define LOGIND "org.freedesktop.login1"
#define LOGIND_PATH "/org/freedesktop/login1"
#define LOGIND_MANAGER LOGIND ".Manager"

/* Before other watchers get their turn. */
enum { MESSAGES_A_TURN = 16 };

static const char usual_address[] = "unix:path=/run/dbus/system_bus_socket";

struct bus_functions {
	int (*new)(sd_bus **);
	int (*set_address)(sd_bus *, const char *);
	int (*set_client)(sd_bus *, int);
	int (*start)(sd_bus *);
	sd_bus *(*close_unref)(sd_bus *);
	int (*get_fd)(sd_bus *);
	int (*get_events)(sd_bus *);
	int (*get_timeout)(sd_bus *, uint64_t *);
	int (*process)(sd_bus *, sd_bus_message **);
	int (*match_signal)(sd_bus *, sd_bus_slot **, const char *, const char *, const char *,
		const char *, sd_bus_message_handler_t, sd_bus_message_handler_t, void *);
	int (*call_method)(sd_bus *, sd_bus_slot **, const char *, const char *, const char *,
		const char *, sd_bus_message_handler_t, void *, const char *, ...);
	int (*is_error)(sd_bus_message *, const char *);
	int (*read)(sd_bus_message *, char, void *);
	sd_bus_message *(*reference)(sd_bus_message *);
	sd_bus_message *(*release)(sd_bus_message *);
};

static struct bus_functions bus;
static const char *const names[] = {"sd_bus_new", "sd_bus_set_address", "sd_bus_set_bus_client",
	"sd_bus_start", "sd_bus_close_unref", "sd_bus_get_fd", "sd_bus_get_events",
	"sd_bus_get_timeout", "sd_bus_process", "sd_bus_match_signal_async",
	"sd_bus_call_method_async", "sd_bus_message_is_method_error", "sd_bus_message_read_basic",
	"sd_bus_message_ref", "sd_bus_message_unref"};
static_assert(sizeof(bus) == sizeof(names), "a name for each function");

static struct library_use the_bus = {
	.library = &libraries[LIBRARY_SYSTEMD],
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &bus,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void release_lock(struct sleep_watch *watch)
{
	if (watch->lock) {
		watch->lock = bus.release(watch->lock);
	}
}

static void give_up(struct sleep_watch *watch)
{
	ev_io_stop(watch->loop, &watch->io);
	ev_timer_stop(watch->loop, &watch->timer);
	ev_timer_stop(watch->loop, &watch->delay);
	if (watch->bus) {
		release_lock(watch);
		watch->bus = bus.close_unref(watch->bus);
	}
}

/* ---- what the bus says ---- */

static int on_lock(sd_bus_message *message, void *data, sd_bus_error *ignored)
{
	struct sleep_watch *watch = data;
	if (!bus.is_error(message, NULL)) {
		release_lock(watch);
		watch->lock = bus.reference(message);
	}
	return 0;
}

static bool ask_for_lock(struct sleep_watch *watch)
{
	return bus.call_method(watch->bus, NULL, LOGIND, LOGIND_PATH, LOGIND_MANAGER, "Inhibit",
		       on_lock, watch, "ssss", "sleep", "acp-broker",
		       "tells hosts that this machine will be back", "delay") >= 0;
}

static void on_delayed(struct ev_loop *loop, ev_timer *timer, int events)
{
	release_lock(CONTAINER_OF(timer, struct sleep_watch, delay));
}

/* Only notes it: the handler may stop the watch, which must not happen in here. */
static int on_signal(sd_bus_message *message, void *data, sd_bus_error *ignored)
{
	struct sleep_watch *watch = data;
	int begins = 0;
	if (bus.read(message, SD_BUS_TYPE_BOOLEAN, &begins) > 0) {
		watch->said_asleep = begins != 0;
	}
	return 0;
}

/* ---- the loop ---- */

static void tell(struct sleep_watch *watch)
{
	bool begins = watch->said_asleep;
	if (begins == watch->is_asleep) {
		return;
	}
	watch->is_asleep = begins;
	ev_timer_stop(watch->loop, &watch->delay);
	if (begins) {
		ev_timer_set(&watch->delay, SLEEP_DELAY_MS / 1000., 0.);
		ev_timer_start(watch->loop, &watch->delay);
	} else if (!watch->lock && !ask_for_lock(watch)) {
		give_up(watch);
	}
	watch->on_sleep(watch, begins);
}

/* Waits for what the bus waits for. */
static bool arm(struct sleep_watch *watch)
{
	uint64_t due_us = UINT64_MAX;
	int events = bus.get_events(watch->bus);
	int fd = bus.get_fd(watch->bus);
	if (events < 0 || fd < 0 || bus.get_timeout(watch->bus, &due_us) < 0) {
		return false;
	}
	ev_io_stop(watch->loop, &watch->io);
	ev_io_set(&watch->io, fd,
		(events & POLLIN ? EV_READ : 0) | (events & POLLOUT ? EV_WRITE : 0));
	ev_io_start(watch->loop, &watch->io);
	ev_timer_stop(watch->loop, &watch->timer);
	if (due_us != UINT64_MAX) {
		double left_s = (double)due_us / 1e6 - (double)clock_now_ms() / 1e3;
		ev_timer_set(&watch->timer, left_s > 0. ? left_s : 0., 0.);
		ev_timer_start(watch->loop, &watch->timer);
	}
	return true;
}

/* Not from a function that the bus calls: the handler may stop the watch. */
static void lose(struct sleep_watch *watch)
{
	give_up(watch);
	if (watch->is_asleep) {
		watch->is_asleep = false;
		watch->on_sleep(watch, false);
	}
}

static void go_on(struct sleep_watch *watch)
{
	int done = 1;
	for (int i = 0; i < MESSAGES_A_TURN && watch->bus && done > 0; i++) {
		done = bus.process(watch->bus, NULL);
		if (done > 0) {
			tell(watch);
		}
	}
	if (watch->bus && (done < 0 || !arm(watch))) {
		lose(watch);
	} else if (watch->bus && done > 0) {
		ev_feed_event(watch->loop, &watch->io, EV_READ);
	}
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	go_on(CONTAINER_OF(io, struct sleep_watch, io));
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	go_on(CONTAINER_OF(timer, struct sleep_watch, timer));
}

/* ---- life ---- */

/* Accepts only sockets: "unixexec:" would run a program. */
static bool is_socket(const char *address)
{
	return strncmp(address, "unix:", 5) == 0 && !strchr(address, ';');
}

static bool begin(struct sleep_watch *watch, const char *address)
{
	struct error ignored;
	if (!is_socket(address) || !library_open(&the_bus, &ignored) || bus.new(&watch->bus) < 0) {
		return false;
	}
	return bus.set_address(watch->bus, address) >= 0 && bus.set_client(watch->bus, 1) >= 0 &&
	       bus.start(watch->bus) >= 0 &&
	       bus.match_signal(watch->bus, NULL, LOGIND, LOGIND_PATH, LOGIND_MANAGER,
		       "PrepareForSleep", on_signal, NULL, watch) >= 0 &&
	       ask_for_lock(watch) && arm(watch);
}

void sleep_watch_start(struct sleep_watch *watch, struct ev_loop *loop, const char *address,
	void (*on_sleep)(struct sleep_watch *watch, bool begins))
{
	*watch = (struct sleep_watch){.loop = loop, .on_sleep = on_sleep};
	ev_init(&watch->delay, on_delayed);
	ev_init(&watch->timer, on_due);
	ev_io_init(&watch->io, on_io, -1, EV_READ);
	if (!begin(watch, address && *address ? address : usual_address)) {
		give_up(watch);
	}
}

void sleep_watch_stop(struct sleep_watch *watch)
{
	if (watch->loop) {
		give_up(watch);
		watch->loop = NULL;
	}
}
