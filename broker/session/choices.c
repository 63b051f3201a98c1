/* SPDX-License-Identifier: MIT */
#include "broker/session/choices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json_writer.h"

static const struct {
	const char *name; // in JSON
	const char *method;
	const char *member; // of the params
} kinds[CHOICE_KIND_COUNT] = {
	[CHOICE_MODE] = {"mode", "session/set_mode", "modeId"},
	[CHOICE_MODEL] = {"model", "session/set_model", "modelId"},
	[CHOICE_OPTION] = {"option", "session/set_config_option", "value"},
};

void choices_init(struct choices *choices)
{
	*choices = (struct choices){.count = 0};
	list_init(&choices->all);
}

void choices_drop(struct choices *choices, struct choice *choice)
{
	list_remove(&choice->link);
	free(choice);
	choices->count--;
}

static void forget_refusal(struct choices *choices)
{
	free(choices->refusal);
	free(choices->refused);
	choices->refusal = NULL;
	choices->refused = NULL;
}

void choices_finish(struct choices *choices)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		choices_drop(choices, choice);
	}
	forget_refusal(choices);
}

const char *choice_method(enum choice_kind kind)
{
	return kinds[kind].method;
}

static bool read_members(
	const struct json_doc *doc, json_node object, const char *member, struct choice *choice)
{
	json_node value = json_get(doc, object, member);
	choice->is_boolean = json_is(doc, value, JSON_BOOL);
	return modes_copy_value(doc, value, choice->value) &&
	       (choice->kind == CHOICE_OPTION || !choice->is_boolean) &&
	       (choice->kind != CHOICE_OPTION ||
		       modes_copy_value(doc, json_get(doc, object, "configId"), choice->config_id));
}

bool choice_read(const char *method, const struct json_doc *doc, struct choice *out_choice)
{
	*out_choice = (struct choice){.kind = CHOICE_MODE};
	for (size_t i = 0; i < CHOICE_KIND_COUNT; i++) {
		if (strcmp(method, kinds[i].method) == 0) {
			out_choice->kind = (enum choice_kind)i;
			return read_members(doc, 0, kinds[i].member, out_choice);
		}
	}
	return false;
}

static void write_members(struct json_writer *writer, const struct choice *choice, const char *name)
{
	if (choice->kind == CHOICE_OPTION) {
		json_write_member(writer, "configId", choice->config_id);
	}
	if (choice->is_boolean) {
		json_write_member(writer, "type", "boolean");
	}
	json_write_key(writer, name);
	if (choice->is_boolean) {
		json_write_bool(writer, strcmp(choice->value, "true") == 0);
	} else {
		json_write_text(writer, choice->value);
	}
}

bool choice_write_request(const struct choice *choice, uint64_t id, const char *session_id,
	struct buf *out, struct error *err)
{
	struct json_writer writer;
	buf_clear(out);
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member_int(&writer, "id", (long long)id);
	json_write_member(&writer, "method", choice_method(choice->kind));
	json_write_key(&writer, "params");
	json_write_object(&writer);
	json_write_member(&writer, "sessionId", session_id);
	write_members(&writer, choice, kinds[choice->kind].member);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

/* ---- remembering ---- */

struct choice *choices_find(struct choices *choices, enum choice_kind kind, const char *config_id)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		if (choice->kind == kind && strcmp(choice->config_id, config_id) == 0) {
			return choice;
		}
	}
	return NULL;
}

static void place(struct choices *choices, struct choice *choice, bool is_first)
{
	if (is_first) {
		list_prepend(&choices->all, &choice->link);
	} else {
		list_append(&choices->all, &choice->link);
	}
}

bool choices_put(struct choices *choices, const struct choice *choice)
{
	struct choice *kept = choices_find(choices, choice->kind, choice->config_id);
	forget_refusal(choices);
	if (!kept && choices->count >= CHOICES_MAX) {
		return false;
	}
	bool is_mode = kept && kept->is_mode;
	if (kept) {
		list_remove(&kept->link);
	} else {
		kept = mem_alloc_zero(sizeof(*kept));
		choices->count++;
	}
	*kept = *choice;
	kept->is_mode = is_mode || choice->is_mode;
	kept->serial = ++choices->serials;
	place(choices, kept, kept->kind == CHOICE_MODEL);
	return true;
}

static bool has_mode(const struct choices *choices)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		if (choice->kind == CHOICE_MODE || choice->is_mode) {
			return true;
		}
	}
	return false;
}

bool choices_follow_mode(struct choices *choices, const char *mode_id)
{
	const struct choice *kept = choices_find(choices, CHOICE_MODE, "");
	struct choice told = {.kind = CHOICE_MODE};
	if (choices_first_stale(choices) || !has_mode(choices) ||
		strlen(mode_id) >= sizeof(told.value) ||
		(kept && strcmp(kept->value, mode_id) == 0)) {
		return false;
	}
	memcpy(told.value, mode_id, strlen(mode_id) + 1);
	return choices_put(choices, &told);
}

