/* SPDX-License-Identifier: MIT */
#include "providers/local/net/proxy.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/local/request.h"

/* RFC 1928. */
enum {
	SOCKS_VERSION = 5,
	SOCKS_NO_PASSWORD = 0,
	SOCKS_CONNECT = 1,
	SOCKS_IPV4 = 1,
	SOCKS_NAME = 3,
	SOCKS_IPV6 = 4,
	SOCKS_HEAD = 4, // before the address
};

enum { HTTP_PORT = 80 };

static const char connect_word[] = "CONNECT ";
enum { CONNECT_LEN = sizeof(connect_word) - 1 };

#define SOCKS_ANSWER(code) SPAN_LITERAL("\5" code "\0\1\0\0\0\0\0\0")
#define HTTP_ANSWER(line, text)                                                                    \
	SPAN_LITERAL("HTTP/1.1 " line                                                              \
		     "\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" text "\n")

/* ---- both ---- */

static bool take_port(struct proxy_target *target, unsigned port)
{
	target->port = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX;
}

/* Reads a name, or an address in text form. */
static bool take_host(struct proxy_target *target, struct span host)
{
	char text[NAME_SIZE];
	if (host.len >= sizeof(text) || memchr(host.data, '\0', host.len)) {
		return false;
	}
	text_whole(text, sizeof(text), "%.*s", (int)host.len, host.data);
	target->is_address = address_parse(&target->address, text);
	return target->is_address || host_name_read(target->name, host);
}

void proxy_print_host(const struct proxy_target *target, char out[NAME_SIZE])
{
	char address[ADDRESS_TEXT_SIZE];
	if (target->is_address) {
		address_print(&target->address, address);
	}
	text_whole(out, NAME_SIZE, "%s", target->is_address ? address : target->name);
}

bool proxy_target_is_loopback(const struct proxy_target *target)
{
	const struct address six = {.family = AF_INET6, .bytes = {[15] = 1}};
	if (!target->is_address) {
		return strcmp(target->name, "localhost") == 0;
	}
	return target->address.family == AF_INET
	               ? target->address.bytes[0] == IN_LOOPBACKNET
	               : memcmp(target->address.bytes, six.bytes, sizeof(six.bytes)) == 0;
}

/* ---- CONNECT ---- */

/* Reads the decimal number of a port, which is all of the text. */
static bool read_port(struct span text, unsigned *out)
{
	unsigned port = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return false;
		}
		port = port * 10 + (unsigned)(text.data[i] - '0');
	}
	*out = port;
	return text.len > 0 && text.len <= 5;
}

bool proxy_read_authority(struct proxy_target *target, struct span text, uint16_t default_port)
{
	unsigned port = default_port;
	*target = (struct proxy_target){.port = 0};
	const char *colon = memrchr(text.data, ':', text.len);
	struct span host = text;
	bool has_port = colon && text.data[text.len - 1] != ']';
	if (has_port) {
		host.len = (size_t)(colon - text.data);
		if (!read_port((struct span){colon + 1, text.len - host.len - 1}, &port)) {
			return false;
		}
	}
	if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
		host = (struct span){host.data + 1, host.len - 2};
	} else if (memchr(host.data, ':', host.len)) {
		return false;
	}
	return take_port(target, port) && take_host(target, host);
}

static enum proxy_step read_connect(
	struct span input, size_t *out_used, struct proxy_target *target, struct span *out_answer)
{
	size_t size = request_head_size(input, 0);
	if (size == 0 && input.len < PROXY_HEAD_MAX) {
		return PROXY_MORE;
	}
	const char *end = input.data + size - 4; // the empty line
	const char *at = input.data + CONNECT_LEN;
	const char *space = size > 0 ? memchr(at, ' ', (size_t)(end - at)) : NULL;
	bool is_request = space && end - space > 7 && memcmp(space, " HTTP/1.", 8) == 0;
	if (!is_request ||
		!proxy_read_authority(target, (struct span){at, (size_t)(space - at)}, 0)) {
		*out_answer = HTTP_ANSWER("400 Bad Request",
			"acp-broker: expected CONNECT with the name of a host and a port");
		return PROXY_WRONG;
	}
	*out_used = size;
	return PROXY_TARGET;
}

