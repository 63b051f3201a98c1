/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_END_SIGNALS_H
#define BROKER_CLI_END_SIGNALS_H

#include <ev.h>

/*
 * The signals that end the program in order. SIGTERM always does. SIGINT, SIGHUP and SIGQUIT do
 * unless they are ignored when the program starts. Then they stay ignored, as POSIX asks of
 * programs that a shell's `&` or nohup(1) starts: a background program must not react to a SIGINT
 * for the terminal's foreground.
 */
enum { END_SIGNALS_MAX = 4 };

struct end_signals {
	struct ev_loop *loop;
	struct ev_signal watchers[END_SIGNALS_MAX]; // an inactive watcher: the signal stays ignored
};

typedef void end_signals_callback(struct ev_loop *loop, struct ev_signal *watcher, int events);

/*
 * Call it once, at the start, while there is one thread: unblocks all signals, and resets SIGTERM
 * and SIGCHLD to their defaults, whatever the parent has set. Ignores SIGUSR1 and SIGUSR2, which
 * have no meaning here.
 */
void end_signals_prepare(void);

/* The callback finds `data` in watcher->data. */
void end_signals_start(struct end_signals *signals, struct ev_loop *loop,
	end_signals_callback *on_signal, void *data);
void end_signals_stop(struct end_signals *signals);

#endif
