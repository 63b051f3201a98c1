/* SPDX-License-Identifier: MIT */
#include "broker/init/profile_text.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 100 };

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool profile_text_is_name(const char *name)
{
	size_t len = strlen(name);
	return len > 0 && len <= NAME_MAX_BYTES && name[0] != '-' &&
	       strspn(name, LETTERS_AND_DIGITS "._@-") == len;
}

/* Appends a value: in quotes, unless it is sure that git-config(1) reads it back without. */
static void append_value(struct buf *out, const char *value)
{
	size_t len = strlen(value);
	size_t size = len * 4 + 16;
	bool is_plain = len > 0 && value[0] != ' ' && value[len - 1] != ' ' &&
	                strspn(value, LETTERS_AND_DIGITS "._@-/:+=, ") == len;
	char *quoted = mem_alloc(size);
	buf_add(out, span_of(is_plain ? value : setting_quote(quoted, size, value)));
	free(quoted);
}

static void append_keys(const struct settings *settings, const char *indent, struct buf *out)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		buf_add(out, span_of(indent));
		buf_add(out, span_of(setting->key));
		buf_add(out, SPAN_LITERAL(" = "));
		append_value(out, setting->value ? setting->value : "");
		buf_add(out, SPAN_LITERAL("\n"));
	}
}

void profile_text_write_keys(const struct settings *settings, struct buf *out)
{
	append_keys(settings, "", out);
}

void profile_text_write(const char *name, const struct settings *settings, struct buf *out)
{
	buf_add(out, SPAN_LITERAL("[profile \""));
	buf_add(out, span_of(name));
	buf_add(out, SPAN_LITERAL("\"]\n"));
	append_keys(settings, "\t", out);
}

static size_t count(const struct settings *settings)
{
	size_t total = 0;
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		total++;
	}
	return total;
}

static size_t count_of(const struct settings *settings, const struct setting *wanted)
{
	size_t total = 0;
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		bool has_value = setting->value && wanted->value;
		total += strcmp(setting->key, wanted->key) == 0 &&
		         (has_value ? strcmp(setting->value, wanted->value) == 0
				    : setting->value == wanted->value);
	}
	return total;
}

bool profile_text_is_same(const struct settings *one, const struct settings *other)
{
	LIST_FOR_EACH(setting, &one->list, struct setting, link) {
		if (count_of(other, setting) != count_of(one, setting)) {
			return false;
		}
	}
	return count(one) == count(other);
}

void profile_text_add(
	const struct span *old, const char *name, const struct settings *settings, struct buf *out)
{
	if (!old) {
		buf_add(out,
			SPAN_LITERAL("# Made by acp-broker init. acp-broker.config(5) describes "
				     "every key;\n"
				     "# acp-broker check prints what the file means.\n\n"
				     "[broker]\n\tprofile = "));
		append_value(out, name);
		buf_add(out, SPAN_LITERAL("  ; without --profile\n\n"));
	} else {
		buf_add(out, *old);
		buf_add(out, span_of(old->len == 0                     ? ""
				     : old->data[old->len - 1] == '\n' ? "\n"
								       : "\n\n"));
	}
	profile_text_write(name, settings, out);
}
