/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/config_text.h"
#include "tests/fuzz/fuzz.h"

static void put(struct buf *out, char byte)
{
	buf_add(out, (struct span){&byte, 1});
}

/* A section's name has only the first two escapes. */
static void put_quoted(struct buf *out, struct span text, size_t escapes)
{
	static const char bytes[] = "\\\"\n\t\b", letters[] = "\\\"ntb";
	put(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		const char *at = memchr(bytes, text.data[i], escapes);
		if (at) {
			put(out, '\\');
			put(out, letters[at - bytes]);
		} else {
			put(out, text.data[i]);
		}
	}
	put(out, '"');
}

/* A setting that is written anew is read as the same setting. */
static void check_again(const char *key, const char *value)
{
	const char *first = strchr(key, '.'), *last = strrchr(key, '.');
	struct config_text source;
	struct buf text;
	char *key_again = NULL, *value_again = NULL;
	buf_init(&text, 2 * (strlen(key) + (value ? strlen(value) : 0)) + 16);
	if (first) {
		put(&text, '[');
		buf_add(&text, (struct span){key, (size_t)(first - key)});
		if (last > first) {
			put(&text, ' ');
			put_quoted(&text, (struct span){first + 1, (size_t)(last - first) - 1}, 2);
		}
		put(&text, ']');
	}
	buf_add(&text, span_of(last ? last + 1 : key));
	if (value) {
		put(&text, '=');
		put_quoted(&text, span_of(value), 5);
	}
	config_text_init(&source, buf_span(&text));
	FUZZ_CHECK(config_text_next(&source, &key_again, &value_again) == CONFIG_TEXT_SETTING);
	FUZZ_CHECK(strcmp(key, key_again) == 0 && !value == !value_again);
	FUZZ_CHECK(!value || strcmp(value, value_again) == 0);
	free(key_again);
	free(value_again);
	FUZZ_CHECK(config_text_next(&source, &key_again, &value_again) == CONFIG_TEXT_END);
	config_text_finish(&source);
	buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_text source;
	struct span text = {(const char *)data, size};
	size_t lines = 1;
	if (size > 0 && memchr(data, '\0', size)) {
		return 0;
	}
	for (size_t i = 0; i < size; i++) {
		lines += data[i] == '\n';
	}
	config_text_init(&source, text);
	for (size_t i = 0;; i++) {
		char *key, *value;
		enum config_text_step step = config_text_next(&source, &key, &value);
		FUZZ_CHECK(i <= size && source.line <= lines);
		if (step != CONFIG_TEXT_SETTING) {
			FUZZ_CHECK((step == CONFIG_TEXT_WRONG) == (source.wrong != NULL));
			break;
		}
		check_again(key, value);
		free(key);
		free(value);
	}
	config_text_finish(&source);
	return 0;
}
