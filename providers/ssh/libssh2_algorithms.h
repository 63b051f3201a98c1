/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H
#define PROVIDERS_SSH_LIBSSH2_ALGORITHMS_H

#include "base/span.h"
#include "providers/ssh/libssh2_library.h"
#include "providers/ssh/target.h"

/*
 * Whether the library supports an algorithm, as it reports itself; we do not infer this from its
 * version. For worker threads.
 */

bool ssh2_supports(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, int method, const char *name);

/* The offer: for each kind, in the order of KEXINIT (RFC 4253, 7.1), names with commas. */
enum { SSH2_OFFERED_KINDS = 6 };
struct ssh2_offer {
	char *names[SSH2_OFFERED_KINDS];
};

/*
 * Makes the offer for the negotiation from the algorithms that the library supports and the target
 * allows. The types in `host_keys` (NULL-terminated, best first) come first, and with `only_these`
 * the offer has no others. The fastest of equally good ciphers comes first. SSH_UNSUPPORTED if no
 * algorithm of a kind is left. Zero *out_offer before the call, and finish it in either case.
 */
bool ssh2_prefer(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, const struct ssh_target *target,
	const char *const *host_keys, bool only_these, struct ssh2_offer *out_offer,
	struct error *err) ATTR_NODISCARD;
void ssh2_offer_finish(struct ssh2_offer *offer);

/* Whether the target's list for this kind of algorithm has the name. */
bool ssh2_allows(const struct ssh_target *target, enum ssh_algorithms kind, const char *name);

/*
 * Explains a failed handshake. `received` is all that the server has sent, including its KEXINIT.
 * True if there is a kind of algorithm for which the sides have none in common. Then `text` names
 * the kind, and lists the algorithms of the server and those of the offer.
 */
bool ssh2_nothing_in_common(const struct ssh2_offer *offer, struct span received, char *text,
	size_t size) ATTR_NODISCARD;

#endif
