/* SPDX-License-Identifier: MIT */
#include "base/killer.h"

#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tree.h"

enum {
	PAUSE_MIN_MS = 2,
	PAUSE_MAX_MS = 200,
	/*
	 * The first attempt is enough for processes that do not flee. A process that was not caught
	 * after some chases probably cannot be killed: from then on chases are rare.
	 */
	FIRST_CHASE = 2,
	LAST_CHASE = 12,
	RARE_CHASE = 8,
	CHASE_TURNS = 1000, // some 10 ms together
};

void killer_start(struct killer *killer)
{
	*killer = (struct killer){.is_on = true, .pause_ms = PAUSE_MIN_MS};
}

void killer_delay(struct killer *killer)
{
	killer->next_ms = clock_now_ms() + PAUSE_MIN_MS;
}

void killer_stop(struct killer *killer)
{
	*killer = (struct killer){0};
}

static void chase(const struct killer_ground *ground)
{
	for (int i = 0; i < CHASE_TURNS && ground->reap(ground->data); i++) {
		if (tree_signal_children(SIGKILL, ground->spared, ground->spared_count) == 0) {
			return;
		}
	}
}

static bool is_chase(int attempts)
{
	return attempts >= FIRST_CHASE && (attempts <= LAST_CHASE || attempts % RARE_CHASE == 0);
}

static void attempt(struct killer *killer, const struct killer_ground *ground)
{
	killer->attempts++;
	killer->found_nothing = tree_kill(getpid(), ground->spared, ground->spared_count) == 0;
	if (!killer->found_nothing && is_chase(killer->attempts)) {
		chase(ground);
	}
	killer->next_ms = clock_now_ms() + killer->pause_ms;
	killer->pause_ms =
		killer->pause_ms * 2 < PAUSE_MAX_MS ? killer->pause_ms * 2 : PAUSE_MAX_MS;
}

int killer_step(struct killer *killer, const struct killer_ground *ground)
{
	if (!killer->is_on) {
		return -1;
	}
	if (clock_now_ms() >= killer->next_ms) {
		attempt(killer, ground);
	}
	long long sleep_ms = killer->next_ms - clock_now_ms();
	return sleep_ms > 0 ? (int)sleep_ms : 0;
}
