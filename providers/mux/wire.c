/* SPDX-License-Identifier: MIT */
#include "providers/mux/wire.h"

#include <endian.h>
#include <string.h>

#include "base/utf8.h"

enum { UTF8_MAX = 4 }; // bytes of a character

/* ---- frames ---- */

void runner_put_header(char out[RUNNER_HEADER], const struct runner_header *header)
{
	uint16_t size = htole16((uint16_t)header->size);
	uint32_t stream = htole32(header->stream);
	uint64_t number = htole64(header->number);
	memcpy(out, &size, 2);
	out[2] = (char)header->type;
	out[3] = (char)header->flags;
	memcpy(out + 4, &stream, 4);
	memcpy(out + 8, &number, 8);
}

bool runner_get_header(const char bytes[RUNNER_HEADER], struct runner_header *out)
{
	uint16_t size;
	uint32_t stream;
	uint64_t number;
	memcpy(&size, bytes, 2);
	memcpy(&stream, bytes + 4, 4);
	memcpy(&number, bytes + 8, 8);
	*out = (struct runner_header){.size = le16toh(size),
		.type = (uint8_t)bytes[2],
		.flags = (uint8_t)bytes[3],
		.stream = le32toh(stream),
		.number = le64toh(number)};
	return out->size <= RUNNER_PAYLOAD_MAX;
}

bool runner_find_line(struct span text, const char *name, struct span *out)
{
	size_t name_len = strlen(name);
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		if (len > name_len && memcmp(text.data, name, name_len) == 0 &&
			text.data[name_len] == '=') {
			*out = (struct span){text.data + name_len + 1, len - name_len - 1};
			return true;
		}
		size_t skipped = end ? len + 1 : len;
		text = (struct span){text.data + skipped, text.len - skipped};
	}
	return false;
}

/* ---- the fields of each kind ---- */

enum field_type { FIELD_NUMBER, FIELD_TEXT, FIELD_WORDS, FIELD_STREAM };

struct field {
	enum field_type type;
	size_t offset; // in struct runner_message
};

#define FIELD(kind, member)                                                                        \
	{                                                                                          \
		FIELD_##kind, offsetof(struct runner_message, member)                              \
	}

static const struct field exec_fields[] = {
	FIELD(WORDS, exec.argv),
	FIELD(WORDS, exec.env),
	FIELD(TEXT, exec.cwd),
	FIELD(NUMBER, exec.cwd_root),
	FIELD(STREAM, exec.in),
	FIELD(STREAM, exec.out),
	FIELD(STREAM, exec.err),
	FIELD(NUMBER, exec.is_bulk),
	FIELD(NUMBER, exec.is_grouped),
	FIELD(NUMBER, exec.has_terminal),
	FIELD(NUMBER, exec.size.rows),
	FIELD(NUMBER, exec.size.columns),
};
static const struct field file_fields[] = {
	FIELD(TEXT, file.path),
	FIELD(NUMBER, file.no_links),
	FIELD(NUMBER, file.asks_mount),
	FIELD(NUMBER, file.size),
	FIELD(STREAM, file.stream),
};
static const struct field failure_fields[] = {
	FIELD(NUMBER, failure.code),
	FIELD(TEXT, failure.reason),
	FIELD(TEXT, failure.text),
};
static const struct field grace_fields[] = {
	FIELD(NUMBER, grace.ms),
	FIELD(NUMBER, grace.is_suspend),
};
static const struct field connect_fields[] = {
	FIELD(NUMBER, connect.port),
	FIELD(STREAM, connect.in),
	FIELD(STREAM, connect.out),
};
static const struct field resize_fields[] = {
	FIELD(NUMBER, resize.rows),
	FIELD(NUMBER, resize.columns),
};
static const struct field exit_fields[] = {
	FIELD(NUMBER, exit.code),
	FIELD(NUMBER, exit.signal),
};
static const struct field status_fields[] = {
	FIELD(NUMBER, status_of.mode),
	FIELD(NUMBER, status_of.size),
	FIELD(NUMBER, status_of.inode),
	FIELD(NUMBER, status_of.device),
	FIELD(NUMBER, status_of.links),
	FIELD(NUMBER, status_of.uid),
	FIELD(NUMBER, status_of.gid),
	FIELD(NUMBER, status_of.mtime_s),
	FIELD(NUMBER, status_of.mtime_ns),
	FIELD(NUMBER, status_of.is_read_only),
};
static const struct field signal_fields[] = {FIELD(NUMBER, signal)};
static const struct field pid_fields[] = {FIELD(NUMBER, pid)};
static const struct field size_fields[] = {FIELD(NUMBER, size)};

