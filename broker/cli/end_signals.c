/* SPDX-License-Identifier: MIT */
#include "broker/cli/end_signals.h"

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/signals.h"

static const int end_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
static_assert(ARRAY_LENGTH(end_signals) == END_SIGNALS_MAX, "one watcher each");

void end_signals_prepare(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGUSR1, SIG_IGN); // their default would kill us, and all programs that we start
	signal(SIGUSR2, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); // if it is ignored, waitpid cannot report our child processes
}

void end_signals_start(struct end_signals *signals, struct ev_loop *loop,
	end_signals_callback *on_signal, void *data)
{
	signals->loop = loop;
	for (size_t i = 0; i < END_SIGNALS_MAX; i++) {
		ev_signal_init(&signals->watchers[i], on_signal, end_signals[i]);
		signals->watchers[i].data = data;
		if (!signal_is_ignored(end_signals[i])) {
			ev_signal_start(loop, &signals->watchers[i]);
		}
	}
}

void end_signals_stop(struct end_signals *signals)
{
	for (size_t i = 0; i < END_SIGNALS_MAX; i++) {
		ev_signal_stop(signals->loop, &signals->watchers[i]);
	}
}
