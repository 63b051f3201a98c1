/* SPDX-License-Identifier: MIT */
#include "broker/init/jsonc.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/jsonc_plain.h"

/* ---- values ---- */

static bool is_same_string(struct span one, struct span other)
{
	struct buf texts[2];
	struct error ignored;
	buf_init(&texts[0], one.len * 2 + 8);
	buf_init(&texts[1], other.len * 2 + 8);
	bool is_same = json_decode_string(one, &texts[0], &ignored) &&
	               json_decode_string(other, &texts[1], &ignored) &&
	               span_equals(buf_span(&texts[0]), buf_span(&texts[1]));
	buf_finish(&texts[0]);
	buf_finish(&texts[1]);
	return is_same;
}

/* A member's name with its quotes. */
static struct span quoted_key(const struct json_doc *doc, json_node member)
{
	struct span key = json_key(doc, member);
	return (struct span){key.data - 1, key.len + 2};
}

static json_node find_same_key(const struct json_doc *doc, json_node object, struct span quoted)
{
	json_node member = json_first(doc, object);
	while (member != JSON_NODE_NONE && !is_same_string(quoted_key(doc, member), quoted)) {
		member = json_next(doc, member);
	}
	return member;
}

/* Recursive, but no deeper than a document that json_check accepts. */
static bool is_same(
	const struct json_doc *a, json_node one, const struct json_doc *b, json_node other)
{
	bool is_object = json_is(a, one, JSON_OBJECT);
	if (json_is(a, one, JSON_STRING) && json_is(b, other, JSON_STRING)) {
		return is_same_string(json_raw(a, one), json_raw(b, other));
	}
	if (is_object != json_is(b, other, JSON_OBJECT) ||
		json_is(a, one, JSON_ARRAY) != json_is(b, other, JSON_ARRAY) ||
		json_count(a, one) != json_count(b, other)) {
		return false;
	}
	if (!is_object && !json_is(a, one, JSON_ARRAY)) {
		return span_equals(json_raw(a, one), json_raw(b, other));
	}
	json_node second = json_first(b, other);
	for (json_node first = json_first(a, one); first != JSON_NODE_NONE;
		first = json_next(a, first)) {
		json_node found =
			is_object ? find_same_key(b, other, quoted_key(a, first)) : second;
		if (found == JSON_NODE_NONE || !is_same(a, first, b, found)) {
			return false;
		}
		second = is_object ? second : json_next(b, second);
	}
	return true;
}

/* How often an object has a member; the last one is in *out_member. */
static size_t find_members(
	const struct json_doc *doc, json_node object, const char *name, json_node *out_member)
{
	size_t count = 0;
	for (json_node member = json_first(doc, object); member != JSON_NODE_NONE;
		member = json_next(doc, member)) {
		struct buf key;
		struct error ignored;
		buf_init(&key, json_key(doc, member).len * 2 + 8);
		if (json_decode_string(quoted_key(doc, member), &key, &ignored) &&
			span_is(buf_span(&key), name)) {
			*out_member = member;
			count++;
		}
		buf_finish(&key);
	}
	return count;
}

/* ---- where the member goes, and how it looks ---- */

struct place {
	size_t at;           // where its text begins
	struct span indent;  // of its first line
	bool is_on_new_line; // a line end comes before it
	bool is_followed;    // a member follows, so a comma comes after it
	struct span closing; // indentation of the rest of the line, which moves down
};

struct style {
	struct span unit; // one level of indentation
	const char *line_end;
};

/* The blanks and tabs at the beginning of the byte's line. */
static struct span indent_of(struct span text, size_t at)
{
	size_t start = at;
	while (start > 0 && text.data[start - 1] != '\n') {
		start--;
	}
	size_t end = start;
	while (end < at && (text.data[end] == ' ' || text.data[end] == '\t')) {
		end++;
	}
	return (struct span){text.data + start, end - start};
}

static bool begins_its_line(struct span text, size_t at)
{
	struct span indent = indent_of(text, at);
	return at > indent.len && indent.data + indent.len == text.data + at;
}

/* The beginning of the line after `at`, if only white space comes before it; else 0. */
static size_t next_line(struct span plain, size_t at)
{
	while (at < plain.len && strchr(" \t\r", plain.data[at])) {
		at++;
	}
	return at < plain.len && plain.data[at] == '\n' ? at + 1 : 0;
}

