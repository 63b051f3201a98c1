/* SPDX-License-Identifier: MIT */
#include "providers/daytona/http_impl.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/text.h"

enum { VALUE_MAX = 64, RETRY_MAX_S = 24 * 3600 };

void http_headers_begin(struct http_headers *headers)
{
	*headers = (struct http_headers){.retry_in_s = -1, .date = -1, .retry_at = -1};
}

/* A whole number of seconds; -1 for anything else. */
static long long read_seconds(const char *text)
{
	long long seconds = 0;
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9') {
			return -1;
		}
		seconds = seconds * 10 + (*at - '0');
		seconds = seconds > RETRY_MAX_S ? RETRY_MAX_S : seconds;
	}
	return *text ? seconds : -1;
}

static void read_retry(struct http_headers *headers, const struct curl *curl, const char *value)
{
	long long seconds = read_seconds(value);
	if (seconds >= 0) {
		headers->retry_in_s = seconds > headers->retry_in_s ? seconds : headers->retry_in_s;
		return;
	}
	long long at = curl->getdate(value, NULL);
	headers->retry_at = at > headers->retry_at ? at : headers->retry_at;
}

/*
 * RFC 9110, section 10.2.3, and Daytona's header with 429: Retry-After-sandbox-create, where the
 * name of the limit follows the standard name.
 */
void http_headers_line(struct http_headers *headers, const struct curl *curl, struct span line)
{
	static const char retry[] = "retry-after";
	size_t retry_len = sizeof(retry) - 1;
	bool is_end = line.len > 0 && (line.data[0] == '\r' || line.data[0] == '\n');
	headers->is_whole = headers->is_whole || is_end; // trailers may follow
	const char *colon = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;
	if (!colon) {
		return;
	}
	size_t name_len = (size_t)(colon - line.data);
	size_t at = name_len + 1;
	size_t end = line.len;
	while (at < end && strchr(" \t", line.data[at])) {
		at++;
	}
	while (end > at && strchr(" \t\r\n", line.data[end - 1])) {
		end--;
	}
	if (end - at >= VALUE_MAX) {
		return;
	}
	char value[VALUE_MAX];
	text_whole(value, sizeof(value), "%.*s", (int)(end - at), line.data + at);
	if (name_len >= retry_len && strncasecmp(line.data, retry, retry_len) == 0 &&
		(name_len == retry_len || line.data[retry_len] == '-')) {
		read_retry(headers, curl, value);
	} else if (name_len == 4 && strncasecmp(line.data, "date", 4) == 0) {
		headers->date = curl->getdate(value, NULL);
	}
}

/* A date is compared with the server's own clock if the server sends its time. */
long long http_headers_retry_in_s(const struct http_headers *headers)
{
	long long seconds = headers->retry_in_s;
	if (headers->retry_at >= 0) {
		long long now = headers->date >= 0 ? headers->date : (long long)time(NULL);
		long long left = headers->retry_at > now ? headers->retry_at - now : 0;
		left = left > RETRY_MAX_S ? RETRY_MAX_S : left;
		seconds = left > seconds ? left : seconds;
	}
	return seconds;
}
