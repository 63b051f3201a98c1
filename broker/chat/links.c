/* SPDX-License-Identifier: MIT */
#include "broker/chat/links.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"

enum {
	WORD_MAX = 2 * PATH_MAX, // bytes of a typed name
	PUNCTUATION_MAX = 8,     // characters after a name
	LOOKUPS_MAX = 1000,      // words of one prompt for which we look for a file
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

size_t links_word_length(struct span text)
{
	size_t len = 0;
	while (len < text.len && !is_blank(text.data[len])) {
		len += text.data[len] == '\\' && len + 1 < text.len ? 2 : 1;
	}
	return len;
}

void links_unescape(struct span typed, struct buf *out)
{
	for (size_t i = 0; i < typed.len; i++) {
		i += typed.data[i] == '\\' && i + 1 < typed.len;
		buf_add(out, (struct span){typed.data + i, 1});
	}
}

void links_escape(struct span name, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		if (is_blank(name.data[i]) || name.data[i] == '\\') {
			buf_add(out, SPAN_LITERAL("\\"));
		}
		buf_add(out, (struct span){name.data + i, 1});
	}
}

/* ---- files ---- */

/* JSON strings are UTF-8. */
static bool is_utf8(struct span text)
{
	while (text.len > 0) {
		size_t len = utf8_char_length(text);
		if (len == 0) {
			return false;
		}
		text = (struct span){text.data + len, text.len - len};
	}
	return true;
}

/* Whether "." or ".." is in the path. The broker, which compares prefixes, needs a path without. */
static bool has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/.")); at += 2) {
		const char *end = at + 2 + (at[2] == '.');
		if (*end == '/' || *end == '\0') {
			return true;
		}
	}
	return false;
}

/* The absolute path of an existing file or folder, owned by the caller; else NULL. */
static char *find_file(const char *cwd, struct span name)
{
	struct stat status;
	struct buf path;
	bool is_absolute = name.len > 0 && name.data[0] == '/';
	if (name.len == 0 || name.len >= PATH_MAX || memchr(name.data, '\0', name.len) ||
		!is_utf8(name)) {
		return NULL;
	}
	buf_init(&path, SIZE_MAX / 2);
	if (!is_absolute) {
		buf_add(&path, span_of(cwd));
		buf_add(&path, SPAN_LITERAL("/"));
	}
	buf_add(&path, name);
	char *found = mem_strndup(buf_span(&path));
	buf_finish(&path);
	bool is_there =
		stat(found, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
	char *real = is_there && has_dots(found) ? realpath(found, NULL) : NULL;
	if (!is_there || real) {
		free(found);
		return real;
	}
	return found;
}

struct link {
	size_t len; // of the typed word, with its "@"
	char *name; // owned; without backslashes
	char *path; // owned
};

/* The longest beginning of the word that names a file; `word` begins with "@". */
static bool find_link(const char *cwd, struct span word, struct link *out_link)
{
	static const char punctuation[] = ".,;:!?)]}>'\"`";
	size_t least = word.len > PUNCTUATION_MAX ? word.len - PUNCTUATION_MAX : 1;
	for (size_t len = word.len; len > 1 && len >= least && len < WORD_MAX; len--) {
		struct buf name;
		buf_init(&name, SIZE_MAX / 2);
		links_unescape((struct span){word.data + 1, len - 1}, &name);
		char *path = find_file(cwd, buf_span(&name));
		if (path) {
			*out_link = (struct link){len, mem_strndup(buf_span(&name)), path};
			buf_finish(&name);
			return true;
		}
		buf_finish(&name);
		if (!strchr(punctuation, word.data[len - 1])) {
			return false;
		}
	}
	return false;
}

/* ---- blocks ---- */

static void write_text(struct json_writer *writer, struct span text)
{
	if (text.len > 0) {
		json_write_object(writer);
		json_write_member(writer, "type", "text");
		json_write_member_string(writer, "text", text);
		json_write_object_end(writer);
	}
}

/* RFC 8089. All characters but the unreserved ones of RFC 3986 are encoded. */
static void write_uri(struct json_writer *writer, const char *path)
{
	static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789-._~/";
	static const char digits[] = "0123456789ABCDEF";
	struct buf uri;
	buf_init(&uri, SIZE_MAX / 2);
	buf_add(&uri, SPAN_LITERAL("file://"));
	for (const char *at = path; *at; at++) {
		unsigned char byte = (unsigned char)*at;
		char encoded[3] = {'%', digits[byte >> 4], digits[byte & 0xf]};
		bool is_kept = strchr(kept, *at) != NULL;
		buf_add(&uri, is_kept ? (struct span){at, 1} : (struct span){encoded, 3});
	}
	json_write_member_string(writer, "uri", buf_span(&uri));
	buf_finish(&uri);
}

static void write_link(struct json_writer *writer, const struct link *link)
{
	json_write_object(writer);
	json_write_member(writer, "type", "resource_link");
	json_write_member(writer, "name", link->name);
	write_uri(writer, link->path);
	json_write_object_end(writer);
}

static bool begins_word(struct span text, size_t at)
{
	return at == 0 || is_blank(text.data[at - 1]) || text.data[at - 1] == '(';
}

void links_write(struct json_writer *writer, const char *cwd, struct span text)
{
	size_t begin = 0; // where the text begins that is not written yet
	size_t count = 0;
	size_t lookups = 0; // a prompt may be full of words that look like names
	for (size_t at = 0; at < text.len && count < LINKS_MAX && lookups < LOOKUPS_MAX;) {
		struct span rest = {text.data + at, text.len - at};
		struct link link;
		bool is_word = rest.data[0] == '@' && begins_word(text, at);
		lookups += is_word;
		if (!is_word ||
			!find_link(cwd, (struct span){rest.data, links_word_length(rest)}, &link)) {
			at++;
			continue;
		}
		write_text(writer, (struct span){text.data + begin, at - begin});
		write_link(writer, &link);
		free(link.name);
		free(link.path);
		at += link.len;
		begin = at;
		count++;
	}
	write_text(writer, (struct span){text.data + begin, text.len - begin});
}