/*
 * Finds the first place in the object, before comments that belong to the member that is first now.
 * `indent` is room for an indentation if no member of the object has one.
 */
static struct place find_place(struct span text, const struct json_doc *doc, struct span plain,
	json_node object, const struct style *style, struct buf *indent)
{
	struct span raw = json_raw(doc, object);
	json_node first = json_first(doc, object);
	size_t open = (size_t)(raw.data - plain.data);
	size_t key =
		first == JSON_NODE_NONE ? 0 : (size_t)(quoted_key(doc, first).data - plain.data);
	size_t line = next_line(plain, open + 1);
	struct span outer = indent_of(text, open);
	struct place place = {.is_followed = first != JSON_NODE_NONE};
	bool fits = buf_append(indent, outer, NULL) && buf_append(indent, style->unit, NULL);
	place.indent = fits ? buf_span(indent) : outer;
	if (first != JSON_NODE_NONE && begins_its_line(text, key)) {
		place.indent = indent_of(text, key);
	}
	place.at = line > 0 ? line : first == JSON_NODE_NONE ? open + raw.len - 1 : open + 1;
	place.is_on_new_line = line == 0;
	if (line == 0) {
		place.closing = first == JSON_NODE_NONE ? outer : place.indent;
	}
	return place;
}

static bool append_lines(struct buf *out, struct span lines, struct span indent,
	const struct style *style, struct error *err)
{
	bool is_first = true;
	while (lines.len > 0) {
		const char *end = memchr(lines.data, '\n', lines.len);
		size_t len = end ? (size_t)(end - lines.data) : lines.len;
		size_t tabs = 0;
		if (!is_first && (!buf_append(out, span_of(style->line_end), err) ||
					 !buf_append(out, indent, err))) {
			return false;
		}
		while (tabs < len && lines.data[tabs] == '\t') {
			if (!buf_append(out, style->unit, err)) {
				return false;
			}
			tabs++;
		}
		if (!buf_append(out, (struct span){lines.data + tabs, len - tabs}, err)) {
			return false;
		}
		is_first = false;
		lines = (struct span){
			lines.data + len + (end != NULL), lines.len - len - (end != NULL)};
	}
	return true;
}

static bool append_member(struct buf *out, struct span text, const struct place *place,
	struct span member, const struct style *style, struct error *err)
{
	struct span end = span_of(style->line_end);
	struct span rest = {text.data + place->at, text.len - place->at};
	return buf_append(out, (struct span){text.data, place->at}, err) &&
	       (!place->is_on_new_line || buf_append(out, end, err)) &&
	       buf_append(out, place->indent, err) &&
	       append_lines(out, member, place->indent, style, err) &&
	       (!place->is_followed || buf_append(out, SPAN_LITERAL(","), err)) &&
	       buf_append(out, end, err) && buf_append(out, place->closing, err) &&
	       buf_append(out, rest, err);
}

/* ---- all of it ---- */

struct adding {
	struct span text, plain;
	struct json_doc *doc;   // NULL: the text is blank
	struct json_doc *value; // owned
	struct span value_text;
	const char *object, *name;
	struct style style;
};

/* Appends the name with quotes, escapes and a colon. */
static bool append_key(struct buf *member, const char *name, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, member);
	json_write_text(&writer, name);
	return json_write_end(&writer, err) && buf_append(member, SPAN_LITERAL(": "), err);
}

/* Writes lines: the member or, if the object is missing, the object with the member. */
static bool write_member(
	const struct adding *adding, bool has_object, struct buf *member, struct error *err)
{
	if (has_object) {
		return append_key(member, adding->name, err) &&
		       buf_append(member, adding->value_text, err);
	}
	struct span lines = adding->value_text;
	bool ok = append_key(member, adding->object, err) &&
	          buf_append(member, SPAN_LITERAL("{\n\t"), err) &&
	          append_key(member, adding->name, err);
	while (ok && lines.len > 0) {
		const char *end = memchr(lines.data, '\n', lines.len);
		size_t len = end ? (size_t)(end - lines.data) + 1 : lines.len;
		ok = buf_append(member, (struct span){lines.data, len}, err) &&
		     (!end || buf_append(member, SPAN_LITERAL("\t"), err));
		lines = (struct span){lines.data + len, lines.len - len};
	}
	return ok && buf_append(member, SPAN_LITERAL("\n}"), err);
}

