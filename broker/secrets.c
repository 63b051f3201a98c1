/* SPDX-License-Identifier: MIT */
#include "broker/secrets.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acp/json_writer.h"

enum {
	SECRETS_MAX = 256,    // values that are masked
	SECRET_MIN_BYTES = 6, // a shorter value would mask half of every message
	MASK_BYTES = 3,
};

static const char *const secret_endings[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"};

struct secrets {
	char *values[SECRETS_MAX]; // as they look inside a JSON string; the longest first
	int count;
};

static bool name_is_secret(struct span name, const char *const *names)
{
	for (size_t i = 0; names && names[i]; i++) {
		if (span_is(name, names[i])) {
			return true;
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(secret_endings); i++) {
		size_t len = strlen(secret_endings[i]);
		if (name.len >= len &&
			strncasecmp(name.data + name.len - len, secret_endings[i], len) == 0) {
			return true;
		}
	}
	return false;
}

/* A secret that begins with another one is masked whole only when it comes first. */
static void insert(struct secrets *secrets, char *value)
{
	int at = secrets->count++;
	while (at > 0 && strlen(secrets->values[at - 1]) < strlen(value)) {
		secrets->values[at] = secrets->values[at - 1];
		at--;
	}
	secrets->values[at] = value;
}

/* The value as JSON spells it, so that it is found in a message. */
static void add(struct secrets *secrets, const char *value)
{
	struct buf text;
	struct json_writer writer;
	if (strlen(value) < SECRET_MIN_BYTES || secrets->count == SECRETS_MAX) {
		return;
	}
	buf_init(&text, SIZE_MAX / 2);
	json_write_begin(&writer, &text);
	json_write_text(&writer, value);
	if (json_write_end(&writer, NULL)) {
		struct span quoted = buf_span(&text);
		insert(secrets, mem_strndup((struct span){quoted.data + 1, quoted.len - 2}));
		explicit_bzero(text.data + text.head, text.len);
	}
	buf_finish(&text);
}

struct secrets *secrets_create(const char *const *environment, const char *const *names)
{
	struct secrets *secrets = mem_alloc_zero(sizeof(*secrets));
	for (size_t i = 0; environment[i]; i++) {
		const char *equals = strchr(environment[i], '=');
		if (!equals) {
			continue;
		}
		struct span name = {environment[i], (size_t)(equals - environment[i])};
		if (name_is_secret(name, names)) {
			add(secrets, equals + 1);
		}
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

/* Blanks every occurrence of one secret, and closes the gap. */
static void mask_everywhere(struct buf *text, const char *secret)
{
	size_t len = strlen(secret);
	size_t at = 0;
	char *data = text->data + text->head;
	while (at < text->len) {
		char *found = memmem(data + at, text->len - at, secret, len);
		if (!found) {
			return;
		}
		size_t start = (size_t)(found - data);
		memcpy(found, "***", MASK_BYTES);
		memmove(found + MASK_BYTES, found + len, text->len - start - len);
		text->len -= len - MASK_BYTES;
		at = start + MASK_BYTES;
	}
}

void secrets_mask(const struct secrets *secrets, struct buf *json)
{
	for (int i = 0; i < secrets->count; i++) {
		mask_everywhere(json, secrets->values[i]);
	}
}
