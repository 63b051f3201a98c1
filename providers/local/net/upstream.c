/* SPDX-License-Identifier: MIT */
#include "providers/local/net/upstream.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/environment.h"
#include "base/hex.h"
#include "base/text.h"
#include "providers/local/request.h"

enum {
	STATUS_LINE = 12, // "HTTP/1.1 200"
	TLS_PORT = 443,   // of a proxy with https://, as with curl(1)
};

/* ---- the variables ---- */

/* As in curl(1), which takes no proxy for https:// URLs from http_proxy. */
static const char *const variables[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
static const char *const all_variables[] = {
	"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY"};
static const char *const exceptions[] = {"no_proxy", "NO_PROXY"};

/* The value of the first of these variables that is not empty; "" if there is none. */
static const char *find(const char *const *environment, const char *const *names, size_t count,
	const char **out_name)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = environment_get(environment, names[i]);
		if (value && value[0]) {
			*out_name = names[i];
			return value;
		}
	}
	*out_name = "";
	return "";
}

/* Decodes %40 and the like. False: it is malformed, or does not fit. */
static bool decode(struct span text, char *out, size_t size, size_t *out_len)
{
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		int byte = (unsigned char)text.data[i];
		if (byte == '%') {
			int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(text.data[i + 2]) : -1;
			if (low < 0) {
				return false;
			}
			byte = high << 4 | low;
			i += 2;
		}
		if (len == size) {
			return false;
		}
		out[len++] = (char)byte;
	}
	*out_len = len;
	return true;
}

/* Reads "user:password"; the password may be missing. */
static bool read_login(struct span text, char out[UPSTREAM_KEY_SIZE])
{
	char login[UPSTREAM_LOGIN_MAX];
	size_t user, password = 0;
	const char *colon = memchr(text.data, ':', text.len);
	size_t len = colon ? (size_t)(colon - text.data) : text.len;
	struct span rest = {text.data + len, text.len - len};
	bool is_read = decode((struct span){text.data, len}, login, sizeof(login) - 1, &user);
	if (is_read) {
		login[user++] = ':';
		is_read = !colon || decode((struct span){rest.data + 1, rest.len - 1}, login + user,
					    sizeof(login) - user, &password);
	}
	if (is_read) {
		char *key = base64_encode((struct span){login, user + password});
		is_read = text_whole(out, UPSTREAM_KEY_SIZE, "%s", key);
		mem_wipe_free(key);
	}
	explicit_bzero(login, sizeof(login));
	return is_read;
}

/* Takes "user:password@" from the beginning, if it is there. A password may contain a slash. */
static bool take_login(struct span *url, struct span *out)
{
	const char *at = memrchr(url->data, '@', url->len);
	if (!at) {
		return false;
	}
	*out = (struct span){url->data, (size_t)(at - url->data)};
	*url = (struct span){at + 1, url->len - out->len - 1};
	return true;
}

/* Reads "host:port/"; what follows the slash does not count. */
static bool read_place(struct proxy_target *out, struct span text, uint16_t port)
{
	const char *slash = memchr(text.data, '/', text.len);
	text.len = slash ? (size_t)(slash - text.data) : text.len;
	return proxy_read_authority(out, text, port);
}

/* Reads "http://user:password@host:port/"; only the host is required. */
static bool read_url(struct upstream *upstream, struct span url)
{
	static const char scheme[] = "http://";
	if (memmem(url.data, url.len, "://", 3)) {
		if (url.len < sizeof(scheme) || strncasecmp(url.data, scheme, 7) != 0) {
			return false;
		}
		url = (struct span){url.data + 7, url.len - 7};
	}
	struct span login;
	if (take_login(&url, &login) && !read_login(login, upstream->key)) {
		return false;
	}
	return read_place(&upstream->place, url, UPSTREAM_PORT);
}

/* Reads only where the proxy is, whatever its kind. */
static bool read_other(struct proxy_target *out, struct span url)
{
	static const char tls[] = "https://";
	struct span login;
	uint16_t port = UPSTREAM_PORT;
	const char *colon = memmem(url.data, url.len, "://", 3);
	if (colon) {
		size_t len = (size_t)(colon - url.data) + 3;
		bool is_tls = len == sizeof(tls) - 1 && strncasecmp(url.data, tls, len) == 0;
		port = is_tls ? TLS_PORT : UPSTREAM_PORT;
		url = (struct span){url.data + len, url.len - len};
	}
	(void)take_login(&url, &login);
	return read_place(out, url, port);
}

