/* SPDX-License-Identifier: MIT */
#include "sync/git/lines.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 64 << 10, PIECE = LINE_PATH_MAX, HEADER_MAX = GIT_OID_HEXSZ + 32 };

/* The meaning of each letter in a form: i an id, n a number, m a mode, t a text. */
static const struct {
	const char *name;
	const char *form;
} kinds[LINE_KIND_COUNT] = {
	[LINE_TREE] = {"tree", "i"},
	[LINE_BIG] = {"big", "imnt"},
	[LINE_OVER] = {"over", "nt"},
	[LINE_LEFT] = {"left", "t"},
	[LINE_STUCK] = {"stuck", "t"},
	[LINE_OBJECTS] = {"objects", "n"},
	[LINE_COMMITS] = {"commits", ""},
	[LINE_WITHIN] = {"within", "t"},
	[LINE_REPOSITORY] = {"repository", "t"},
	[LINE_HAVE] = {"have", "i"},
	[LINE_PRINT] = {"print", "t"},
	[LINE_KEPT] = {"kept", "t"},
	[LINE_SHARED] = {"shared", ""},
	[LINE_FILTERED] = {"filtered", "nt"},
	[LINE_BASE] = {"base", "i"},
	[LINE_REF] = {"ref", "it"},
	[LINE_UNTOLD] = {"untold", "t"},
	[LINE_FAIL] = {"fail", "t"},
	[LINE_END] = {"end", "n"},
};

void lines_init(struct lines *lines, ssize_t (*read)(void *data, char *to, size_t size), void *data,
	uint64_t received_max, size_t object_max)
{
	*lines = (struct lines){.read = read, .data = data, .received_max = received_max};
	buf_init(&lines->buf, object_max + CHUNK + LINE_PATH_MAX);
}

void lines_finish(struct lines *lines)
{
	buf_finish(&lines->buf);
}

/* ---- bytes ---- */

static void release(struct lines *lines)
{
	buf_consume(&lines->buf, lines->consume);
	lines->consume = 0;
	buf_trim(&lines->buf, 4 * CHUNK);
}

/* Reads at least one more byte. */
static bool read_more(struct lines *lines, struct error *err)
{
	char *at = buf_reserve(&lines->buf, CHUNK, err);
	if (!at) {
		return false;
	}
	ssize_t count = lines->read(lines->data, at, CHUNK);
	if (count < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "reading what the sandbox sends");
	}
	if (count == 0) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST",
			"the sandbox ended in the middle of its answer");
	}
	buf_commit(&lines->buf, (size_t)count);
	lines->received += (uint64_t)count;
	return lines->received <= lines->received_max ||
	       error_set(err, ERROR_LIMIT, "the sandbox sent more than the allowed %llu bytes",
		       (unsigned long long)lines->received_max);
}

/* Finds a word that ends in `end`, in the live bytes from `from` on. */
static bool find_word(struct lines *lines, size_t from, char end, size_t max, size_t *out_length,
	struct error *err)
{
	size_t looked = 0;
	for (;;) {
		struct span live = buf_span(&lines->buf);
		const char *found =
			live.len > from + looked
				? memchr(live.data + from + looked, end, live.len - from - looked)
				: NULL;
		looked = live.len > from ? live.len - from : 0;
		*out_length = found ? (size_t)(found - (live.data + from)) : looked;
		if (*out_length > max) {
			return error_set(err, ERROR_PROTOCOL,
				"the sandbox sent a word of more than %zu bytes", max);
		}
		if (found) {
			return true;
		}
		if (!read_more(lines, err)) {
			return false;
		}
	}
}

/* ---- fields ---- */

