/* SPDX-License-Identifier: MIT */
#include "tests/support/agent/raw.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct span skip_space(struct span text)
{
	while (text.len > 0 && strchr(" \t\r\n", text.data[0]) != NULL && text.data[0] != '\0') {
		text.data++;
		text.len--;
	}
	return text;
}

static struct span skip(struct span text, size_t count)
{
	return (struct span){text.data + count, text.len - count};
}

/* The length of the string at the beginning of the text, with its quotes; 0 if it never ends. */
static size_t string_length(struct span text)
{
	for (size_t at = 1; at < text.len; at++) {
		if (text.data[at] == '\\') {
			at++;
		} else if (text.data[at] == '"') {
			return at + 1;
		}
	}
	return 0;
}

static size_t container_length(struct span text)
{
	size_t depth = 0;
	size_t at = 0;
	while (at < text.len) {
		char byte = text.data[at];
		if (byte == '"') {
			size_t length = string_length(skip(text, at));
			if (length == 0) {
				return 0;
			}
			at += length;
			continue;
		}
		at++;
		if (byte == '{' || byte == '[') {
			depth++;
		} else if ((byte == '}' || byte == ']') && --depth == 0) {
			return at;
		}
	}
	return 0;
}

static size_t word_length(struct span text)
{
	size_t at = 0;
	while (at < text.len && text.data[at] != '\0' &&
		strchr(",]}: \t\r\n", text.data[at]) == NULL) {
		at++;
	}
	return at;
}

struct span raw_value(struct span text)
{
	text = skip_space(text);
	if (text.len == 0) {
		return text;
	}
	size_t length = 0;
	if (text.data[0] == '"') {
		length = string_length(text);
	} else if (text.data[0] == '{' || text.data[0] == '[') {
		length = container_length(text);
	} else {
		length = word_length(text);
	}
	return (struct span){text.data, length};
}

static bool name_is(struct span raw, const char *name)
{
	char *decoded = raw_text(raw);
	bool same = decoded != NULL && strcmp(decoded, name) == 0;
	free(decoded);
	return same;
}

static const char *value_end(struct span value)
{
	return value.data + value.len;
}

struct span raw_member(struct span object, const char *name)
{
	const struct span none = {NULL, 0};
	object = skip_space(object);
	if (object.len < 2 || object.data[0] != '{') {
		return none;
	}
	const char *end = object.data + object.len;
	struct span rest = skip(object, 1);
	for (;;) {
		struct span key = raw_value(rest);
		if (key.len == 0 || key.data[0] != '"') {
			return none;
		}
		rest = skip_space((struct span){value_end(key), (size_t)(end - value_end(key))});
		if (rest.len == 0 || rest.data[0] != ':') {
			return none;
		}
		struct span value = raw_value(skip(rest, 1));
		if (value.len == 0) {
			return none;
		}
		if (name_is(key, name)) {
			return value;
		}
		rest = skip_space(
			(struct span){value_end(value), (size_t)(end - value_end(value))});
		if (rest.len == 0 || rest.data[0] != ',') {
			return none;
		}
		rest = skip(rest, 1);
	}
}

struct span raw_path(struct span object, const char *dotted)
{
	char name[64];
	while (dotted[0] != '\0') {
		size_t length = strcspn(dotted, ".");
		snprintf(name, sizeof(name), "%.*s", (int)length, dotted);
		object = raw_member(object, name);
		dotted += dotted[length] == '.' ? length + 1 : length;
	}
	return object;
}

bool raw_next_element(struct span *rest, struct span *out_element)
{
	*rest = skip_space(*rest);
	if (rest->len < 2 || (rest->data[0] != '[' && rest->data[0] != ',')) {
		return false;
	}
	struct span value = raw_value(skip(*rest, 1));
	if (value.len == 0) {
		return false;
	}
	const char *end = rest->data + rest->len;
	*rest = (struct span){value_end(value), (size_t)(end - value_end(value))};
	*out_element = value;
	return true;
}

static char *put_code_point(char *at, uint32_t code)
{
	if (code < 0x80) {
		*at++ = (char)code;
	} else if (code < 0x800) {
		*at++ = (char)(0xc0 | (code >> 6));
		*at++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*at++ = (char)(0xe0 | (code >> 12));
		*at++ = (char)(0x80 | ((code >> 6) & 0x3f));
		*at++ = (char)(0x80 | (code & 0x3f));
	} else {
		*at++ = (char)(0xf0 | (code >> 18));
		*at++ = (char)(0x80 | ((code >> 12) & 0x3f));
		*at++ = (char)(0x80 | ((code >> 6) & 0x3f));
		*at++ = (char)(0x80 | (code & 0x3f));
	}
	return at;
}

static uint32_t hex_quad(const char *digits)
{
	char text[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};
	return (uint32_t)strtoul(text, NULL, 16);
}

/* Decodes the escape at *from (after its backslash), writes it, and moves *from past it. */
static char *put_escape(char *at, const char **from, const char *end)
{
	static const char letters[] = "bfnrt";
	static const char bytes[] = "\b\f\n\r\t";
	char letter = *(*from)++;
	const char *found = letter == '\0' ? NULL : strchr(letters, letter);
	if (found != NULL) {
		*at++ = bytes[found - letters];
		return at;
	}
	if (letter != 'u' || end - *from < 4) {
		*at++ = letter;
		return at;
	}
	uint32_t code = hex_quad(*from);
	*from += 4;
	bool high = code >= 0xd800 && code < 0xdc00;
	if (high && end - *from >= 6 && (*from)[0] == '\\' && (*from)[1] == 'u') {
		uint32_t low = hex_quad(*from + 2);
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		*from += 6;
	}
	return put_code_point(at, code);
}

char *raw_text(struct span value)
{
	if (value.len < 2 || value.data[0] != '"' || value.data[value.len - 1] != '"') {
		return NULL;
	}
	const char *from = value.data + 1;
	const char *end = value.data + value.len - 1;
	char *text = mem_alloc(value.len);
	char *at = text;
	while (from < end) {
		if (*from != '\\') {
			*at++ = *from++;
			continue;
		}
		from++;
		at = put_escape(at, &from, end);
	}
	*at = '\0';
	return text;
}

char *raw_quote(struct span text)
{
	char *quoted = mem_alloc(text.len * 6 + 3);
	char *at = quoted;
	*at++ = '"';
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		if (byte == '"' || byte == '\\') {
			*at++ = '\\';
			*at++ = (char)byte;
		} else if (byte == '\n') {
			*at++ = '\\';
			*at++ = 'n';
		} else if (byte < 0x20) {
			at += snprintf(at, 7, "\\u%04x", byte);
		} else {
			*at++ = (char)byte;
		}
	}
	*at++ = '"';
	*at = '\0';
	return quoted;
}
