/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_CRYPTO_H
#define PROVIDERS_SSH_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The two digests that known hosts need. They come from libcrypto, which libssh2 needs anyway. The
 * first call loads the library (base/library.h), which stays; it may block for some milliseconds.
 * ERROR_UNAVAILABLE names the package if it is missing. Any thread.
 */
enum { CRYPTO_SHA1_SIZE = 20, CRYPTO_SHA256_SIZE = 32 };

bool crypto_sha256(struct span bytes, uint8_t out_digest[CRYPTO_SHA256_SIZE],
	struct error *err) ATTR_NODISCARD;

/* RFC 2104. */
bool crypto_hmac_sha1(struct span key, struct span bytes, uint8_t out_digest[CRYPTO_SHA1_SIZE],
	struct error *err) ATTR_NODISCARD;

#endif
