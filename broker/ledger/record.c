/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/words.h"
#include "providers/provider.h"

static const char *const state_names[RECORD_STATE_COUNT] = {
	[RECORD_CREATING] = "creating",
	[RECORD_SYNCING] = "syncing",
	[RECORD_STARTING] = "starting",
	[RECORD_ACTIVE] = "active",
	[RECORD_PAUSED] = "paused",
	[RECORD_COLLECTING] = "collecting",
	[RECORD_STOPPED] = "stopped",
	[RECORD_FAILED] = "failed",
};

const char *record_state_name(enum record_state state)
{
	assert(state < RECORD_STATE_COUNT);
	return state_names[state];
}

static bool parse_state(const char *name, enum record_state *out_state)
{
	for (size_t i = 0; name && i < RECORD_STATE_COUNT; i++) {
		if (strcmp(name, state_names[i]) == 0) {
			*out_state = (enum record_state)i;
			return true;
		}
	}
	return false;
}

/* ---- in memory ---- */

void record_init(struct record *record)
{
	char now[TIMESTAMP_SIZE];
	*record = (struct record){.state = RECORD_CREATING};
	random_fill_hex(record->id, sizeof(record->id) - 1);
	text_whole(record->created, sizeof(record->created), "%s", timestamp_now(now));
	text_whole(record->updated, sizeof(record->updated), "%s", record->created);
}

void record_finish(struct record *record)
{
	free(record->profile);
	free(record->backend);
	free(record->sync);
	free(record->persistence);
	free(record->local_root);
	free(record->runtime_root);
	free(record->agent);
	free(record->reference);
	free(record->instance);
	free(record->error);
	for (size_t i = 0; i < record->session_count; i++) {
		free(record->choices[i]);
	}
	free(record->choices);
	words_free(record->sessions);
	*record = (struct record){0};
}

bool record_add_session(struct record *record, const char *session_id)
{
	for (size_t i = 0; i < record->session_count; i++) {
		if (strcmp(record->sessions[i], session_id) == 0) {
			return true;
		}
	}
	if (record->session_count >= RECORD_SESSIONS_MAX) {
		return false;
	}
	record->sessions = mem_realloc(
		record->sessions, (record->session_count + 2) * sizeof(*record->sessions));
	record->choices = mem_realloc(
		record->choices, (record->session_count + 1) * sizeof(*record->choices));
	record->choices[record->session_count] = NULL;
	record->sessions[record->session_count++] = mem_strdup(session_id);
	record->sessions[record->session_count] = NULL;
	return true;
}

void record_remove_session(struct record *record, const char *session_id)
{
	size_t kept = 0;
	for (size_t i = 0; i < record->session_count; i++) {
		if (strcmp(record->sessions[i], session_id) == 0) {
			free(record->sessions[i]);
			free(record->choices[i]);
		} else {
			record->choices[kept] = record->choices[i];
			record->sessions[kept++] = record->sessions[i];
		}
	}
	record->session_count = kept;
	if (record->sessions) {
		record->sessions[kept] = NULL;
	}
}

static char **choices_of(const struct record *record, const char *session_id)
{
	for (size_t i = 0; i < record->session_count; i++) {
		if (strcmp(record->sessions[i], session_id) == 0) {
			return &record->choices[i];
		}
	}
	return NULL;
}

const char *record_choices(const struct record *record, const char *session_id)
{
	char **choices = choices_of(record, session_id);
	return choices ? *choices : NULL;
}

enum record_choices_set record_set_choices(
	struct record *record, const char *session_id, struct span json)
{
	size_t others = 0;
	char **choices = choices_of(record, session_id);
	for (size_t i = 0; i < record->session_count; i++) {
		bool counts = &record->choices[i] != choices && record->choices[i];
		others += counts ? strlen(record->choices[i]) : 0;
	}
	bool fits = others + json.len <= RECORD_CHOICES_MAX;
	bool is_same = choices && (*choices ? span_equals(span_of(*choices), json) : json.len == 0);
	if (!choices || is_same) {
		return RECORD_CHOICES_UNCHANGED;
	}
	free(*choices);
	*choices = json.len > 0 && fits ? mem_strndup(json) : NULL;
	return fits ? RECORD_CHOICES_CHANGED : RECORD_CHOICES_TOO_LONG;
}

