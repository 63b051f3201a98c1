/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_CRYPTO_H
#define PROVIDERS_SSH_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The two digests that known hosts need, of libcrypto, which libssh2 brings along. The
 * library is loaded when the first is asked for (base/library.h) and stays. ERROR_UNAVAILABLE,
 * naming the package, where it is missing. Any thread; the first call may block for some
 * milliseconds.
 */
enum { CRYPTO_SHA1_SIZE = 20, CRYPTO_SHA256_SIZE = 32 };

bool crypto_sha256(struct span bytes, uint8_t out_digest[CRYPTO_SHA256_SIZE],
	struct error *err) ATTR_NODISCARD;

/* RFC 2104. */
bool crypto_hmac_sha1(struct span key, struct span bytes, uint8_t out_digest[CRYPTO_SHA1_SIZE],
	struct error *err) ATTR_NODISCARD;

#endif