struct layout {
	enum runner_kind kind;
	const struct field *fields;
	size_t count;
};

#define LAYOUT(kind, fields)                                                                       \
	{                                                                                          \
		kind, fields, ARRAY_LENGTH(fields)                                                 \
	}

static const struct layout layouts[] = {
	{RUNNER_RESET, NULL, 0},
	LAYOUT(RUNNER_EXEC, exec_fields),
	LAYOUT(RUNNER_SIGNAL, signal_fields),
	{RUNNER_KILL, NULL, 0},
	{RUNNER_RELEASE, NULL, 0},
	{RUNNER_FREEZE, NULL, 0},
	{RUNNER_THAW, NULL, 0},
	LAYOUT(RUNNER_ROOT_ADD, file_fields),
	LAYOUT(RUNNER_ROOT_REMOVE, file_fields),
	LAYOUT(RUNNER_READ, file_fields),
	LAYOUT(RUNNER_WRITE, file_fields),
	LAYOUT(RUNNER_STAT, file_fields),
	LAYOUT(RUNNER_RESOLVE, file_fields),
	LAYOUT(RUNNER_LIST, file_fields),
	{RUNNER_CANCEL, NULL, 0},
	LAYOUT(RUNNER_GRACE, grace_fields),
	LAYOUT(RUNNER_CONNECT, connect_fields),
	LAYOUT(RUNNER_RESIZE, resize_fields),
	LAYOUT(RUNNER_STARTED, pid_fields),
	LAYOUT(RUNNER_FAILED, failure_fields),
	LAYOUT(RUNNER_EXITED, exit_fields),
	{RUNNER_EMPTIED, NULL, 0},
	LAYOUT(RUNNER_FROZEN, failure_fields),
	{RUNNER_THAWED, NULL, 0},
	LAYOUT(RUNNER_DONE, size_fields),
	LAYOUT(RUNNER_PATH, file_fields),
	LAYOUT(RUNNER_STATUS_OF, status_fields),
};

static const struct layout *find_layout(unsigned kind)
{
	for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++) {
		if ((unsigned)layouts[i].kind == kind) {
			return &layouts[i];
		}
	}
	return NULL;
}

/* ---- writing ---- */

static bool put_u64(struct buf *out, uint64_t value, struct error *err)
{
	value = htole64(value);
	return buf_append(out, (struct span){(const char *)&value, sizeof(value)}, err);
}

static bool put_u32(struct buf *out, uint32_t value, struct error *err)
{
	value = htole32(value);
	return buf_append(out, (struct span){(const char *)&value, sizeof(value)}, err);
}

static bool put_text(struct buf *out, struct span text, struct error *err)
{
	if (text.len > RUNNER_MESSAGE_MAX) {
		return error_set(err, ERROR_LIMIT, "a text of %zu bytes is too long", text.len);
	}
	return put_u32(out, (uint32_t)text.len, err) && buf_append(out, text, err);
}

static bool put_words(struct buf *out, const struct runner_words *words, struct error *err)
{
	size_t size = 0;
	for (size_t i = 0; words->list && words->list[i]; i++) {
		size += strlen(words->list[i]) + 1;
	}
	if (size > RUNNER_MESSAGE_MAX) {
		return error_set(err, ERROR_LIMIT, "arguments of %zu bytes are too long", size);
	}
	if (!put_u32(out, (uint32_t)size, err)) {
		return false;
	}
	for (size_t i = 0; words->list && words->list[i]; i++) {
		struct span word = {words->list[i], strlen(words->list[i]) + 1};
		if (!buf_append(out, word, err)) {
			return false;
		}
	}
	return true;
}

static bool put_field(
	struct buf *out, const struct field *field, const char *message, struct error *err)
{
	const void *at = message + field->offset;
	const struct runner_stream *stream = at;
	switch (field->type) {
	case FIELD_NUMBER:
		return put_u64(out, *(const uint64_t *)at, err);
	case FIELD_TEXT:
		return put_text(out, *(const struct span *)at, err);
	case FIELD_WORDS:
		return put_words(out, at, err);
	default:
		return put_u32(out, stream->stream, err) && put_u64(out, stream->window, err);
	}
}

