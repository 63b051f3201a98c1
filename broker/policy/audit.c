/* SPDX-License-Identifier: MIT */
#include "broker/policy/audit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/secrets.h"
#include "base/text.h"
#include "base/timestamp.h"

enum { AUDIT_FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

struct audit {
	int fd; // -1 after a failed write
	char *file;
	size_t max_bytes;
	const struct secrets *secrets; // borrowed; may be NULL
};

const char *audit_by_name(enum audit_by by)
{
	static const char *const names[] = {
		"policy", "remembered", "person", "timeout", "nobody", "editor"};
	assert((size_t)by < ARRAY_LENGTH(names));
	return names[by];
}

/* ---- the file ---- */

/* Only a regular file: a FIFO or a device could block, or swallow the log. */
static int open_file(const char *file, struct error *err)
{
	struct stat status;
	int fd = open(file, AUDIT_FLAGS, 0600);
	if (fd == -1) {
		error_set_errno(err, errno, "audit %s", file);
		return -1;
	}
	if (fstat(fd, &status) == -1 || !S_ISREG(status.st_mode)) {
		error_set(err, ERROR_CONFIG, "audit %s: expected a regular file", file);
		fd_close(&fd);
	}
	return fd;
}

static char *numbered(const char *file, int number)
{
	size_t size = strlen(file) + 16;
	char *name = mem_alloc(size);
	text_whole(name, size, number > 0 ? "%s.%d" : "%s", file, number);
	return name;
}

/* Renames FILE.2 to FILE.3, FILE.1 to FILE.2, FILE to FILE.1; skips missing ones. */
static bool shift_files(const char *file, struct error *err)
{
	bool ok = true;
	for (int number = AUDIT_KEPT; ok && number > 0; number--) {
		char *from = numbered(file, number - 1);
		char *to = numbered(file, number);
		ok = rename(from, to) == 0 || errno == ENOENT ||
		     error_set_errno(err, errno, "renaming %s", from);
		free(from);
		free(to);
	}
	return ok;
}

/* Whether the name still leads to the open file: another broker may have renamed it. */
static bool is_current(const struct audit *audit)
{
	struct stat named;
	struct stat opened;
	return stat(audit->file, &named) == 0 && fstat(audit->fd, &opened) == 0 &&
	       named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

static bool reopen(struct audit *audit, struct error *err)
{
	int fd = open_file(audit->file, err);
	if (fd == -1) {
		return false;
	}
	fd_close(&audit->fd);
	audit->fd = fd;
	return true;
}

/*
 * The open file's lock lets only one of several brokers rename it; the others then open the new
 * file.
 */
static bool make_room(struct audit *audit, size_t more, struct error *err)
{
	struct stat status;
	if (!is_current(audit)) {
		return reopen(audit, err);
	}
	if (fstat(audit->fd, &status) == 0 && status.st_size > 0 &&
		(size_t)status.st_size + more > audit->max_bytes &&
		lock_file_try(audit->fd, LOCK_ALONE) == LOCK_TAKEN) {
		bool ok = !is_current(audit) || shift_files(audit->file, err);
		lock_file_release(audit->fd);
		return ok && reopen(audit, err);
	}
	return true;
}

/* ---- lines ---- */

/* Masks before it cuts, so that no part of a secret stays. */
static void write_subject(
	const struct audit *audit, struct json_writer *writer, const char *subject)
{
	struct buf json;
	struct buf plain;
	struct json_writer quoted;
	buf_init(&json, SIZE_MAX / 2);
	buf_init(&plain, SIZE_MAX / 2);
	json_write_begin(&quoted, &json);
	json_write_text(&quoted, subject);
	bool ok = json_write_end(&quoted, NULL);
	secrets_mask(audit->secrets, &json);
	ok = ok && json_decode_string(buf_span(&json), &plain, NULL);
	struct span text = ok ? buf_span(&plain) : SPAN_LITERAL("");
	char *shown = mem_alloc(AUDIT_SUBJECT_MAX + 1);
	text_format(shown, AUDIT_SUBJECT_MAX + 1, "%.*s", (int)text.len, text.data);
	json_write_member(writer, "subject", shown);
	free(shown);
	buf_finish(&json);
	buf_finish(&plain);
}

static void write_connection(struct json_writer *writer, const struct audit_connection *connection)
{
	json_write_member(writer, "way", connection->way);
	if (connection->result) {
		json_write_member(writer, "result", connection->result);
	}
	if (connection->server_name) {
		json_write_member(writer, "serverName", connection->server_name);
	}
	if (connection->left_out > 0) {
		json_write_member_int(writer, "leftOut", (long long)connection->left_out);
	}
}

static bool write_line(struct audit *audit, const struct audit_line *line, struct buf *out)
{
	char time[TIMESTAMP_SIZE];
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "time", timestamp_now(time));
	json_write_member(&writer, "session", line->session);
	json_write_member(&writer, "operation", line->operation);
	write_subject(audit, &writer, line->subject);
	if (line->variables) {
		json_write_member_raw(&writer, "variables", span_of(line->variables));
	}
	json_write_member(&writer, "rule", line->rule);
	json_write_member(&writer, "decision", policy_decision_name(line->decision));
	json_write_member(&writer, "by", audit_by_name(line->by));
	if (line->connection) {
		write_connection(&writer, line->connection);
	}
	json_write_object_end(&writer);
	if (!json_write_end(&writer, NULL)) {
		return false;
	}
	secrets_mask(audit->secrets, out);
	return buf_append(out, SPAN_LITERAL("\n"), NULL);
}

void audit_write(struct audit *audit, const struct audit_line *line)
{
	struct buf out;
	struct error err;
	if (!audit || audit->fd == -1) {
		return;
	}
	buf_init(&out, SIZE_MAX / 2);
	bool ok = write_line(audit, line, &out);
	assert(ok);
	(void)ok;
	if (!make_room(audit, out.len, &err) || !fd_write_all(audit->fd, buf_span(&out), &err)) {
		log_error("audit %s: %s; nothing more is written there", audit->file, err.text);
		fd_close(&audit->fd);
	}
	buf_finish(&out);
}

/* ---- life ---- */

struct audit *audit_open(
	const char *file, size_t max_bytes, const struct secrets *secrets, struct error *err)
{
	int fd = open_file(file, err);
	if (fd == -1) {
		err->code = ERROR_CONFIG;
		return NULL;
	}
	struct audit *audit = mem_alloc_zero(sizeof(*audit));
	audit->fd = fd;
	audit->file = mem_strdup(file);
	audit->max_bytes = max_bytes;
	audit->secrets = secrets;
	return audit;
}

void audit_close(struct audit *audit)
{
	if (!audit) {
		return;
	}
	fd_close(&audit->fd);
	free(audit->file);
	free(audit);
}
