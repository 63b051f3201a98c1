/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Edits messages in which the agent shows terminals of ours. */

enum { KEEP_MAX = 1024 * 1024 }; // bytes of other content kept for sending it again

/* The treatment of one item of the content. */
enum fate {
	FATE_STAYS, // not ours, or the editor knows it
	FATE_TEXT,  // of a terminal
	FATE_PAST,  // of a terminal that no longer exists
};

struct edit {
	struct toolhost *toolhost;
	const struct message *message;
	struct splice *splice;
	struct error *err;
	size_t edit_count; // the earlier edits, in order
	struct json_doc *doc;
	json_node update;
	json_node content;
	char session_id[MESSAGE_SESSION_ID_MAX + 1];
	char *tool_call_id; // owned
	bool may_announce;  // by _meta.terminal_info
	bool begins;        // a tool_call: the editor creates a terminal for an announced one
	struct tool_terminal *announced;
	bool has_text; // text that may grow
};

static size_t offset_of(const struct edit *edit, struct span bytes)
{
	return (size_t)(bytes.data - edit->message->text.data);
}

static bool add(struct edit *edit, size_t start, size_t end, struct span with)
{
	return splice_add(edit->splice, start, end, with, edit->err);
}

/* Copies bytes of the message, with the earlier edits applied. */
static char *edited_copy(const struct edit *edit, size_t start, size_t end)
{
	const struct splice *splice = edit->splice;
	const char *text = edit->message->text.data;
	struct buf copy;
	size_t at = start;
	buf_init(&copy, SIZE_MAX / 2);
	bool fits = true;
	for (size_t i = 0; i < edit->edit_count; i++) {
		const struct splice_edit *one = &splice->edits[i];
		if (one->start >= start && one->end <= end) {
			struct span with = {
				buf_span(&splice->bytes).data + one->with, one->with_len};
			fits = fits &&
			       buf_append(&copy, (struct span){text + at, one->start - at}, NULL) &&
			       buf_append(&copy, with, NULL);
			at = one->end;
		}
	}
	fits = fits && buf_append(&copy, (struct span){text + at, end - at}, NULL);
	assert(fits);
	char *result = mem_strndup(buf_span(&copy));
	buf_finish(&copy);
	return result;
}

/* ---- reading ---- */

static bool has_word(struct span text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word));
}

