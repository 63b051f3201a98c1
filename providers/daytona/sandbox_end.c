/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/point.h"
#include "providers/daytona/sandbox_impl.h"

/*
 * Ends a sandbox, or stops it. Only the last broker that uses it does this, and holds its lock
 * exclusively meanwhile. A broker that comes then waits, and finds the sandbox stopped or gone.
 */

static void end(struct daytona_place *place, const struct error *err)
{
	sandbox_done *done = place->done;
	void *data = place->done_data;
	place->done = NULL;
	done(data, err);
}

static void on_forgotten(void *data, const struct error *err)
{
	end(data, err);
}

static void on_ended(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	point("daytona.ended");
	if (err && daytona_box_is_left(place->box)) {
		/* Everything in it was collected, or there is nothing. Its note stays. */
		log_failure(LOG_LEVEL_WARNING, err, "%s", err->text);
		daytona_claim_release(place->claim);
		end(place, NULL);
	} else if (err && place->is_withdrawn && !daytona_box_is_doubted(place->box)) {
		struct error left = *err;
		error_prefix(&left,
			"sandbox %s cannot be used but still runs (acp-broker sandboxes %s "
			"%s)",
			daytona_box_name(place->box), place->is_destroyed ? "delete" : "stop",
			daytona_box_name(place->box));
		end(place, &left);
	} else if (err) {
		end(place, err);
	} else if (place->is_destroyed) {
		daytona_claim_forget(place->claim, on_forgotten);
	} else {
		daytona_claim_release(place->claim);
		end(place, NULL);
	}
}

/* Whether it may contain somebody's work, which needs a root. What setup has made is not work. */
static bool is_used(const struct daytona_place *place)
{
	return place->sandbox.root_count > 0 || !list_is_empty(&place->adding);
}

static void on_alone(void *data, const struct error *err)
{
	struct daytona_place *place = data;
	point("daytona.ending");
	if (err && err->code == ERROR_UNAVAILABLE &&
		(!place->is_destroyed || place->is_withdrawn)) {
		log_info("sandbox %s keeps running: another broker uses it",
			daytona_box_name(place->box));
		end(place, NULL);
	} else if (err) {
		struct error denied = *err;
		if (denied.code == ERROR_UNAVAILABLE) {
			denied.code = ERROR_DENIED;
			error_set_reason(&denied, ERROR_DENIED, "SANDBOX_IN_USE",
				"sandbox %s is not deleted: another broker uses it",
				place->reference);
		}
		end(place, &denied);
	} else if (place->is_withdrawn) {
		daytona_box_withdraw(place->box, is_used(place), on_ended);
	} else if (place->is_destroyed) {
		daytona_box_delete(place->box, on_ended);
	} else {
		daytona_box_rest(place->box, place->profile.end == DAYTONA_END_ARCHIVE, on_ended);
	}
}

static void begin(struct daytona_place *place, sandbox_done *done, void *data)
{
	place->is_ending = true;
	place->done = done;
	place->done_data = data;
	ev_timer_stop(place->context->loop, &place->again);
	place->end_waits = daytona_claim_is_busy(place->claim);
	if (!place->end_waits) {
		daytona_claim_take_alone(place->claim, on_alone);
	}
}

void daytona_end_go_on(struct daytona_place *place)
{
	if (place->end_waits) {
		place->end_waits = false;
		daytona_claim_take_alone(place->claim, on_alone);
	}
}

void daytona_end_without(struct daytona_place *place)
{
	if (place->end_waits) {
		place->end_waits = false;
		end(place, NULL);
	}
}

/* Drops planned actions in the sandbox, unless an agent may have begun something there. */
void daytona_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct daytona_place *place = daytona_place_of(sandbox);
	place->is_over = true;
	daytona_opening_cancel(place->opening);
	place->opening = NULL;
	if (!sandbox->was_ready) {
		daytona_lost_finish(place);
		ev_timer_stop(place->context->loop, &place->again);
		sandbox_close(place->inner);
		place->inner = NULL;
		daytona_gate_destroy(place->gate);
		place->gate = NULL;
	}
	if (place->box) {
		daytona_box_drop(
			place->box); // also a look, after which it would be started or made
	}
	if (!place->box || !daytona_box_has_acted(place->box)) {
		sandbox_raise_later(sandbox, done, data, NULL);
		return;
	}
	place->is_withdrawn = true;
	place->is_destroyed = !is_used(place) && daytona_box_has_made(place->box);
	begin(place, done, data);
}

void daytona_rest(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	begin(daytona_place_of(sandbox), done, data);
}

void daytona_destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct daytona_place *place = daytona_place_of(sandbox);
	place->is_destroyed = true;
	begin(place, done, data);
}
