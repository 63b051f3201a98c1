/* SPDX-License-Identifier: MIT */
#include "base/secrets.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/settings.h"

enum {
	SECRETS_MAX = 256,           // masked values
	SECRET_LINE_MIN_BYTES = 16,  // of one line of a value
	SECRET_MIN_BYTES = 6,        // a shorter value would mask half of every message
	SECRET_THERE_MIN_BYTES = 16, // from another host, whose names nobody here has chosen
};

struct secrets {
	char *values[SECRETS_MAX]; // owned; decoded like a JSON string; longest first
	int count;
	bool is_short;    // there was no room for more
	bool begins[256]; // indexed by a value's first byte
};

static bool is_named(struct span name, const char *const *names)
{
	for (size_t i = 0; names && names[i]; i++) {
		if (span_is(name, names[i])) {
			return true;
		}
	}
	return false;
}

/*
 * Refuses words as they occur in a command line or a sentence: the host would choose words that no
 * log shows.
 */
static bool looks_secret(const char *value)
{
	return strlen(value) >= SECRET_THERE_MIN_BYTES && !strpbrk(value, " \t");
}

static bool has(const struct secrets *secrets, const char *value)
{
	for (int i = 0; i < secrets->count; i++) {
		if (strcmp(secrets->values[i], value) == 0) {
			return true;
		}
	}
	return false;
}

/* A secret that begins with another one is only masked completely if it comes first. */
static void insert(struct secrets *secrets, char *value)
{
	if (secrets->count == SECRETS_MAX || has(secrets, value)) {
		secrets->is_short = secrets->is_short || !has(secrets, value);
		mem_wipe_free(value);
		return;
	}
	int at = secrets->count++;
	while (at > 0 && strlen(secrets->values[at - 1]) < strlen(value)) {
		secrets->values[at] = secrets->values[at - 1];
		at--;
	}
	secrets->values[at] = value;
	secrets->begins[(unsigned char)value[0]] = true;
}

static void wipe(struct buf *buf)
{
	if (buf->data) {
		explicit_bzero(buf->data + buf->head, buf->len);
	}
	buf_finish(buf);
}

/* Adds a value as JSON returns it, with a replacement character for bytes that are not UTF-8. */
static void add(struct secrets *secrets, const char *value)
{
	struct buf quoted;
	struct buf plain;
	struct json_writer writer;
	if (strlen(value) < SECRET_MIN_BYTES) {
		return;
	}
	buf_init(&quoted, SIZE_MAX / 2);
	buf_init(&plain, SIZE_MAX / 2);
	json_write_begin(&writer, &quoted);
	json_write_text(&writer, value);
	if (json_write_end(&writer, NULL) && json_decode_string(buf_span(&quoted), &plain, NULL)) {
		insert(secrets, mem_strndup(buf_span(&plain)));
	}
	wipe(&quoted);
	wipe(&plain);
}

/* Adds the lines of a value with several, such as a key in PEM: a log has them one by one. */
static void add_lines(struct secrets *secrets, const char *value)
{
	while (strchr(value, '\n')) {
		size_t len = strcspn(value, "\n");
		char *line = mem_strndup((struct span){value, len});
		if (len >= SECRET_LINE_MIN_BYTES) {
			add(secrets, line);
		}
		mem_wipe_free(line);
		value += len + 1;
		if (!strchr(value, '\n') && strlen(value) >= SECRET_LINE_MIN_BYTES) {
			add(secrets, value);
		}
	}
}

static bool learn(struct secrets *secrets, const char *const *environment, const char *const *names,
	bool is_from_there)
{
	secrets->is_short = false;
	for (size_t i = 0; environment[i]; i++) {
		const char *equals = strchr(environment[i], '=');
		if (!equals) {
			continue;
		}
		struct span name = {environment[i], (size_t)(equals - environment[i])};
		bool is_secret = environment_name_is_secret(name.data, name.len) &&
		                 (!is_from_there || looks_secret(equals + 1));
		if (is_secret || is_named(name, names)) {
			add(secrets, equals + 1);
			add_lines(secrets, equals + 1);
		}
	}
	return !secrets->is_short;
}

