/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "base/fd.h"
#include "providers/impl.h"

/* Processes that go on while the connection to their sandbox is lost, and for how long it was. */

enum { EXTEND_LEAST_MS = 1000 }; // else a timer could expire again and again meanwhile

void sandbox_note_link(struct sandbox *sandbox, bool is_there)
{
	sandbox->away_ms = sandbox_away_ms(sandbox);
	sandbox->lost_ms = is_there ? 0 : clock_now_ms();
}

const char *sandbox_outlives(const struct sandbox *sandbox)
{
	return sandbox->outlives;
}

void sandbox_note_turn(struct sandbox *sandbox, bool is_open)
{
	if (sandbox->capabilities.outlives && sandbox->impl->note_turn &&
		is_open != sandbox->has_turn) {
		sandbox->has_turn = is_open;
		sandbox->impl->note_turn(sandbox, is_open);
	}
}

void sandbox_drop_link(struct sandbox *sandbox)
{
	assert(sandbox->capabilities.outlives);
	sandbox->impl->drop_link(sandbox);
}

bool sandbox_is_away(const struct sandbox *sandbox)
{
	return sandbox->lost_ms > 0;
}

long long sandbox_away_ms(const struct sandbox *sandbox)
{
	bool is_away = sandbox_is_away(sandbox);
	return sandbox->away_ms + (is_away ? clock_now_ms() - sandbox->lost_ms : 0);
}

bool sandbox_extend_timer(const struct sandbox *sandbox, ev_timer *timer, long long *counted_ms)
{
	long long away_ms = sandbox_away_ms(sandbox);
	long long owed_ms = away_ms - *counted_ms;
	bool is_away = sandbox_is_away(sandbox);
	if (owed_ms <= 0 && !is_away) {
		return false;
	}
	*counted_ms = away_ms;
	owed_ms = is_away && owed_ms < EXTEND_LEAST_MS ? EXTEND_LEAST_MS : owed_ms;
	ev_timer_stop(sandbox->loop, timer);
	ev_timer_set(timer, (double)owed_ms / 1000., timer->repeat);
	ev_timer_start(sandbox->loop, timer);
	return true;
}
