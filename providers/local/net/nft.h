/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_NFT_H
#define PROVIDERS_LOCAL_NET_NFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What a new network namespace is told over netlink, without the programs `ip` and `nft`. The
 * caller has CAP_NET_ADMIN there. All fail with ERROR_SYSTEM and errno's text; `errno` is kept.
 */

/* Every IPv4 address is the namespace's own: route "local 0.0.0.0/0 dev lo". lo is up. */
bool nft_add_local_route(struct error *err) ATTR_NODISCARD;

/*
 * An address of lo's own, in host order. C libraries find no IPv4 address of a name (AI_ADDRCONFIG
 * of getaddrinfo(3)) where there is none but 127.0.0.1.
 */
bool nft_add_address(uint32_t address, struct error *err) ATTR_NODISCARD;

/*
 * Brings each TCP connection to an address outside of 127.0.0.0/8 to 127.0.0.1:`port`, by
 * nf_tables. SO_ORIGINAL_DST of the accepted socket says where it was meant to go.
 */
bool nft_redirect(uint16_t port, struct error *err) ATTR_NODISCARD;

#endif
