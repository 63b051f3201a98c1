/* SPDX-License-Identifier: MIT */
#include "providers/daytona/box_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "providers/daytona/states.h"

/* Seconds between two polls. */
static const double first_pause = 0.2, last_pause = 2., pause_growth = 1.5;

/*
 * An accepted order is not repeated for some time, because the platform may not show its effect
 * yet.
 */
enum { STARTS_MAX = 3, SETTLES_MS = DAYTONA_SETTLES_MS };

/* ---- end of an order ---- */

void daytona_box_drop(struct daytona_box *box)
{
	ev_timer_stop(box->config.loop, &box->poll);
	ev_timer_stop(box->config.loop, &box->due);
	soon_stop(&box->nothing);
	if (box->call && box->is_creating) {
		daytona_box_doubt(box);
	}
	daytona_call_cancel(box->call);
	box->call = NULL;
	box->is_creating = false;
}

void daytona_box_end(struct daytona_box *box, const struct error *err)
{
	daytona_box_done *done = box->done;
	struct error copy;
	if (box->is_left) {
		err = daytona_box_tell_left(box, err, &copy);
	} else if (err) {
		copy = *err;
	}
	daytona_box_drop(box);
	box->done = NULL;
	done(box->config.data, err ? &copy : NULL);
}

bool daytona_box_set_gone(struct error *err, const char *name)
{
	return error_set_reason(err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
		"sandbox %s no longer exists: it was deleted", name);
}

static void fail_gone(struct daytona_box *box)
{
	struct error err;
	daytona_box_set_gone(&err, box->name);
	daytona_box_end(box, &err);
}

/*
 * Fails before this sandbox is started or connected to, because it does not contain the work of the
 * wanted one.
 */
static bool fail_another(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	struct error err;
	box->is_another = true;
	error_set_reason(&err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
		"sandbox %s (%s) was deleted, with all changes since its last sync; the sandbox "
		"with this name now is another one (%s)",
		box->name, box->instance, seen->id);
	daytona_box_end(box, &err);
	return false;
}

bool daytona_box_is_others(struct daytona_box *box)
{
	struct error err;
	if (!box->others) {
		return false;
	}
	error_set_reason(&err, ERROR_NOT_FOUND, "DAYTONA_OTHER_ACCOUNT",
		"the account of this key has no sandbox %s: it was made %s, and may still exist "
		"with its content; use that account, or forget the sandbox with acp-broker "
		"sandboxes delete --discard %s",
		box->name, box->others, box->name);
	daytona_box_end(box, &err);
	return true;
}

static void fail_broken(struct daytona_box *box, const char *state, const char *why)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_FAILED",
		"sandbox %s is in state \"%s\": %s; its content cannot be reached: have it "
		"repaired, or delete it with acp-broker sandboxes delete %s",
		box->name, state, *why ? why : "the service gives no reason", box->name);
	daytona_box_end(box, &err);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct daytona_box *box = CONTAINER_OF(timer, struct daytona_box, due);
	const struct daytona_profile *profile = box->config.profile;
	bool runs = box->goal == DAYTONA_GOAL_RUN;
	bool is_long = box->is_deleting && profile->api_timeout_ms > profile->stop_timeout_ms;
	long long ms = runs      ? profile->create_timeout_ms
	               : is_long ? profile->api_timeout_ms
	                         : profile->stop_timeout_ms;
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"sandbox %s %s within %lld s (%s): %s%s", box->name,
		runs               ? "did not run"
		: box->is_deleting ? "was not deleted"
				   : "did not stop",
		ms / 1000,
		runs      ? "create-timeout"
		: is_long ? "api-timeout"
			  : "stop-timeout",
		*box->state ? "its state is " : "the service did not report its state", box->state);
	daytona_box_end(box, &err);
}

/* ---- polling ---- */

static void tell_progress(struct daytona_box *box, const char *state)
{
	char text[256];
	if (strcmp(box->state, state) == 0) {
		return;
	}
	text_format(box->state, sizeof(box->state), "%s", state);
	text_format(text, sizeof(text), "%s sandbox %s (%s)",
		box->goal == DAYTONA_GOAL_RUN ? "Starting" : "Stopping", box->name, box->state);
	if (box->config.on_progress) {
		box->config.on_progress(box->config.data, text);
	}
}

void daytona_box_poll_later(struct daytona_box *box)
{
	ev_timer_stop(box->config.loop, &box->poll);
	ev_now_update(box->config.loop);
	ev_timer_set(&box->poll, box->pause, 0.);
	ev_timer_start(box->config.loop, &box->poll);
	box->pause =
		box->pause * pause_growth < last_pause ? box->pause * pause_growth : last_pause;
}