/* ---- a request ---- */

/* Writes the head for the server, which replaces the program's head of this size. */
static void write_head(struct proxy *proxy, const struct request *request, size_t size)
{
	struct buf head;
	struct error err;
	buf_init(&head, size + 256);
	bool fits = buf_append_format(&head, &err,
		"%.*s %.*s HTTP/1.1\r\nHost: %.*s\r\nConnection: close\r\n",
		(int)request->method.len, request->method.data, (int)request->target.len,
		request->target.data, (int)request->authority.len, request->authority.data);
	if (request->is_chunked) {
		fits = fits &&
		       buf_append(&head, SPAN_LITERAL("Transfer-Encoding: chunked\r\n"), &err);
	} else if (request->has_body) {
		fits = fits && buf_append_format(&head, &err, "Content-Length: %" PRIu64 "\r\n",
				       request->length);
	}
	for (size_t i = 0; i < request->field_count; i++) {
		const struct request_field *field = &request->fields[i];
		if (!request_field_is_of_hop(request, field->name)) {
			fits = fits && buf_append_format(&head, &err, "%.*s: %.*s\r\n",
					       (int)field->name.len, field->name.data,
					       (int)field->value.len, field->value.data);
		}
	}
	fits = fits && buf_append(&head, SPAN_LITERAL("\r\n"), &err);
	assert(fits);
	proxy->head = mem_strndup(buf_span(&head));
	proxy->head_len = buf_span(&head).len;
	request_body_begin(&proxy->body, request);
	buf_finish(&head);
}

static enum proxy_step read_plain(struct proxy *proxy, struct span input, size_t *out_used,
	struct proxy_target *target, struct span *out_answer)
{
	struct request request;
	size_t size = request_head_size(input, 0);
	bool could_be_method = input.data[0] >= 'A' && input.data[0] <= 'Z';
	if (size == 0 && could_be_method && input.len < PROXY_HEAD_MAX) {
		return PROXY_MORE;
	}
	if (size == 0 || request_read_url(&request, (struct span){input.data, size}) != 0 ||
		!proxy_read_authority(target, request.authority, HTTP_PORT)) {
		*out_answer = HTTP_ANSWER("400 Bad Request",
			"acp-broker: expected CONNECT, or one request of HTTP/1.1 for an http:// "
			"URL");
		return PROXY_WRONG;
	}
	write_head(proxy, &request, size);
	*out_used = size;
	return PROXY_TARGET;
}

/* ---- the kind of a request ---- */

/* PROXY_UNKNOWN: more bytes will tell. */
static enum proxy_kind find_kind(struct span input)
{
	size_t known = input.len < CONNECT_LEN ? input.len : CONNECT_LEN;
	if (input.data[0] == SOCKS_VERSION) {
		return PROXY_SOCKS;
	}
	if (memcmp(input.data, connect_word, known) != 0) {
		return PROXY_REQUEST;
	}
	return known < CONNECT_LEN ? PROXY_UNKNOWN : PROXY_CONNECT;
}

/* ---- SOCKS ---- */

static enum proxy_step read_greeting(
	struct proxy *proxy, struct span input, size_t *out_used, struct span *out_answer)
{
	size_t methods = input.len >= 2 ? (unsigned char)input.data[1] : 0;
	if (input.len < 2 || input.len < 2 + methods) {
		return PROXY_MORE;
	}
	if (!memchr(input.data + 2, SOCKS_NO_PASSWORD, methods)) {
		*out_answer = SPAN_LITERAL("\5\xff");
		return PROXY_WRONG;
	}
	proxy->has_greeted = true;
	*out_used = 2 + methods;
	*out_answer = SPAN_LITERAL("\5\0");
	return PROXY_ANSWER;
}

/* Returns 0 if the type of the address is unknown. */
static size_t socks_address_size(struct span input)
{
	switch (input.data[3]) {
	case SOCKS_IPV4:
		return 4;
	case SOCKS_IPV6:
		return 16;
	case SOCKS_NAME:
		return 1 + (size_t)(unsigned char)input.data[4];
	default:
		return 0;
	}
}