/* Whether a list of values, which may be in groups, contains the value. */
static bool offers(const struct json_doc *doc, json_node list, const char *value)
{
	for (json_node item = json_first(doc, list); item != JSON_NODE_NONE;
		item = json_next(doc, item)) {
		json_node group = json_get(doc, item, "options");
		for (json_node inner = json_first(doc, group); inner != JSON_NODE_NONE;
			inner = json_next(doc, inner)) {
			if (json_string_is(doc, json_get(doc, inner, "value"), value)) {
				return true;
			}
		}
		if (json_string_is(doc, json_get(doc, item, "value"), value)) {
			return true;
		}
	}
	return false;
}

/* Whether the value has changed to one that the agent offers. */
static bool follow_option(struct choices *choices, struct choice *choice,
	const struct json_doc *doc, json_node option)
{
	char value[MODES_NAME_MAX];
	json_node current = json_get(doc, option, "currentValue");
	if (!modes_copy_value(doc, current, value) || strcmp(value, choice->value) == 0) {
		return false;
	}
	bool is_boolean = json_is(doc, current, JSON_BOOL);
	if (!is_boolean && !offers(doc, json_get(doc, option, "options"), value)) {
		return false;
	}
	memcpy(choice->value, value, sizeof(choice->value));
	choice->is_boolean = is_boolean;
	choice->serial = ++choices->serials;
	return true;
}

bool choices_follow_options(
	struct choices *choices, const struct json_doc *doc, json_node options, const char *except)
{
	bool has_changed = false;
	char id[MODES_NAME_MAX];
	for (json_node option = json_first(doc, options); option != JSON_NODE_NONE;
		option = json_next(doc, option)) {
		bool is_read = modes_copy_value(doc, json_get(doc, option, "id"), id);
		struct choice *choice = is_read ? choices_find(choices, CHOICE_OPTION, id) : NULL;
		if (!choice) {
			continue;
		}
		json_node category = json_get(doc, option, "category");
		char kind[MODES_NAME_MAX] = "";
		modes_copy_value(doc, category, kind);
		choice->is_mode = modes_option_is_mode(id, kind);
		if (json_string_is(doc, category, "model")) {
			list_remove(&choice->link);
			place(choices, choice, true);
		}
		if (!choice->is_stale && !(except && strcmp(id, except) == 0)) {
			has_changed |= follow_option(choices, choice, doc, option);
		}
	}
	return has_changed;
}

/* ---- restarting ---- */

void choices_make_stale(struct choices *choices)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		choice->is_stale = true;
	}
	forget_refusal(choices);
}

struct choice *choices_first_stale(const struct choices *choices)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		if (choice->is_stale) {
			return choice;
		}
	}
	return NULL;
}

struct choice *choices_of_serial(const struct choices *choices, unsigned serial)
{
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		if (choice->serial == serial) {
			return choice;
		}
	}
	return NULL;
}

/* ---- as JSON ---- */

void choices_write_json(const struct choices *choices, struct buf *out)
{
	struct json_writer writer;
	struct error ignored; // choices that do not fit are not kept
	buf_clear(out);
	if (choices->count == 0) {
		return;
	}
	json_write_begin(&writer, out);
	json_write_array(&writer);
	LIST_FOR_EACH(choice, &choices->all, struct choice, link) {
		json_write_object(&writer);
		json_write_member(&writer, "kind", kinds[choice->kind].name);
		write_members(&writer, choice, "value");
		json_write_object_end(&writer);
	}
	json_write_array_end(&writer);
	if (!json_write_end(&writer, &ignored)) {
		buf_clear(out);
	}
}

static bool read_kind(const struct json_doc *doc, json_node object, enum choice_kind *out_kind)
{
	for (size_t i = 0; i < CHOICE_KIND_COUNT; i++) {
		if (json_string_is(doc, json_get(doc, object, "kind"), kinds[i].name)) {
			*out_kind = (enum choice_kind)i;
			return true;
		}
	}
	return false;
}

void choices_read_json(struct choices *choices, struct span json)
{
	struct json_doc *doc = json_doc_parse(json, NULL);
	for (json_node node = doc ? json_first(doc, 0) : JSON_NODE_NONE; node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		struct choice choice = {.is_stale = true};
		if (read_kind(doc, node, &choice.kind) &&
			read_members(doc, node, "value", &choice)) {
			bool is_taken = choices_put(choices, &choice);
			(void)is_taken; // the file never has more than fitted in memory
		}
	}
	json_doc_destroy(doc);
}