static void read_others(struct upstream *upstream, const char *const *environment)
{
	for (size_t i = 0; i < ARRAY_LENGTH(all_variables); i++) {
		struct proxy_target place;
		const char *value = environment_get(environment, all_variables[i]);
		if (value && read_other(&place, span_of(value)) && !upstream_is(upstream, &place)) {
			upstream->others[upstream->other_count++] = place;
		}
	}
}

static bool read_used(struct upstream *out, const char *const *environment, struct error *err)
{
	const char *name;
	*out = (struct upstream){.key = ""};
	const char *value = find(environment, variables, ARRAY_LENGTH(variables), &name);
	if (!value[0]) {
		return true;
	}
	if (!read_url(out, span_of(value))) {
		explicit_bzero(out, sizeof(*out));
		return error_set(err, ERROR_CONFIG,
			"%s names no proxy that a confined agent can use: expected "
			"http://HOST:PORT or http://USER:PASSWORD@HOST:PORT",
			name);
	}
	text_whole(out->variable, sizeof(out->variable), "%s", name);
	value = find(environment, exceptions, ARRAY_LENGTH(exceptions), &name);
	if (!text_whole(out->except, sizeof(out->except), "%s", value)) {
		explicit_bzero(out, sizeof(*out));
		return error_set(err, ERROR_CONFIG, "%s is longer than %d bytes", name,
			UPSTREAM_EXCEPT_SIZE - 1);
	}
	return true;
}

bool upstream_read(struct upstream *out, const char *const *environment, struct error *err)
{
	if (!read_used(out, environment, err)) {
		return false;
	}
	read_others(out, environment);
	return true;
}

