/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_SYNC_SHOW_H
#define BROKER_RELAY_SYNC_SHOW_H

#include <ev.h>

#include "broker/ledger/sync_text.h"

/* The user sees a turn's sync only if it takes longer than this, in ms. */
enum { SYNC_SHOW_MOMENT_MS = 500, SYNC_SHOW_TEXT_MAX = 2 * SYNC_TEXT_MAX };

struct relay;

/*
 * Shows the user a turn's sync. If the sync takes longer than SYNC_SHOW_MOMENT_MS, this is a tool
 * call of the broker's own, "Syncing workspace", which ends with the result. Of a shorter sync it
 * shows only news, if there are any.
 */
struct sync_show {
	struct relay *relay;
	const char *session_id; // borrowed; the editor's id
	struct ev_timer moment;
	unsigned number; // of the tool call (notice.h); 0: not shown
	bool has_news;
	bool has_failed;
	char text[SYNC_SHOW_TEXT_MAX];
};

/* The sync has begun, or waits for its turn. */
void sync_show_begin(struct sync_show *show, struct relay *relay, const char *session_id);

/* One workspace is done; `text` is from sync_text_write. News replaces text that is not news. */
void sync_show_add(struct sync_show *show, const char *text, bool is_news, bool is_failure);

/* Nobody waits for the sync any more, for this reason. From here on the display shows only news. */
void sync_show_leave(struct sync_show *show, const char *reason);

/* All workspaces are done. */
void sync_show_end(struct sync_show *show);

#endif