static void take_step(
	struct daytona_box *box, enum daytona_step step, const struct daytona_sandbox *seen);

static void on_seen(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err && err->code == ERROR_NOT_FOUND) {
		take_step(box, DAYTONA_STEP_GONE, NULL);
	} else if (err) {
		daytona_box_end(box, err);
	} else if (daytona_box_take(box, seen)) {
		const struct daytona_state *state = daytona_state_find(seen->state);
		bool runs = strcmp(seen->state, box->config.profile->ready_state) == 0;
		tell_progress(box, seen->state);
		take_step(box,
			box->goal != DAYTONA_GOAL_RUN ? (runs ? DAYTONA_STEP_STOP : state->to_rest)
			: runs                        ? DAYTONA_STEP_DONE
			: state->to_run == DAYTONA_STEP_DONE ? DAYTONA_STEP_WAIT
							     : state->to_run,
			seen);
	}
}

static void on_poll(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct daytona_box *box = CONTAINER_OF(timer, struct daytona_box, poll);
	(box->is_deleting ? daytona_box_look_to_delete : daytona_box_poll)(box);
}

void daytona_box_poll(struct daytona_box *box)
{
	box->call = daytona_get(box->config.api, *box->id ? box->id : box->name, on_seen, box);
}

/* Leaves another user's sandbox alone, whatever its name is. */
bool daytona_box_take(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	struct error err;
	free(box->others);
	box->others = NULL;
	if (!daytona_identity_owns(box->config.identity, seen)) {
		error_set(&err, ERROR_DENIED,
			"sandbox %s does not have the label " DAYTONA_LABEL_OWNER
			" of this user on this machine, so it is not changed",
			box->name);
		daytona_box_end(box, &err);
		return false;
	}
	if (box->goal == DAYTONA_GOAL_RUN && seen->has_odd_labels) {
		error_set(&err, ERROR_UNAVAILABLE,
			"sandbox %s has a label that is not a string: Daytona's SSH gateway "
			"refuses every connection to it until that is corrected",
			box->name);
		daytona_box_end(box, &err);
		return false;
	}
	if (box->goal == DAYTONA_GOAL_RUN && box->instance &&
		strcmp(box->instance, seen->id) != 0) {
		return fail_another(box, seen);
	}
	if (!text_whole(box->id, sizeof(box->id), "%s", seen->id)) {
		error_set(&err, ERROR_PROTOCOL, "sandbox %s has an id of more than %zu bytes",
			box->name, sizeof(box->id) - 1);
		daytona_box_end(box, &err);
		return false;
	}
	return true;
}

/* ---- actions ---- */

static void on_acted(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	box->has_failed = err != NULL;
	if (err) {
		box->err = *err; // if it is still true at the next look
	}
	box->acted_ms = clock_now_ms();
	box->pause = first_pause;
	daytona_box_poll(box);
}

static void act(struct daytona_box *box, enum daytona_act what)
{
	if (box->has_failed && box->asked == (int)what) {
		daytona_box_end(box, &box->err);
		return;
	}
	box->asked = (int)what;
	box->has_started |= what == DAYTONA_START || what == DAYTONA_RECOVER;
	box->call = daytona_act(box->config.api, what, box->id, on_acted, box);
}

/* Whether an order was accepted but does not show yet. */
static bool is_under_way(const struct daytona_box *box, const struct daytona_sandbox *seen)
{
	return box->starts > 0 && !box->has_failed &&
	       (strcmp(seen->desired_state, box->config.profile->ready_state) == 0 ||
		       clock_now_ms() - box->acted_ms < SETTLES_MS);
}

static void start(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	struct error err;
	if (is_under_way(box, seen)) {
		daytona_box_poll_later(box);
	} else if (box->starts == STARTS_MAX) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE",
			"sandbox %s was started %d times, and stopped again each time (%s)",
			box->name, STARTS_MAX, seen->state);
		daytona_box_end(box, &err);
	} else {
		box->starts += !box->has_failed;
		act(box, DAYTONA_START);
	}
}

static void stop(struct daytona_box *box)
{
	bool is_accepted = box->asked == DAYTONA_STOP && !box->has_failed;
	if (is_accepted && clock_now_ms() - box->acted_ms < SETTLES_MS) {
		daytona_box_poll_later(box);
	} else {
		act(box, DAYTONA_STOP);
	}
}

static void on_archived(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err, "sandbox %s is stopped, and not archived: %s",
			box->name, err->text);
	}
	daytona_box_end(box, NULL);
}

