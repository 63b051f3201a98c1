/* SPDX-License-Identifier: MIT */
#include "broker/config/mcp_url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/hex.h"
#include "base/span.h"
#include "base/text.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443 };

static const char slashes[] = "/\\";

/* RFC 3986, 3.1. */
static size_t scheme_length(const char *url)
{
	size_t len = 0;
	while (isalnum((unsigned char)url[len]) || (url[len] && strchr("+-.", url[len]))) {
		len++;
	}
	return url[len] == ':' && isalpha((unsigned char)url[0]) ? len : 0;
}

static const char *skip_blanks(const char *url)
{
	while (*url && (unsigned char)*url <= ' ') {
		url++;
	}
	return url;
}

/* User, password, host and port; empty if the URL has no scheme or no authority. */
static struct span authority_of(const char *url)
{
	size_t scheme = scheme_length(url);
	const char *start = url + scheme + 1;
	if (scheme == 0 || strspn(start, slashes) < 2) {
		return (struct span){NULL, 0};
	}
	start += strspn(start, slashes);
	return (struct span){start, strcspn(start, "/\\?#")};
}

static struct span without_user(struct span authority)
{
	for (size_t i = authority.len; i > 0; i--) {
		if (authority.data[i - 1] == '@') {
			return (struct span){authority.data + i, authority.len - i};
		}
	}
	return authority;
}

/* "[::1]:80" gives the text in the brackets, "host:80" the text before the port. */
static struct span without_port(struct span host)
{
	if (host.len > 0 && host.data[0] == '[') {
		const char *end = memchr(host.data, ']', host.len);
		return end ? (struct span){host.data + 1, (size_t)(end - host.data) - 1}
		           : (struct span){NULL, 0};
	}
	const char *colon = host.len > 0 ? memchr(host.data, ':', host.len) : NULL;
	return colon ? (struct span){host.data, (size_t)(colon - host.data)} : host;
}

/* Tabs and line ends inside a URL are ignored (URL Standard, "basic URL parser"). */
static bool is_ignored(char byte)
{
	return byte == '\t' || byte == '\r' || byte == '\n';
}

static bool decode(struct span from, char *out, size_t size)
{
	size_t len = 0;
	for (size_t i = 0; i < from.len; i++) {
		int byte = (unsigned char)from.data[i];
		if (is_ignored(from.data[i])) {
			continue;
		}
		if (byte == '%' && i + 2 < from.len && hex_digit(from.data[i + 1]) >= 0 &&
			hex_digit(from.data[i + 2]) >= 0) {
			byte = hex_digit(from.data[i + 1]) * 16 + hex_digit(from.data[i + 2]);
			i += 2;
		}
		if (byte <= ' ' || len + 1 == size) {
			return false;
		}
		out[len++] = (char)tolower(byte);
	}
	out[len] = '\0';
	return len > 0;
}

bool mcp_url_host(const char *url, char host[MCP_HOST_MAX])
{
	struct span authority = authority_of(skip_blanks(url));
	while (authority.len > 0 && (unsigned char)authority.data[authority.len - 1] <= ' ') {
		authority.len--; // at the URL's end
	}
	if (!decode(without_port(without_user(authority)), host, MCP_HOST_MAX)) {
		return false;
	}
	size_t len = strlen(host);
	if (len > 1 && host[len - 1] == '.') {
		host[len - 1] = '\0';
	}
	return true;
}

/* Accepts every spelling of inet_aton(3): 127.1, 0x7f000001, 2130706433. */
static bool is_loopback_v4(const char *host)
{
	struct in_addr address;
	if (!inet_aton(host, &address)) {
		return false;
	}
	in_addr_t number = ntohl(address.s_addr);
	return number >> 24 == 127 || number == INADDR_ANY;
}

static bool is_loopback_v6(const char *host)
{
	struct in6_addr address;
	if (inet_pton(AF_INET6, host, &address) != 1) {
		return false;
	}
	if (IN6_IS_ADDR_V4MAPPED(&address)) {
		const unsigned char *v4 = &address.s6_addr[12];
		return v4[0] == 127 || (v4[0] | v4[1] | v4[2] | v4[3]) == 0;
	}
	return IN6_IS_ADDR_LOOPBACK(&address) || IN6_IS_ADDR_UNSPECIFIED(&address);
}

/* RFC 6761, 6.3. */
static bool is_localhost(const char *host)
{
	struct span span = span_of(host);
	return span_is(span, "localhost") || span_ends_with(span, SPAN_LITERAL(".localhost"));
}

bool mcp_url_is_loopback(const char *url)
{
	char host[MCP_HOST_MAX];
	return mcp_url_host(url, host) &&
	       (is_localhost(host) || is_loopback_v4(host) || is_loopback_v6(host));
}

/* The port that programs use for an http or https URL without a port; 0: it is neither. */
static uint16_t default_port(const char *url)
{
	size_t len = scheme_length(url);
	if (len == 4 && strncasecmp(url, "http", len) == 0) {
		return HTTP_PORT;
	}
	return len == 5 && strncasecmp(url, "https", len) == 0 ? HTTPS_PORT : 0;
}

bool mcp_url_is_http(const char *url)
{
	char host[MCP_HOST_MAX];
	return default_port(url) != 0 && mcp_url_host(url, host);
}

uint16_t mcp_url_local_port(const char *url)
{
	char host[MCP_HOST_MAX];
	unsigned port = default_port(skip_blanks(url));
	if (port == 0 || !mcp_url_host(url, host) ||
		(!is_localhost(host) && strcmp(host, "127.0.0.1") != 0)) {
		return 0;
	}
	struct span place = without_user(authority_of(skip_blanks(url)));
	size_t at = without_port(place).len + 1;
	for (size_t i = at, number = 0; i < place.len; i++) {
		number = number * 10 + (size_t)(place.data[i] - '0');
		if (place.data[i] < '0' || place.data[i] > '9' || number > UINT16_MAX) {
			return 0;
		}
		port = (unsigned)number;
	}
	return (uint16_t)port;
}

const char *mcp_url_shown(char *text, size_t size, const char *url)
{
	url = skip_blanks(url);
	struct span authority = authority_of(url);
	const char *end = url + strcspn(url, "?#");
	if (authority.len == 0) {
		text_format(text, size, "%.*s", (int)(end - url), url);
		return text;
	}
	struct span host = without_user(authority);
	text_format(text, size, "%.*s%.*s", (int)(authority.data - url), url,
		(int)(end - host.data), host.data);
	return text;
}