static bool take_socks_address(
	struct proxy_target *target, int kind, const unsigned char *at, size_t size)
{
	if (kind == SOCKS_NAME) {
		return take_host(target, (struct span){(const char *)at + 1, size - 1});
	}
	target->is_address = true;
	target->address.family = kind == SOCKS_IPV4 ? AF_INET : AF_INET6;
	memcpy(target->address.bytes, at, size);
	return true;
}

static enum proxy_step read_request(
	struct span input, size_t *out_used, struct proxy_target *target, struct span *out_answer)
{
	const unsigned char *bytes = (const unsigned char *)input.data;
	if (input.len > 0 && bytes[0] != SOCKS_VERSION) {
		*out_answer = SOCKS_ANSWER("\1");
		return PROXY_WRONG;
	}
	if (input.len < SOCKS_HEAD + 1) {
		return PROXY_MORE;
	}
	size_t size = socks_address_size(input);
	if (bytes[1] != SOCKS_CONNECT) {
		*out_answer = SOCKS_ANSWER("\7");
		return PROXY_WRONG;
	}
	if (size == 0) {
		*out_answer = SOCKS_ANSWER("\10");
		return PROXY_WRONG;
	}
	if (input.len < SOCKS_HEAD + size + 2) {
		return PROXY_MORE;
	}
	const unsigned char *port = bytes + SOCKS_HEAD + size;
	if (!take_port(target, (unsigned)port[0] << 8 | port[1]) ||
		!take_socks_address(target, bytes[3], bytes + SOCKS_HEAD, size)) {
		*out_answer = SOCKS_ANSWER("\1");
		return PROXY_WRONG;
	}
	*out_used = SOCKS_HEAD + size + 2;
	return PROXY_TARGET;
}

void proxy_finish(struct proxy *proxy)
{
	free(proxy->head);
	*proxy = (struct proxy){.kind = PROXY_UNKNOWN};
}

enum proxy_step proxy_read(struct proxy *proxy, struct span input, size_t *out_used,
	struct proxy_target *out_target, struct span *out_answer)
{
	*out_used = 0;
	*out_answer = SPAN_LITERAL("");
	*out_target = (struct proxy_target){.port = 0};
	if (input.len == 0) {
		return PROXY_MORE;
	}
	if (proxy->kind == PROXY_UNKNOWN) {
		proxy->kind = find_kind(input);
	}
	switch (proxy->kind) {
	case PROXY_UNKNOWN:
		return PROXY_MORE;
	case PROXY_CONNECT:
		return read_connect(input, out_used, out_target, out_answer);
	case PROXY_REQUEST:
		return read_plain(proxy, input, out_used, out_target, out_answer);
	case PROXY_SOCKS:
		break;
	}
	return proxy->has_greeted ? read_request(input, out_used, out_target, out_answer)
	                          : read_greeting(proxy, input, out_used, out_answer);
}

/* ---- the end ---- */

struct span proxy_answer(const struct proxy *proxy, enum proxy_end end)
{
	const struct {
		struct span connect;
		struct span socks;
	} answers[] = {
		[PROXY_CONNECTED] = {SPAN_LITERAL("HTTP/1.1 200 Connection established\r\n\r\n"),
			SOCKS_ANSWER("\0")},
		[PROXY_REFUSED] = {HTTP_ANSWER("403 Forbidden",
					   "acp-broker: the profile does not allow this host "
					   "(allow-host, allow-cidr)"),
			SOCKS_ANSWER("\2")},
		[PROXY_NOT_FOUND] = {HTTP_ANSWER("502 Bad Gateway",
					     "acp-broker: this host has no address"),
			SOCKS_ANSWER("\4")},
		[PROXY_UNREACHABLE] = {HTTP_ANSWER("502 Bad Gateway",
					       "acp-broker: this host cannot be reached"),
			SOCKS_ANSWER("\5")},
	};
	if (proxy->kind == PROXY_REQUEST && end == PROXY_CONNECTED) {
		return SPAN_LITERAL(""); // the server answers
	}
	return proxy->kind == PROXY_SOCKS ? answers[end].socks : answers[end].connect;
}
