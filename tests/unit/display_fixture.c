/* SPDX-License-Identifier: MIT */
#include "tests/unit/display_fixture.h"

/* ---- what the agent shows ---- */

struct shown {
	const char *replaced; // other edits made before: this text …
	const char *with;     // … becomes that; may be NULL
	char *text;           // what leaves
};

static void use_update(const struct message *message, void *data)
{
	struct shown *shown = data;
	struct splice splice;
	struct error err;
	struct buf out;
	splice_init(&splice);
	if (shown->replaced) {
		const char *at = strstr(message->text.data, shown->replaced);
		assert_non_null(at);
		size_t start = (size_t)(at - message->text.data);
		assert_true(splice_add(&splice, start, start + strlen(shown->replaced),
			span_of(shown->with), &err));
	}
	assert_true(toolhost_edit_update(fixture.toolhost, message, &splice, &err));
	assert_true(splice_seal(&splice, message->text.len, &err));
	buf_init(&out, SIZE_MAX / 2);
	assert_true(splice_append(&splice, message->text, &out, &err));
	shown->text = mem_strndup(buf_span(&out));
	struct json_check *check = json_check_create(NULL);
	assert_true(json_check_feed(check, buf_span(&out), &err) && json_check_end(check, &err));
	json_check_destroy(check);
	buf_finish(&out);
	splice_finish(&splice);
}

/* The message that is sent instead of this one; valid until the next call. */
const char *edited(const char *message, const char *replaced, const char *with)
{
	static char *last;
	struct shown shown = {.replaced = replaced, .with = with};
	fixture_with_message(message, use_update, &shown);
	free(last);
	last = shown.text;
	return last;
}

const char call_of_one[] =
	UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t1\",\"title\":\"x\","
	       "\"content\":[" TERMINAL("term-1") "]");
const char update_of_one[] = UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t1\","
				    "\"content\":[" TERMINAL("term-1") "]");

void create(const char *command)
{
	result_of(ask("terminal/create", "\"command\":\"%s\"", command));
}

void finish(const char *id)
{
	result_of(ask("terminal/wait_for_exit", "\"terminalId\":\"%s\"", id));
}

void let_go(void)
{
	put_text_file("go", "");
}

void let_end(void)
{
	put_text_file("end", "");
}

/* ---- what the editor is told ---- */

static bool has_update(const void *data)
{
	return fixture.update_count > *(const int *)data;
}

/* The next update that has not been looked at; owned by the fixture. */
const struct update *next_update(int *seen)
{
	assert_true(fixture_turn(has_update, seen, FIXTURE_DEADLINE_MS));
	return &fixture.updates[(*seen)++];
}

void expect_no_more(int seen)
{
	fixture_run_for(130); // longer than an update is held back
	assert_int_equal(fixture.update_count, seen);
}

const char *update_string(const struct update *update, const char *path)
{
	static char *text;
	free(text);
	text = json_string(update->doc, json_path(update->doc, 0, path));
	return text;
}

/* The text of one item of the content of an update; valid until the next call. */
const char *item_text(const struct update *update, int index)
{
	static char *text;
	json_node content = json_path(update->doc, 0, "params.update.content");
	json_node item = json_first(update->doc, content);
	for (int i = 0; i < index; i++) {
		item = json_next(update->doc, item);
	}
	free(text);
	text = json_string(update->doc, json_path(update->doc, item, "content.text"));
	assert_non_null(text);
	return text;
}

const struct update *last_update(void)
{
	assert_true(fixture.update_count > 0);
	return &fixture.updates[fixture.update_count - 1];
}

/* All that terminal_output told of a terminal; valid until the next call. */
const char *all_told(const char *id)
{
	static struct buf told;
	static char *text;
	buf_finish(&told);
	buf_init(&told, 64 << 20);
	for (int i = 0; i < fixture.update_count; i++) {
		const struct update *update = &fixture.updates[i];
		json_node output = json_path(update->doc, 0, "params.update._meta.terminal_output");
		if (json_string_is(update->doc, json_get(update->doc, output, "terminal_id"), id)) {
			char *data =
				json_string(update->doc, json_get(update->doc, output, "data"));
			assert_true(buf_append(&told, span_of(data), NULL));
			free(data);
		}
	}
	free(text);
	text = mem_strndup(buf_span(&told));
	buf_finish(&told);
	return text;
}

static bool exit_was_told(const void *data)
{
	for (int i = 0; i < fixture.update_count; i++) {
		const struct update *update = &fixture.updates[i];
		json_node id =
			json_path(update->doc, 0, "params.update._meta.terminal_exit.terminal_id");
		if (json_string_is(update->doc, id, data)) {
			return true;
		}
	}
	return false;
}

void wait_for_told_exit(const char *id)
{
	assert_true(fixture_turn(exit_was_told, id, FIXTURE_DEADLINE_MS));
}
