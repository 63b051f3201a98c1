/* SPDX-License-Identifier: MIT */
#include "providers/ssh/known_hosts_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/base64.h"
#include "providers/ssh/crypto.h"

static const char blanks[] = " \t";

static struct span next_part(struct span *rest, char separator)
{
	const char *end = rest->len > 0 ? memchr(rest->data, separator, rest->len) : NULL;
	struct span part = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t taken = end ? part.len + 1 : part.len;
	rest->data += taken;
	rest->len -= taken;
	return part;
}

/* ---- the line ---- */

/* RFC 4253, 6.6: a blob begins with the name of its type, as a string. */
static bool blob_is_of_type(const uint8_t *blob, size_t len, struct span type)
{
	if (len < 4 + type.len || type.len == 0) {
		return false;
	}
	uint32_t named = (uint32_t)blob[0] << 24 | (uint32_t)blob[1] << 16 |
	                 (uint32_t)blob[2] << 8 | blob[3];
	return named == type.len && memcmp(blob + 4, type.data, type.len) == 0;
}

static bool read_marker(struct span *rest, enum known_hosts_marker *out_marker)
{
	if (rest->len == 0 || rest->data[0] != '@') {
		*out_marker = KNOWN_HOSTS_PLAIN;
		return true;
	}
	struct span word = span_take_word(rest, blanks);
	*out_marker =
		span_is(word, "@revoked") ? KNOWN_HOSTS_MARK_REVOKED : KNOWN_HOSTS_MARK_AUTHORITY;
	return span_is(word, "@revoked") || span_is(word, "@cert-authority");
}

bool known_hosts_line_read(struct span text, struct known_hosts_line *out_line)
{
	struct known_hosts_line line = {0};
	if (text.len > 0 && text.data[text.len - 1] == '\r') {
		text.len--;
	}
	while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
		text = (struct span){text.data + 1, text.len - 1};
	}
	if (text.len == 0 || text.data[0] == '#' || !read_marker(&text, &line.marker)) {
		return false;
	}
	line.names = span_take_word(&text, blanks);
	line.type = span_take_word(&text, blanks);
	struct span key = span_take_word(&text, blanks);
	if (!base64_decode(key, &line.blob, &line.blob_len)) {
		return false;
	}
	if (!blob_is_of_type(line.blob, line.blob_len, line.type)) {
		free(line.blob);
		return false;
	}
	*out_line = line;
	return true;
}

void known_hosts_line_finish(struct known_hosts_line *line)
{
	free(line->blob);
	*line = (struct known_hosts_line){0};
}

/* ---- names ---- */

static bool byte_fits(char pattern, char byte)
{
	return pattern == '?' || tolower((unsigned char)pattern) == tolower((unsigned char)byte);
}

/* Backtracks only to the last `*`, so the time is bounded for every pattern. */
bool known_hosts_pattern_fits(struct span pattern, struct span text)
{
	size_t p = 0;
	size_t star = pattern.len; // position of the last `*`; pattern.len: none
	size_t star_at = 0;        // end of the text that the `*` matches
	for (size_t t = 0; t < text.len;) {
		if (p < pattern.len && pattern.data[p] == '*') {
			star = p++;
			star_at = t;
		} else if (p < pattern.len && byte_fits(pattern.data[p], text.data[t])) {
			p++;
			t++;
		} else if (star < pattern.len) {
			p = star + 1;
			t = ++star_at;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.data[p] == '*') {
		p++;
	}
	return p == pattern.len;
}

static bool list_fits(struct span list, struct span host)
{
	bool fits = false;
	while (list.len > 0) {
		struct span pattern = next_part(&list, ',');
		bool is_negated = pattern.len > 0 && pattern.data[0] == '!';
		if (is_negated) {
			pattern.data++;
			pattern.len--;
		}
		if (known_hosts_pattern_fits(pattern, host)) {
			if (is_negated) {
				return false;
			}
			fits = true;
		}
	}
	return fits;
}

char *known_hosts_hash(
	const char *host, const uint8_t salt[KNOWN_HOSTS_SALT_SIZE], struct error *err)
{
	uint8_t digest[CRYPTO_SHA1_SIZE];
	struct span key = {(const char *)salt, KNOWN_HOSTS_SALT_SIZE};
	if (!crypto_hmac_sha1(key, span_of(host), digest, err)) {
		return NULL;
	}
	char *salt_text = base64_encode(key);
	char *hash_text = base64_encode((struct span){(const char *)digest, sizeof(digest)});
	size_t size = strlen(salt_text) + strlen(hash_text) + 5;
	char *text = mem_alloc(size);
	text_whole(text, size, "|1|%s|%s", salt_text, hash_text);
	free(salt_text);
	free(hash_text);
	return text;
}

/* "|1|salt|hash": the HMAC-SHA1 of the name with the salt as its key. */
static bool hash_fits(struct span names, const char *host, bool *out_fit, struct error *err)
{
	uint8_t *salt = NULL;
	size_t salt_len = 0;
	struct span rest = names;
	next_part(&rest, '|');
	struct span kind = next_part(&rest, '|');
	struct span salt_text = next_part(&rest, '|');
	*out_fit = false;
	if (!span_is(kind, "1") || !base64_decode(salt_text, &salt, &salt_len)) {
		return true;
	}
	bool ok = true;
	if (salt_len == KNOWN_HOSTS_SALT_SIZE) {
		char *expected = known_hosts_hash(host, salt, err);
		ok = expected != NULL;
		*out_fit = ok && span_is(names, expected);
		free(expected);
	}
	free(salt);
	return ok;
}

bool known_hosts_names_fit(struct span names, const char *host, bool *out_fit, struct error *err)
{
	if (names.len > 0 && names.data[0] == '|') {
		return hash_fits(names, host, out_fit, err);
	}
	*out_fit = list_fits(names, span_of(host));
	return true;
}
