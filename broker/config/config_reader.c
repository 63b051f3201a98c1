/* SPDX-License-Identifier: MIT */
#include "broker/config/config_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/git.h"
#include "base/text.h"

/*
 * What the child process writes: records of a tag and NUL-terminated texts. RECORD_ENTRY: name,
 * value. RECORD_BARE: name. RECORD_MISTAKE: text about a mistake in the file. RECORD_FAILURE: text
 * about a failed system call. RECORD_END: the last record.
 */
enum record {
	RECORD_ENTRY = '=',
	RECORD_BARE = '-',
	RECORD_MISTAKE = '!',
	RECORD_FAILURE = '?',
	RECORD_END = '.',
};

enum { RECORDS_MAX = 16 << 20, READ_CHUNK = 64 << 10, FD_PATH_MAX = 32 };

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

/* ---- lines that libgit2 would accept and we do not ---- */

static bool has_include(struct span line)
{
	static const char word[] = "[include";
	for (size_t i = 0; i + sizeof(word) - 1 <= line.len; i++) {
		if (strncasecmp(line.data + i, word, sizeof(word) - 1) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_comment(struct span line)
{
	size_t i = 0;
	while (i < line.len && (line.data[i] == ' ' || line.data[i] == '\t')) {
		i++;
	}
	return i < line.len && (line.data[i] == '#' || line.data[i] == ';');
}

/*
 * Checks every line before libgit2 parses the file, because libgit2 would follow an include at
 * once.
 */
static bool check_lines(const char *path, struct span content, struct error *err)
{
	size_t number = 1;
	for (size_t at = 0; at < content.len; number++) {
		const char *start = content.data + at;
		const char *end = memchr(start, '\n', content.len - at);
		struct span line = {start, end ? (size_t)(end - start) : content.len - at};
		if (line.len > 0 && memchr(line.data, '\0', line.len)) {
			return error_set(err, ERROR_CONFIG, "%s:%zu: expected text, got a NUL byte",
				path, number);
		}
		if (has_include(line) && !is_comment(line)) {
			return error_set(err, ERROR_CONFIG,
				"%s:%zu: [include] is not supported: move all settings into this "
				"one file",
				path, number);
		}
		at += line.len + 1;
	}
	return true;
}

/* ---- the child process: from libgit2 to records ---- */

static bool append_text(struct buf *records, enum record tag, const char *text)
{
	char byte = (char)tag;
	return buf_append(records, (struct span){&byte, 1}, NULL) &&
	       buf_append(records, (struct span){text, strlen(text) + 1}, NULL);
}

static int on_git_entry(const git_config_entry *entry, void *data)
{
	struct buf *records = data;
	if (!entry->value) {
		return append_text(records, RECORD_BARE, entry->name) ? 0 : -1;
	}
	struct span value = {entry->value, strlen(entry->value) + 1};
	return append_text(records, RECORD_ENTRY, entry->name) && buf_append(records, value, NULL)
	               ? 0
	               : -1;
}

/* Replaces all records by this one. */
static void tell_alone(struct buf *records, enum record tag, const char *text)
{
	buf_clear(records);
	append_text(records, tag, text);
}

/*
 * Turns "failed to parse config file: WHY (in FILE:LINE)" into "LINE: WHY", because libgit2 reads a
 * copy under another name.
 */
static void tell_git_error(struct buf *records, const char *fd_path, const git_error *error)
{
	static const char lead[] = "failed to parse config file: ";
	const char *message = error ? error->message : "unreadable";
	if (error && error->klass != GIT_ERROR_CONFIG) {
		tell_alone(records, RECORD_FAILURE, message);
		return;
	}
	if (strncmp(message, lead, sizeof(lead) - 1) == 0) {
		message += sizeof(lead) - 1;
	}
	char place[FD_PATH_MAX + 8];
	text_whole(place, sizeof(place), " (in %s:", fd_path);
	const char *found = strstr(message, place);
	char text[ERROR_TEXT_MAX];
	if (found) {
		text_format(text, sizeof(text), "%ld: %.*s",
			strtol(found + strlen(place), NULL, 10), (int)(found - message), message);
	} else {
		text_format(text, sizeof(text), " %s", message);
	}
	tell_alone(records, RECORD_MISTAKE, text);
}

static void parse(int fd, struct buf *records)
{
	struct error err;
	const struct git *git = git_open(&err);
	if (!git) {
		tell_alone(records, RECORD_FAILURE, err.text);
		return;
	}
	char fd_path[FD_PATH_MAX];
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", fd);
	git_config *config = NULL;
	if (git->config_new(&config) < 0 ||
		git->config_add_file_ondisk(config, fd_path, GIT_CONFIG_LEVEL_APP, NULL, 0) < 0) {
		tell_git_error(records, fd_path, git->error_last());
	} else if (git->config_foreach(config, on_git_entry, records) < 0) {
		tell_alone(records, RECORD_MISTAKE, " too many settings");
	} else {
		append_text(records, RECORD_END, "");
	}
	git->config_free(config);
	git_close();
}

static void ATTR_NORETURN run_child(int fd, int pipe_fd)
{
	struct buf records;
	buf_init(&records, RECORDS_MAX);
	parse(fd, &records);
	bool told = fd_write_all(pipe_fd, buf_span(&records), NULL);
	buf_finish(&records);
	_exit(told ? 0 : 1);
}

/* ---- the parent: from records to entries ---- */

/* Takes the NUL-terminated text at *at; NULL if the records end too early. */
static const char *take_text(struct span records, size_t *at)
{
	const char *text = records.data + *at;
	const char *end = *at < records.len ? memchr(text, '\0', records.len - *at) : NULL;
	if (!end) {
		return NULL;
	}
	*at += (size_t)(end - text) + 1;
	return text;
}

static bool deliver(struct span records, const char *path, config_entry_handler *on_entry,
	void *data, struct error *err)
{
	size_t at = 0;
	while (at < records.len) {
		enum record tag = (enum record)(unsigned char)records.data[at++];
		const char *text = take_text(records, &at);
		const char *value = tag == RECORD_ENTRY ? take_text(records, &at) : NULL;
		if (!text || (tag == RECORD_ENTRY && !value)) {
			break;
		}
		if (tag == RECORD_END) {
			return true;
		}
		if (tag == RECORD_MISTAKE) {
			return error_set(err, ERROR_CONFIG, "%s:%s", path, text);
		}
		if (tag == RECORD_FAILURE) {
			return error_set(err, ERROR_SYSTEM, "%s: %s", path, text);
		}
		if (!on_entry(data, text, value, err)) {
			return false;
		}
	}
	return error_set(err, ERROR_SYSTEM,
		"%s: the process that reads the file ended early; try again", path);
}

/* Starts the child process and gathers its output. */
static bool parse_apart(int fd, struct buf *records, struct error *err)
{
	int pipe_fds[2];
	if (!fd_pipe(pipe_fds, err)) {
		return false;
	}
	int reader ATTR_CLEANUP(fd_cleanup) = pipe_fds[0];
	pid_t child = fork();
	int errnum = errno;
	if (child == 0) {
		fd_close(&reader);
		run_child(fd, pipe_fds[1]);
	}
	close(pipe_fds[1]);
	if (child < 0) {
		return error_set_errno(err, errnum, "starting a process to read the file");
	}
	bool read = read_all(reader, records, err);
	fd_close(&reader);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
	}
	return read;
}

/*
 * Writes the checked bytes to an anonymous file, so that libgit2 parses exactly what was checked.
 */
static bool make_copy(struct span content, int *out_fd, struct error *err)
{
	int fd = memfd_create("acp-broker-config", MFD_CLOEXEC);
	if (fd < 0) {
		return error_set_errno(err, errno, "copying the file");
	}
	if (!fd_write_all(fd, content, err)) {
		fd_close(&fd);
		return false;
	}
	*out_fd = fd;
	return true;
}

static bool gather(const char *path, struct span content, struct buf *records, struct error *err)
{
	int fd ATTR_CLEANUP(fd_cleanup) = -1;
	return (make_copy(content, &fd, err) && parse_apart(fd, records, err)) ||
	       error_prefix(err, "%s", path);
}

bool config_reader_read(const char *path, config_entry_handler *on_entry, void *data,
	bool *out_found, struct error *err)
{
	struct buf content;
	struct buf records;
	buf_init(&content, CONFIG_FILE_MAX + 1);
	buf_init(&records, RECORDS_MAX);
	bool ok = load_file(path, &content, out_found, err);
	if (ok && *out_found) {
		ok = check_lines(path, buf_span(&content), err) &&
		     gather(path, buf_span(&content), &records, err) &&
		     deliver(buf_span(&records), path, on_entry, data, err);
	}
	buf_finish(&content);
	buf_finish(&records);
	return ok;
}
