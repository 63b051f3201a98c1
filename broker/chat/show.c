/* SPDX-License-Identifier: MIT */
#include "broker/chat/show.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "broker/chat/diff.h"

static const char *const colors[] = {
	[SHOW_PLAIN] = "",
	[SHOW_DIM] = "2",
	[SHOW_GOOD] = "32",
	[SHOW_BAD] = "31",
	[SHOW_ASK] = "1;33",
};

void show_init(struct show *show, bool is_colored)
{
	*show = (struct show){.is_colored = is_colored, .columns = SIZE_MAX, .block = ""};
	style_init(&show->style, is_colored, "");
}

void show_finish(struct show *show)
{
	for (size_t i = 0; i < SHOW_CALLS; i++) {
		free(show->calls[i].id);
		free(show->calls[i].title);
		free(show->calls[i].diffs);
	}
	for (size_t i = 0; i < SHOW_ROOTS; i++) {
		free(show->roots[i]);
	}
	free(show->own_title);
}

void show_set_root(struct show *show, size_t number, const char *path)
{
	assert(number < SHOW_ROOTS);
	bool is_useful = path && path[0] == '/' && path[1];
	free(show->roots[number]);
	show->roots[number] = is_useful ? mem_strdup(path) : NULL;
}

/* ---- lines ---- */

static void color(struct show *show, const char *numbers, struct buf *out)
{
	if (show->is_colored && numbers[0]) {
		buf_add(out, SPAN_LITERAL("\033["));
		buf_add(out, span_of(numbers));
		buf_add(out, SPAN_LITERAL("m"));
	}
}

void show_end_text(struct show *show, struct buf *out)
{
	style_end(&show->style, out);
	if (show->is_inside) {
		buf_add(out, SPAN_LITERAL("\n"));
	}
	show->is_inside = false;
	show->block = "";
}

void show_line(struct show *show, enum show_color shade, const char *mark, struct span text,
	bool is_cut, struct buf *out)
{
	size_t indent = 2;
	show_end_text(show, out);
	color(show, colors[shade], out);
	buf_add(out, span_of(mark));
	buf_add(out, SPAN_LITERAL(" "));
	if (is_cut) {
		style_cut(text, show->columns > indent ? show->columns - indent : 1, out);
	} else {
		style_plain(text, true, out);
	}
	color(show, shade == SHOW_PLAIN ? "" : "0", out);
	buf_add(out, SPAN_LITERAL("\n"));
}

/* ---- paths ---- */

/* The length of the workspace's path and its slash at the beginning of the text; 0: none. */
static size_t root_length(const struct show *show, struct span text)
{
	for (size_t i = 0; i < SHOW_ROOTS; i++) {
		size_t len = show->roots[i] ? strlen(show->roots[i]) : 0;
		if (len > 0 && len < text.len && memcmp(text.data, show->roots[i], len) == 0 &&
			text.data[len] == '/') {
			return len + 1;
		}
	}
	return 0;
}

/* Whether a slash after this byte is inside a path: in "/a/b" no path begins at "/b". */
static bool is_in_path(char byte)
{
	return (byte & 0x80) || isalnum((unsigned char)byte) || strchr("/._-~+@%$", byte) != NULL;
}

/* Prints a line in which paths below the workspace become relative to it. */
static void show_path_line(struct show *show, enum show_color shade, const char *mark,
	struct span text, bool is_cut, struct buf *out)
{
	struct buf shorter;
	buf_init(&shorter, SIZE_MAX / 2);
	for (size_t i = 0; i < text.len; i++) {
		struct span rest = {text.data + i, text.len - i};
		if (text.data[i] == '/' && (i == 0 || !is_in_path(text.data[i - 1]))) {
			size_t len = root_length(show, rest);
			i += len;
		}
		if (i < text.len) {
			buf_add(&shorter, (struct span){text.data + i, 1});
		}
	}
	show_line(show, shade, mark, buf_span(&shorter), is_cut, out);
	buf_finish(&shorter);
}

/* ---- text ---- */

/* The decoded string; empty if the node is not a string. The caller finishes the buffer. */
static struct span decode(const struct json_doc *doc, json_node node, struct buf *text)
{
	buf_init(text, SIZE_MAX / 2);
	if (!json_is(doc, node, JSON_STRING) ||
		!json_decode_string(json_raw(doc, node), text, NULL)) {
		buf_clear(text);
	}
	return buf_span(text);
}

static void show_text(struct show *show, const char *kind, const char *base,
	const struct json_doc *doc, json_node update, struct buf *out)
{
	struct buf text;
	json_node content = json_get(doc, update, "content");
	if (!json_string_is(doc, json_get(doc, content, "type"), "text")) {
		show_line(
			show, SHOW_DIM, "-", SPAN_LITERAL("(content that is not text)"), true, out);
		return;
	}
	struct span words = decode(doc, json_get(doc, content, "text"), &text);
	if (strcmp(show->block, kind) != 0) {
		show_end_text(show, out);
		style_init(&show->style, show->is_colored, base);
		show->block = kind;
	}
	if (words.len > 0) {
		style_text(&show->style, words, out);
		show->is_inside = words.data[words.len - 1] != '\n';
	}
	buf_finish(&text);
}