bool record_is_of(const struct record *record, const char *reference, const char *instance)
{
	return sandbox_is_reference(record->reference, reference) &&
	       sandbox_is_instance(record->instance, instance);
}

/* ---- as JSON ---- */

/* The strings of a record and their names. */
static const struct {
	const char *name;
	size_t offset; // of the char * in struct record
	bool may_be_null;
} texts[] = {
	{"profile", offsetof(struct record, profile), false},
	{"backend", offsetof(struct record, backend), false},
	{"sync", offsetof(struct record, sync), false},
	{"persistence", offsetof(struct record, persistence), false},
	{"localRoot", offsetof(struct record, local_root), false},
	{"runtimeRoot", offsetof(struct record, runtime_root), true},
	{"agent", offsetof(struct record, agent), true},
	{"reference", offsetof(struct record, reference), true},
	{"instance", offsetof(struct record, instance), true},
	{"error", offsetof(struct record, error), true},
};

static char **text_at(const struct record *record, size_t index)
{
	return (char **)(void *)((char *)record + texts[index].offset);
}

static void write_receipt(struct json_writer *writer, const struct record_receipt *receipt)
{
	json_write_key(writer, "receipt");
	if (!*receipt->runtime_tree) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_member(writer, "runtimeTree", receipt->runtime_tree);
	json_write_member(writer, "mergedTree", receipt->merged_tree);
	json_write_member_int(writer, "conflicts", (long long)receipt->conflicts);
	json_write_member(writer, "time", receipt->time);
	json_write_object_end(writer);
}

static void write_choices(struct json_writer *writer, const struct record *record)
{
	json_write_key(writer, "choices");
	json_write_array(writer);
	for (size_t i = 0; i < record->session_count; i++) {
		if (record->choices[i]) {
			json_write_object(writer);
			json_write_member(writer, "session", record->sessions[i]);
			json_write_member_raw(writer, "set", span_of(record->choices[i]));
			json_write_object_end(writer);
		}
	}
	json_write_array_end(writer);
}

bool record_write_json(const struct record *record, struct buf *out, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member_int(&writer, "version", RECORD_VERSION);
	json_write_member(&writer, "id", record->id);
	json_write_member(&writer, "state", record_state_name(record->state));
	json_write_member(&writer, "created", record->created);
	json_write_member(&writer, "updated", record->updated);
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		json_write_member(&writer, texts[i].name, *text_at(record, i));
	}
	json_write_key(&writer, "sessions");
	json_write_array(&writer);
	for (size_t i = 0; i < record->session_count; i++) {
		json_write_text(&writer, record->sessions[i]);
	}
	json_write_array_end(&writer);
	write_choices(&writer, record);
	write_receipt(&writer, &record->receipt);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

/* Copies a string of the document into a field of fixed size; false if it does not fit. */
static bool read_fixed(
	const struct json_doc *doc, json_node object, const char *name, char *out, size_t size)
{
	char *text = json_string(doc, json_get(doc, object, name));
	bool fits = text && strlen(text) < size;
	if (fits) {
		memcpy(out, text, strlen(text) + 1);
	}
	free(text);
	return fits;
}

static bool read_texts(struct record *record, const struct json_doc *doc, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		*text_at(record, i) = json_string(doc, json_get(doc, 0, texts[i].name));
		if (!*text_at(record, i) && !texts[i].may_be_null) {
			return error_set(err, ERROR_PROTOCOL, "it has no \"%s\"", texts[i].name);
		}
	}
	return true;
}

/*
 * References are shown to the user and given to providers, so only letters, digits and a few signs
 * between them are allowed.
 */
static bool is_reference(const char *reference)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";
	size_t len = strspn(reference, allowed);
	return len > 0 && reference[len] == '\0' && reference[0] != '-' && reference[0] != '.';
}

/* A user may have edited these: refuses relative paths, and text that could control a terminal. */
static bool check_texts(const struct record *record, struct error *err)
{
	static const char digits[] = "0123456789-:.TZ";
	if (record->local_root[0] != '/') {
		return error_set(err, ERROR_PROTOCOL, "its \"localRoot\" is not an absolute path");
	}
	if (record->runtime_root && record->runtime_root[0] != '/') {
		return error_set(
			err, ERROR_PROTOCOL, "its \"runtimeRoot\" is not an absolute path");
	}
	if (record->reference && !is_reference(record->reference)) {
		return error_set(err, ERROR_PROTOCOL, "its \"reference\" is not a valid name");
	}
	if (record->instance && !is_reference(record->instance)) {
		return error_set(err, ERROR_PROTOCOL, "its \"instance\" is not a valid name");
	}
	return (record->created[strspn(record->created, digits)] == '\0' &&
		       record->updated[strspn(record->updated, digits)] == '\0') ||
	       error_set(err, ERROR_PROTOCOL, "its \"created\" or \"updated\" is not a time");
}

