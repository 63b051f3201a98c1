/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <stdlib.h>
#include <string.h>

/* Which tool calls show terminals of ours, and when the editor gets their state. */

enum {
	PAST_MAX = 64, // terminals that no longer exist
};

static const double update_interval_s = 0.1;

/* ---- a display's life ---- */

static void items_clear(struct display *display)
{
	for (size_t i = 0; i < display->item_count; i++) {
		struct tool_terminal *terminal = display->items[i].terminal;
		free(display->items[i].raw);
		if (terminal) {
			terminal->display_count--;
			tool_terminal_settle(terminal);
		}
	}
	free(display->items);
	display->items = NULL;
	display->item_count = 0;
}

static void told_clear(struct display *display)
{
	for (size_t i = 0; i < display->told_count; i++) {
		struct tool_terminal *terminal = display->told[i].terminal;
		terminal->display_count--;
		tool_terminal_settle(terminal);
	}
	free(display->told);
	display->told = NULL;
	display->told_count = 0;
}

void display_destroy(struct display *display)
{
	ev_timer_stop(display->toolhost->config.loop, &display->timer);
	list_remove(&display->link);
	items_clear(display);
	told_clear(display);
	free(display->session_id);
	free(display->tool_call_id);
	free(display->session_raw);
	free(display->tool_call_raw);
	free(display);
}

static bool is_final(const struct display *display)
{
	for (size_t i = 0; i < display->item_count; i++) {
		const struct tool_terminal *terminal = display->items[i].terminal;
		if (terminal && !display_is_final(terminal)) {
			return false;
		}
	}
	for (size_t i = 0; i < display->told_count; i++) {
		if (!display_is_final(display->told[i].terminal)) {
			return false;
		}
	}
	return true;
}

static void wait_for_turn(struct display *display)
{
	struct ev_loop *loop = display->toolhost->config.loop;
	if (!ev_is_active(&display->timer)) {
		double wait = display->sent_at + update_interval_s - ev_now(loop);
		ev_timer_set(&display->timer, wait > 0. ? wait : 0., 0.);
		ev_timer_start(loop, &display->timer);
	}
}

/* Sends what is new, and tries again later if the editor is slow. */
static void take_turn(struct display *display)
{
	bool was_final = is_final(display);
	display->sent_at = ev_now(display->toolhost->config.loop);
	if (!display_send(display, DISPLAY_NOW)) {
		wait_for_turn(display);
	} else if (was_final) {
		display_destroy(display);
	}
}

static void on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
	take_turn(CONTAINER_OF(timer, struct display, timer));
}

struct display *display_create(
	struct toolhost *toolhost, const char *session_id, const char *tool_call_id)
{
	struct display *display = mem_alloc_zero(sizeof(*display));
	display->toolhost = toolhost;
	display->session_id = mem_strdup(session_id);
	display->tool_call_id = mem_strdup(tool_call_id);
	ev_timer_init(&display->timer, on_turn, 0., 0.);
	list_append(&toolhost->displays, &display->link);
	return display;
}

struct display *display_find(
	struct toolhost *toolhost, const char *session_id, const char *tool_call_id)
{
	LIST_FOR_EACH(display, &toolhost->displays, struct display, link) {
		if (strcmp(display->session_id, session_id) == 0 &&
			strcmp(display->tool_call_id, tool_call_id) == 0) {
			return display;
		}
	}
	return NULL;
}

static bool follows(const struct display *display, const struct tool_terminal *terminal)
{
	for (size_t i = 0; i < display->item_count; i++) {
		if (display->items[i].terminal == terminal) {
			return true;
		}
	}
	for (size_t i = 0; i < display->told_count; i++) {
		if (display->told[i].terminal == terminal) {
			return true;
		}
	}
	return false;
}

void displays_note(struct tool_terminal *terminal)
{
	if (terminal->display_count == 0) {
		return;
	}
	LIST_FOR_EACH(display, &terminal->toolhost->displays, struct display, link) {
		if (follows(display, terminal)) {
			wait_for_turn(display);
		}
	}
}

