/* SPDX-License-Identifier: MIT */
#include "broker/config/config_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/config_text.h"
#include "base/fd.h"

enum { NAMES_MAX = 16 << 20, READ_CHUNK = 64 << 10 };

/* ---- the file's bytes ---- */

static bool check_is_file(int fd, const char *path, struct error *err)
{
	struct stat status;
	if (fstat(fd, &status) < 0) {
		return error_set_errno(err, errno, "%s", path);
	}
	if (S_ISDIR(status.st_mode)) {
		return error_set(
			err, ERROR_CONFIG, "%s: expected a file, but it is a directory", path);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "%s: expected a regular file", path);
	}
	return true;
}

/* Appends everything up to the end of the file. */
static bool read_all(int fd, struct buf *content, struct error *err)
{
	for (;;) {
		size_t room = content->max - content->len;
		size_t want = room < READ_CHUNK ? room : READ_CHUNK;
		char *to = buf_reserve(content, want ? want : 1, err);
		if (!to) {
			return false;
		}
		ssize_t got = read(fd, to, want);
		if (got < 0 && errno != EINTR) {
			return error_set_errno(err, errno, "reading");
		}
		if (got == 0) {
			return true;
		}
		buf_commit(content, got > 0 ? (size_t)got : 0);
	}
}

/* Whether the user can correct it: the file's name, its place or its mode. */
static bool is_mistake(int errnum)
{
	return errnum == EACCES || errnum == EPERM || errnum == ELOOP || errnum == ENAMETOOLONG;
}

/* Opens and reads the file; out_found as in the header. */
static bool load_file(const char *path, struct buf *content, bool *out_found, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int errnum = errno;
	*out_found = fd >= 0;
	if (fd < 0) {
		if (errnum == ENOENT || errnum == ENOTDIR) {
			return true;
		}
		error_set_errno(err, errnum, "%s", path);
		err->code = is_mistake(errnum) ? ERROR_CONFIG : ERROR_SYSTEM;
		return false;
	}
	if (!check_is_file(fd, path, err)) {
		return false;
	}
	if (!read_all(fd, content, err)) {
		if (err->code == ERROR_LIMIT) {
			return error_set(err, ERROR_CONFIG,
				"%s: expected a configuration file of at most 1 MiB", path);
		}
		return error_prefix(err, "%s", path);
	}
	return true;
}

/* ---- what git would accept and we do not ---- */

static bool check_is_text(const char *path, struct span content, struct error *err)
{
	const char *nul = memchr(content.data, '\0', content.len);
	if (!nul) {
		return true;
	}
	size_t line = 1;
	for (const char *at = content.data; at < nul; at++) {
		line += *at == '\n';
	}
	return error_set(err, ERROR_CONFIG, "%s:%zu: expected text, got a NUL byte", path, line);
}

/* Git would read these settings from another file; here they would be lost. */
static bool is_include(const char *name)
{
	static const char include[] = "include.", include_if[] = "includeif.";
	return strncmp(name, include, sizeof(include) - 1) == 0 ||
	       strncmp(name, include_if, sizeof(include_if) - 1) == 0;
}

/* ---- settings ---- */

/* `bytes` are those of all names so far. */
static bool check_entry(const struct config_text *text, const char *path, const char *name,
	size_t bytes, struct error *err)
{
	if (is_include(name)) {
		return error_set(err, ERROR_CONFIG,
			"%s:%zu: [include] is not supported: move all settings into this one file",
			path, text->line);
	}
	return bytes <= NAMES_MAX || error_set(err, ERROR_CONFIG, "%s: too many settings", path);
}

/* A long name of a section counts for each of its keys, so that a small file cannot unfold. */
static bool deliver_all(struct config_text *text, const char *path, config_entry_handler *on_entry,
	void *data, struct error *err)
{
	size_t bytes = 0;
	for (;;) {
		char *name, *value;
		enum config_text_step step = config_text_next(text, &name, &value);
		if (step == CONFIG_TEXT_END) {
			return true;
		}
		if (step == CONFIG_TEXT_WRONG) {
			return error_set(
				err, ERROR_CONFIG, "%s:%zu: %s", path, text->line, text->wrong);
		}
		bytes += strlen(name);
		bool is_taken = check_entry(text, path, name, bytes, err) &&
		                on_entry(data, name, value, err);
		free(name);
		free(value);
		if (!is_taken) {
			return false;
		}
	}
}

static bool deliver(struct span content, const char *path, config_entry_handler *on_entry,
	void *data, struct error *err)
{
	struct config_text text;
	config_text_init(&text, content);
	bool is_delivered = deliver_all(&text, path, on_entry, data, err);
	config_text_finish(&text);
	return is_delivered;
}

bool config_reader_read(const char *path, config_entry_handler *on_entry, void *data,
	bool *out_found, struct error *err)
{
	struct buf content;
	buf_init(&content, CONFIG_FILE_MAX + 1);
	bool ok = load_file(path, &content, out_found, err);
	if (ok && *out_found) {
		ok = check_is_text(path, buf_span(&content), err) &&
		     deliver(buf_span(&content), path, on_entry, data, err);
	}
	buf_finish(&content);
	return ok;
}