static void show_message(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	show_text(show, "message", "", doc, update, out);
}

static void show_thought(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	show_text(show, "thought", "2", doc, update, out);
}

/* An earlier prompt of the user in a session that is being loaded. */
static void show_user(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	struct buf text;
	struct span words = decode(doc, json_path(doc, update, "content.text"), &text);
	while (words.len > 0) {
		show_line(show, SHOW_DIM, ">", diff_take_line(&words), false, out);
	}
	buf_finish(&text);
}

/* ---- plans ---- */

static void show_plan(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	json_node entries = json_get(doc, update, "entries");
	for (json_node entry = json_first(doc, entries); entry != JSON_NODE_NONE;
		entry = json_next(doc, entry)) {
		json_node status = json_get(doc, entry, "status");
		bool is_done = json_string_is(doc, status, "completed");
		bool is_begun = json_string_is(doc, status, "in_progress");
		struct buf text;
		struct span words = decode(doc, json_get(doc, entry, "content"), &text);
		show_line(show, is_done ? SHOW_DIM : SHOW_PLAIN,
			is_done    ? "  [x]"
			: is_begun ? "  [>]"
				   : "  [ ]",
			words, false, out);
		buf_finish(&text);
	}
}

/* ---- tool calls ---- */

static struct show_call *call_of(struct show *show, const struct json_doc *doc, json_node call)
{
	char *id = json_string(doc, json_get(doc, call, "toolCallId"));
	for (size_t i = 0; id && i < SHOW_CALLS; i++) {
		if (show->calls[i].id && strcmp(show->calls[i].id, id) == 0) {
			free(id);
			return &show->calls[i];
		}
	}
	struct show_call *place = &show->calls[show->next_call++ % SHOW_CALLS];
	free(place->id);
	free(place->title);
	free(place->diffs);
	*place = (struct show_call){.id = id ? id : mem_strdup("")};
	return place;
}

/* True: the title has changed. */
static bool keep_title(struct show_call *call, const struct json_doc *doc, json_node update)
{
	char *title = json_string(doc, json_get(doc, update, "title"));
	bool is_new = title && (!call->title || strcmp(call->title, title) != 0);
	if (title) {
		free(call->title);
		call->title = title;
	}
	return is_new;
}

static bool has_diff(const struct json_doc *doc, json_node content)
{
	for (json_node part = json_first(doc, content); part != JSON_NODE_NONE;
		part = json_next(doc, part)) {
		if (json_string_is(doc, json_get(doc, part, "type"), "diff")) {
			return true;
		}
	}
	return false;
}

/* Some agents send the diff with the call only, and not with the question or the end. */
static void keep_diffs(struct show_call *call, const struct json_doc *doc, json_node update)
{
	json_node content = json_get(doc, update, "content");
	if (has_diff(doc, content)) {
		struct span raw = json_raw(doc, content);
		free(call->diffs);
		call->diffs = raw.len <= SHOW_KEPT_MAX ? mem_strndup(raw) : NULL;
	}
}

static struct span title_of(const struct show_call *call)
{
	return call->title && call->title[0] ? span_of(call->title)
	                                     : SPAN_LITERAL("a tool call without a title");
}

static void show_diff_lines(struct show *show, enum show_color shade, const char *mark,
	struct span lines, size_t *left, struct buf *out)
{
	while (lines.len > 0 && *left > 0) {
		show_line(show, shade, mark, diff_take_line(&lines), false, out);
		(*left)--;
	}
	if (lines.len > 0) {
		show_line(show, SHOW_DIM, mark, SPAN_LITERAL("(and more)"), true, out);
	}
}

static void show_diff(
	struct show *show, const struct json_doc *doc, json_node diff, size_t most, struct buf *out)
{
	struct buf path;
	struct buf old_text;
	struct buf new_text;
	struct diff_lines lines;
	show_path_line(
		show, SHOW_DIM, "  ", decode(doc, json_get(doc, diff, "path"), &path), false, out);
	diff_find(decode(doc, json_get(doc, diff, "oldText"), &old_text),
		decode(doc, json_get(doc, diff, "newText"), &new_text), &lines);
	size_t removed = most;
	size_t added = most;
	show_diff_lines(show, SHOW_BAD, "  -", lines.removed, &removed, out);
	show_diff_lines(show, SHOW_GOOD, "  +", lines.added, &added, out);
	buf_finish(&path);
	buf_finish(&old_text);
	buf_finish(&new_text);
}

static void show_diffs(struct show *show, const struct json_doc *doc, json_node content,
	size_t most, struct buf *out)
{
	for (json_node part = json_first(doc, content); part != JSON_NODE_NONE;
		part = json_next(doc, part)) {
		if (json_string_is(doc, json_get(doc, part, "type"), "diff")) {
			show_diff(show, doc, part, most, out);
		}
	}
}

