/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

/* What the editor gets about terminals that a tool call shows. */

enum {
	TEXT_GROWING_MAX = 16 * 1024,  // bytes of output, while it may still grow
	TOLD_GROWING_MAX = 256 * 1024, // the same for one _meta.terminal_output
};

bool display_is_final(const struct tool_terminal *terminal)
{
	return terminal_end(terminal->process).has_exited &&
	       (terminal->is_released || terminal_output_has_ended(terminal->process));
}

/* ---- as text ---- */

static void put_text(struct buf *out, const char *text)
{
	buf_add(out, span_of(text));
}

/* Writes a fence that is longer than any in the output. */
static void put_fence(struct buf *out, struct span output)
{
	size_t longest = 2;
	size_t run = 0;
	for (size_t i = 0; i < output.len; i++) {
		run = output.data[i] == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++) {
		buf_add(out, SPAN_LITERAL("`"));
	}
}

static void put_output(struct buf *out, struct span output, bool is_cut)
{
	if (is_cut) {
		put_text(out, "(what came before is not shown)\n\n");
	}
	put_fence(out, output);
	put_text(out, "\n");
	buf_add(out, output);
	if (output.data[output.len - 1] != '\n') {
		put_text(out, "\n");
	}
	put_fence(out, output);
}

static void put_end(struct buf *out, const struct tool_terminal *terminal)
{
	struct terminal_end end = terminal_end(terminal->process);
	char text[64];
	if (!end.has_exited) {
		return;
	}
	if (end.is_lost) {
		put_text(out, "\n\nThe link to the sandbox was lost.");
	} else if (end.timed_out) {
		put_text(out, "\n\nThe command was killed after terminal-timeout.");
	} else if (end.status.code != 0 || end.status.signal != 0) {
		put_text(out, "\n\nThe command ");
		put_text(out, process_status_text(end.status, text, sizeof(text)));
		put_text(out, ".");
	}
}

void display_write_text(struct buf *out, const struct tool_terminal *terminal, bool whole)
{
	const struct output_tail *tail = terminal_output(terminal->process);
	size_t max = whole || tail->limit < TEXT_GROWING_MAX ? tail->limit : TEXT_GROWING_MAX;
	struct buf output;
	struct buf text;
	struct json_writer writer;
	buf_init(&output, 4 * max + 16); // before it is cut to max
	buf_init(&text, SIZE_MAX / 2);
	bool is_cut =
		output_tail_text(tail, max, terminal_output_has_ended(terminal->process), &output);
	if (output.len > 0) {
		put_output(&text, buf_span(&output), is_cut);
	} else {
		bool has_exited = terminal_end(terminal->process).has_exited;
		put_text(&text, has_exited ? "(no output)" : "(no output yet)");
	}
	put_end(&text, terminal);
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_key(&writer, "type");
	json_write_text(&writer, "content");
	json_write_key(&writer, "content");
	json_write_object(&writer);
	json_write_key(&writer, "type");
	json_write_text(&writer, "text");
	json_write_key(&writer, "text");
	json_write_string(&writer, buf_span(&text));
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written);
	(void)is_written;
	buf_finish(&output);
	buf_finish(&text);
}

/* ---- messages ---- */

/* What one message says about a terminal that is shown by _meta. */
struct news {
	struct tool_terminal *terminal;
	struct buf data; // of its output
	uint64_t told;   // the position in the output after it
	bool has_end;
};

static bool has_news(const struct news *news)
{
	return news->data.len > 0 || news->has_end;
}

static void news_read(struct news *news, struct tool_terminal *terminal, bool is_last)
{
	const struct output_tail *tail = terminal_output(terminal->process);
	bool has_exited = terminal_end(terminal->process).has_exited;
	size_t max = has_exited || is_last ? SIZE_MAX : TOLD_GROWING_MAX;
	struct buf text;
	*news = (struct news){.terminal = terminal, .told = terminal->told};
	buf_init(&text, SIZE_MAX / 2);
	buf_init(&news->data, SIZE_MAX / 2);
	uint64_t gone = output_tail_next(
		tail, &news->told, max, terminal_output_has_ended(terminal->process), &text);
	if (gone > 0) {
		bool fits = buf_append_format(&news->data, NULL, "\n(%llu bytes are not shown)\n",
			(unsigned long long)gone);
		assert(fits);
		(void)fits;
	}
	buf_add(&news->data, buf_span(&text));
	buf_finish(&text);
	news->has_end = (has_exited || is_last) && !terminal->end_was_told;
}

/* The editor has accepted the message. */
static void news_commit(const struct news *news)
{
	news->terminal->told = news->told;
	news->terminal->end_was_told = news->terminal->end_was_told || news->has_end;
}

