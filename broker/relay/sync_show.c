/* SPDX-License-Identifier: MIT */
#include "broker/relay/sync_show.h"

#include <string.h>

#include "base/text.h"
#include "broker/session/hop.h"
#include "broker/session/notice.h"

static const char title[] = "Syncing workspace";

static const struct session *session_of(const struct sync_show *show)
{
	return session_find(&show->relay->sessions, show->session_id);
}

static void on_moment(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct sync_show *show = CONTAINER_OF(timer, struct sync_show, moment);
	const struct session *session = session_of(show);
	if (session) {
		show->number = notice_show(show->relay, session, 0, title, NOTICE_RUNNING);
	}
}

void sync_show_begin(struct sync_show *show, struct relay *relay, const char *session_id)
{
	int moment_ms = relay->config.sync_moment_ms;
	*show = (struct sync_show){.relay = relay, .session_id = session_id};
	ev_timer_init(&show->moment, on_moment,
		(moment_ms > 0 ? moment_ms : SYNC_SHOW_MOMENT_MS) / 1000., 0.);
	ev_timer_start(relay->config.loop, &show->moment);
}

void sync_show_add(struct sync_show *show, const char *text, bool is_news, bool is_failure)
{
	if (show->has_news && !is_news) {
		return;
	}
	if (is_news && !show->has_news) {
		show->text[0] = '\0';
	}
	size_t len = strlen(show->text);
	text_append(show->text, sizeof(show->text), "%s%s", len > 0 ? "; " : "", text);
	show->has_news = show->has_news || is_news;
	show->has_failed = show->has_failed || is_failure;
}

static void complete(struct sync_show *show, const char *text, bool is_failure)
{
	const struct session *session = session_of(show);
	ev_timer_stop(show->relay->config.loop, &show->moment);
	if (session) {
		notice_show(show->relay, session, show->number, text,
			is_failure ? NOTICE_FAILED : NOTICE_COMPLETED);
	}
	show->number = 0;
}

void sync_show_leave(struct sync_show *show, const char *reason)
{
	ev_timer_stop(show->relay->config.loop, &show->moment);
	if (show->number > 0) {
		complete(show, reason, true);
	}
}

void sync_show_end(struct sync_show *show)
{
	ev_timer_stop(show->relay->config.loop, &show->moment);
	if (show->number > 0 || show->has_news) {
		complete(show, *show->text ? show->text : title, show->has_failed);
	}
	show->has_news = false;
}
