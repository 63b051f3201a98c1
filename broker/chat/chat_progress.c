/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json_doc.h"
#include "base/text.h"
#include "broker/chat/chat_parts.h"
#include "broker/chat/style.h"
#include "broker/chat/tty.h"

/*
 * The progress line says in the last row of the terminal what the user waits for and for how long.
 * It is drawn again every second, and removed before anything else is printed. Without a line
 * editor there is no progress line.
 */
static const double first_s = 0.7; // a shorter wait has no progress line
static const double again_s = 1.0;
static const char clear[] = "\r\033[K";

/* What the user waits for in each state of a record (docs/schemas/session-state.json). */
static const struct {
	const char *state;
	const char *text;
} states[] = {
	{"creating", "preparing the sandbox"},
	{"syncing", "syncing the workspace"},
	{"starting", "opening the session"},
	{"collecting", "bringing the changes here"},
};

static void draw(struct chat *chat)
{
	struct progress *progress = &chat->progress;
	double waited_s = ev_now(chat->means.loop) - progress->since;
	if (chat->show.is_inside || chat->ask.request || !output_is_idle(&chat->output) ||
		line_is_shown(chat->line)) {
		return; // other text is in the row
	}
	char line[PROGRESS_TEXT_MAX + 32];
	struct buf out;
	text_format(line, sizeof(line), "~ %s (%.0f s)", progress->text, waited_s);
	buf_init(&out, SIZE_MAX / 2);
	buf_add(&out, span_of(clear));
	buf_add(&out, span_of(chat->show.is_colored ? "\033[2m" : ""));
	style_cut(span_of(line), tty_columns(chat->output.out.fd) - 1, &out);
	buf_add(&out, span_of(chat->show.is_colored ? "\033[0m" : ""));
	output_print(&chat->output, buf_span(&out));
	buf_finish(&out);
	progress->is_shown = true;
}

static void on_tick(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	draw(timer->data);
}

void chat_progress_hide(struct chat *chat)
{
	if (chat->progress.is_shown) {
		chat->progress.is_shown = false;
		output_print(&chat->output, span_of(clear));
	}
}

void chat_progress_begin(struct chat *chat, const char *text)
{
	struct progress *progress = &chat->progress;
	if (!chat->line) {
		return;
	}
	text_format(progress->text, sizeof(progress->text), "%s", text);
	if (ev_is_active(&progress->timer)) {
		if (progress->is_shown) {
			draw(chat);
		}
		return; // the seconds go on
	}
	progress->since = ev_now(chat->means.loop);
	ev_timer_set(&progress->timer, first_s, again_s);
	ev_timer_start(chat->means.loop, &progress->timer);
}

void chat_progress_end(struct chat *chat)
{
	chat_progress_hide(chat);
	ev_timer_stop(chat->means.loop, &chat->progress.timer);
}

void chat_progress_note(struct chat *chat)
{
	const char *own = chat->show.own_title;
	if (chat->stage == STAGE_TURN && own) {
		chat_progress_begin(chat, own);
	} else if (chat->stage == STAGE_TURN || chat->stage == STAGE_IDLE) {
		chat_progress_end(chat);
	}
}

void chat_progress_take_state(struct chat *chat, struct span params)
{
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	for (size_t i = 0; doc && i < ARRAY_LENGTH(states); i++) {
		if (json_string_is(doc, json_get(doc, 0, "state"), states[i].state) &&
			ev_is_active(&chat->progress.timer)) {
			chat_progress_begin(chat, states[i].text);
		}
	}
	json_doc_destroy(doc);
}

void chat_progress_init(struct chat *chat)
{
	ev_timer_init(&chat->progress.timer, on_tick, first_s, again_s);
	chat->progress.timer.data = chat;
}
