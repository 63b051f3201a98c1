/* SPDX-License-Identifier: MIT */
#include "broker/relay/link_show.h"

#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "broker/relay/relay_turn.h"
#include "broker/session/hop.h"
#include "broker/session/notice.h"

enum { PLACE_MAX = 128 };

/* A session that has the tool call. */
struct shown {
	struct list link; // link_show.shown
	char *session_id; // owned; the editor's id
	unsigned number;  // of the tool call (notice.h)
};

/* A part of a peer, from the loss of its link until the link is back or the agent is lost. */
struct link_show {
	struct peer *peer;
	struct list shown;     // of struct shown
	struct ev_timer again; // the next update
	int pause_ms;
	long long lost_ms; // clock_now_ms
	char place[PLACE_MAX];
};

static void init(void *part)
{
	list_init(&((struct link_show *)part)->shown);
}

static void finish(void *part, void *peer)
{
	struct link_show *show = part;
	ev_timer_stop(((struct peer *)peer)->relay->config.loop, &show->again);
	LIST_FOR_EACH(shown, &show->shown, struct shown, link) {
		list_remove(&shown->link);
		free(shown->session_id);
		free(shown);
	}
}

static const struct part_type type = {
	.size = sizeof(struct link_show), .init = init, .finish = finish};

static long long lost_s(const struct link_show *show)
{
	return (clock_now_ms() - show->lost_ms) / 1000;
}

/* ---- in the sessions ---- */

static bool is_shown_in(const struct link_show *show, const struct session *session)
{
	LIST_FOR_EACH(shown, &show->shown, struct shown, link) {
		if (strcmp(shown->session_id, session->id) == 0) {
			return true;
		}
	}
	return false;
}

struct showing {
	struct link_show *show;
	const char *title;
};

/* Begins the tool call in a session with an open turn, if the session does not have it yet. */
static void begin_in(void *data, struct session *session)
{
	const struct showing *showing = data;
	struct link_show *show = showing->show;
	if (!relay_turn_is_open(show->peer, session) || is_shown_in(show, session)) {
		return;
	}
	struct shown *shown = mem_alloc_zero(sizeof(*shown));
	shown->session_id = mem_strdup(session->id);
	shown->number = notice_show(show->peer->relay, session, 0, showing->title, NOTICE_RUNNING);
	list_append(&show->shown, &shown->link);
}

static void update(const struct link_show *show, const char *title, enum notice_status status)
{
	struct relay *relay = show->peer->relay;
	LIST_FOR_EACH(shown, &show->shown, struct shown, link) {
		const struct session *session = session_find(&relay->sessions, shown->session_id);
		if (session) {
			notice_show(relay, session, shown->number, title, status);
		}
	}
}

static void begin(struct link_show *show, const char *title)
{
	struct showing showing = {show, title};
	session_table_visit(&show->peer->relay->sessions, show->peer, begin_in, &showing);
}

static void arm(struct link_show *show)
{
	ev_timer_set(&show->again, show->pause_ms / 1000., 0.);
	ev_timer_start(show->peer->relay->config.loop, &show->again);
	show->pause_ms =
		show->pause_ms < LINK_SHOW_MAX_MS / 2 ? show->pause_ms * 2 : LINK_SHOW_MAX_MS;
}

static void on_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct link_show *show = CONTAINER_OF(timer, struct link_show, again);
	char title[PLACE_MAX + 80];
	text_format(title, sizeof(title), "%s unreachable for %lld s, reconnecting", show->place,
		lost_s(show));
	update(show, title, NOTICE_RUNNING);
	begin(show, title);
	arm(show);
}

/* ---- what happens ---- */

void link_show_lost(struct peer *peer, const char *place, const struct error *why)
{
	struct relay *relay = peer->relay;
	char title[ERROR_TEXT_MAX + PLACE_MAX + 80];
	if (relay->is_ending || peer->is_down) {
		return;
	}
	parts_remove(&peer->parts, &type, peer);
	struct link_show *show = parts_get(&peer->parts, &type);
	show->peer = peer;
	show->lost_ms = clock_now_ms();
	show->pause_ms =
		relay->config.link_show_ms > 0 ? relay->config.link_show_ms : LINK_SHOW_MIN_MS;
	text_format(show->place, sizeof(show->place), "%s", place);
	ev_init(&show->again, on_again);
	text_format(title, sizeof(title), "%s unreachable, reconnecting (%s)", place, why->text);
	log_warning("%s: %s", peer->hop, title);
	begin(show, title);
	arm(show);
}

static void end(struct link_show *show, const char *title, enum notice_status status)
{
	struct peer *peer = show->peer;
	update(show, title, status);
	parts_remove(&peer->parts, &type, peer);
}

void link_show_back(struct peer *peer)
{
	struct link_show *show = parts_find(&peer->parts, &type);
	char title[PLACE_MAX + 80];
	peer->heard_at = ev_now(peer->relay->config.loop); // it could not send anything until now
	if (show) {
		text_format(title, sizeof(title), "%s: reconnected after %lld s", show->place,
			lost_s(show));
		log_warning("%s: %s", peer->hop, title);
		end(show, title, NOTICE_COMPLETED);
	}
}

void link_show_failed(struct peer *peer, const struct error *failure)
{
	struct link_show *show = parts_find(&peer->parts, &type);
	char title[ERROR_TEXT_MAX + PLACE_MAX + 80];
	if (show) {
		text_format(title, sizeof(title),
			"%s was unreachable for %lld s, and what ran there is lost: %s",
			show->place, lost_s(show), failure->text);
		end(show, title, NOTICE_FAILED);
	}
}
