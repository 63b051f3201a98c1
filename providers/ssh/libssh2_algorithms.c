/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_algorithms.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/ssh/libssh2_key_file.h"

enum { PREFERENCE_MAX = 2048, MSG_KEXINIT = 20, KEXINIT_COOKIE = 16 };

/* In the order of KEXINIT. */
static const struct kind {
	int method;
	enum ssh_algorithms algorithms;
	const char *what;
} kinds[] = {
	{LIBSSH2_METHOD_KEX, SSH_KEX_ALGORITHMS, "key exchange"},
	{LIBSSH2_METHOD_HOSTKEY, SSH_HOST_KEY_ALGORITHMS, "type of host key"},
	{LIBSSH2_METHOD_CRYPT_CS, SSH_CIPHERS, "cipher"},
	{LIBSSH2_METHOD_CRYPT_SC, SSH_CIPHERS, "cipher"},
	{LIBSSH2_METHOD_MAC_CS, SSH_MACS, "MAC"},
	{LIBSSH2_METHOD_MAC_SC, SSH_MACS, "MAC"},
};

static bool list_has(const char *const *list, const char *name)
{
	for (; *list; list++) {
		if (strcmp(*list, name) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * The algorithms that the library supports for a method, as many as fit, NULL-terminated; the
 * library frees them.
 */
static const char **supported(
	const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, size_t *out_count)
{
	const char **list = NULL;
	int count = ssh2->session_supported_algs(session, method, &list);
	*out_count = count > 0 ? (size_t)count : 0;
	return list;
}

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name)
{
	size_t count;
	const char **list = supported(ssh2, session, method, &count);
	bool is_supported = false;
	for (size_t i = 0; i < count && !is_supported; i++) {
		is_supported = strcmp(list[i], name) == 0;
	}
	if (list) {
		ssh2->free(session, list);
	}
	return is_supported;
}

/* ---- allowed algorithms ---- */

/*
 * Names in the list of key exchanges that announce a feature of the client instead (RFC 8308, 2.1).
 */
static bool is_extension(const char *name)
{
	return strncmp(name, "ext-info-", 9) == 0 || strncmp(name, "kex-strict-", 11) == 0;
}

bool ssh2_allows(const struct ssh_target *target, enum ssh_algorithms kind, const char *name)
{
	const char *allowed = target->algorithms[kind];
	return !allowed || ssh_names_have(allowed, span_of(name)) ||
	       (kind == SSH_KEX_ALGORITHMS && is_extension(name));
}

static bool put_name(struct buf *names, const char *name, struct error *err)
{
	return buf_append_format(names, err, "%s%s", names->len ? "," : "", name);
}

static bool put_allowed(struct buf *names, const struct ssh_target *target, const struct kind *kind,
	const char *name, struct error *err)
{
	return !ssh2_allows(target, kind->algorithms, name) || put_name(names, name, err);
}

/*
 * The algorithms that the library supports and the target allows, separated by commas: the
 * preferred ones first, then others if allowed.
 */
static bool put_offer(struct buf *names, const struct ssh2 *ssh2, LIBSSH2_SESSION *session,
	const struct ssh_target *target, const struct kind *kind, const char *const *best,
	bool only_best, struct error *err)
{
	bool ok = true;
	for (const char *const *name = best; *name && ok; name++) {
		ok = !ssh2_supports(ssh2, session, kind->method, *name) ||
		     put_allowed(names, target, kind, *name, err);
	}
	size_t count;
	const char **list = supported(ssh2, session, kind->method, &count);
	for (size_t i = 0; i < count && ok && !only_best; i++) {
		ok = list_has(best, list[i]) || put_allowed(names, target, kind, list[i], err);
	}
	if (list) {
		ssh2->free(session, list);
	}
	return ok;
}

static bool prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session,
	const struct ssh_target *target, const struct kind *kind, const char *const *best,
	bool only_best, char **out_offer, struct error *err)
{
	struct buf names ATTR_CLEANUP(buf_finish);
	buf_init(&names, PREFERENCE_MAX);
	if (!put_offer(&names, ssh2, session, target, kind, best, only_best, err)) {
		return false;
	}
	if (names.len == 0 && only_best) {
		return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"the known keys of the host have types that libssh2 cannot check, "
			"or that HostKeyAlgorithms in ssh_config forbids (%s)%s",
			best[0], ssh_target_other_client(target));
	}
	if (names.len == 0) {
		return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"libssh2 has no %s that %s in ssh_config allows (%s)%s", kind->what,
			ssh_algorithms_names[kind->algorithms],
			target->algorithms[kind->algorithms], ssh_target_other_client(target));
	}
	*out_offer = mem_strndup(buf_span(&names));
	return ssh2->session_method_pref(session, kind->method, *out_offer) == 0 ||
	       error_set(err, ERROR_SYSTEM, "preferring %s: %s", *out_offer,
		       ssh2_last_text(ssh2, session));
}

bool ssh2_prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, const struct ssh_target *target,
	const char *const *host_keys, bool only_these, struct ssh2_offer *out_offer,
	struct error *err)
{
	static const char *const ciphers[] = {
		"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", NULL};
	static const char *const none[] = {NULL};
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		enum ssh_algorithms algorithms = kinds[i].algorithms;
		bool is_host_key = algorithms == SSH_HOST_KEY_ALGORITHMS;
		const char *const *best = algorithms == SSH_CIPHERS ? ciphers
		                          : is_host_key             ? host_keys
		                                                    : none;
		if (!prefer(ssh2, session, target, &kinds[i], best, is_host_key && only_these,
			    &out_offer->names[i], err)) {
			return false;
		}
	}
	return true;
}

void ssh2_offer_finish(struct ssh2_offer *offer)
{
	for (size_t i = 0; i < ARRAY_LENGTH(offer->names); i++) {
		free(offer->names[i]);
	}
	*offer = (struct ssh2_offer){0};
}

/* ---- the server's algorithms ---- */

/* The payload of the server's first packet, if that is a complete KEXINIT. */
static bool find_kexinit(struct span received, struct span *out_lists)
{
	/* Lines may come before the one that begins with "SSH-" (RFC 4253, 4.2). */
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
	size_t head = 2 + KEXINIT_COOKIE; // padding length, message number, cookie
	if (!wire_take_u32(&received, &len) || received.len < len || len < head ||
		received.data[1] != MSG_KEXINIT) {
		return false;
	}
	*out_lists = (struct span){received.data + head, len - head};
	return true;
}

static bool has_common(const char *ours, const char *theirs)
{
	while (*ours) {
		size_t len = strcspn(ours, ",");
		if (ssh_names_have(theirs, (struct span){ours, len})) {
			return true;
		}
		ours += len + (ours[len] == ',');
	}
	return false;
}

bool ssh2_nothing_in_common(
	const struct ssh2_offer *offer, struct span received, char *text, size_t size)
{
	struct span lists;
	if (!find_kexinit(received, &lists)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		struct span names;
		if (!offer->names[i] || !wire_take_string(&lists, &names)) {
			return false;
		}
		char *theirs = mem_strndup(names);
		bool is_common = has_common(offer->names[i], theirs);
		if (!is_common) {
			text_format(text, size, "no %s in common (the server has %s; offered: %s)",
				kinds[i].what, theirs, offer->names[i]);
		}
		free(theirs);
		if (!is_common) {
			return true;
		}
	}
	return false;
}
