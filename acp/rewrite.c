/* SPDX-License-Identifier: MIT */
#include "acp/rewrite.h"

#include <stdint.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_writer.h"

enum form { FORM_PATH, FORM_URI, FORM_EITHER };

/* The methods of a rule; names must match completely. */
static const char *const opens_session[] = {
	"session/new", "session/load", "session/resume", "session/fork", "session/list", NULL};
static const char *const prompts[] = {"session/prompt", NULL};
static const char *const updates[] = {"session/update", NULL};
static const char *const asks[] = {"session/request_permission", NULL};
static const char *const lists[] = {"session/list", NULL};
static const char *const files[] = {"fs/read_text_file", "fs/write_text_file", NULL};
static const char *const commands[] = {"terminal/create", NULL};

/* The table: which place of which method contains a path, in the direction in which it travels. */
static const struct rule {
	enum path_direction direction;
	enum place place;
	enum form form;
	const char *const *methods; // NULL: any
} rules[] = {
	{PATH_TO_RUNTIME, PLACE_CWD, FORM_PATH, opens_session},
	{PATH_TO_RUNTIME, PLACE_ADDITIONAL_DIRECTORY, FORM_PATH, opens_session},
	{PATH_TO_RUNTIME, PLACE_PROMPT_URI, FORM_URI, prompts},
	{PATH_TO_RUNTIME, PLACE_PROMPT_RESOURCE_URI, FORM_URI, prompts},
	{PATH_TO_RUNTIME, PLACE_ERROR_URI, FORM_EITHER, NULL},
	{PATH_TO_LOCAL, PLACE_PATH, FORM_PATH, files},
	{PATH_TO_LOCAL, PLACE_CWD, FORM_PATH, commands},
	{PATH_TO_LOCAL, PLACE_UPDATE_LOCATION, FORM_PATH, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_DIFF, FORM_PATH, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_URI, FORM_URI, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_RESOURCE_URI, FORM_URI, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_ITEM_URI, FORM_URI, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_ITEM_RESOURCE_URI, FORM_URI, updates},
	{PATH_TO_LOCAL, PLACE_UPDATE_TERMINAL_CWD, FORM_PATH, updates},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_LOCATION, FORM_PATH, asks},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_DIFF, FORM_PATH, asks},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_ITEM_URI, FORM_URI, asks},
	{PATH_TO_LOCAL, PLACE_TOOL_CALL_ITEM_RESOURCE_URI, FORM_URI, asks},
	{PATH_TO_LOCAL, PLACE_LISTED_CWD, FORM_PATH, lists},
	{PATH_TO_LOCAL, PLACE_LISTED_DIRECTORY, FORM_PATH, lists},
	{PATH_TO_LOCAL, PLACE_ERROR_URI, FORM_EITHER, NULL},
};

static bool rule_is_for(const struct rule *rule, const char *method)
{
	if (!rule->methods) {
		return true;
	}
	for (const char *const *name = rule->methods; *name; name++) {
		if (strcmp(*name, method) == 0) {
			return true;
		}
	}
	return false;
}

static const struct rule *find_rule(
	enum path_direction direction, uint32_t place, const char *method)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
		if (rules[i].direction == direction && (uint32_t)rules[i].place == place &&
			rule_is_for(&rules[i], method)) {
			return &rules[i];
		}
	}
	return NULL;
}

/* The replacement for the first bytes of a decoded text; false: there is none. */
static bool translate(const struct path_map *map, const struct rule *rule, struct span text,
	size_t *out_prefix, struct buf *replacement)
{
	bool is_path = text.len > 0 && text.data[0] == '/';
	if (rule->form == FORM_URI || (rule->form == FORM_EITHER && !is_path)) {
		return path_map_find_uri(map, rule->direction, text, out_prefix, replacement);
	}
	struct span with;
	return path_map_find(map, rule->direction, text, out_prefix, &with) &&
	       buf_append(replacement, with, NULL);
}

/* Appends text in the form of the inside of a JSON string, without the quotes. */
static bool escape(struct span text, struct buf *out, struct error *err)
{
	struct json_writer writer;
	struct buf quoted;
	buf_init(&quoted, SPLICE_BYTES_MAX);
	json_write_begin(&writer, &quoted);
	json_write_string(&writer, text);
	bool ok = json_write_end(&writer, err);
	if (ok) {
		struct span whole = buf_span(&quoted);
		ok = buf_append(out, (struct span){whole.data + 1, whole.len - 2}, err);
	}
	buf_finish(&quoted);
	return ok;
}

/*
 * Edits one string. Without escapes, only the root's bytes are replaced. A string with escapes is
 * replaced as a whole.
 */
static bool edit_string(const struct path_map *map, const struct rule *rule,
	const struct message *message, const struct json_hit *hit, struct splice *splice,
	struct error *err)
{
	struct span raw = {message->text.data + hit->start, hit->end - hit->start};
	struct buf text;
	struct buf replacement;
	struct buf edit;
	size_t prefix;
	bool ok = true;
	if (raw.len < 2 || raw.data[0] != '"') {
		return true; // left for the peer to refuse
	}
	buf_init(&text, raw.len * 3);
	buf_init(&replacement, SPLICE_BYTES_MAX);
	buf_init(&edit, SPLICE_BYTES_MAX);
	bool has_escapes = memchr(raw.data, '\\', raw.len) != NULL;
	if (has_escapes) {
		ok = json_decode_string(raw, &text, err);
	} else {
		ok = buf_append(&text, (struct span){raw.data + 1, raw.len - 2}, err);
	}
	if (ok && translate(map, rule, buf_span(&text), &prefix, &replacement)) {
		size_t inner = hit->start + 1;
		size_t end = has_escapes ? hit->end - 1 : inner + prefix;
		struct span rest = {buf_span(&text).data + prefix, text.len - prefix};
		ok = escape(buf_span(&replacement), &edit, err) &&
		     (!has_escapes || escape(rest, &edit, err)) &&
		     splice_add(splice, inner, end, buf_span(&edit), err);
	}
	buf_finish(&edit);
	buf_finish(&replacement);
	buf_finish(&text);
	return ok;
}

bool rewrite_paths(const struct path_map *map, enum path_direction direction,
	const struct message *message, const char *method, struct splice *splice, struct error *err)
{
	if (map->is_identity) {
		return true;
	}
	const struct json_hit *hits = json_check_hits(message->check);
	size_t count = json_check_hit_count(message->check);
	for (size_t i = 0; i < count; i++) {
		const struct rule *rule = find_rule(direction, hits[i].place, method);
		if (rule && !edit_string(map, rule, message, &hits[i], splice, err)) {
			return error_prefix(err, "translating the paths of %s", method);
		}
	}
	return true;
}

bool rewrite_path(const struct path_map *map, enum path_direction direction,
	const struct message *message, const struct json_hit *hit, struct splice *splice,
	struct error *err)
{
	const struct rule rule = {.direction = direction, .form = FORM_PATH};
	return map->is_identity || edit_string(map, &rule, message, hit, splice, err);
}