void display_set_items(struct display *display, struct display_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (items[i].terminal) {
			items[i].terminal->display_count++;
			items[i].terminal->was_shown = true;
		}
	}
	items_clear(display);
	display->items = items;
	display->item_count = count;
}

void display_tell(struct display *display, struct tool_terminal *terminal)
{
	size_t count = display->told_count + 1;
	display->told = mem_realloc(display->told, count * sizeof(display->told[0]));
	display->told[display->told_count++] = (struct display_item){.terminal = terminal};
	terminal->display_count++;
	terminal->was_shown = true;
}

void display_shown(struct display *display)
{
	bool has_news = is_final(display);
	for (size_t i = 0; i < display->told_count; i++) {
		const struct terminal *process = display->told[i].terminal->process;
		has_news = has_news || terminal_output(process)->total > 0 ||
		           terminal_end(process).has_exited;
	}
	display->sent_at = ev_now(display->toolhost->config.loop);
	display_note_shown(display);
	if (display->item_count == 0 && display->told_count == 0) {
		display_destroy(display);
	} else if (has_news) {
		ev_timer_stop(display->toolhost->config.loop, &display->timer);
		wait_for_turn(display);
	}
}

/* ---- terminals that no longer exist ---- */

static void past_destroy(struct toolhost *toolhost, struct past_terminal *past)
{
	toolhost->past_count--;
	list_remove(&past->link);
	free(past->id);
	free(past->session_id);
	free(past->item);
	free(past);
}

void displays_remember(struct tool_terminal *terminal)
{
	struct toolhost *toolhost = terminal->toolhost;
	if (!terminal->was_shown) {
		return;
	}
	terminal->was_shown = false;
	struct past_terminal *oldest = LIST_FIRST(&toolhost->past, struct past_terminal, link);
	if (oldest && toolhost->past_count == PAST_MAX) {
		past_destroy(toolhost, oldest);
	}
	struct past_terminal *past = mem_alloc_zero(sizeof(*past));
	struct buf item;
	buf_init(&item, SIZE_MAX / 2);
	display_write_text(&item, terminal, false);
	past->id = mem_strdup(terminal->id);
	past->session_id = mem_strdup(terminal->session_id);
	past->is_known = terminal->is_known;
	past->item = mem_strndup(buf_span(&item));
	buf_finish(&item);
	list_append(&toolhost->past, &past->link);
	toolhost->past_count++;
}

struct past_terminal *past_find(struct toolhost *toolhost, const char *session_id, const char *id)
{
	LIST_FOR_EACH(past, &toolhost->past, struct past_terminal, link) {
		if (strcmp(past->id, id) == 0 && strcmp(past->session_id, session_id) == 0) {
			return past;
		}
	}
	return NULL;
}

/* ---- the end ---- */

void displays_flush(
	struct toolhost *toolhost, const char *session_id, const char *last_of_tool_call)
{
	LIST_FOR_EACH(display, &toolhost->displays, struct display, link) {
		bool is_meant = strcmp(display->session_id, session_id) == 0 &&
		                (!last_of_tool_call ||
					(strcmp(display->tool_call_id, last_of_tool_call) == 0 &&
						is_final(display)));
		if (is_meant && ev_is_active(&display->timer)) {
			ev_timer_stop(toolhost->config.loop, &display->timer);
			take_turn(display);
		}
	}
}

void displays_end(struct toolhost *toolhost, const char *session_id)
{
	LIST_FOR_EACH(display, &toolhost->displays, struct display, link) {
		if (!session_id || strcmp(display->session_id, session_id) == 0) {
			(void)display_send(display, DISPLAY_LAST); // there is no later attempt
			display_destroy(display);
		}
	}
	LIST_FOR_EACH(past, &toolhost->past, struct past_terminal, link) {
		if (!session_id || strcmp(past->session_id, session_id) == 0) {
			past_destroy(toolhost, past);
		}
	}
}

void displays_finish(struct toolhost *toolhost)
{
	LIST_FOR_EACH(display, &toolhost->displays, struct display, link) {
		display_destroy(display);
	}
	LIST_FOR_EACH(past, &toolhost->past, struct past_terminal, link) {
		past_destroy(toolhost, past);
	}
}
