/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H
#define PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H

#include "base/span.h"
#include "providers/ssh/libssh2_library.h"

/* What the library can do, asked of it; never assumed from its version. Worker threads. */

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name);

/*
 * Prefers these types of host key (NULL-terminated, best first) in the negotiation, all others
 * that the library knows after them.
 */
bool ssh2_prefer_host_keys(const struct ssh2 *ssh2, LIBSSH2_SESSION *session,
	const char *const *types, struct error *err) ATTR_NODISCARD;

/*
 * Why a handshake came to nothing: `received` is what the server has sent from the first byte
 * on, its KEXINIT (RFC 4253, 7.1) among it. True where nothing was in common of some kind
 * of algorithm, and then `text` says of which, and what the server has.
 */
bool ssh2_nothing_in_common(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, struct span received,
	char *text, size_t size) ATTR_NODISCARD;

#endif
