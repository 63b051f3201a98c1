/* SPDX-License-Identifier: MIT */
#include "broker/chat/ask.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json_doc.h"
#include "base/json_writer.h"

static const struct {
	const char *kind;
	char key;
	bool is_refusal;
} kinds[] = {
	{"allow_once", 'y', false},
	{"allow_always", 'a', false},
	{"reject_once", 'n', true},
	{"reject_always", 'd', true},
};

static void append(struct buf *out, const char *text)
{
	buf_add(out, span_of(text));
}

static void add_option(struct ask *ask, const struct json_doc *doc, json_node option)
{
	json_node id = json_get(doc, option, "optionId");
	if (ask->count == ASK_OPTIONS_MAX || !json_is(doc, id, JSON_STRING)) {
		return;
	}
	struct ask_option *added = &ask->options[ask->count++];
	*added = (struct ask_option){.id = mem_strndup(json_raw(doc, id)),
		.name = json_string(doc, json_get(doc, option, "name"))};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		if (json_string_is(doc, json_get(doc, option, "kind"), kinds[i].kind)) {
			added->is_refusal = kinds[i].is_refusal;
			added->key = ask_find(ask, kinds[i].key) < 0 ? kinds[i].key : '\0';
		}
	}
}

/* "The agent NAME asks: TITLE". The titles of most of the broker's questions say that it asks. */
static void print_title(
	const struct json_doc *doc, const char *agent, struct show *show, struct buf *out)
{
	static const char own[] = "acp-broker-";
	static const char says[] = "acp-broker asks ";
	struct buf line;
	char *id = json_string(doc, json_path(doc, 0, "toolCall.toolCallId"));
	char *title = json_string(doc, json_path(doc, 0, "toolCall.title"));
	bool is_own = id && strncmp(id, own, strlen(own)) == 0;
	buf_init(&line, SIZE_MAX / 2);
	bool says_who = is_own && title && strncmp(title, says, strlen(says)) == 0;
	append(&line, says_who ? "" : is_own ? "acp-broker" : "The agent ");
	append(&line, is_own ? "" : agent);
	append(&line, says_who ? "" : " asks: ");
	append(&line, title ? title : "a tool call without a title");
	show_asked_title(show, buf_span(&line), out);
	buf_finish(&line);
	free(id);
	free(title);
}

static void print_options(const struct ask *ask, struct show *show, struct buf *out)
{
	for (size_t i = 0; i < ask->count; i++) {
		const struct ask_option *option = &ask->options[i];
		char mark[] = "  [1]";
		mark[3] = option->key ? option->key : (char)('1' + i);
		show_line(show, SHOW_PLAIN, mark, span_of(option->name ? option->name : option->id),
			false, out);
	}
}

bool ask_open(struct ask *ask, const struct message *message, const char *agent, struct show *show,
	struct buf *out)
{
	struct json_doc *doc = json_doc_parse_unchecked(message_place(message, PLACE_PARAMS), NULL);
	assert(!ask->request);
	if (!doc) {
		return false;
	}
	json_node options = json_get(doc, 0, "options");
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		add_option(ask, doc, option);
	}
	if (ask->count > 0) {
		ask->request = mem_strndup(message->id);
		print_title(doc, agent, show, out);
		show_asked_call(show, doc, json_get(doc, 0, "toolCall"), out);
		print_options(ask, show, out);
	}
	json_doc_destroy(doc);
	return ask->count > 0;
}

int ask_find(const struct ask *ask, char key)
{
	for (size_t i = 0; i < ask->count; i++) {
		if (key && (key == ask->options[i].key || key == (char)('1' + i))) {
			return (int)i;
		}
	}
	return -1;
}

int ask_find_refusal(const struct ask *ask)
{
	for (size_t i = 0; i < ask->count; i++) {
		if (ask->options[i].is_refusal) {
			return (int)i;
		}
	}
	return -1;
}

void ask_write(const struct ask *ask, int option, struct buf *out)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_key(&writer, "outcome");
	json_write_object(&writer);
	json_write_member(&writer, "outcome", option >= 0 ? "selected" : "cancelled");
	if (option >= 0) {
		json_write_member_raw(&writer, "optionId", span_of(ask->options[option].id));
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	bool ok = json_write_end(&writer, NULL);
	assert(ok); // the buffer has no maximum
	(void)ok;
}

void ask_close(struct ask *ask)
{
	for (size_t i = 0; i < ask->count; i++) {
		free(ask->options[i].id);
		free(ask->options[i].name);
	}
	free(ask->request);
	*ask = (struct ask){.count = 0};
}