static void finish(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	if (box->goal == DAYTONA_GOAL_RUN) {
		daytona_box_fit(box, seen);
	} else if (box->goal == DAYTONA_GOAL_ARCHIVE && strcmp(seen->state, "stopped") == 0) {
		box->call =
			daytona_act(box->config.api, DAYTONA_ARCHIVE, box->id, on_archived, box);
	} else {
		daytona_box_end(box, NULL);
	}
}

/* A sandbox that has never run contains nothing, and its name is needed by the next session. */
static void fail(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	bool never_ran = box->is_made || strcmp(seen->state, "build_failed") == 0;
	if (box->goal == DAYTONA_GOAL_RUN && never_ran) {
		daytona_box_remove_failed(box, seen);
	} else {
		fail_broken(box, seen->state, seen->error_reason);
	}
}

static void recover(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	bool was_tried = box->asked == DAYTONA_RECOVER;
	if (seen->is_recoverable && !was_tried) {
		act(box, DAYTONA_RECOVER);
	} else if (box->is_made) {
		fail(box, seen);
	} else {
		fail_broken(box, seen->state,
			was_tried && box->has_failed ? box->err.text : seen->error_reason);
	}
}

static void take_step(
	struct daytona_box *box, enum daytona_step step, const struct daytona_sandbox *seen)
{
	switch (step) {
	case DAYTONA_STEP_WAIT:
		daytona_box_poll_later(box);
		break;
	case DAYTONA_STEP_DONE:
		finish(box, seen);
		break;
	case DAYTONA_STEP_START:
		start(box, seen);
		break;
	case DAYTONA_STEP_STOP:
		stop(box);
		break;
	case DAYTONA_STEP_RECOVER:
		recover(box, seen);
		break;
	case DAYTONA_STEP_FAIL:
		fail(box, seen);
		break;
	case DAYTONA_STEP_GONE:
		if (daytona_box_is_others(box)) {
			break; // and it has ended
		}
		if (box->goal != DAYTONA_GOAL_RUN) {
			box->is_left = false;
			daytona_box_end(box, NULL);
		} else if (!box->config.create) {
			fail_gone(box);
		} else {
			daytona_box_make(box);
		}
		break;
	}
}

/* ---- orders ---- */

void daytona_box_begin(struct daytona_box *box, enum daytona_goal goal, long long deadline_ms,
	daytona_box_done *done)
{
	box->goal = goal;
	box->done = done;
	box->asked = DAYTONA_ACT_NONE;
	box->has_failed = false;
	box->starts = box->creates = 0;
	box->creates_until_ms = 0;
	box->is_made = box->is_deleting = box->is_left = false;
	box->pause = first_pause;
	box->state[0] = '\0';
	if (deadline_ms > 0) {
		ev_now_update(box->config.loop);
		ev_timer_set(&box->due, (double)deadline_ms / 1000., 0.);
		ev_timer_start(box->config.loop, &box->due);
	}
}

void daytona_box_bring(struct daytona_box *box, daytona_box_done *done)
{
	daytona_box_begin(box, DAYTONA_GOAL_RUN, box->config.profile->create_timeout_ms, done);
	box->has_made = box->has_started = box->is_doubted = false;
	daytona_box_poll(box);
}

void daytona_box_rest(struct daytona_box *box, bool is_archived, daytona_box_done *done)
{
	daytona_box_begin(box, is_archived ? DAYTONA_GOAL_ARCHIVE : DAYTONA_GOAL_REST,
		box->config.profile->stop_timeout_ms, done);
	daytona_box_poll(box);
}

/* ---- life ---- */

struct daytona_box *daytona_box_create(const struct daytona_box_config *config)
{
	struct daytona_box *box = mem_alloc_zero(sizeof(*box));
	box->config = *config;
	box->auto_stop_min = -1;
	box->name = mem_strdup(config->name);
	box->others = mem_strdup_or_null(config->others);
	box->instance = mem_strdup_or_null(config->instance);
	ev_init(&box->poll, on_poll);
	ev_init(&box->due, on_due);
	daytona_box_withdraw_init(box);
	return box;
}

void daytona_box_destroy(struct daytona_box *box)
{
	if (box) {
		daytona_box_drop(box);
		free(box->found);
		free(box->name);
		free(box->others);
		free(box->instance);
		free(box);
	}
}

bool daytona_box_is_another(const struct daytona_box *box)
{
	return box->is_another;
}

const char *daytona_box_id(const struct daytona_box *box)
{
	return box->id;
}

const char *daytona_box_name(const struct daytona_box *box)
{
	return box->name;
}

int daytona_box_auto_stop(const struct daytona_box *box)
{
	return box->auto_stop_min;
}

const char *daytona_box_state(const struct daytona_box *box)
{
	return box->state;
}
