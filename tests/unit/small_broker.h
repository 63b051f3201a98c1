/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SMALL_BROKER_H
#define TESTS_UNIT_SMALL_BROKER_H

#include <ev.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/process.h"

/* The smallest possible broker, as a child of the test, for tests that kill it. */
struct small_broker {
	struct ev_loop *loop;
	struct spawner *spawner;
	struct process *process;
	ev_io asked;
	int tell;
	int pids; // where the processes say who they are
	bool foreground;
};

static const char family_script[] =
	"(setsid sh -c 'trap \"\" HUP TERM INT; echo d$$; sleep 600; sleep 600' &); "
	"trap '' HUP TERM INT; echo p$$; sleep 600; sleep 600";

static inline void tell(const struct small_broker *broker, char event)
{
	if (write(broker->tell, &event, 1) != 1) {
		_exit(2);
	}
}

static inline void on_started(void *data, pid_t pid)
{
	tell(data, 's');
}

static inline void on_failed(void *data, const struct error *err)
{
	tell(data, 'f');
}

static inline void on_exited(void *data, struct process_status status)
{
	tell(data, status.signal == SIGKILL ? 'k' : 'x');
}

static inline void on_emptied(void *data)
{
	tell(data, 'e');
}

static const struct process_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

static inline void start(struct small_broker *broker, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", NULL};
	struct process_spec spec = {.argv = argv,
		.env = env,
		.cwd = "/",
		.in = -1,
		.out = broker->pids,
		.err = -1,
		.foreground = broker->foreground};
	struct error err;
	broker->process = process_start(broker->spawner, &spec, &listener, broker, &err);
	if (!broker->process) {
		_exit(2);
	}
}

static inline void on_asked(struct ev_loop *loop, ev_io *io, int events)
{
	struct small_broker *broker = CONTAINER_OF(io, struct small_broker, asked);
	ev_io_stop(loop, io);
	process_destroy(broker->process);
	start(broker, "exit 0");
}

static inline void be_broker(int told, int ask, int pids, bool foreground)
	__attribute__((noreturn));
static inline void be_broker(int told, int ask, int pids, bool foreground)
{
	struct error err;
	signal(SIGCHLD, SIG_IGN); // as a careless parent may leave it to us
	struct small_broker broker = {.tell = told, .pids = pids, .foreground = foreground};
	broker.spawner = spawner_create(&err);
	broker.loop = ev_loop_new(EVFLAG_AUTO);
	if (!broker.spawner) {
		_exit(2);
	}
	spawner_attach(broker.spawner, broker.loop);
	ev_io_init(&broker.asked, on_asked, ask, EV_READ);
	ev_io_start(broker.loop, &broker.asked);
	start(&broker, family_script);
	ev_run(broker.loop, 0);
	_exit(3);
}

#endif