static void write_news(struct json_writer *writer, const struct news *news)
{
	static const char *const exit_keys[2] = {"exit_code", "signal"};
	json_write_key(writer, "_meta");
	json_write_object(writer);
	if (news->data.len > 0) {
		json_write_key(writer, "terminal_output");
		json_write_object(writer);
		json_write_key(writer, "terminal_id");
		json_write_text(writer, news->terminal->id);
		json_write_key(writer, "data");
		json_write_string(writer, buf_span(&news->data));
		json_write_object_end(writer);
	}
	if (news->has_end) {
		json_write_key(writer, "terminal_exit");
		json_write_object(writer);
		json_write_key(writer, "terminal_id");
		json_write_text(writer, news->terminal->id);
		tool_write_exit(writer, news->terminal, exit_keys);
		json_write_object_end(writer);
	}
	json_write_object_end(writer);
}

/*
 * Writes the present content as JSON. `turn` decides which terminals are included whole: all, only
 * the final ones, or none.
 */
static void build_content(struct buf *out, const struct display *display, enum display_turn turn)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_array(&writer);
	for (size_t i = 0; i < display->item_count; i++) {
		const struct display_item *item = &display->items[i];
		struct buf text;
		buf_init(&text, SIZE_MAX / 2);
		if (item->terminal) {
			bool whole = turn == DISPLAY_LAST ||
			             (turn == DISPLAY_NOW && display_is_final(item->terminal));
			display_write_text(&text, item->terminal, whole);
		}
		json_write_raw(&writer, item->terminal ? buf_span(&text) : span_of(item->raw));
		buf_finish(&text);
	}
	json_write_array_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written);
	(void)is_written;
}

void display_note_shown(struct display *display)
{
	struct buf content;
	buf_init(&content, SIZE_MAX / 2);
	build_content(&content, display, DISPLAY_SHOWN);
	display->sent_hash = hash_bytes(HASH_START, buf_span(&content));
	buf_finish(&content);
}

/*
 * Sends one tool_call_update: content (JSON; empty for none) and news of one terminal (may be
 * NULL).
 */
static bool send_update(struct display *display, struct span content, const struct news *news)
{
	const struct toolhost_config *config = &display->toolhost->config;
	struct json_writer writer;
	struct buf message;
	buf_init(&message, SIZE_MAX / 2);
	json_write_begin(&writer, &message);
	json_write_object(&writer);
	json_write_key(&writer, "jsonrpc");
	json_write_text(&writer, "2.0");
	json_write_key(&writer, "method");
	json_write_text(&writer, "session/update");
	json_write_key(&writer, "params");
	json_write_object(&writer);
	json_write_key(&writer, "sessionId");
	json_write_raw(&writer, span_of(display->session_raw));
	json_write_key(&writer, "update");
	json_write_object(&writer);
	json_write_key(&writer, "sessionUpdate");
	json_write_text(&writer, "tool_call_update");
	json_write_key(&writer, "toolCallId");
	json_write_raw(&writer, span_of(display->tool_call_raw));
	if (content.len > 0) {
		json_write_key(&writer, "content");
		json_write_raw(&writer, content);
	}
	if (news) {
		write_news(&writer, news);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	bool is_written = json_write_end(&writer, NULL);
	assert(is_written);
	(void)is_written;
	bool is_taken = config->listener->on_update(config->data, buf_span(&message));
	buf_finish(&message);
	return is_taken;
}

/* Sends news of each terminal that is shown by _meta; the first message also has the content. */
static bool send_news(struct display *display, struct span *content, enum display_turn turn)
{
	bool is_taken = true;
	for (size_t i = 0; i < display->told_count && is_taken; i++) {
		struct news news;
		news_read(&news, display->told[i].terminal, turn == DISPLAY_LAST);
		if (has_news(&news)) {
			is_taken = send_update(display, *content, &news);
		}
		if (is_taken) {
			news_commit(&news);
			*content = has_news(&news) ? (struct span){NULL, 0} : *content;
		}
		buf_finish(&news.data);
	}
	return is_taken;
}

bool display_send(struct display *display, enum display_turn turn)
{
	struct buf text;
	struct span content = {NULL, 0};
	uint64_t hash = display->sent_hash;
	buf_init(&text, SIZE_MAX / 2);
	if (display->item_count > 0) {
		build_content(&text, display, turn);
		hash = hash_bytes(HASH_START, buf_span(&text));
		content = hash != display->sent_hash ? buf_span(&text) : content;
	}
	bool is_taken = send_news(display, &content, turn);
	if (is_taken && content.len > 0) {
		is_taken = send_update(display, content, NULL);
	}
	if (is_taken) {
		display->sent_hash = hash;
	}
	buf_finish(&text);
	return is_taken;
}
