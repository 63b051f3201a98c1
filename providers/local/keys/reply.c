/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/reply.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* Fields that we leave out. The last three would lead programs to connections that are not ours. */
static const char *const ours[] = {"connection", "keep-alive", "proxy-authenticate",
	"proxy-authentication-info", "proxy-connection", "te", "trailer", "transfer-encoding",
	"upgrade", "alt-svc", "strict-transport-security"};

enum { STATUS_AT = 9, NO_CONTENT = 204, NOT_MODIFIED = 304, OK = 200 };

void reply_init(struct reply *reply)
{
	*reply = (struct reply){.status = 0};
	buf_init(&reply->fields, REPLY_HEAD_MAX);
}

void reply_finish(struct reply *reply)
{
	buf_finish(&reply->fields);
}

/* "HTTP/1.1 200 OK" */
static bool begin(struct reply *reply, struct span line)
{
	const char *at = line.data + STATUS_AT;
	buf_clear(&reply->fields);
	reply->has_length = false;
	reply->status = 0;
	for (int i = 0; line.len >= STATUS_AT + 3 && i < 3; i++) {
		if (at[i] < '0' || at[i] > '9') {
			return false;
		}
		reply->status = reply->status * 10 + at[i] - '0';
	}
	return reply->status >= 100;
}

static bool is_ours(struct span name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++) {
		if (name.len == strlen(ours[i]) && strncasecmp(name.data, ours[i], name.len) == 0) {
			return true;
		}
	}
	return false;
}

bool reply_add_line(struct reply *reply, struct span line, struct error *err)
{
	while (line.len > 0 &&
		(line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r')) {
		line.len--;
	}
	if (span_starts_with(line, SPAN_LITERAL("HTTP/"))) {
		return begin(reply, line) ||
		       error_set(err, ERROR_PROTOCOL, "the answer has no status");
	}
	if (line.len == 0) {
		reply->is_whole = reply->status >= OK;
		return true;
	}
	const char *colon = memchr(line.data, ':', line.len);
	struct span name = {line.data, colon ? (size_t)(colon - line.data) : 0};
	if (name.len == 0 || memchr(line.data, '\r', line.len) ||
		memchr(line.data, '\n', line.len)) {
		return error_set(err, ERROR_PROTOCOL, "the answer has a line that is not a header");
	}
	if (is_ours(name)) {
		return true;
	}
	reply->has_length = reply->has_length ||
	                    (name.len == strlen("content-length") &&
				    strncasecmp(name.data, "content-length", name.len) == 0);
	return buf_append(&reply->fields, line, err) &&
	       buf_append(&reply->fields, SPAN_LITERAL("\r\n"), err);
}

bool reply_has_body(const struct reply *reply, bool is_head)
{
	return !is_head && reply->status != NO_CONTENT && reply->status != NOT_MODIFIED;
}

static void add_format(struct buf *out, const char *before, int status, const char *after)
{
	bool fits = buf_append_format(out, NULL, "%s%d%s", before, status, after);
	assert(fits);
	(void)fits;
}

void reply_write_head(const struct reply *reply, bool is_head, struct buf *out)
{
	add_format(out, "HTTP/1.1 ", reply->status, " \r\n");
	buf_add(out, buf_span(&reply->fields));
	if (reply_has_body(reply, is_head) && !reply->has_length) {
		buf_add(out, SPAN_LITERAL("Transfer-Encoding: chunked\r\n"));
	}
	buf_add(out, SPAN_LITERAL("Connection: close\r\n\r\n"));
}

void reply_write_error(int status, const char *text, struct buf *out)
{
	add_format(out, "HTTP/1.1 ", status, " \r\nContent-Type: text/plain\r\nContent-Length: ");
	add_format(out, "", (int)strlen(text) + 1, "\r\nConnection: close\r\n\r\n");
	buf_add(out, span_of(text));
	buf_add(out, SPAN_LITERAL("\n"));
}

void reply_write_chunk(struct span bytes, struct buf *out)
{
	bool fits = buf_append_format(out, NULL, "%zx\r\n", bytes.len);
	assert(fits);
	(void)fits;
	buf_add(out, bytes);
	buf_add(out, SPAN_LITERAL("\r\n"));
}