/* The member with the tool call; NULL if such a message has none. */
static const char *tool_call_member(const struct message *message)
{
	static const char *const members[][2] = {
		{"session/update", "update"},
		{"session/request_permission", "toolCall"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
		if (strcmp(message->method, members[i][0]) == 0) {
			return members[i][1];
		}
	}
	return NULL;
}

/* Most messages show no terminal, and change none that is shown. */
static bool may_concern(const struct toolhost *toolhost, const struct message *message)
{
	struct span params = message_place(message, PLACE_PARAMS);
	return *toolhost->config.last_terminal > 0 &&
	       (has_word(params, "terminal") ||
		       (!list_is_empty(&toolhost->displays) && has_word(params, "toolCallId")));
}

/* False if it does not concern a tool call. */
static bool read_update(struct edit *edit, const char *member)
{
	edit->update = json_get(edit->doc, 0, member);
	edit->content = json_get(edit->doc, edit->update, "content");
	json_node kind = json_get(edit->doc, edit->update, "sessionUpdate");
	bool is_update = strcmp(member, "update") == 0;
	edit->begins = json_string_is(edit->doc, kind, "tool_call");
	if (is_update && !edit->begins && !json_string_is(edit->doc, kind, "tool_call_update")) {
		return false;
	}
	json_node info = json_path(edit->doc, edit->update, "_meta.terminal_info");
	edit->may_announce = is_update && edit->toolhost->config.editor_shows_terminals &&
	                     info == JSON_NODE_NONE;
	edit->tool_call_id =
		json_string(edit->doc, json_get(edit->doc, edit->update, "toolCallId"));
	return edit->tool_call_id && message_string(edit->message, PLACE_SESSION_ID,
					     edit->session_id, sizeof(edit->session_id));
}

/* A terminal that still exists; it may have been released. */
static struct tool_terminal *find_live(const struct edit *edit, const char *id)
{
	LIST_FOR_EACH(terminal, &edit->toolhost->terminals, struct tool_terminal, link) {
		if (strcmp(terminal->id, id) == 0 &&
			strcmp(terminal->session_id, edit->session_id) == 0) {
			return terminal->process && !terminal->create ? terminal : NULL;
		}
	}
	return NULL;
}

static void decide_live(struct edit *edit, struct tool_terminal *terminal, enum fate *out_fate)
{
	if (edit->may_announce && !edit->announced && !terminal->is_announced) {
		edit->announced = terminal;
		terminal->is_announced = true;
		terminal->is_known = edit->begins;
	}
	*out_fate = terminal->is_known ? FATE_STAYS : FATE_TEXT;
}

static enum fate decide(struct edit *edit, json_node node, struct tool_terminal **out_terminal,
	const struct past_terminal **out_past)
{
	enum fate fate = FATE_STAYS;
	if (!json_string_is(edit->doc, json_get(edit->doc, node, "type"), "terminal")) {
		return fate;
	}
	char *id = json_string(edit->doc, json_get(edit->doc, node, "terminalId"));
	const struct past_terminal *past =
		id ? past_find(edit->toolhost, edit->session_id, id) : NULL;
	struct tool_terminal *terminal = id && !past ? find_live(edit, id) : NULL;
	if (terminal) {
		*out_terminal = terminal;
		decide_live(edit, terminal, &fate);
	} else if (past && !past->is_known) {
		*out_past = past;
		fate = FATE_PAST;
	}
	free(id);
	return fate;
}

/* ---- editing ---- */

/* Replaces one item or leaves it; keeps a copy for sending it again. */
static bool edit_item(struct edit *edit, json_node node, struct display_item *out_item)
{
	struct tool_terminal *terminal = NULL;
	const struct past_terminal *past = NULL;
	enum fate fate = decide(edit, node, &terminal, &past);
	struct span raw = json_raw(edit->doc, node);
	size_t start = offset_of(edit, raw);
	if (fate == FATE_STAYS) {
		out_item->raw = edited_copy(edit, start, start + raw.len);
		return true;
	}
	if (fate == FATE_PAST) {
		out_item->raw = mem_strdup(past->item);
		return add(edit, start, start + raw.len, span_of(past->item));
	}
	edit->has_text = true;
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	display_write_text(&text, terminal, false);
	bool is_added = add(edit, start, start + raw.len, buf_span(&text));
	buf_finish(&text);
	out_item->terminal = terminal;
	return is_added;
}

/* The cwd as the editor knows it. */
static void write_cwd(struct json_writer *writer, const struct edit *edit)
{
	const struct path_map *map = edit->toolhost->config.map;
	const char *cwd = edit->announced->cwd;
	size_t prefix = 0;
	struct span replacement = {NULL, 0};
	struct buf path;
	if (!map || !path_map_find(map, PATH_TO_LOCAL, span_of(cwd), &prefix, &replacement)) {
		json_write_text(writer, cwd);
		return;
	}
	buf_init(&path, SIZE_MAX / 2);
	buf_add(&path, replacement);
	buf_add(&path, span_of(cwd + prefix));
	json_write_string(writer, buf_span(&path));
	buf_finish(&path);
}

/* Where _meta.terminal_info is inserted, and the text around it. */
struct insertion {
	size_t start;
	size_t end;
	const char *before;
	const char *after;
};

static struct insertion find_insertion(const struct edit *edit)
{
	json_node meta = json_get(edit->doc, edit->update, "_meta");
	struct span raw = json_raw(edit->doc, meta);
	if (json_is(edit->doc, meta, JSON_OBJECT)) {
		size_t inside = offset_of(edit, raw) + 1;
		bool has_members = json_count(edit->doc, meta) > 0;
		return (struct insertion){
			inside, inside, "\"terminal_info\":", has_members ? "," : ""};
	}
	if (raw.len > 0) { // null
		size_t start = offset_of(edit, raw);
		return (struct insertion){start, start + raw.len, "{\"terminal_info\":", "}"};
	}
	size_t inside = offset_of(edit, json_raw(edit->doc, edit->update)) + 1;
	return (struct insertion){inside, inside, "\"_meta\":{\"terminal_info\":", "},"};
}

static bool add_announcement(struct edit *edit)
{
	struct insertion insertion = find_insertion(edit);
	struct json_writer writer;
	struct buf with;
	buf_init(&with, SIZE_MAX / 2);
	bool fits = buf_append(&with, span_of(insertion.before), edit->err);
	json_write_begin(&writer, &with);
	json_write_object(&writer);
	json_write_key(&writer, "terminal_id");
	json_write_text(&writer, edit->announced->id);
	json_write_key(&writer, "cwd");
	write_cwd(&writer, edit);
	json_write_object_end(&writer);
	fits = fits && json_write_end(&writer, edit->err) &&
	       buf_append(&with, span_of(insertion.after), edit->err) &&
	       add(edit, insertion.start, insertion.end, buf_span(&with));
	buf_finish(&with);
	return fits;
}

/* ---- all of it ---- */

static void items_free(struct display_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(items[i].raw);
	}
	free(items);
}

