/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_END_SIGNALS_H
#define BROKER_CLI_END_SIGNALS_H

#include <ev.h>

/*
 * The signals that end the program in order. It reacts to SIGTERM always. SIGINT,
 * SIGHUP and SIGQUIT that are ignored when the program starts stay ignored, as POSIX
 * asks of programs that a shell's `&` or nohup(1) starts: who sends SIGINT to a
 * terminal's foreground does not mean a program in the background.
 */
enum { END_SIGNALS_MAX = 4 };

struct end_signals {
	struct ev_loop *loop;
	struct ev_signal watchers[END_SIGNALS_MAX]; // inactive: this one stays ignored
};

typedef void end_signals_callback(struct ev_loop *loop, struct ev_signal *watcher, int events);

/*
 * Once, at the start and while there is one thread: nothing is blocked any more,
 * SIGTERM and SIGCHLD are at their defaults, whatever the parent left to us, and SIGUSR1 and
 * SIGUSR2, which mean nothing here, are ignored.
 */
void end_signals_prepare(void);

/* The callback finds `data` in watcher->data. */
void end_signals_start(struct end_signals *signals, struct ev_loop *loop,
	end_signals_callback *on_signal, void *data);
void end_signals_stop(struct end_signals *signals);

#endif
