/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/point.h"
#include "base/text.h"
#include "providers/daytona/box_impl.h"
#include "providers/daytona/states.h"

/* for names that are taken although their sandbox does not exist: it was deleted in between */
enum { CREATES_MAX = 3 };

/* ---- remains of a failed create ---- */

static void on_removed(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	struct error whole = box->err;
	box->has_made = err && err->code != ERROR_NOT_FOUND;
	error_set_reason(&box->err, whole.code, whole.reason, "%s; %s%s", whole.text,
		box->has_made ? "it stays there, because deleting it failed: " : "it is deleted",
		box->has_made ? err->text : "");
	daytona_box_end(box, &box->err);
}

void daytona_box_remove_failed(struct daytona_box *box, const struct daytona_sandbox *seen)
{
	struct error err;
	const char *why = *seen->error_reason ? seen->error_reason
	                  : *box->err.text    ? box->err.text
	                                      : "the service gives no reason";
	error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_FAILED",
		"creating sandbox %s: %s (state \"%s\")", box->name, why, seen->state);
	box->err = err;
	box->call = daytona_act(box->config.api, DAYTONA_DELETE, box->id, on_removed, box);
}

/* ---- creating ---- */

/*
 * The name makes a create idempotent: if there is no sandbox with this name, it is created again
 * after a pause, for as long as one call may take (api-timeout); create-timeout goes on.
 */
static bool creates_again(struct daytona_box *box)
{
	double asked = (double)daytona_api_asked_ms(box->config.api) / 1000.;
	double pause = asked > box->pause ? asked : box->pause;
	bool is_passing = error_has_reason(&box->err, "DAYTONA_UNAVAILABLE") ||
	                  error_has_reason(&box->err, "TIMEOUT_EXCEEDED");
	if (!is_passing || clock_now_ms() + (long long)(pause * 1000) >= box->creates_until_ms) {
		return false;
	}
	log_failure(LOG_LEVEL_WARNING, &box->err, "%s: trying again, for %lld s at most",
		box->err.text, (box->creates_until_ms - clock_now_ms()) / 1000);
	box->creates--;
	box->pause = pause;
	daytona_box_poll_later(box);
	return true;
}

void daytona_box_doubt(struct daytona_box *box)
{
	box->is_doubted = true;
	box->doubted_ms = clock_now_ms();
}

/* Looks for the sandbox after a create without a good answer. */
static void on_seen_after(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	bool was_taken = error_has_reason(&box->err, "DAYTONA_CONFLICT");
	bool was_doubted = box->is_doubted;
	bool is_none = err && err->code == ERROR_NOT_FOUND;
	box->has_made =
		box->has_made && (was_doubted ? err != NULL || !was_taken : !was_taken && !is_none);
	box->is_doubted = was_doubted && err;
	if (err && err->code == ERROR_NOT_FOUND && was_taken && box->creates < CREATES_MAX) {
		daytona_box_poll_later(box); // then creates it again
	} else if (err && err->code == ERROR_NOT_FOUND && creates_again(box)) {
		return;
	} else if (err) {
		daytona_box_end(box, &box->err);
	} else if (daytona_box_take(box, seen)) {
		bool is_broken = daytona_state_find(seen->state)->to_rest == DAYTONA_STEP_FAIL;
		box->is_made = !was_taken;
		/* It may also belong to another broker; stopping it does no harm. */
		box->has_started |= was_taken && was_doubted;
		if (is_broken && box->is_made) {
			daytona_box_remove_failed(box, seen);
		} else {
			daytona_box_poll_later(box);
		}
	}
}

static void on_created(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	box->is_creating = false;
	point("daytona.created");
	if (err) {
		box->err = *err;
		if (daytona_api_may_be_done(box->config.api)) {
			daytona_box_doubt(box);
		}
		box->call = daytona_get(box->config.api, box->name, on_seen_after, box);
	} else if (daytona_box_take(box, seen)) {
		box->is_made = true;
		box->is_doubted = false;
		daytona_box_poll_later(box);
	}
}

static void create(struct daytona_box *box)
{
	struct error err;
	char text[256];
	if (box->creates++ == CREATES_MAX) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "SANDBOX_UNAVAILABLE",
			"sandbox %s was created %d times, and was gone again each time", box->name,
			CREATES_MAX);
		daytona_box_end(box, &err);
		return;
	}
	if (box->creates_until_ms == 0) {
		box->creates_until_ms = clock_now_ms() + box->config.profile->api_timeout_ms;
	}
	text_format(text, sizeof(text), "Creating sandbox %s", box->name);
	if (box->config.on_progress) {
		box->config.on_progress(box->config.data, text);
	}
	box->id[0] = '\0';
	box->has_made = box->is_creating = true;
	point("daytona.creating");
	box->call = daytona_create(box->config.api, box->config.create, on_created, box);
}

/* ---- finding a sandbox by its labels ---- */

/* Takes the first usable one, preferably one that is running. */
static void on_listed(void *data, const struct daytona_sandbox *seen)
{
	struct daytona_box *box = data;
	const struct daytona_state *state = daytona_state_find(seen->state);
	bool runs = strcmp(seen->state, box->config.profile->ready_state) == 0;
	bool is_usable = state->to_rest != DAYTONA_STEP_GONE && state->to_rest != DAYTONA_STEP_FAIL;
	if (is_usable && daytona_name_is_valid(seen->name) &&
		(!box->found || (runs && !box->found_runs))) {
		mem_set_text(&box->found, seen->name);
		box->found_runs = runs;
	}
}

static void on_list_ended(void *data, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err) {
		daytona_box_end(box, err);
	} else if (box->found) {
		free(box->name);
		box->name = box->found;
		box->found = NULL;
		box->config.query = NULL;
		daytona_box_end(box, NULL);
	} else {
		create(box);
	}
}

static const struct daytona_list_listener list_listener = {
	.on_sandbox = on_listed, .on_done = on_list_ended};

void daytona_box_make(struct daytona_box *box)
{
	if (box->config.query && box->creates == 0 && !*box->id) {
		box->call = daytona_list(box->config.api, box->config.query, &list_listener, box);
	} else {
		create(box);
	}
}
