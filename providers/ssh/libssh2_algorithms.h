/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H
#define PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H

#include "base/span.h"
#include "providers/ssh/libssh2_library.h"
#include "providers/ssh/target.h"

/* What the library can do, asked of it; never assumed from its version. Worker threads. */

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name);

/* What is offered, of each kind in the order of KEXINIT (RFC 4253, 7.1), with commas. */
enum { SSH2_OFFERED_KINDS = 6 };
struct ssh2_offer {
	char *names[SSH2_OFFERED_KINDS];
};

/*
 * What the negotiation offers: of what the library knows that which the target allows, first
 * these types of host key (NULL-terminated, best first), and the fastest of the ciphers that are
 * as good as any. Only these types: none but them. SSH_UNSUPPORTED where nothing is left of
 * some kind. *out_offer, zeroed before, is to be finished either way.
 */
bool ssh2_prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, const struct ssh_target *target,
	const char *const *host_keys, bool only_these, struct ssh2_offer *out_offer,
	struct error *err) ATTR_NODISCARD;
void ssh2_offer_finish(struct ssh2_offer *offer);

/* Whether the target allows an algorithm of this kind: a name as in its list. */
bool ssh2_allows(const struct ssh_target *target, enum ssh_algorithms kind, const char *name);

/*
 * Why a handshake came to nothing: `received` is what the server has sent from the first byte
 * on, its KEXINIT among it. True where nothing was in common of some kind of algorithm, and
 * then `text` says of which, what the server has, and what was offered.
 */
bool ssh2_nothing_in_common(const struct ssh2_offer *offer, struct span received, char *text,
	size_t size) ATTR_NODISCARD;

#endif
