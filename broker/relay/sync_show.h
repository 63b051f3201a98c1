/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_SYNC_SHOW_H
#define BROKER_RELAY_SYNC_SHOW_H

#include <ev.h>

#include "broker/ledger/sync_text.h"

/* How long a turn's sync may take before it is shown, in ms. */
enum { SYNC_SHOW_MOMENT_MS = 500, SYNC_SHOW_TEXT_MAX = 2 * SYNC_TEXT_MAX };

struct relay;

/*
 * What the user is shown of a turn's sync: a tool call of the broker's own,
 * "Syncing workspace", once it has taken longer than a moment, which ends with what the
 * sync did; and of a shorter one its news alone, where there are any.
 */
struct sync_show {
	struct relay *relay;
	const char *session_id; // borrowed; as the editor knows it
	struct ev_timer moment;
	unsigned number; // of the tool call (notice.h); 0: none is shown
	bool has_news;
	bool has_failed;
	char text[SYNC_SHOW_TEXT_MAX];
};

/* The sync has begun, or waits for its turn. */
void sync_show_begin(struct sync_show *show, struct relay *relay, const char *session_id);

/* One workspace of it is done (sync_text_write). News take the place of what is none. */
void sync_show_add(struct sync_show *show, const char *text, bool is_news, bool is_failure);

/* Nobody waits for it any more, for this reason: only its news are shown from here on. */
void sync_show_leave(struct sync_show *show, const char *reason);

/* All of it is done. */
void sync_show_end(struct sync_show *show);

#endif
