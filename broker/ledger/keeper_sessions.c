/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "broker/ledger/keeper_impl.h"

/* The open ACP sessions of each root, saved in its record for other programs. */

static void on_session_saved(void *data, const struct error *err)
{
	if (err) {
		log_failure(LOG_LEVEL_ERROR, err, "%s", err->text);
	} else {
		keep_tell_state(data);
	}
}

static void add_session(struct keep *keep, const char *session_id)
{
	size_t before = keep->record.session_count;
	if (!record_add_session(&keep->record, session_id)) {
		log_warning("session %s is not recorded: there are too many", session_id);
	}
	if (keep->record.state == RECORD_STARTING) {
		keep_save(keep, RECORD_ACTIVE, on_session_saved);
	} else if (keep->record.session_count > before) {
		keep_save(keep, keep->record.state, on_session_saved);
	}
}

void keeper_add_session(struct keeper *keeper, char *const *roots, const char *session_id)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (!roots || keep_is_named(keep, roots)) {
			add_session(keep, session_id);
		}
	}
}

void keeper_set_choices(struct keeper *keeper, const char *session_id, struct span choices)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		enum record_choices_set set =
			record_set_choices(&keep->record, session_id, choices);
		if (set == RECORD_CHOICES_CHANGED) {
			keep_save(keep, keep->record.state, on_session_saved);
		} else if (set == RECORD_CHOICES_TOO_LONG) {
			log_warning("session %s: its modes and options are not recorded: the "
				    "record would be too long",
				session_id);
		}
	}
}

void keeper_remove_session(struct keeper *keeper, const char *session_id)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		size_t before = keep->record.session_count;
		record_remove_session(&keep->record, session_id);
		if (keep->record.session_count < before) {
			keep_save(keep, keep->record.state, on_session_saved);
		}
	}
}

void keeper_flush(struct keeper *keeper, sandbox_done *done, void *data)
{
	record_saver_flush(keeper->saver, done, data);
}

static void on_noted(void *data, const struct error *err)
{
	/* The note only tells others about the end; the locks decide. */
}

void keeper_note_end(struct keeper *keeper)
{
	record_saver_note_end(keeper->saver, on_noted, keeper);
}
