/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_NFT_H
#define PROVIDERS_LOCAL_NET_NFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Configures a new network namespace over netlink, without the programs `ip` and `nft`. Needs
 * CAP_NET_ADMIN there. Functions fail with ERROR_SYSTEM and errno's text, and keep `errno`.
 */

/*
 * Makes every IPv4 address local to the namespace: route "local 0.0.0.0/0 dev lo". lo must be up.
 */
bool nft_add_local_route(struct error *err) ATTR_NODISCARD;

/*
 * Adds an address to lo, in host order. Without an address besides 127.0.0.1, C libraries do not
 * look for IPv4 addresses (AI_ADDRCONFIG of getaddrinfo(3)).
 */
bool nft_add_address(uint32_t address, struct error *err) ATTR_NODISCARD;

/*
 * Redirects every TCP connection to an address outside of 127.0.0.0/8 to 127.0.0.1:`port`, by
 * nf_tables. SO_ORIGINAL_DST of the accepted socket gives the original address.
 */
bool nft_redirect(uint16_t port, struct error *err) ATTR_NODISCARD;

#endif