bool secrets_learn(
	struct secrets *secrets, const char *const *environment, const char *const *names)
{
	return learn(secrets, environment, names, true);
}

struct secrets *secrets_create(const char *const *environment, const char *const *names)
{
	struct secrets *secrets = mem_alloc_zero(sizeof(*secrets));
	if (!learn(secrets, environment, names, false)) {
		log_warning("more than %d secrets in the environment: the others are not masked",
			SECRETS_MAX);
	}
	return secrets;
}

void secrets_destroy(struct secrets *secrets)
{
	if (!secrets) {
		return;
	}
	for (int i = 0; i < secrets->count; i++) {
		explicit_bzero(secrets->values[i], strlen(secrets->values[i]));
		free(secrets->values[i]);
	}
	free(secrets);
}

/* ---- masking ---- */

/* Text that is rewritten in place: it never grows. */
struct rewriting {
	const struct secrets *secrets;
	const char *from;
	const char *end;
	char *to;
};

static void put(struct rewriting *text, struct span bytes)
{
	memmove(text->to, bytes.data, bytes.len);
	text->to += bytes.len;
}

static void copy(struct rewriting *text, size_t len)
{
	put(text, (struct span){text->from, len});
	text->from += len;
}

static struct span rest_of(const struct rewriting *text)
{
	return (struct span){text->from, (size_t)(text->end - text->from)};
}

/*
 * Decodes the character at the beginning of the text, however it is spelled; returns its length
 * there.
 */
static size_t decode(struct span text, char out_bytes[UTF8_MAX], size_t *out_len)
{
	bool is_escape = text.data[0] == '\\' && text.len > 1;
	if (is_escape && (text.data[1] != 'u' || text.len >= 6)) {
		return json_decode_escape(text, out_bytes, out_len);
	}
	out_bytes[0] = text.data[0];
	*out_len = 1;
	return 1;
}

/* How many bytes at the beginning of a string's inside the secret matches; 0: it does not. */
static size_t match(struct span inside, const char *secret)
{
	size_t taken = 0;
	while (*secret) {
		struct span rest = {inside.data + taken, inside.len - taken};
		char bytes[UTF8_MAX];
		size_t len;
		if (rest.len == 0) {
			return 0;
		}
		size_t more = decode(rest, bytes, &len);
		if (strncmp(secret, bytes, len) != 0) {
			return 0;
		}
		secret += len;
		taken += more;
	}
	return taken;
}

/* Whether the text ends inside of its first character: "\\", "\\u", "\\u00". */
static bool is_cut_escape(struct span text)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	if (text.data[0] != '\\' || text.len == 1) {
		return text.data[0] == '\\';
	}
	bool is_cut = text.data[1] == 'u' && text.len < 6;
	for (size_t i = 2; is_cut && i < text.len; i++) {
		is_cut = memchr(digits, text.data[i], sizeof(digits) - 1) != NULL;
	}
	return is_cut;
}

/* Whether the text ends inside of a secret that begins at the text's beginning. */
static bool is_beginning(struct span text, const char *secret)
{
	while (*secret && text.len > 0 && !is_cut_escape(text)) {
		char bytes[UTF8_MAX];
		size_t len;
		size_t more = decode(text, bytes, &len);
		if (strncmp(secret, bytes, len) != 0) {
			return false;
		}
		secret += len;
		text = (struct span){text.data + more, text.len - more};
	}
	return *secret != '\0';
}

static bool begins_any(const struct secrets *secrets, struct span text)
{
	for (int i = 0; i < secrets->count; i++) {
		if (is_beginning(text, secrets->values[i])) {
			return true;
		}
	}
	return false;
}

static size_t match_any(const struct secrets *secrets, struct span inside)
{
	unsigned char first = (unsigned char)inside.data[0];
	if (first != '\\' && !secrets->begins[first]) {
		return 0;
	}
	for (int i = 0; i < secrets->count; i++) {
		size_t len = match(inside, secrets->values[i]);
		if (len > 0) {
			return len;
		}
	}
	return 0;
}

