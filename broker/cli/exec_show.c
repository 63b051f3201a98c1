/* SPDX-License-Identifier: MIT */
#include "broker/cli/exec_show.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/utf8.h"

void exec_show_init(struct exec_show *show, struct output *output, bool is_json)
{
	*show = (struct exec_show){.output = output, .is_json = is_json, .last = '\n'};
	buf_init(&show->text, EXEC_TEXT_MAX);
}

void exec_show_finish(struct exec_show *show)
{
	buf_finish(&show->text);
}

/* ---- lines of JSON ---- */

static void line_begin(struct json_writer *writer, struct buf *out)
{
	buf_init(out, SIZE_MAX / 2);
	json_write_begin(writer, out);
	json_write_object(writer);
}

static void line_end(struct exec_show *show, struct json_writer *writer)
{
	json_write_object_end(writer);
	if (json_write_end(writer, NULL)) {
		output_print(show->output, buf_span(writer->out));
		output_print(show->output, SPAN_LITERAL("\n"));
	}
	buf_finish(writer->out);
}

static void print_message(
	struct exec_show *show, const char *method, struct span params, struct span answer)
{
	struct buf out;
	struct json_writer writer;
	line_begin(&writer, &out);
	json_write_member(&writer, "method", method);
	json_write_member_raw(&writer, "params", params);
	if (answer.len > 0) {
		json_write_member_raw(&writer, "answer", answer);
	}
	line_end(show, &writer);
}

/* ---- the agent's words ---- */

static void add_words(struct exec_show *show, struct span words)
{
	if (!show->is_json) {
		output_print(show->output, words);
		return;
	}
	size_t room = show->text.max - show->text.len;
	if (show->is_text_cut || words.len > room) {
		words.len = show->is_text_cut ? 0 : room;
		words.len = utf8_whole_length(words);
		show->is_text_cut = true;
	}
	bool ok = buf_append(&show->text, words, NULL);
	(void)ok; // the text was cut to fit
}

static void say(struct exec_show *show, struct span words)
{
	if (words.len == 0) {
		return;
	}
	show->last = words.data[words.len - 1];
	add_words(show, words);
}

static void show_words(struct exec_show *show, const struct json_doc *doc, json_node update)
{
	json_node content = json_get(doc, update, "content");
	json_node text = json_get(doc, content, "text");
	struct buf words;
	if (!json_string_is(doc, json_get(doc, content, "type"), "text")) {
		char *type = json_string(doc, json_get(doc, content, "type"));
		log_warning("the answer has a part that is not text: %s", type ? type : "unknown");
		free(type);
		return;
	}
	buf_init(&words, SIZE_MAX / 2);
	if (json_is(doc, text, JSON_STRING) &&
		json_decode_string(json_raw(doc, text), &words, NULL)) {
		say(show, buf_span(&words));
	}
	buf_finish(&words);
}

/* ---- tool calls ---- */

static void log_call(const struct json_doc *doc, json_node update, const char *subject)
{
	char *title = json_string(doc, json_get(doc, update, "title"));
	char *id = json_string(doc, json_get(doc, update, "toolCallId"));
	log_info("%s: %s", subject, title ? title : id ? id : "unnamed");
	free(title);
	free(id);
}

static void show_call(struct exec_show *show, const struct json_doc *doc, json_node update)
{
	if (show->last != '\n') { // the agent's next words begin on a new line
		say(show, SPAN_LITERAL("\n"));
	}
	if (show->is_json) {
		return;
	}
	if (show->hint) {
		log_info("%s", show->hint);
		show->hint = NULL;
	}
	log_call(doc, update, "tool call");
}

static void show_call_update(struct exec_show *show, const struct json_doc *doc, json_node update)
{
	if (!show->is_json && json_string_is(doc, json_get(doc, update, "status"), "failed")) {
		log_call(doc, update, "tool call failed");
	}
}

/* ---- updates ---- */

/* All other updates (thoughts, plans, modes and more) are printed only as JSON. */
static const struct {
	const char *kind;
	void (*show)(struct exec_show *show, const struct json_doc *doc, json_node update);
} kinds[] = {
	{"agent_message_chunk", show_words},
	{"tool_call", show_call},
	{"tool_call_update", show_call_update},
};

void exec_show_update(struct exec_show *show, struct span params)
{
	if (show->is_json) {
		print_message(show, "session/update", params, (struct span){0});
	}
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	if (!doc) {
		log_warning("an update has too many parts; it is not shown");
		return;
	}
	json_node update = json_get(doc, 0, "update");
	json_node kind = json_get(doc, update, "sessionUpdate");
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (json_string_is(doc, kind, kinds[i].kind)) {
			kinds[i].show(show, doc, update);
		}
	}
	json_doc_destroy(doc);
}

void exec_show_question(struct exec_show *show, struct span params, struct span answer)
{
	struct json_doc *doc = json_doc_parse_unchecked(params, NULL);
	char *title = doc ? json_string(doc, json_path(doc, 0, "toolCall.title")) : NULL;
	log_warning("permission refused, because nobody can be asked (--approve): %s",
		title ? title : "a tool call without a title");
	if (show->is_json) {
		print_message(show, "session/request_permission", params, answer);
	}
	free(title);
	json_doc_destroy(doc);
}

/* ---- the end ---- */

static bool end(struct exec_show *show)
{
	bool is_first = !show->has_result;
	show->has_result = true;
	if (!show->is_json) {
		output_end_line(show->output);
	}
	return is_first && show->is_json;
}

void exec_show_result(struct exec_show *show, const char *stop_reason, struct span result)
{
	struct buf out;
	struct json_writer writer;
	if (!end(show)) {
		return;
	}
	struct json_doc *doc = result.len > 0 ? json_doc_parse_unchecked(result, NULL) : NULL;
	json_node usage = doc ? json_get(doc, 0, "usage") : JSON_NODE_NONE;
	bool has_usage = doc && json_is(doc, usage, JSON_OBJECT);
	line_begin(&writer, &out);
	json_write_member(&writer, "stopReason", stop_reason);
	json_write_member_string(&writer, "text", buf_span(&show->text));
	json_write_member_bool(&writer, "isTextCut", show->is_text_cut);
	json_write_member_raw(
		&writer, "usage", has_usage ? json_raw(doc, usage) : SPAN_LITERAL("null"));
	line_end(show, &writer);
	json_doc_destroy(doc);
}

void exec_show_error(struct exec_show *show, struct span error)
{
	struct buf out;
	struct json_writer writer;
	if (!end(show)) {
		return;
	}
	line_begin(&writer, &out);
	json_write_member_raw(&writer, "error", error);
	line_end(show, &writer);
}

void exec_show_failure(struct exec_show *show, const char *text)
{
	struct buf out;
	struct json_writer writer;
	if (!end(show)) {
		return;
	}
	line_begin(&writer, &out);
	json_write_key(&writer, "error");
	json_write_object(&writer);
	json_write_member(&writer, "message", text);
	json_write_object_end(&writer);
	line_end(show, &writer);
}
