/* SPDX-License-Identifier: MIT */
#include "providers/ssh/target_name.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char scheme[] = "ssh://";

enum { NAME_MAX_BYTES = 1024 };

void ssh_target_name_finish(struct ssh_target_name *name)
{
	free(name->host);
	free(name->user);
	*name = (struct ssh_target_name){0};
}

static bool is_printable(struct span text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.data[i];
		if (byte <= ' ' || byte == 0x7f) {
			return false;
		}
	}
	return text.len > 0 && text.len <= NAME_MAX_BYTES;
}

static bool read_port(struct span text, int *out_port, struct error *err)
{
	int port = 0;
	for (size_t i = 0; i < text.len; i++) {
		char digit = text.data[i];
		if (digit < '0' || digit > '9' || port > 65535) {
			port = 0;
			break;
		}
		port = port * 10 + (digit - '0');
	}
	*out_port = port;
	return (port > 0 && port <= 65535) ||
	       error_set(err, ERROR_CONFIG, "expected a port from 1 to 65535, got \"%.*s\"",
		       (int)text.len, text.data);
}

/* After the last "@", because a user's name may contain one. */
static struct span take_user(struct span *rest, struct span *out_user)
{
	const char *at = memrchr(rest->data, '@', rest->len);
	*out_user = (struct span){rest->data, at ? (size_t)(at - rest->data) : 0};
	size_t taken = at ? out_user->len + 1 : 0;
	return (struct span){rest->data + taken, rest->len - taken};
}

/* Removes ":PORT" if there is one. Several colons without brackets are an IPv6 address. */
static struct span take_port(struct span host, struct span *out_port)
{
	const char *bracket = host.data[0] == '[' ? memchr(host.data, ']', host.len) : NULL;
	const char *colon = memrchr(host.data, ':', host.len);
	*out_port = (struct span){0};
	if (!colon || (bracket && colon < bracket) ||
		(!bracket && memchr(host.data, ':', host.len) != colon)) {
		return host;
	}
	size_t len = (size_t)(colon - host.data);
	*out_port = (struct span){colon + 1, host.len - len - 1};
	return (struct span){host.data, len};
}

static bool read_name(
	struct span text, bool has_port, struct ssh_target_name *out_name, struct error *err)
{
	struct span user;
	struct span port_text = {0};
	int port = 0;
	struct span host = take_user(&text, &user);
	if (has_port && host.len > 0) {
		host = take_port(host, &port_text);
	}
	if (port_text.data && !read_port(port_text, &port, err)) {
		return false;
	}
	if (host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']') {
		host = (struct span){host.data + 1, host.len - 2};
	}
	bool is_option =
		(host.len > 0 && host.data[0] == '-') || (user.len > 0 && user.data[0] == '-');
	if (!is_printable(host) || (user.len > 0 && !is_printable(user)) || is_option) {
		return error_set(err, ERROR_CONFIG, "\"%.*s\" is not the name of a host",
			(int)text.len, text.data);
	}
	*out_name = (struct ssh_target_name){.host = mem_strndup(host),
		.user = user.len > 0 ? mem_strndup(user) : NULL,
		.port = port};
	return true;
}

static bool read_text(
	struct span text, bool has_port, struct ssh_target_name *out_name, struct error *err)
{
	if (span_starts_with(text, SPAN_LITERAL(scheme))) {
		text.data += sizeof(scheme) - 1;
		text.len -= sizeof(scheme) - 1;
		has_port = true;
		if (text.len > 0 && text.data[text.len - 1] == '/') {
			text.len--;
		}
	}
	return read_name(text, has_port, out_name, err);
}

bool ssh_target_name_read(const char *text, struct ssh_target_name *out_name, struct error *err)
{
	return read_text(span_of(text), false, out_name, err);
}

bool ssh_target_name_read_jump(
	const char *jumps, struct ssh_target_name *out_name, char **out_before, struct error *err)
{
	const char *comma = strrchr(jumps, ',');
	if (!read_text(span_of(comma ? comma + 1 : jumps), true, out_name, err)) {
		return error_prefix(err, "ProxyJump \"%s\"", jumps);
	}
	*out_before = comma ? mem_strndup((struct span){jumps, (size_t)(comma - jumps)}) : NULL;
	return true;
}