static bool read_sessions(struct record *record, const struct json_doc *doc, struct error *err)
{
	json_node sessions = json_get(doc, 0, "sessions");
	if (!json_is(doc, sessions, JSON_ARRAY)) {
		return error_set(err, ERROR_PROTOCOL, "it has no \"sessions\"");
	}
	for (json_node node = json_first(doc, sessions); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		char *id = json_string(doc, node);
		bool taken = id && record_add_session(record, id);
		free(id);
		if (!taken) {
			return error_set(err, ERROR_PROTOCOL, "its \"sessions\" are not names");
		}
	}
	return true;
}

/* Records of older brokers have no choices. Their content is checked where it is used. */
static void read_choices(struct record *record, const struct json_doc *doc)
{
	json_node choices = json_get(doc, 0, "choices");
	for (json_node node = json_first(doc, choices); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		char *id = json_string(doc, json_get(doc, node, "session"));
		json_node set = json_get(doc, node, "set");
		if (id && json_is(doc, set, JSON_ARRAY)) {
			record_set_choices(record, id, json_raw(doc, set));
		}
		free(id);
	}
}

static bool is_tree(const char *text)
{
	return hex_is_written(text, RECORD_TREE_SIZE - 1);
}

static bool read_receipt(struct record *record, const struct json_doc *doc, struct error *err)
{
	json_node node = json_get(doc, 0, "receipt");
	struct record_receipt *receipt = &record->receipt;
	if (json_is(doc, node, JSON_NULL)) {
		return true;
	}
	long long conflicts = json_int(doc, json_get(doc, node, "conflicts"), -1);
	if (conflicts < 0 ||
		!read_fixed(doc, node, "runtimeTree", receipt->runtime_tree,
			sizeof(receipt->runtime_tree)) ||
		!read_fixed(doc, node, "mergedTree", receipt->merged_tree,
			sizeof(receipt->merged_tree)) ||
		!read_fixed(doc, node, "time", receipt->time, sizeof(receipt->time)) ||
		!is_tree(receipt->runtime_tree) || !is_tree(receipt->merged_tree)) {
		*receipt = (struct record_receipt){0};
		return error_set(err, ERROR_PROTOCOL, "its \"receipt\" is incomplete");
	}
	receipt->conflicts = (size_t)conflicts;
	return true;
}

static bool read_head(struct record *record, const struct json_doc *doc, struct error *err)
{
	long long version = json_int(doc, json_get(doc, 0, "version"), 0);
	if (version > RECORD_VERSION) {
		return error_set(err, ERROR_UNAVAILABLE,
			"it has version %lld, but this program knows only %d: use a newer "
			"acp-broker",
			version, RECORD_VERSION);
	}
	char *state = json_string(doc, json_get(doc, 0, "state"));
	bool known = parse_state(state, &record->state);
	free(state);
	return (version == RECORD_VERSION && known &&
		       read_fixed(doc, 0, "id", record->id, sizeof(record->id)) &&
		       read_fixed(doc, 0, "created", record->created, sizeof(record->created)) &&
		       read_fixed(doc, 0, "updated", record->updated, sizeof(record->updated))) ||
	       error_set(err, ERROR_PROTOCOL,
		       "its \"version\", \"id\", \"state\", \"created\" or \"updated\" is missing "
		       "or unknown");
}

bool record_read_json(struct record *record, struct span text, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		return false;
	}
	bool ok = json_is(doc, 0, JSON_OBJECT) ||
	          error_set(err, ERROR_PROTOCOL, "it is not an object");
	ok = ok && read_head(record, doc, err) && read_texts(record, doc, err) &&
	     check_texts(record, err) && read_sessions(record, doc, err) &&
	     read_receipt(record, doc, err);
	if (ok) {
		read_choices(record, doc);
	}
	json_doc_destroy(doc);
	return ok;
}