bool upstream_is_set(const struct upstream *upstream)
{
	return upstream->place.port != 0;
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool is_place(const struct proxy_target *place)
{
	char name[NAME_SIZE];
	if (place->port == 0 || !is_text(place->name, sizeof(place->name))) {
		return false;
	}
	return place->is_address
	               ? place->address.family == AF_INET || place->address.family == AF_INET6
	               : host_name_read(name, span_of(place->name));
}

bool upstream_is_whole(const struct upstream *upstream)
{
	if (!is_text(upstream->key, sizeof(upstream->key)) ||
		!is_text(upstream->except, sizeof(upstream->except)) ||
		!is_text(upstream->variable, sizeof(upstream->variable)) ||
		!is_text(upstream->place.name, sizeof(upstream->place.name)) ||
		upstream->other_count >
			UPSTREAM_PLACES_MAX - (upstream_is_set(upstream) ? 1U : 0U)) {
		return false;
	}
	for (uint32_t i = 0; i < upstream->other_count; i++) {
		if (!is_place(&upstream->others[i])) {
			return false;
		}
	}
	return !upstream_is_set(upstream) || is_place(&upstream->place);
}

/* ---- which targets it is for ---- */

static bool is_same_address(const struct address *a, const struct address *b)
{
	size_t len = a->family == AF_INET ? 4 : 16;
	return a->family == b->family && memcmp(a->bytes, b->bytes, len) == 0;
}

static bool excepts_address(struct span entry, const struct address *address)
{
	char text[ADDRESS_TEXT_SIZE + 4];
	struct address one;
	struct address_network network;
	bool has_brackets =
		entry.len > 2 && entry.data[0] == '[' && entry.data[entry.len - 1] == ']';
	if (has_brackets) {
		entry = (struct span){entry.data + 1, entry.len - 2};
	}
	if (!text_whole(text, sizeof(text), "%.*s", (int)entry.len, entry.data)) {
		return false;
	}
	if (address_parse(&one, text)) {
		return is_same_address(&one, address);
	}
	return address_parse_network(&network, text) && address_is_in(address, &network);
}

/* "example.com", ".example.com" and "*.example.com" are for this name and every name below it. */
static bool excepts_name(struct span entry, const char *name)
{
	char suffix[NAME_SIZE];
	size_t skipped = span_starts_with(entry, SPAN_LITERAL("*.")) ? 2 : 0;
	skipped = span_starts_with(entry, SPAN_LITERAL(".")) ? 1 : skipped;
	if (!host_name_read(suffix, (struct span){entry.data + skipped, entry.len - skipped})) {
		return false;
	}
	struct span whole = span_of(name);
	size_t len = strlen(suffix);
	return span_ends_with(whole, span_of(suffix)) &&
	       (whole.len == len || name[whole.len - len - 1] == '.');
}

bool upstream_takes(const struct upstream *upstream, const struct proxy_target *target)
{
	struct span rest = span_of(upstream->except);
	if (!upstream_is_set(upstream) || proxy_target_is_loopback(target)) {
		return false;
	}
	for (;;) {
		struct span entry = span_take_word(&rest, ", \t");
		if (entry.len == 0) {
			return true;
		}
		if (span_is(entry, "*") ||
			(target->is_address ? excepts_address(entry, &target->address)
					    : excepts_name(entry, target->name))) {
			return false;
		}
	}
}

static bool is_at(const struct proxy_target *place, const struct proxy_target *target)
{
	if (proxy_target_is_loopback(place)) {
		return proxy_target_is_loopback(target);
	}
	if (place->is_address != target->is_address) {
		return false;
	}
	return place->is_address ? is_same_address(&place->address, &target->address)
	                         : strcmp(place->name, target->name) == 0;
}

size_t upstream_list(const struct upstream *upstream, uint16_t port,
	const struct proxy_target *out[UPSTREAM_PLACES_MAX])
{
	size_t count = 0;
	if (upstream_is_set(upstream) && upstream->place.port == port) {
		out[count++] = &upstream->place;
	}
	for (uint32_t i = 0; i < upstream->other_count && count < UPSTREAM_PLACES_MAX; i++) {
		if (upstream->others[i].port == port) {
			out[count++] = &upstream->others[i];
		}
	}
	return count;
}

bool upstream_is(const struct upstream *upstream, const struct proxy_target *target)
{
	const struct proxy_target *places[UPSTREAM_PLACES_MAX];
	size_t count = upstream_list(upstream, target->port, places);
	for (size_t i = 0; i < count; i++) {
		if (is_at(places[i], target)) {
			return true;
		}
	}
	return false;
}

/* ---- what it is asked, and its answer ---- */

size_t upstream_write(const struct upstream *upstream, const struct proxy_target *target,
	char out[UPSTREAM_HEAD_SIZE])
{
	char host[NAME_SIZE], authority[NAME_SIZE + 16];
	proxy_print_host(target, host);
	text_host_port(authority, sizeof(authority), host, target->port);
	bool has_key = upstream->key[0] != '\0';
	bool fits = text_whole(out, UPSTREAM_HEAD_SIZE,
		"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", authority, authority,
		has_key ? "Proxy-Authorization: Basic " : "", upstream->key, has_key ? "\r\n" : "");
	assert(fits);
	return strlen(out);
}

/* Whether the bytes can begin an answer; only the first STATUS_LINE of them count. */
static bool begins_well(struct span input)
{
	static const char form[] = "HTTP/1.d ddd"; // d: a digit
	for (size_t i = 0; i < STATUS_LINE && i < input.len; i++) {
		bool is_digit = input.data[i] >= '0' && input.data[i] <= '9';
		if (form[i] == 'd' ? !is_digit : input.data[i] != form[i]) {
			return false;
		}
	}
	return true;
}

enum upstream_step upstream_read_answer(struct span input, size_t *out_used, unsigned *out_status)
{
	struct span head = {
		input.data, input.len < UPSTREAM_ANSWER_MAX ? input.len : UPSTREAM_ANSWER_MAX};
	if (!begins_well(head)) {
		return UPSTREAM_WRONG;
	}
	size_t size = request_head_size(head, 0);
	if (size == 0) {
		return head.len < UPSTREAM_ANSWER_MAX ? UPSTREAM_MORE : UPSTREAM_WRONG;
	}
	const char *after = head.data + STATUS_LINE;
	if (size < STATUS_LINE + 4 || (*after != ' ' && *after != '\r')) {
		return UPSTREAM_WRONG;
	}
	*out_used = size;
	*out_status = 0;
	for (size_t i = STATUS_LINE - 3; i < STATUS_LINE; i++) {
		*out_status = *out_status * 10 + (unsigned)(head.data[i] - '0');
	}
	return UPSTREAM_ANSWERED;
}
