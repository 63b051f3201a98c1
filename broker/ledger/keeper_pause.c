/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "broker/ledger/keeper_impl.h"

/* Saves the records of a sandbox that is being paused or resumed. */
struct pausing {
	struct list link; // keeper.pausings
	struct keeper *keeper;
	size_t left;
	bool has_failed;
	struct error err; // the first error
	sandbox_done *done;
	void *data;
};

enum record_state keeper_state_between(const struct keep *keep)
{
	if (keep->keeper->is_paused) {
		return RECORD_PAUSED;
	}
	bool is_active = keep->record.session_count > 0 || keep->was_active ||
	                 keep->record.state == RECORD_ACTIVE;
	return is_active ? RECORD_ACTIVE : RECORD_STARTING;
}

static void pausing_free(struct pausing *pausing)
{
	list_remove(&pausing->link);
	free(pausing);
}

static void on_saved(void *data, const struct error *err)
{
	struct pausing *pausing = data;
	if (err && !pausing->has_failed) {
		pausing->has_failed = true;
		pausing->err = *err;
	}
	if (--pausing->left > 0) {
		return;
	}
	LIST_FOR_EACH(keep, &pausing->keeper->keeps, struct keep, link) {
		keep_tell_state(keep);
	}
	struct pausing told = *pausing;
	pausing_free(pausing);
	told.done(told.data, told.has_failed ? &told.err : NULL);
}

/* Records that are being collected, or have failed, keep their state. */
static bool concerns(const struct keep *keep, bool is_paused)
{
	enum record_state state = keep->record.state;
	return is_paused ? state == RECORD_ACTIVE || state == RECORD_STARTING
	                 : state == RECORD_PAUSED;
}

bool keeper_pause(struct keeper *keeper, bool is_paused, sandbox_done *done, void *data)
{
	char now[TIMESTAMP_SIZE];
	struct pausing *pausing = mem_alloc_zero(sizeof(*pausing));
	*pausing = (struct pausing){.keeper = keeper, .done = done, .data = data};
	list_append(&keeper->pausings, &pausing->link);
	keeper->is_paused = is_paused;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		struct record *record = &keep->record;
		if (!concerns(keep, is_paused)) {
			continue;
		}
		keep->was_active = is_paused ? record->state == RECORD_ACTIVE : keep->was_active;
		record->state = keeper_state_between(keep);
		text_whole(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
		pausing->left++;
		record_saver_save(keeper->saver, record, on_saved, pausing);
	}
	if (pausing->left == 0) {
		pausing_free(pausing);
		return false;
	}
	return true;
}

void keeper_drop_pausings(struct keeper *keeper)
{
	LIST_FOR_EACH(pausing, &keeper->pausings, struct pausing, link) {
		pausing_free(pausing);
	}
}
