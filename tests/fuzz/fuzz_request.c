/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "providers/local/request.h"
#include "tests/fuzz/fuzz.h"

enum { CONTENT_MAX = 1 << 16 };

/* The outcome for a body, and where it ended. */
struct outcome {
	enum request_step step;
	size_t used;
	size_t len;
	char content[CONTENT_MAX];
};

/* Reads a body as it comes, `piece` bytes more each time, with room for as many. */
static void read_body(
	const struct request *request, struct span bytes, size_t piece, struct outcome *out)
{
	struct request_body body;
	request_body_begin(&body, request);
	*out = (struct outcome){.step = REQUEST_MORE};
	for (size_t end = 0; end < bytes.len || end == 0;) {
		size_t used = 0;
		size_t len = 0;
		end = bytes.len - end < piece ? bytes.len : end + piece;
		do {
			struct span rest = {bytes.data + out->used, end - out->used};
			out->step = request_body_read(
				&body, rest, &used, out->content + out->len, piece, &len);
			if (out->step == REQUEST_WRONG) {
				return;
			}
			FUZZ_CHECK(used <= rest.len && len <= used && len <= piece);
			out->used += used;
			out->len += len;
		} while (out->step == REQUEST_MORE && len > 0);
		if (out->step == REQUEST_END || end == bytes.len) {
			return;
		}
	}
}

static void check_line(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		FUZZ_CHECK(text.data[i] != '\r' && text.data[i] != '\n' && text.data[i] != '\0');
	}
}

/*
 * Everything that is sent to the server must stay on its line, and one field must say how long the
 * body is.
 */
static void check_head(const struct request *request)
{
	FUZZ_CHECK(request->target.len > 0 && request->target.data[0] == '/');
	FUZZ_CHECK(!memchr(request->target.data, ' ', request->target.len));
	check_line(request->target);
	size_t framings = 0;
	for (size_t i = 0; i < request->field_count; i++) {
		struct span name = request->fields[i].name;
		FUZZ_CHECK(name.len > 0 && !memchr(name.data, ':', name.len) &&
			   !memchr(name.data, ' ', name.len));
		check_line(name);
		check_line(request->fields[i].value);
		framings += name.len == 14 && strncasecmp(name.data, "content-length", 14) == 0;
		framings += name.len == 17 && strncasecmp(name.data, "transfer-encoding", 17) == 0;
	}
	FUZZ_CHECK(framings == (request->has_body ? 1 : 0));
	FUZZ_CHECK(request_field_is_ours(request, SPAN_LITERAL("Host")));
	FUZZ_CHECK(request_field_is_ours(request, SPAN_LITERAL("X-API-Key")));
}

/* A path below /v1 must be below it for every reader that decodes it once. */
static void check_path(struct span target)
{
	static const char prefix[] = "/v1/";
	if (!request_is_below(target, "/v1")) {
		return;
	}
	FUZZ_CHECK(span_starts_with(target, SPAN_LITERAL("/v1")));
	FUZZ_CHECK(target.len == 3 || target.data[3] == '/' || target.data[3] == '?');
	const char *query = memchr(target.data, '?', target.len);
	size_t len = query ? (size_t)(query - target.data) : target.len;
	for (size_t i = sizeof(prefix) - 1; i + 1 < len; i++) {
		FUZZ_CHECK(strncmp(target.data + i, "..", 2) != 0 || target.data[i - 1] != '/' ||
			   (i + 2 < len && target.data[i + 2] != '/'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome whole, slow;
	struct request request;
	struct span bytes = {(const char *)data, size};
	size_t head = size < CONTENT_MAX ? request_head_size(bytes, 0) : 0;
	for (size_t seen = 0; head > 0 && seen < head; seen++) {
		struct span part = {bytes.data, seen};
		FUZZ_CHECK(request_head_size(part, seen / 2) == 0);
	}
	struct span of_head = {bytes.data, head};
	if (head > 0 && request_read_url(&request, of_head) == 0) {
		check_head(&request);
		check_line(request.authority);
		FUZZ_CHECK(request.authority.len > 0);
		FUZZ_CHECK(!memchr(request.authority.data, '/', request.authority.len));
		FUZZ_CHECK(request_read(&request, of_head) != 0);
	}
	if (head == 0 || request_read(&request, of_head) != 0) {
		return 0;
	}
	check_head(&request);
	check_path(request.target);
	struct span rest = {bytes.data + head, size - head};
	read_body(&request, rest, CONTENT_MAX, &whole);
	read_body(&request, rest, 1, &slow);
	FUZZ_CHECK(whole.step == slow.step);
	if (whole.step != REQUEST_WRONG) {
		FUZZ_CHECK(whole.used == slow.used && whole.len == slow.len);
		FUZZ_CHECK(memcmp(whole.content, slow.content, whole.len) == 0);
	}
	return 0;
}