/* Adds a document to a text that has none, after its comments. */
static bool add_document(
	const struct adding *adding, struct span member, struct buf *out, struct error *err)
{
	struct span text = adding->text;
	const char *line_end = adding->style.line_end;
	bool is_in_line = text.len > jsonc_mark_length(text) && text.data[text.len - 1] != '\n';
	return buf_append(out, text, err) &&
	       (!is_in_line || buf_append(out, span_of(line_end), err)) &&
	       buf_append_format(out, err, "{%s", line_end) &&
	       buf_append(out, adding->style.unit, err) &&
	       append_lines(out, member, adding->style.unit, &adding->style, err) &&
	       buf_append_format(out, err, "%s}%s", line_end, line_end);
}

static void find_style(struct adding *adding)
{
	const char *end =
		adding->text.len > 0 ? memchr(adding->text.data, '\n', adding->text.len) : NULL;
	adding->style.line_end = end && end > adding->text.data && end[-1] == '\r' ? "\r\n" : "\n";
	adding->style.unit = SPAN_LITERAL("  ");
	bool is_object = adding->doc && json_is(adding->doc, 0, JSON_OBJECT);
	json_node first = is_object ? json_first(adding->doc, 0) : JSON_NODE_NONE;
	if (first == JSON_NODE_NONE) {
		return;
	}
	size_t key = (size_t)(quoted_key(adding->doc, first).data - adding->plain.data);
	struct span indent = indent_of(adding->text, key);
	if (begins_its_line(adding->text, key) && indent.len > 0) {
		adding->style.unit = indent;
	}
}

static bool add_at(struct adding *adding, json_node object, bool has_object, struct buf *out,
	struct error *err)
{
	struct buf member, indent;
	buf_init(&member, out->max);
	buf_init(&indent, out->max);
	bool ok = write_member(adding, has_object, &member, err);
	if (ok && !adding->doc) {
		ok = add_document(adding, buf_span(&member), out, err);
	} else if (ok) {
		struct place place = find_place(
			adding->text, adding->doc, adding->plain, object, &adding->style, &indent);
		ok = append_member(
			out, adding->text, &place, buf_span(&member), &adding->style, err);
	}
	buf_finish(&member);
	buf_finish(&indent);
	return ok;
}

static bool add(
	struct adding *adding, struct buf *out, enum jsonc_outcome *out_outcome, struct error *err)
{
	json_node object = JSON_NODE_NONE;
	json_node member = JSON_NODE_NONE;
	if (adding->doc && !json_is(adding->doc, 0, JSON_OBJECT)) {
		return error_set(err, ERROR_PROTOCOL, "line 1: expected an object ({ … })");
	}
	size_t objects = adding->doc ? find_members(adding->doc, 0, adding->object, &object) : 0;
	if (objects > 1 || (objects == 1 && !json_is(adding->doc, object, JSON_OBJECT))) {
		size_t at = (size_t)(json_raw(adding->doc, object).data - adding->plain.data);
		return error_set(err, ERROR_PROTOCOL, "line %zu: expected one \"%s\", an object",
			jsonc_count_lines((struct span){adding->text.data, at}), adding->object);
	}
	size_t members =
		objects == 1 ? find_members(adding->doc, object, adding->name, &member) : 0;
	if (members == 0) {
		*out_outcome = JSONC_ADDED;
		return add_at(adding, objects == 1 ? object : 0, objects == 1, out, err);
	}
	bool is_there = members == 1 && is_same(adding->doc, member, adding->value, 0);
	*out_outcome = is_there ? JSONC_SAME : JSONC_OTHER;
	return true;
}

bool jsonc_add(struct span text, const char *object, const char *name, struct span value,
	struct buf *out, enum jsonc_outcome *out_outcome, struct error *err)
{
	bool is_blank = false;
	char *plain = mem_alloc(text.len + 1);
	struct adding adding = {.text = text,
		.plain = {plain, text.len},
		.value_text = value,
		.object = object,
		.name = name};
	bool ok = jsonc_plain(text, plain, &is_blank, err);
	if (ok && !is_blank) {
		adding.doc = json_doc_parse_unchecked(adding.plain, err);
		ok = adding.doc != NULL;
	}
	if (ok) {
		adding.value = json_doc_parse(value, err);
		ok = adding.value != NULL;
	}
	if (ok) {
		find_style(&adding);
		ok = add(&adding, out, out_outcome, err);
	}
	json_doc_destroy(adding.doc);
	json_doc_destroy(adding.value);
	free(plain);
	return ok;
}
