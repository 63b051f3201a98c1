/* SPDX-License-Identifier: MIT */

#include "base/text.h"
#include "providers/daytona/box_impl.h"

/*
 * With 401 the service does not accept the key at all, so that key could not stop anything either.
 */
enum { FORBIDDEN = 403 };

/* ---- sandboxes that the key may not delete ---- */

/* A stopped sandbox only costs its disk, and somebody who may delete it finds everything in it. */
static void stop_instead(struct daytona_box *box, const struct error *err)
{
	struct error forbidden = *err;
	daytona_box_rest(box, false, box->done);
	box->is_left = true;
	box->forbidden = forbidden;
}

const struct error *daytona_box_tell_left(
	struct daytona_box *box, const struct error *err, struct error *out_left)
{
	struct error left;
	if (err) {
		error_set_reason(&left, err->code, err->reason,
			"sandbox %s keeps running: deleting it failed: %s; stopping it instead "
			"failed, too: %s",
			box->name, box->forbidden.text, err->text);
		box->is_left = false;
	} else if (box->is_left) {
		error_set_reason(&left, ERROR_DENIED, "DAYTONA_UNAUTHORIZED",
			"sandbox %s is stopped, but not deleted: %s; acp-broker sandboxes delete "
			"%s does it with a key that has delete:sandboxes",
			box->name, box->forbidden.text, box->name);
	} else {
		return NULL;
	}
	*out_left = left;
	return out_left;
}

bool daytona_box_is_left(const struct daytona_box *box)
{
	return box->is_left;
}

/* ---- deleting ---- */

static void on_deleted(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	bool is_gone = !err || err->code == ERROR_NOT_FOUND;
	box->call = NULL;
	box->has_made = box->has_made && !is_gone;
	if (!is_gone && error_has_reason(err, "DAYTONA_UNAUTHORIZED") &&
		daytona_api_status(box->config.api) == FORBIDDEN) {
		stop_instead(box, err);
	} else {
		daytona_box_end(box, is_gone ? NULL : err);
	}
}

/* A sandbox that does not exist may still appear. True if this looks for it once more. */
static bool may_come(struct daytona_box *box)
{
	long long ms = box->config.profile->api_timeout_ms;
	ms = ms < DAYTONA_SETTLES_MS ? ms : DAYTONA_SETTLES_MS;
	if (!box->is_doubted || clock_now_ms() >= box->doubted_ms + ms) {
		return false;
	}
	daytona_box_poll_later(box);
	return true;
}

static void end_as_gone(struct daytona_box *box)
{
	struct error err;
	if (box->is_doubted) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE",
			"sandbox %s does not exist and may still appear: the service has "
			"not said how its creation ended (see acp-broker sandboxes list)",
			box->name);
	}
	daytona_box_end(box, box->is_doubted ? &err : NULL);
}

static void on_found_to_delete(
	void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err && err->code == ERROR_NOT_FOUND && daytona_box_is_others(box)) {
		return;
	}
	if (err && err->code == ERROR_NOT_FOUND && may_come(box)) {
		return;
	}
	box->is_doubted = box->is_doubted && err;
	if (err && err->code == ERROR_NOT_FOUND) {
		end_as_gone(box);
	} else if (err) {
		daytona_box_end(box, err);
	} else if (!daytona_identity_owns(box->config.identity, seen)) {
		daytona_box_take(box, seen); // this reports the error
	} else if (!text_whole(box->id, sizeof(box->id), "%s", seen->id)) {
		struct error unfit;
		error_set(&unfit, ERROR_PROTOCOL, "sandbox %s has an id of more than %zu bytes",
			box->name, sizeof(box->id) - 1);
		daytona_box_end(box, &unfit);
	} else {
		box->call = daytona_act(box->config.api, DAYTONA_DELETE, box->id, on_deleted, box);
	}
}

void daytona_box_look_to_delete(struct daytona_box *box)
{
	box->call = daytona_get(
		box->config.api, *box->id ? box->id : box->name, on_found_to_delete, box);
}

/* ---- no sandbox to delete ---- */

static void on_nothing(struct soon *soon)
{
	daytona_box_end(CONTAINER_OF(soon, struct daytona_box, nothing), NULL);
}

void daytona_box_withdraw_init(struct daytona_box *box)
{
	soon_init(&box->nothing, box->config.loop, on_nothing);
}

void daytona_box_withdraw(struct daytona_box *box, bool is_used, daytona_box_done *done)
{
	daytona_box_drop(box);
	if (box->has_made && !is_used && *box->id) {
		daytona_box_begin(box, DAYTONA_GOAL_REST, 0, done);
		box->call = daytona_act(box->config.api, DAYTONA_DELETE, box->id, on_deleted, box);
	} else if (box->has_made && !is_used) {
		daytona_box_delete(box, done); // its create has not been answered yet
	} else if (box->has_made || box->has_started) {
		daytona_box_rest(box, false, done);
	} else {
		daytona_box_begin(box, DAYTONA_GOAL_REST, 0, done);
		soon_start(&box->nothing);
	}
}

bool daytona_box_has_made(const struct daytona_box *box)
{
	return box->has_made;
}

bool daytona_box_is_doubted(const struct daytona_box *box)
{
	return box->is_doubted;
}

bool daytona_box_has_acted(const struct daytona_box *box)
{
	return box->has_made || box->has_started;
}

void daytona_box_delete(struct daytona_box *box, daytona_box_done *done)
{
	const struct daytona_profile *profile = box->config.profile;
	/*
	 * The deadline covers both calls, because the service may ask each to wait for a minute
	 * (429).
	 */
	daytona_box_begin(box, DAYTONA_GOAL_REST,
		profile->api_timeout_ms > profile->stop_timeout_ms ? profile->api_timeout_ms
								   : profile->stop_timeout_ms,
		done);
	box->is_deleting = true;
	daytona_box_look_to_delete(box);
}
