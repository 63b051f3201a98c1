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
	struct span names; // a list of patterns, or one hashed name; into the line
	struct span type;  // into the line
	uint8_t *blob;     // owned
	size_t blob_len;
};

/*
 * Reads a line, given without its newline. False where it holds no key: empty, a comment,
 * or nothing that ssh would read either; there is nothing to finish then.
 */
bool known_hosts_line_read(struct span text, struct known_hosts_line *out_line) ATTR_NODISCARD;
void known_hosts_line_finish(struct known_hosts_line *line);

/*
 * Whether the names of a line are meant for a host, which is in lower case: "devbox",
 * "[devbox]:2222". One negated pattern that fits it makes the whole list not fit. An error is that
 * of crypto_hmac_sha1 alone.
 */
bool known_hosts_names_fit(
	struct span names, const char *host, bool *out_fit, struct error *err) ATTR_NODISCARD;

/* `*` any bytes, `?` one, everything else itself, whatever its case. */
bool known_hosts_pattern_fits(struct span pattern, struct span text);

/* "|1|salt|hash" of a name; the caller frees it. NULL on an error. */
enum { KNOWN_HOSTS_SALT_SIZE = 20 };
char *known_hosts_hash(const char *host, const uint8_t salt[KNOWN_HOSTS_SALT_SIZE],
	struct error *err) ATTR_NODISCARD;

#endif
