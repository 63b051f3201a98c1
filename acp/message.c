/* SPDX-License-Identifier: MIT */
#include "acp/message.h"

#include <string.h>

#include "base/json_doc.h"
#include "base/buf.h"

const struct json_hit *message_hit(const struct message *message, enum place place)
{
	return json_check_find(message->check, place);
}

struct span message_place(const struct message *message, enum place place)
{
	const struct json_hit *hit = message_hit(message, place);
	if (!hit) {
		return (struct span){NULL, 0};
	}
	return (struct span){message->text.data + hit->start, hit->end - hit->start};
}

/* Decodes a JSON string into a terminated text of at most `size` bytes. */
static bool decode_text(struct span raw, char *out, size_t size)
{
	if (raw.len < 2 || raw.data[0] != '"') {
		return false;
	}
	struct span inner = {raw.data + 1, raw.len - 2};
	if (!memchr(inner.data, '\\', inner.len)) {
		if (inner.len >= size) {
			return false;
		}
		memcpy(out, inner.data, inner.len);
		out[inner.len] = '\0';
		return true;
	}
	struct buf text;
	buf_init(&text, size - 1);
	bool ok = json_decode_string(raw, &text, NULL) &&
	          !memchr(buf_span(&text).data, '\0', text.len);
	if (ok) {
		memcpy(out, buf_span(&text).data, text.len);
		out[text.len] = '\0';
	}
	buf_finish(&text);
	return ok;
}

bool message_string(const struct message *message, enum place place, char *out, size_t size)
{
	return decode_text(message_place(message, place), out, size);
}

bool message_hit_string(
	const struct message *message, const struct json_hit *hit, char *out, size_t size)
{
	struct span raw = {message->text.data + hit->start, hit->end - hit->start};
	return decode_text(raw, out, size);
}

static bool is_object(struct span value)
{
	return value.len > 0 && value.data[0] == '{';
}

static bool is_structured(struct span value)
{
	return value.len > 0 && (value.data[0] == '{' || value.data[0] == '[');
}

/* An id is a string, a number or null (JSON-RPC 2.0, section 4). */
static bool is_id(struct span id)
{
	return id.len > 0 && (id.data[0] == '"' || id.data[0] == 'n' || id.data[0] == '-' ||
				     (id.data[0] >= '0' && id.data[0] <= '9'));
}

static bool read_call(struct message *message, struct span method, struct error *err)
{
	struct span params = message_place(message, PLACE_PARAMS);
	if (method.data[0] != '"') {
		return error_set(err, ERROR_PROTOCOL, "\"method\" is not a string");
	}
	if (params.len > 0 && !is_structured(params) && !span_is(params, "null")) {
		return error_set(
			err, ERROR_PROTOCOL, "\"params\" is neither an object nor an array");
	}
	if (message_hit(message, PLACE_RESULT) || message_hit(message, PLACE_ERROR)) {
		return error_set(err, ERROR_PROTOCOL,
			"a message with \"method\" may not have \"result\" or \"error\"");
	}
	if (!decode_text(method, message->method, sizeof(message->method))) {
		message->method[0] = '\0';
	}
	message->kind = message->id.len > 0 ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
	return true;
}

static bool read_response(struct message *message, struct error *err)
{
	bool has_result = message_hit(message, PLACE_RESULT) != NULL;
	message->is_error = message_hit(message, PLACE_ERROR) != NULL;
	if (has_result == message->is_error) {
		return error_set(err, ERROR_PROTOCOL,
			"no \"method\", and not exactly one of \"result\" and \"error\"");
	}
	if (message->is_error && !is_object(message_place(message, PLACE_ERROR))) {
		return error_set(err, ERROR_PROTOCOL, "\"error\" is not an object");
	}
	if (message->id.len == 0) {
		return error_set(err, ERROR_PROTOCOL, "a response without an \"id\"");
	}
	message->method[0] = '\0';
	message->kind = MESSAGE_RESPONSE;
	return true;
}

bool message_read(struct message *message, const struct frame *frame, struct error *err)
{
	*message = (struct message){.text = frame->bytes, .check = frame->check};
	const char *first = frame->bytes.data;
	size_t blank = strspn(first, " \t\r");
	if (blank < frame->bytes.len && first[blank] == '[') {
		return error_set(err, ERROR_PROTOCOL, "batches are not part of ACP");
	}
	if (blank >= frame->bytes.len || first[blank] != '{') {
		return error_set(err, ERROR_PROTOCOL, "not a JSON object");
	}
	if (!span_is(message_place(message, PLACE_JSONRPC), "\"2.0\"")) {
		return error_set(err, ERROR_PROTOCOL, "\"jsonrpc\" is not \"2.0\"");
	}
	message->id = message_place(message, PLACE_ID);
	if (message->id.len > 0 && !is_id(message->id)) {
		return error_set(
			err, ERROR_PROTOCOL, "\"id\" is neither a string nor a number nor null");
	}
	if (message->id.len > JSON_KEEP_MAX) {
		return error_set(
			err, ERROR_PROTOCOL, "\"id\" is longer than %d bytes", JSON_KEEP_MAX);
	}
	struct span method = message_place(message, PLACE_METHOD);
	if (method.len > 0) {
		return read_call(message, method, err);
	}
	return read_response(message, err);
}

struct span message_broken_id(const struct frame *frame)
{
	struct span id;
	if (!json_check_kept(frame->check, PLACE_ID, &id) || !is_id(id)) {
		return (struct span){NULL, 0};
	}
	return id;
}

bool message_broken_has_method(const struct frame *frame)
{
	return json_check_find(frame->check, PLACE_METHOD) != NULL;
}

bool message_broken_is_response(const struct frame *frame)
{
	return !message_broken_has_method(frame) &&
	       (json_check_find(frame->check, PLACE_RESULT) ||
		       json_check_find(frame->check, PLACE_ERROR));
}
