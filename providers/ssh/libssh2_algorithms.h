/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H
#define PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H

#include "base/span.h"
#include "providers/ssh/libssh2_library.h"

/* What the library can do, asked of it; never assumed from its version. Worker threads. */

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name);

/*
 * Prefers these names (NULL-terminated, best first) of a method, LIBSSH2_METHOD_…, in the
 * negotiation: those of them that the library knows, and all others that it knows after them.
 */
bool ssh2_prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method,
	const char *const *best, struct error *err) ATTR_NODISCARD;

/* The fastest of the ciphers that are as good as any; the MACs come in a good order. */
bool ssh2_prefer_fast(
	const struct ssh2 *ssh2, LIBSSH2_SESSION *session, struct error *err) ATTR_NODISCARD;

/*
 * Why a handshake came to nothing: `received` is what the server has sent from the first byte
 * on, its KEXINIT (RFC 4253, 7.1) among it. True where nothing was in common of some kind
 * of algorithm, and then `text` says of which, and what the server has.
 */
bool ssh2_nothing_in_common(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, struct span received,
	char *text, size_t size) ATTR_NODISCARD;

#endif
