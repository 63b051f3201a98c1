/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "providers/daytona/sandbox_impl.h"

/*
 * The link to a sandbox, and the service's explanation if the link is lost: the gateway itself
 * never gives a reason.
 */
enum { INQUIRY_MS = 10000, TOUCH_MAX_S = 240, TOUCH_MIN_S = 20, MINUTE_S = 60 };

/* ---- notifying one listener per turn of the loop, because each may close the sandbox ---- */

static void tell(struct daytona_place *place)
{
	struct ev_loop *loop = place->context->loop;
	ev_timer_set(&place->inquiry_due, 0., 0.);
	ev_timer_start(loop, &place->inquiry_due);
	if (daytona_exec_tell_lost(place)) {
		return;
	}
	ev_timer_stop(loop, &place->inquiry_due);
	if (!place->is_over && !place->is_ending) {
		daytona_place_fail(place, &place->lost);
	}
}

static void end_inquiry(struct daytona_place *place)
{
	ev_timer_stop(place->context->loop, &place->inquiry_due);
	daytona_call_cancel(place->inquiry);
	place->inquiry = NULL;
	tell(place);
}

/* ---- the service's explanation ---- */

static void describe(struct error *lost, const char *name, const struct daytona_profile *profile,
	const struct daytona_sandbox *seen)
{
	struct error why = *lost;
	const char *comma = *seen->error_reason ? ": " : "";
	if (strcmp(seen->state, profile->ready_state) == 0) {
		error_set_reason(lost, why.code, why.reason, "%s; sandbox %s runs", why.text, name);
	} else {
		error_set_reason(lost, why.code, why.reason,
			"%s; sandbox %s is in state \"%s\" now%s%s", why.text, name, seen->state,
			comma, seen->error_reason);
	}
}

static void on_seen(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_place *place = data;
	struct error why = place->lost;
	const char *name = daytona_box_name(place->box);
	place->inquiry = NULL;
	if (seen) {
		describe(&place->lost, name, &place->profile, seen);
	} else if (err->code == ERROR_NOT_FOUND) {
		daytona_box_set_gone(&place->lost, name);
		error_prefix(&place->lost, "%s", why.text);
	} else {
		error_set_reason(&place->lost, why.code, why.reason,
			"%s; the state of sandbox %s is unknown: %s", why.text, name, err->text);
	}
	end_inquiry(place);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	end_inquiry(CONTAINER_OF(timer, struct daytona_place, inquiry_due));
}

void daytona_place_lose(struct daytona_place *place, const struct error *err)
{
	if (place->is_lost) {
		return;
	}
	place->is_lost = true;
	place->lost = *err;
	ev_now_update(place->context->loop);
	double seconds = place->is_ending ? 0. : INQUIRY_MS / 1000.;
	ev_timer_set(&place->inquiry_due, seconds, 0.);
	ev_timer_start(place->context->loop, &place->inquiry_due);
	if (!place->is_ending) {
		place->inquiry =
			daytona_get(place->api, daytona_box_id(place->box), on_seen, place);
	}
}

/* ---- a lost process ---- */

/*
 * Perhaps only the shell that watches the process was killed, and everything else goes on. If the
 * link was lost, the inner sandbox has reported this by now, in the same turn in which it notified
 * its processes.
 */
static void on_exec_lost(struct soon *soon)
{
	struct daytona_place *place = CONTAINER_OF(soon, struct daytona_place, exec_lost);
	if (ev_is_active(&place->inquiry_due)) {
		return; // a lost process is reported with the sandbox
	}
	soon_start(soon);
	if (!daytona_exec_tell_lost(place)) {
		soon_stop(soon);
	}
}

void daytona_exec_lost(struct daytona_place *place)
{
	soon_start(&place->exec_lost);
}

/* ---- activity ---- */

static void on_touched(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	place->touching = NULL;
	if (err) {
		log_failure(LOG_LEVEL_DEBUG, err, "sandbox %s: reporting activity: %s",
			daytona_box_name(place->box), err->text);
	}
}

static void on_touch(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct daytona_place *place = CONTAINER_OF(timer, struct daytona_place, touch);
	if (!place->touching && !place->is_lost && !place->is_ending &&
		!list_is_empty(&place->execs)) {
		place->touching =
			daytona_touch(place->api, daytona_box_id(place->box), on_touched, place);
	}
}

long long daytona_auto_stop_seconds(const struct daytona_place *place)
{
	int minutes = daytona_box_auto_stop(place->box);
	return (minutes < 0 ? place->profile.auto_stop_min : minutes) * (long long)MINUTE_S;
}

long long daytona_touch_seconds(const struct daytona_place *place)
{
	long long seconds = daytona_auto_stop_seconds(place) / 3;
	seconds = seconds > TOUCH_MAX_S ? TOUCH_MAX_S : seconds;
	return seconds > 0 && seconds < TOUCH_MIN_S ? TOUCH_MIN_S : seconds;
}

/* The gateway counts an open channel as activity; we do not rely on that. */
void daytona_touch_start(struct daytona_place *place)
{
	long long seconds = daytona_touch_seconds(place);
	if (seconds > 0) {
		ev_timer_set(&place->touch, (double)seconds, (double)seconds);
		ev_timer_start(place->context->loop, &place->touch);
	}
}

/* ---- life ---- */

void daytona_lost_init(struct daytona_place *place)
{
	ev_init(&place->touch, on_touch);
	ev_init(&place->inquiry_due, on_due);
	soon_init(&place->exec_lost, place->context->loop, on_exec_lost);
}

void daytona_lost_finish(struct daytona_place *place)
{
	ev_timer_stop(place->context->loop, &place->touch);
	ev_timer_stop(place->context->loop, &place->inquiry_due);
	soon_stop(&place->exec_lost);
	daytona_call_cancel(place->touching);
	daytona_call_cancel(place->inquiry);
	place->touching = place->inquiry = NULL;
}
