/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_algorithms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/ssh/libssh2_key_file.h"

enum { PREFERENCE_MAX = 2048, MSG_KEXINIT = 20, KEXINIT_COOKIE = 16 };

static bool list_has(const char *const *list, const char *name, size_t len)
{
	for (; *list; list++) {
		if (strlen(*list) == len && memcmp(*list, name, len) == 0) {
			return true;
		}
	}
	return false;
}

/* What it knows for a method, as many as fit, NULL-terminated; to be freed by the library. */
static const char **supported(
	const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, size_t *out_count)
{
	const char **list = NULL;
	int count = ssh2->session_supported_algs(session, method, &list);
	*out_count = count > 0 ? (size_t)count : 0;
	return list;
}

static bool array_has(const char **list, size_t count, struct span name)
{
	for (size_t i = 0; i < count; i++) {
		if (span_is(name, list[i])) {
			return true;
		}
	}
	return false;
}

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name)
{
	size_t count;
	const char **list = supported(ssh2, session, method, &count);
	bool is_supported = array_has(list, count, span_of(name));
	if (list) {
		ssh2->free(session, list);
	}
	return is_supported;
}

static bool put_name(struct buf *names, const char *name, struct error *err)
{
	return buf_append_format(names, err, "%s%s", names->len ? "," : "", name);
}

bool ssh2_prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method,
	const char *const *best, struct error *err)
{
	size_t count;
	const char **list = supported(ssh2, session, method, &count);
	struct buf names;
	buf_init(&names, PREFERENCE_MAX);
	bool fits = true;
	for (const char *const *name = best; *name; name++) {
		if (array_has(list, count, span_of(*name))) {
			fits = fits && put_name(&names, *name, err);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (!list_has(best, list[i], strlen(list[i]))) {
			fits = fits && put_name(&names, list[i], err);
		}
	}
	if (list) {
		ssh2->free(session, list);
	}
	char *text = mem_strndup(buf_span(&names));
	buf_finish(&names);
	if (fits && *text && ssh2->session_method_pref(session, method, text) != 0) {
		fits = error_set(err, ERROR_SYSTEM, "preferring %s: %s", text,
			ssh2_last_text(ssh2, session));
	}
	free(text);
	return fits;
}

bool ssh2_prefer_fast(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, struct error *err)
{
	static const char *const ciphers[] = {
		"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", NULL};
	return ssh2_prefer(ssh2, session, LIBSSH2_METHOD_CRYPT_CS, ciphers, err) &&
	       ssh2_prefer(ssh2, session, LIBSSH2_METHOD_CRYPT_SC, ciphers, err);
}

/* The payload of the server's first packet, where that is its KEXINIT and all of it is there. */
static bool find_kexinit(struct span received, struct span *out_lists)
{
	/* Lines may come before the one that begins with SSH- (RFC 4253, 4.2). */
	for (;;) {
		const char *end =
			received.len > 0 ? memchr(received.data, '\n', received.len) : NULL;
		if (!end) {
			return false;
		}
		size_t len = (size_t)(end + 1 - received.data);
		bool is_last = span_starts_with(received, SPAN_LITERAL("SSH-"));
		received = (struct span){received.data + len, received.len - len};
		if (is_last) {
			break;
		}
	}
	unsigned int len;
	size_t head = 2 + KEXINIT_COOKIE; // padding's length, number, cookie
	if (!wire_take_u32(&received, &len) || received.len < len || len < head ||
		received.data[1] != MSG_KEXINIT) {
		return false;
	}
	*out_lists = (struct span){received.data + head, len - head};
	return true;
}

static bool has_common(const char **list, size_t count, struct span names)
{
	while (names.len > 0) {
		const char *comma = memchr(names.data, ',', names.len);
		size_t len = comma ? (size_t)(comma - names.data) : names.len;
		if (array_has(list, count, (struct span){names.data, len})) {
			return true;
		}
		size_t used = comma ? len + 1 : len;
		names = (struct span){names.data + used, names.len - used};
	}
	return false;
}

bool ssh2_nothing_in_common(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, struct span received,
	char *text, size_t size)
{
	/* In the order of KEXINIT. */
	static const struct {
		int method;
		const char *what;
	} kinds[] = {
		{LIBSSH2_METHOD_KEX, "key exchange"},
		{LIBSSH2_METHOD_HOSTKEY, "type of host key"},
		{LIBSSH2_METHOD_CRYPT_CS, "cipher"},
		{LIBSSH2_METHOD_CRYPT_SC, "cipher"},
		{LIBSSH2_METHOD_MAC_CS, "MAC"},
		{LIBSSH2_METHOD_MAC_SC, "MAC"},
	};
	struct span lists;
	if (!find_kexinit(received, &lists)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		struct span names;
		size_t count;
		if (!wire_take_string(&lists, &names)) {
			return false;
		}
		const char **list = supported(ssh2, session, kinds[i].method, &count);
		bool is_common = has_common(list, count, names);
		if (list) {
			ssh2->free(session, list);
		}
		if (!is_common) {
			snprintf(text, size, "no %s in common (the server has %.*s)", kinds[i].what,
				(int)names.len, names.data);
			return true;
		}
	}
	return false;
}
