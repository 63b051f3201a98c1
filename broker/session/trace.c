/* SPDX-License-Identifier: MIT */
#include "broker/session/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "acp/splice.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json_check.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/secrets.h"
#include "base/timestamp.h"

/* Members of a message whose values are secrets. */
static const struct json_place secret_places[] = {
	{0, "params.mcpServers[].env[].value", 0},
	{1, "params.mcpServers[].headers[].value", 0},
	{2, "params.env[].value", 0},
	{3, "result.authMethods[].env", 0},
	{4, "params.mcpServers[].url", 0}, // may hold a password or a token
	{5, "params.mcpServers[].args", 0},
};

struct trace {
	int fd;
	char *file;
	struct json_places *places;
	struct json_check *check;
	const struct secrets *secrets; // borrowed; may be NULL
};

/* ---- masking ---- */

static bool mask_places(struct trace *trace, struct span message, struct buf *out)
{
	struct splice splice;
	struct error err;
	json_check_reset(trace->check);
	if (!json_check_feed(trace->check, message, &err) || !json_check_end(trace->check, &err)) {
		return false; // an unmasked message is not written
	}
	splice_init(&splice);
	bool ok = true;
	const struct json_hit *hits = json_check_hits(trace->check);
	for (size_t i = 0; ok && i < json_check_hit_count(trace->check); i++) {
		ok = splice_add(&splice, hits[i].start, hits[i].end, SPAN_LITERAL("\"***\""), &err);
	}
	ok = ok && splice_seal(&splice, message.len, &err) &&
	     splice_append(&splice, message, out, &err);
	splice_finish(&splice);
	return ok;
}

/* ---- lines ---- */

static void begin_line(
	struct json_writer *writer, struct buf *line, const char *hop, bool is_incoming)
{
	char time[TIMESTAMP_SIZE];
	json_write_begin(writer, line);
	json_write_object(writer);
	json_write_member(writer, "time", timestamp_now(time));
	json_write_member(writer, "hop", hop);
	json_write_member(writer, "direction", is_incoming ? "in" : "out");
}

static void end_line(struct trace *trace, struct json_writer *writer, struct buf *line)
{
	struct error err;
	json_write_object_end(writer);
	bool ok = json_write_end(writer, &err);
	secrets_mask(trace->secrets, line);
	ok = ok && buf_append(line, SPAN_LITERAL("\n"), &err) &&
	     fd_write_all(trace->fd, buf_span(line), &err);
	if (!ok) {
		log_error("trace %s: %s; nothing more is traced", trace->file, err.text);
		fd_close(&trace->fd);
	}
}

void trace_message(struct trace *trace, const char *hop, bool is_incoming, struct span message)
{
	struct buf masked;
	struct buf line;
	struct json_writer writer;
	if (!trace || trace->fd == -1) {
		return;
	}
	buf_init(&masked, SIZE_MAX / 2);
	buf_init(&line, SIZE_MAX / 2);
	begin_line(&writer, &line, hop, is_incoming);
	if (mask_places(trace, message, &masked)) {
		json_write_member_raw(&writer, "message", buf_span(&masked));
	} else {
		json_write_member_int(&writer, "unmaskable", (long long)message.len);
	}
	end_line(trace, &writer, &line);
	buf_finish(&masked);
	buf_finish(&line);
}

void trace_noise(struct trace *trace, const char *hop, struct span beginning, size_t length)
{
	struct buf line;
	struct buf masked;
	struct json_writer writer;
	if (!trace || trace->fd == -1) {
		return;
	}
	buf_init(&line, SIZE_MAX / 2);
	buf_init(&masked, SIZE_MAX / 2);
	bool is_copied = buf_append(&masked, beginning, NULL);
	secrets_mask_text(trace->secrets, &masked, beginning.len < length);
	begin_line(&writer, &line, hop, true);
	json_write_member_string(
		&writer, "noise", is_copied ? buf_span(&masked) : SPAN_LITERAL(""));
	json_write_member_int(&writer, "length", (long long)length);
	end_line(trace, &writer, &line);
	buf_finish(&masked);
	buf_finish(&line);
}

/* ---- life ---- */

struct trace *trace_open(const char *file, const struct secrets *secrets, struct error *err)
{
	int fd =
		open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd == -1) {
		error_set_errno(err, errno, "--trace %s", file);
		err->code = ERROR_CONFIG;
		return NULL;
	}
	if (!fd_set_nonblock(fd, false, err)) {
		fd_close(&fd);
		return NULL;
	}
	struct trace *trace = mem_alloc_zero(sizeof(*trace));
	trace->fd = fd;
	trace->file = mem_strdup(file);
	trace->places = json_places_create(secret_places, ARRAY_LENGTH(secret_places));
	trace->check = json_check_create(trace->places);
	trace->secrets = secrets;
	return trace;
}

void trace_close(struct trace *trace)
{
	if (!trace) {
		return;
	}
	json_check_destroy(trace->check);
	json_places_destroy(trace->places);
	fd_close(&trace->fd);
	free(trace->file);
	free(trace);
}