static bool parse_number(struct span text, uint64_t *out)
{
	uint64_t number = 0;
	if (text.len == 0 || text.len > 18) {
		return false;
	}
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return false;
		}
		number = number * 10 + (uint64_t)(text.data[i] - '0');
	}
	*out = number;
	return true;
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool parse_id(struct span text, git_oid *out)
{
	if (text.len != GIT_OID_HEXSZ) {
		return false;
	}
	for (size_t i = 0; i < GIT_OID_RAWSZ; i++) {
		int high = digit_value(text.data[2 * i]);
		int low = digit_value(text.data[2 * i + 1]);
		if (high < 0 || low < 0) {
			return false;
		}
		out->id[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static bool parse_mode(struct span text, bool *out_executable)
{
	*out_executable = span_is(text, "100755");
	return *out_executable || span_is(text, "100644");
}

static bool parse_field(char form, struct span field, struct line *out)
{
	switch (form) {
	case 'i':
		return parse_id(field, &out->id);
	case 'n':
		return parse_number(field, &out->number);
	case 'm':
		return parse_mode(field, &out->is_executable);
	default:
		out->text = field.data;
		return true;
	}
}

static bool find_kind(struct span word, enum line_kind *out)
{
	for (int i = 0; i < LINE_KIND_COUNT; i++) {
		if (span_is(word, kinds[i].name)) {
			*out = (enum line_kind)i;
			return true;
		}
	}
	return false;
}

bool lines_next(struct lines *lines, struct line *out, struct error *err)
{
	size_t offsets[LINE_FIELDS_MAX], lengths[LINE_FIELDS_MAX];
	size_t length;
	release(lines);
	*out = (struct line){0};
	if (!find_word(lines, 0, '\0', LINE_PATH_MAX, &length, err)) {
		return false;
	}
	if (!find_kind((struct span){buf_span(&lines->buf).data, length}, &out->kind)) {
		return error_set(err, ERROR_PROTOCOL,
			"the sandbox sent something that is not an answer for the sync");
	}
	const char *form = kinds[out->kind].form;
	size_t at = length + 1;
	for (size_t i = 0; form[i]; i++) {
		offsets[i] = at;
		if (!find_word(lines, at, '\0', LINE_PATH_MAX, &lengths[i], err)) {
			return false;
		}
		at += lengths[i] + 1;
	}
	const char *live = buf_span(&lines->buf).data; // reading more may have moved it
	for (size_t i = 0; form[i]; i++) {
		if (!parse_field(form[i], (struct span){live + offsets[i], lengths[i]}, out)) {
			return error_set(err, ERROR_PROTOCOL,
				"the sandbox sent \"%s\" with an invalid value",
				kinds[out->kind].name);
		}
	}
	lines->consume = at;
	return true;
}

/* ---- objects ---- */

static bool parse_type(struct span text, git_object_t *out)
{
	static const struct {
		const char *name;
		git_object_t type;
	} types[] = {{"blob", GIT_OBJECT_BLOB}, {"tree", GIT_OBJECT_TREE},
		{"commit", GIT_OBJECT_COMMIT}};
	for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
		if (span_is(text, types[i].name)) {
			*out = types[i].type;
			return true;
		}
	}
	return false;
}

/* "ID TYPE SIZE" */
static bool parse_header(struct span header, struct line_object *out, uint64_t *out_size)
{
	if (header.len < GIT_OID_HEXSZ + 2 || header.data[GIT_OID_HEXSZ] != ' ' ||
		!parse_id((struct span){header.data, GIT_OID_HEXSZ}, &out->id)) {
		return false;
	}
	struct span rest = {header.data + GIT_OID_HEXSZ + 1, header.len - GIT_OID_HEXSZ - 1};
	const char *space = memchr(rest.data, ' ', rest.len);
	if (!space) {
		return false;
	}
	size_t length = (size_t)(space - rest.data);
	return parse_type((struct span){rest.data, length}, &out->type) &&
	       parse_number((struct span){space + 1, rest.len - length - 1}, out_size);
}

/* Takes the next bytes of an object's content, and its terminator. */
static bool take_content(
	struct lines *lines, struct line_object *object, size_t count, struct error *err)
{
	size_t from = lines->consume;
	size_t all = from + count + (count == object->left ? 1 : 0);
	while (lines->buf.len < all) {
		if (!read_more(lines, err)) {
			return false;
		}
	}
	object->content = (struct span){buf_span(&lines->buf).data + from, count};
	object->left -= count;
	lines->consume = all;
	return object->left > 0 || object->content.data[count] == '\n' ||
	       error_set(err, ERROR_PROTOCOL, "the sandbox sent an object without its end");
}

bool lines_next_object(struct lines *lines, struct line_object *out, struct error *err)
{
	size_t header;
	uint64_t size;
	release(lines);
	*out = (struct line_object){0};
	if (!find_word(lines, 0, '\n', HEADER_MAX, &header, err)) {
		return false;
	}
	if (!parse_header((struct span){buf_span(&lines->buf).data, header}, out, &size)) {
		return error_set(
			err, ERROR_PROTOCOL, "the sandbox sent something that is not an object");
	}
	lines->consume = header + 1;
	size_t max = lines->buf.max - CHUNK - LINE_PATH_MAX;
	bool is_stream = size > max && lines->has_streams && out->type == GIT_OBJECT_BLOB;
	uint64_t size_max = is_stream ? lines->received_max - lines->received : max;
	if (size > size_max) {
		return error_set(err, ERROR_LIMIT,
			"the sandbox sent an object of %llu bytes; the limit is %llu",
			(unsigned long long)size, (unsigned long long)size_max);
	}
	out->left = size;
	return is_stream || take_content(lines, out, (size_t)size, err);
}

bool lines_next_piece(struct lines *lines, struct line_object *object, struct error *err)
{
	size_t piece = object->left < PIECE ? (size_t)object->left : PIECE;
	release(lines);
	return take_content(lines, object, piece, err);
}
