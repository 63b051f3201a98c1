/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/utf8.h"
#include "sync/parked.h"
#include "sync/snapshot.h"
#include "sync/snapshot_impl.h"

/*
 * The length of a code point that HFS+ ignores when it compares names, or 0. In UTF-8: U+200C–200F,
 * 202A–202E, 206A–206F and FEFF.
 */
static size_t ignorable_length(const unsigned char *at, size_t left)
{
	if (left < 3) {
		return 0;
	}
	if (at[0] == 0xef) {
		return at[1] == 0xbb && at[2] == 0xbf ? 3 : 0;
	}
	if (at[0] != 0xe2) {
		return 0;
	}
	bool is_ignorable = (at[1] == 0x80 && at[2] >= 0x8c && at[2] <= 0x8f) ||
	                    (at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae) ||
	                    (at[1] == 0x81 && at[2] >= 0xaa && at[2] <= 0xaf);
	return is_ignorable ? 3 : 0;
}

/* NTFS ignores dots and spaces at the end, and a stream's name after a colon. */
static bool is_end_for_ntfs(const char *rest, size_t length)
{
	size_t i = 0;
	while (i < length && (rest[i] == '.' || rest[i] == ' ')) {
		i++;
	}
	return i == length || rest[i] == ':';
}

static bool is_for_ntfs(struct span name, const char *plain)
{
	size_t length = strlen(plain);
	return name.len >= length && strncasecmp(name.data, plain, length) == 0 &&
	       is_end_for_ntfs(name.data + length, name.len - length);
}

/*
 * Short names of 8 characters that NTFS may give .gitmodules: gitmod~1 to gitmod~4, then gi7eba~1
 * and so on, with fewer letters for longer numbers.
 */
static bool is_short_gitmodules(struct span name)
{
	static const char first[] = "gitmod", hashed[] = "gi7eba";
	size_t at = strlen(first);
	if (name.len < 8 || !is_end_for_ntfs(name.data + 8, name.len - 8)) {
		return false;
	}
	if (strncasecmp(name.data, first, at) == 0) {
		return name.data[at] == '~' && name.data[at + 1] >= '1' && name.data[at + 1] <= '4';
	}
	while (at > 0 && strncasecmp(name.data, hashed, at) != 0) {
		at--;
	}
	if (name.data[at++] != '~' || name.data[at] == '0') {
		return false;
	}
	while (at < 8 && name.data[at] >= '0' && name.data[at] <= '9') {
		at++;
	}
	return at == 8;
}

static bool is_for_hfs(struct span name, const char *plain)
{
	const unsigned char *bytes = (const unsigned char *)name.data;
	size_t at = 0;
	size_t matched = 0;
	while (at < name.len) {
		size_t skip = ignorable_length(bytes + at, name.len - at);
		if (skip > 0) {
			at += skip;
			continue;
		}
		unsigned char byte = bytes[at++];
		if (byte >= 'A' && byte <= 'Z') {
			byte = (unsigned char)(byte - 'A' + 'a');
		}
		if (byte == '\0' || byte != (unsigned char)plain[matched]) {
			return false;
		}
		matched++;
	}
	return plain[matched] == '\0';
}

/* Characters that file systems with Unicode case folding treat as ASCII letters. */
static const struct fold {
	const char *from, *to;
} folds[] = {
	{"\xe2\x84\xaa", "k"}, // U+212A, the sign of Kelvin
	{"\xc5\xbf", "s"},     // U+017F, long s
	{"\xc3\x9f", "ss"},
	{"\xe1\xba\x9e", "ss"},
	{"\xef\xac\x80", "ff"}, // U+FB00 and on, ligatures
	{"\xef\xac\x81", "fi"},
	{"\xef\xac\x82", "fl"},
	{"\xef\xac\x83", "ffi"},
	{"\xef\xac\x84", "ffl"},
	{"\xef\xac\x85", "st"},
	{"\xef\xac\x86", "st"},
};

static const char *fold_of(struct span character)
{
	for (size_t i = 0; i < ARRAY_LENGTH(folds); i++) {
		if (span_is(character, folds[i].from)) {
			return folds[i].to;
		}
	}
	return NULL;
}

void snapshot_name_fold(char *name)
{
	struct span rest = span_of(name);
	size_t len = 0;
	while (rest.len > 0 && *rest.data != ':') {
		size_t taken = utf8_char_length(rest);
		struct span character = {rest.data, taken ? taken : 1};
		const char *folded = taken > 1 ? fold_of(character) : NULL;
		char byte = *rest.data;
		rest = (struct span){rest.data + character.len, rest.len - character.len};
		if (folded) {
			size_t folded_len = strlen(folded);
			memcpy(name + len, folded, folded_len);
			len += folded_len;
		} else if (character.len == 1) {
			name[len++] = byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
		} else if (!utf8_is_hidden(character)) {
			memmove(name + len, character.data, character.len);
			len += character.len;
		}
	}
	while (len > 0 && (name[len - 1] == '.' || name[len - 1] == ' ')) {
		len--;
	}
	name[len] = '\0';
}

bool snapshot_name_is_spelling_of(struct span name, const char *plain)
{
	return is_for_ntfs(name, plain) || is_for_hfs(name, plain);
}

bool snapshot_name_is_git(struct span name)
{
	return snapshot_name_is_spelling_of(name, ".git") || is_for_ntfs(name, "git~1");
}

bool snapshot_name_is_gitmodules(struct span name)
{
	static const char plain[] = ".gitmodules";
	return snapshot_name_is_spelling_of(name, plain) || is_short_gitmodules(name);
}

static bool name_is_safe(struct span name)
{
	return name.len > 0 && !span_is(name, ".") && !span_is(name, "..") &&
	       !memchr(name.data, '\0', name.len) && !snapshot_name_is_git(name);
}

bool snapshot_path_is_safe(struct span path)
{
	for (;;) {
		const char *slash = path.len ? memchr(path.data, '/', path.len) : NULL;
		size_t length = slash ? (size_t)(slash - path.data) : path.len;
		if (!name_is_safe((struct span){path.data, length})) {
			return false;
		}
		if (!slash) {
			return true;
		}
		path = (struct span){slash + 1, path.len - length - 1};
	}
}

bool snapshot_name_is_left_out(struct span name)
{
	return snapshot_name_is_git(name) || parked_is_name(name) ||
	       (span_starts_with(name, SPAN_LITERAL(".acp-broker-")) &&
		       span_ends_with(name, SPAN_LITERAL(".tmp")));
}
