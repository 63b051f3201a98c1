/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_doc.h"

enum { TOKEN_MAX = 4096, HOST_MAX = 255, PORT_MAX = 65535 };

static bool is_word(const char *text, size_t max)
{
	size_t len = 0;
	for (; text[len]; len++) {
		if ((unsigned char)text[len] <= ' ' || text[len] == 0x7f) {
			return false;
		}
	}
	return len > 0 && len <= max;
}

/* A port that consists of digits; 0 for any other text. */
static int read_port(struct span text)
{
	int port = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return 0;
		}
		port = port * 10 + (text.data[i] - '0');
		if (port > PORT_MAX) {
			return 0;
		}
	}
	return port;
}

static bool is_host(struct span text)
{
	if (text.len == 0 || text.len > HOST_MAX || text.data[0] == '-') {
		return false;
	}
	for (size_t i = 0; i < text.len; i++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:",
			    text.data[i])) {
			return false;
		}
	}
	return true;
}

/* "HOST", "HOST:PORT", "[ADDRESS]", "[ADDRESS]:PORT" */
static void read_place(struct span place, struct span *out_host, int *port)
{
	const char *end = place.data + place.len;
	const char *close =
		place.len > 0 && place.data[0] == '[' ? memchr(place.data, ']', place.len) : NULL;
	const char *colon = close ? (close + 1 < end && close[1] == ':' ? close + 1 : NULL)
	                          : memchr(place.data, ':', place.len);
	bool is_bare = !close && colon && memchr(colon + 1, ':', (size_t)(end - colon - 1));
	if (colon && !is_bare) {
		int own = read_port((struct span){colon + 1, (size_t)(end - colon - 1)});
		*port = own > 0 ? own : *port;
		end = colon;
	}
	*out_host = close ? (struct span){place.data + 1, (size_t)(close - place.data - 1)}
	                  : (struct span){place.data, (size_t)(end - place.data)};
}

/* The service's command for people: "ssh -p 2222 TOKEN@127.0.0.1". */
static char *read_command(const char *command, int *out_port)
{
	struct span host = {NULL, 0};
	int port = 0;
	static const char blanks[] = " \t";
	struct span rest = span_of(command);
	span_take_word(&rest, blanks);
	for (struct span word = span_take_word(&rest, blanks); word.len > 0;
		word = span_take_word(&rest, blanks)) {
		const char *sign = word.data ? memrchr(word.data, '@', word.len) : NULL;
		if (span_is(word, "-p")) {
			port = read_port(span_take_word(&rest, blanks));
		} else if (span_starts_with(word, SPAN_LITERAL("-p"))) {
			port = read_port((struct span){word.data + 2, word.len - 2});
		} else if (sign) {
			size_t before = (size_t)(sign + 1 - word.data);
			read_place((struct span){sign + 1, word.len - before}, &host, &port);
		}
	}
	bool ok = is_host(host);
	*out_port = ok ? port : 0;
	return ok ? mem_strndup(host) : mem_strdup("");
}

/* Only accepts a string without escapes, so that no decoder leaves a copy of it. */
static char *plain_string(const struct json_doc *doc, const char *member)
{
	json_node node = json_get(doc, 0, member);
	struct span raw = json_raw(doc, node);
	if (!json_is(doc, node, JSON_STRING) || memchr(raw.data, '\\', raw.len)) {
		return NULL;
	}
	return mem_strndup((struct span){raw.data + 1, raw.len - 2});
}

bool daytona_read_access(struct span json, struct daytona_told_access *out_told, struct error *err)
{
	struct json_doc *doc = json_doc_parse(json, err);
	if (!doc) {
		return false;
	}
	char *token = plain_string(doc, "token");
	char *expires_at = plain_string(doc, "expiresAt");
	char *command = plain_string(doc, "sshCommand");
	json_doc_destroy(doc);
	if (token && is_word(token, TOKEN_MAX)) {
		struct daytona_told_access told = {
			.token = token, .expires_at = expires_at ? expires_at : mem_strdup("")};
		told.host = read_command(command ? command : "", &told.access.port);
		told.access.token = told.token;
		told.access.host = told.host;
		told.access.expires_at = told.expires_at;
		*out_told = told;
		mem_wipe_free(command);
		return true;
	}
	mem_wipe_free(token);
	mem_wipe_free(command);
	free(expires_at);
	return error_set(err, ERROR_PROTOCOL, "it has no \"token\" that can be a user's name");
}

void daytona_told_access_finish(struct daytona_told_access *told)
{
	mem_wipe_free(told->token);
	free(told->host);
	free(told->expires_at);
	*told = (struct daytona_told_access){.token = NULL};
}