bool runner_message_write(struct buf *out, const struct runner_message *message, struct error *err)
{
	const struct layout *layout = find_layout(message->kind);
	char kind = (char)message->kind;
	bool is_fine =
		buf_append(out, (struct span){&kind, 1}, err) && put_u64(out, message->id, err);
	for (size_t i = 0; layout && is_fine && i < layout->count; i++) {
		is_fine = put_field(out, &layout->fields[i], (const char *)message, err);
	}
	return is_fine;
}

/* ---- reading ---- */

static bool take(struct span *rest, void *out, size_t size)
{
	if (rest->len < size) {
		return false;
	}
	memcpy(out, rest->data, size);
	*rest = (struct span){rest->data + size, rest->len - size};
	return true;
}

static bool take_u64(struct span *rest, uint64_t *out)
{
	uint64_t value;
	if (!take(rest, &value, sizeof(value))) {
		return false;
	}
	*out = le64toh(value);
	return true;
}

static bool take_u32(struct span *rest, uint32_t *out)
{
	uint32_t value;
	if (!take(rest, &value, sizeof(value))) {
		return false;
	}
	*out = le32toh(value);
	return true;
}

static bool take_text(struct span *rest, struct span *out)
{
	uint32_t len;
	if (!take_u32(rest, &len) || len > rest->len) {
		return false;
	}
	*out = (struct span){rest->data, len};
	*rest = (struct span){rest->data + len, rest->len - len};
	return true;
}

static bool take_field(struct span *rest, const struct field *field, char *message)
{
	void *at = message + field->offset;
	struct runner_stream *stream = at;
	struct runner_words *words = at;
	switch (field->type) {
	case FIELD_NUMBER:
		return take_u64(rest, at);
	case FIELD_TEXT:
		return take_text(rest, at);
	case FIELD_WORDS:
		words->list = NULL;
		return take_text(rest, &words->packed) &&
		       (words->packed.len == 0 ||
			       words->packed.data[words->packed.len - 1] == '\0');
	default:
		return take_u32(rest, &stream->stream) && take_u64(rest, &stream->window);
	}
}

bool runner_message_read(struct span bytes, struct runner_message *out, struct error *err)
{
	uint8_t kind = 0;
	*out = (struct runner_message){0};
	bool is_fine = take(&bytes, &kind, 1) && take_u64(&bytes, &out->id);
	const struct layout *layout = is_fine ? find_layout(kind) : NULL;
	if (!layout) {
		return error_set(err, ERROR_PROTOCOL, "message of an unknown kind %u", kind);
	}
	out->kind = layout->kind;
	for (size_t i = 0; i < layout->count; i++) {
		if (!take_field(&bytes, &layout->fields[i], (char *)out)) {
			return error_set(
				err, ERROR_PROTOCOL, "message of kind %u is incomplete", kind);
		}
	}
	return true;
}

const char **runner_words_list(struct span packed)
{
	size_t count = 0;
	for (size_t i = 0; i < packed.len; i++) {
		count += packed.data[i] == '\0' ? 1 : 0;
	}
	const char **list = mem_alloc_zero((count + 1) * sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		list[i] = span_take_text(&packed);
	}
	return list;
}

/* ---- errors ---- */

/* The reasons that a runner can report. */
static const char *const reasons[] = {"SECURITY_VIOLATION", "DIRECTORY_NOT_FOUND"};

void runner_set_failure(struct runner_message *out, uint64_t id, const struct error *err)
{
	*out = (struct runner_message){.kind = RUNNER_FAILED,
		.id = id,
		.failure = {.code = err->code,
			.reason = span_of(err->reason ? err->reason : ""),
			.text = span_of(err->text)}};
}

void runner_show(char *out, size_t size, struct span text)
{
	size_t len = 0;
	while (text.len > 0 && len + UTF8_MAX < size) {
		size_t used = utf8_char_length(text);
		if (used == 0 || utf8_is_hidden(text)) {
			used = used == 0 ? 1 : used;
			out[len++] = '?';
		} else {
			memcpy(out + len, text.data, used);
			len += used;
		}
		text = (struct span){text.data + used, text.len - used};
	}
	out[len] = '\0';
}

void runner_get_failure(const struct runner_failure *failure, struct error *out)
{
	const char *reason = NULL;
	bool is_known = failure->code > ERROR_NONE && failure->code <= ERROR_TIMEOUT;
	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		reason = span_is(failure->reason, reasons[i]) ? reasons[i] : reason;
	}
	error_set_reason(
		out, is_known ? (enum error_code)failure->code : ERROR_SYSTEM, reason, "%s", "");
	runner_show(out->text, sizeof(out->text), failure->text);
}