static void mask_character(struct rewriting *text)
{
	char ignored[UTF8_MAX];
	size_t len = match_any(text->secrets, rest_of(text));
	if (len > 0) {
		text->from += len;
		put(text, SPAN_LITERAL("***"));
	} else {
		copy(text, decode(rest_of(text), ignored, &len));
	}
}

/* Masks from the first byte inside of a string to its closing quote. */
static void mask_string(struct rewriting *text)
{
	while (text->from < text->end && *text->from != '"') {
		mask_character(text);
	}
}

/* Masks the text between two strings, where only numbers can contain a secret. */
static void mask_number(struct rewriting *text)
{
	struct span rest = rest_of(text);
	size_t len = 0;
	while (len < rest.len && strchr("+-.0123456789Ee", rest.data[len]) && rest.data[len]) {
		len++;
	}
	for (int i = 0; i < text->secrets->count; i++) {
		const char *secret = text->secrets->values[i];
		if (memmem(rest.data, len, secret, strlen(secret))) {
			text->from += len;
			put(text, SPAN_LITERAL("\"***\""));
			return;
		}
	}
	copy(text, len > 0 ? len : 1);
}

static void mask_json(struct rewriting *text)
{
	while (text->from < text->end) {
		if (*text->from != '"') {
			mask_number(text);
			continue;
		}
		copy(text, 1);
		mask_string(text);
		if (text->from < text->end) {
			copy(text, 1);
		}
	}
}

/* A backslash before a secret need not be JSON's: "C:\\token-1234". */
static void mask_plain(struct rewriting *text)
{
	struct span rest = rest_of(text);
	struct span next = {rest.data + 1, rest.len - 1};
	if (*text->from == '\\' && next.len > 0 && match_any(text->secrets, next) > 0) {
		copy(text, 1);
	}
	mask_character(text);
}

static void mask_text(struct rewriting *text)
{
	while (text->from < text->end) {
		mask_plain(text);
	}
}

/* Leaves out an end that may be the beginning of a secret. */
static void mask_cut_text(struct rewriting *text)
{
	while (text->from < text->end && !begins_any(text->secrets, rest_of(text))) {
		mask_plain(text);
	}
}

static void rewrite(
	const struct secrets *secrets, struct buf *buf, void (*mask)(struct rewriting *))
{
	if (secrets && secrets->count > 0 && buf->len > 0) {
		char *begin = buf->data + buf->head;
		struct rewriting text = {secrets, begin, begin + buf->len, begin};
		mask(&text);
		buf->len = (size_t)(text.to - begin);
	}
}

void secrets_mask(const struct secrets *secrets, struct buf *json)
{
	rewrite(secrets, json, mask_json);
}

void secrets_mask_text(const struct secrets *secrets, struct buf *text, bool is_cut)
{
	rewrite(secrets, text, is_cut ? mask_cut_text : mask_text);
}

size_t secrets_begun(const struct secrets *secrets, struct span text)
{
	for (; text.len > 0; text = (struct span){text.data + 1, text.len - 1}) {
		unsigned char first = (unsigned char)text.data[0];
		if ((first == '\\' || secrets->begins[first]) && begins_any(secrets, text)) {
			return text.len;
		}
	}
	return 0;
}

void secrets_log_line(
	const struct secrets *secrets, const char *subject, struct span line, bool is_cut)
{
	struct buf masked;
	if (!secrets || !log_is_on(LOG_LEVEL_INFO)) {
		log_line(LOG_LEVEL_INFO, subject, line);
		return;
	}
	buf_init(&masked, line.len);
	if (buf_append(&masked, line, NULL)) {
		secrets_mask_text(secrets, &masked, is_cut);
		log_line(LOG_LEVEL_INFO, subject, buf_span(&masked));
	}
	buf_finish(&masked);
}
