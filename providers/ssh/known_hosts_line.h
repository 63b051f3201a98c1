/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_KNOWN_HOSTS_LINE_H
#define PROVIDERS_SSH_KNOWN_HOSTS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * One line of a file of known hosts: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Pure; any
 * thread.
 */
enum known_hosts_marker {
	KNOWN_HOSTS_PLAIN,
	KNOWN_HOSTS_MARK_REVOKED,   // @revoked
	KNOWN_HOSTS_MARK_AUTHORITY, // @cert-authority
};

struct known_hosts_line {
	enum known_hosts_marker marker;
	struct span names; // a list of patterns, or one hashed name; points into the line
	struct span type;  // points into the line
	uint8_t *blob;     // owned
	size_t blob_len;
};

/*
 * Reads a line without its newline. False if the line has no key: it is empty, a comment, or a line
 * that ssh skips, too. Then there is nothing to finish.
 */
bool known_hosts_line_read(struct span text, struct known_hosts_line *out_line) ATTR_NODISCARD;
void known_hosts_line_finish(struct known_hosts_line *line);

/*
 * Whether the line's names match a host, given in lower case: "devbox", "[devbox]:2222". If a
 * negated pattern matches, the whole list does not. Fails only if crypto_hmac_sha1 does.
 */
bool known_hosts_names_fit(
	struct span names, const char *host, bool *out_fit, struct error *err) ATTR_NODISCARD;

/* `*` matches any bytes, `?` one byte, everything else itself. Upper and lower case are equal. */
bool known_hosts_pattern_fits(struct span pattern, struct span text);

/* Returns "|1|salt|hash" of a name; the caller frees it. NULL on an error. */
enum { KNOWN_HOSTS_SALT_SIZE = 20 };
char *known_hosts_hash(const char *host, const uint8_t salt[KNOWN_HOSTS_SALT_SIZE],
	struct error *err) ATTR_NODISCARD;

#endif
