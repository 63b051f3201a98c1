/* SPDX-License-Identifier: MIT */
#include "providers/local/net/proxy.h"

#include <netinet/in.h>
#include <string.h>

#include "base/text.h"

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

/* A name, or an address as people write it. */
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

/* ---- CONNECT ---- */

/* "host:port", "[2001:db8::1]:port" */
static bool take_authority(struct proxy_target *target, struct span text)
{
	const char *colon = memrchr(text.data, ':', text.len);
	if (!colon) {
		return false;
	}
	struct span host = {text.data, (size_t)(colon - text.data)};
	const char *end = text.data + text.len;
	unsigned port = 0;
	if (end - colon < 2 || end - colon > 6) {
		return false;
	}
	for (const char *at = colon + 1; at < end; at++) {
		if (*at < '0' || *at > '9') {
			return false;
		}
		port = port * 10 + (unsigned)(*at - '0');
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
	static const char method[] = "CONNECT ";
	const size_t method_len = sizeof(method) - 1;
	size_t known = input.len < method_len ? input.len : method_len;
	if (memcmp(input.data, method, known) != 0) {
		*out_answer = HTTP_ANSWER("501 Not Implemented",
			"acp-broker: this proxy takes CONNECT alone; without a proxy a program "
			"reaches the same");
		return PROXY_WRONG;
	}
	const char *end = memmem(input.data, input.len, "\r\n\r\n", 4);
	if (!end && input.len < PROXY_HEAD_MAX) {
		return PROXY_MORE;
	}
	const char *at = input.data + method_len;
	const char *space = end ? memchr(at, ' ', (size_t)(end - at)) : NULL;
	bool is_request = space && end - space > 7 && memcmp(space, " HTTP/1.", 8) == 0;
	if (!is_request || !take_authority(target, (struct span){at, (size_t)(space - at)})) {
		*out_answer = HTTP_ANSWER("400 Bad Request",
			"acp-broker: expected CONNECT with the name of a host and a port");
		return PROXY_WRONG;
	}
	*out_used = (size_t)(end + 4 - input.data);
	return PROXY_TARGET;
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

/* 0: there is no such kind of address. */
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
		proxy->kind = input.data[0] == SOCKS_VERSION ? PROXY_SOCKS : PROXY_CONNECT;
	}
	if (proxy->kind == PROXY_CONNECT) {
		return read_connect(input, out_used, out_target, out_answer);
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
	return proxy->kind == PROXY_SOCKS ? answers[end].socks : answers[end].connect;
}
