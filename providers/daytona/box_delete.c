/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "providers/daytona/box_impl.h"

static void on_deleted(void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	daytona_box_end(box, err && err->code != ERROR_NOT_FOUND ? err : NULL);
}

static void on_found_to_delete(
	void *data, const struct daytona_sandbox *seen, const struct error *err)
{
	struct daytona_box *box = data;
	box->call = NULL;
	if (err && err->code == ERROR_NOT_FOUND && daytona_box_is_others(box)) {
		return;
	}
	if (err) {
		daytona_box_end(box, err->code == ERROR_NOT_FOUND ? NULL : err);
	} else if (!daytona_identity_owns(box->config.identity, seen)) {
		daytona_box_take(box, seen); // which says so
	} else {
		snprintf(box->id, sizeof(box->id), "%s", seen->id);
		box->call = daytona_act(box->config.api, DAYTONA_DELETE, box->id, on_deleted, box);
	}
}

void daytona_box_delete(struct daytona_box *box, daytona_box_done *done)
{
	/* The calls have their own deadlines, and there is nothing to wait for. */
	daytona_box_begin(box, DAYTONA_GOAL_REST, 0, done);
	box->call = daytona_get(
		box->config.api, *box->id ? box->id : box->name, on_found_to_delete, box);
}