static size_t kept_bytes(const struct display_item *items, size_t count)
{
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += items[i].raw ? strlen(items[i].raw) : 0;
	}
	return bytes;
}

/* From now on the display follows the content of the message. */
static void follow(struct edit *edit, struct display_item *items, size_t count)
{
	struct toolhost *toolhost = edit->toolhost;
	struct display *display = display_find(toolhost, edit->session_id, edit->tool_call_id);
	bool is_kept = edit->has_text && kept_bytes(items, count) <= KEEP_MAX;
	if (edit->has_text && !is_kept) {
		log_info("tool call %s: its other content is too large, so its terminal is not "
			 "followed",
			edit->tool_call_id);
	}
	if (!is_kept) {
		items_free(items, count);
		items = NULL;
		count = 0;
	}
	if (!display && (count > 0 || edit->announced)) {
		display = display_create(toolhost, edit->session_id, edit->tool_call_id);
		const struct json_hit *session = message_hit(edit->message, PLACE_SESSION_ID);
		struct span id =
			json_raw(edit->doc, json_get(edit->doc, edit->update, "toolCallId"));
		display->session_raw = edited_copy(edit, session->start, session->end);
		display->tool_call_raw = mem_strndup(id);
	}
	if (!display) {
		return;
	}
	if (edit->announced) { // first, because settling may free terminals
		display_tell(display, edit->announced);
	}
	display_set_items(display, items, count);
	display_shown(display);
}

static bool edit_content(struct edit *edit)
{
	size_t count = json_count(edit->doc, edit->content);
	struct display_item *items = mem_alloc_zero(count * sizeof(*items));
	size_t at = 0;
	for (json_node node = json_first(edit->doc, edit->content); node != JSON_NODE_NONE;
		node = json_next(edit->doc, node)) {
		if (!edit_item(edit, node, &items[at++])) {
			items_free(items, at);
			return false;
		}
	}
	if (edit->announced && !add_announcement(edit)) {
		items_free(items, at);
		return false;
	}
	follow(edit, items, at);
	return true;
}

bool toolhost_edit_update(struct toolhost *toolhost, const struct message *update,
	struct splice *splice, struct error *err)
{
	const char *member = tool_call_member(update);
	if (!member || !may_concern(toolhost, update)) {
		return true;
	}
	if (!splice_seal(splice, update->text.len, err)) { // in order, for edited_copy
		return false;
	}
	struct edit edit = {
		.toolhost = toolhost,
		.message = update,
		.splice = splice,
		.err = err,
		.edit_count = splice->count,
	};
	struct error ignored;
	edit.doc = json_doc_parse_unchecked(message_place(update, PLACE_PARAMS), &ignored);
	if (!edit.doc) {
		log_failure(LOG_LEVEL_INFO, &ignored, "%s: not checked for terminals: %s",
			update->method, ignored.text);
		return true;
	}
	bool is_edited = true;
	if (read_update(&edit, member)) {
		displays_flush(toolhost, edit.session_id, edit.tool_call_id);
		is_edited = !json_is(edit.doc, edit.content, JSON_ARRAY) || edit_content(&edit);
	}
	free(edit.tool_call_id);
	json_doc_destroy(edit.doc);
	return is_edited;
}
