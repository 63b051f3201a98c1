/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/base64.h"
#include "providers/ssh/known_hosts_line.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first line is the host to look for, the others are a file of known hosts. A second matcher,
 * which tries everything, must find the same; a line that was read must be valid again when it is
 * put together from its parts.
 */
enum { NAIVE_MAX = 48, HOST_MAX = 64 };

/* ---- the second matcher ---- */

struct naive {
	const char *pattern;
	size_t pattern_len;
	const char *text;
	size_t text_len;
	char known[NAIVE_MAX + 1][HOST_MAX + 1]; // 0: not tried
};

static bool fits_from(struct naive *naive, size_t p, size_t t)
{
	char *known = &naive->known[p][t];
	if (*known) {
		return *known == 2;
	}
	bool fits = p == naive->pattern_len && t == naive->text_len;
	if (p < naive->pattern_len && naive->pattern[p] == '*') {
		fits = fits_from(naive, p + 1, t) ||
		       (t < naive->text_len && fits_from(naive, p, t + 1));
	} else if (p < naive->pattern_len && t < naive->text_len) {
		int byte = tolower((unsigned char)naive->pattern[p]);
		fits = (byte == '?' || byte == tolower((unsigned char)naive->text[t])) &&
		       fits_from(naive, p + 1, t + 1);
	}
	*known = fits ? 2 : 1;
	return fits;
}

static bool naive_fits(struct span pattern, const char *host)
{
	static struct naive naive;
	naive = (struct naive){pattern.data, pattern.len, host, strlen(host), {{0}}};
	return fits_from(&naive, 0, 0);
}

/* Returns false if a pattern is longer than the second matcher accepts. */
static bool naive_list(struct span names, const char *host, bool *out_fits)
{
	bool has_fit = false;
	bool is_refused = false;
	size_t begin = 0;
	for (size_t i = 0; i <= names.len; i++) {
		if (i < names.len && names.data[i] != ',') {
			continue;
		}
		struct span part = {names.data + begin, i - begin};
		bool is_negated = part.len > 0 && part.data[0] == '!';
		begin = i + 1;
		part.data += is_negated;
		part.len -= is_negated;
		if (part.len > NAIVE_MAX) {
			return false;
		}
		bool fits = naive_fits(part, host);
		is_refused = is_refused || (fits && is_negated);
		has_fit = has_fit || (fits && !is_negated);
	}
	*out_fits = has_fit && !is_refused;
	return true;
}

static void check_names(struct span names, const char *host)
{
	bool fits = false;
	bool expected = false;
	struct error err;
	FUZZ_CHECK(known_hosts_names_fit(names, host, &fits, &err));
	if (names.data[0] == '|') {
		FUZZ_CHECK(!fits || strncmp(names.data, "|1|", 3) == 0);
	} else if (naive_list(names, host, &expected)) {
		FUZZ_CHECK(fits == expected);
	}
}

/* ---- lines ---- */

static void check_again(const struct known_hosts_line *line)
{
	static const char *const marks[] = {"", "@revoked ", "@cert-authority\t"};
	struct known_hosts_line again;
	struct buf text;
	char *blob = base64_encode((struct span){(const char *)line->blob, line->blob_len});
	buf_init(&text, 1 << 20);
	bool ok = buf_append(&text, span_of(marks[line->marker]), NULL) &&
	          buf_append(&text, line->names, NULL) &&
	          buf_append(&text, SPAN_LITERAL(" "), NULL) &&
	          buf_append(&text, line->type, NULL) &&
	          buf_append(&text, SPAN_LITERAL(" "), NULL) &&
	          buf_append(&text, span_of(blob), NULL) &&
	          known_hosts_line_read(buf_span(&text), &again);
	FUZZ_CHECK(ok);
	FUZZ_CHECK(again.marker == line->marker && again.blob_len == line->blob_len);
	FUZZ_CHECK(memcmp(again.blob, line->blob, line->blob_len) == 0);
	FUZZ_CHECK(span_equals(again.names, line->names) && span_equals(again.type, line->type));
	known_hosts_line_finish(&again);
	free(blob);
	buf_finish(&text);
}

/* A name must match its own hash, and no other. */
static void check_hash(const char *host)
{
	uint8_t salt[KNOWN_HOSTS_SALT_SIZE] = {(uint8_t)host[0], 1, 2};
	struct error err;
	bool fits = false;
	char *hash = known_hosts_hash(host, salt, &err);
	FUZZ_CHECK(hash && known_hosts_names_fit(span_of(hash), host, &fits, &err) && fits);
	FUZZ_CHECK(known_hosts_names_fit(span_of(hash), "another", &fits, &err));
	FUZZ_CHECK(fits == (strcmp(host, "another") == 0));
	free(hash);
}

static struct span take_row(struct span *text)
{
	const char *end = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
	struct span row = {text->data, end ? (size_t)(end - text->data) : text->len};
	size_t taken = row.len + (end ? 1 : 0);
	text->data += taken;
	text->len -= taken;
	return row;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = {(const char *)data, size};
	if (size == 0) {
		return 0;
	}
	struct span first = take_row(&text);
	char *host = mem_strndup(first);
	if (host[0] && strlen(host) <= HOST_MAX) { // no host has an empty name
		check_hash(host);
		while (text.len > 0) {
			struct known_hosts_line line;
			struct span row = take_row(&text);
			if (known_hosts_line_read(row, &line)) {
				FUZZ_CHECK(line.names.len > 0 && line.blob_len > 4);
				check_names(line.names, host);
				check_again(&line);
				known_hosts_line_finish(&line);
			}
		}
	}
	free(host);
	return 0;
}