/* Prints the diffs that were kept; false: there are none. */
static bool show_kept_diffs(struct show *show, struct show_call *call, size_t most, struct buf *out)
{
	struct json_doc *doc =
		call->diffs ? json_doc_parse_unchecked(span_of(call->diffs), NULL) : NULL;
	if (doc) {
		show_diffs(show, doc, 0, most, out);
	}
	json_doc_destroy(doc);
	free(call->diffs);
	call->diffs = NULL;
	return doc != NULL;
}

static void show_call_texts(
	struct show *show, const struct json_doc *doc, json_node call, struct buf *out)
{
	json_node content = json_get(doc, call, "content");
	for (json_node part = json_first(doc, content); part != JSON_NODE_NONE;
		part = json_next(doc, part)) {
		struct buf text;
		struct span words = decode(doc, json_path(doc, part, "content.text"), &text);
		while (words.len > 0) {
			show_line(show, SHOW_PLAIN, "  ", diff_take_line(&words), false, out);
		}
		buf_finish(&text);
	}
}

/* Whether it is the broker's own call: a sync, or news about one. No agent can use such an id. */
static bool is_own(const struct show_call *call)
{
	return strncmp(call->id, "acp-broker-", strlen("acp-broker-")) == 0;
}

/* The texts of a failed call say why it failed; those of the broker's own say what it did. */
static void show_call_end(struct show *show, struct show_call *call, const struct json_doc *doc,
	json_node update, struct buf *out)
{
	json_node status = json_get(doc, update, "status");
	bool has_failed = json_string_is(doc, status, "failed");
	if (call->has_ended || (!has_failed && !json_string_is(doc, status, "completed"))) {
		return;
	}
	call->has_ended = true;
	if (is_own(call)) {
		free(show->own_title);
		show->own_title = NULL;
	}
	show_path_line(show, has_failed ? SHOW_BAD : SHOW_GOOD, has_failed ? "x" : "+",
		title_of(call), true, out);
	if (has_failed || is_own(call)) {
		show_call_texts(show, doc, update, out);
	}
	if (!call->has_shown_diffs) {
		(void)!show_kept_diffs(show, call, SHOW_DIFF_LINES, out);
	}
}

/* Some agents announce a call before its arguments are known, and send it again with them. */
static bool is_bare(const struct json_doc *doc, json_node update)
{
	json_node input = json_get(doc, update, "rawInput");
	return json_is(doc, input, JSON_OBJECT) && json_count(doc, input) == 0 &&
	       json_count(doc, json_get(doc, update, "content")) == 0 &&
	       json_string_is(doc, json_get(doc, update, "status"), "pending");
}

static void print_begin(struct show *show, struct show_call *call, struct buf *out)
{
	call->has_begun = true;
	if (is_own(call) && show->has_progress) {
		mem_set_text(&show->own_title, call->title ? call->title : "");
		return;
	}
	show_path_line(show, SHOW_DIM, "*", title_of(call), true, out);
}

static void show_call_begin(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	struct show_call *call = call_of(show, doc, update);
	bool is_new = keep_title(call, doc, update);
	keep_diffs(call, doc, update);
	is_new = is_new || call->has_ended || !call->has_begun;
	call->has_shown_diffs = call->has_shown_diffs && !call->has_ended;
	call->has_ended = false;
	if (is_new && !is_bare(doc, update)) {
		print_begin(show, call, out);
	}
	show_call_end(show, call, doc, update, out);
}

static void show_call_update(
	struct show *show, const struct json_doc *doc, json_node update, struct buf *out)
{
	struct show_call *call = call_of(show, doc, update);
	(void)!keep_title(call, doc, update);
	keep_diffs(call, doc, update);
	if (!call->has_begun && call->title) {
		print_begin(show, call, out);
	}
	show_call_end(show, call, doc, update, out);
}

void show_asked_call(struct show *show, const struct json_doc *doc, json_node call, struct buf *out)
{
	struct show_call *known = call_of(show, doc, call);
	known->has_begun = true; // the question is its line
	show_call_texts(show, doc, call, out);
	keep_diffs(known, doc, call);
	known->has_shown_diffs = show_kept_diffs(show, known, SIZE_MAX, out);
}

void show_asked_title(struct show *show, struct span text, struct buf *out)
{
	show_path_line(show, SHOW_ASK, "?", text, false, out);
}

/* ---- updates ---- */

static const struct {
	const char *kind;
	void (*show)(
		struct show *show, const struct json_doc *doc, json_node update, struct buf *out);
} kinds[] = {
	{"agent_message_chunk", show_message},
	{"agent_thought_chunk", show_thought},
	{"user_message_chunk", show_user},
	{"tool_call", show_call_begin},
	{"tool_call_update", show_call_update},
	{"plan", show_plan},
};

void show_update(struct show *show, struct span params, struct buf *out)
{
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	if (!doc) {
		show_line(show, SHOW_BAD, "!",
			SPAN_LITERAL("an update of the session is too long to be shown"), true,
			out);
		return;
	}
	json_node update = json_get(doc, 0, "update");
	json_node kind = json_get(doc, update, "sessionUpdate");
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (json_string_is(doc, kind, kinds[i].kind)) {
			kinds[i].show(show, doc, update, out);
		}
	}
	json_doc_destroy(doc);
}
