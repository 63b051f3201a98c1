/* SPDX-License-Identifier: MIT */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>

#include "base/span.h"

/* SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104), by which a peer proves that it knows a key. */
enum { SHA256_SIZE = 32 };

void sha256(unsigned char out[SHA256_SIZE], struct span bytes);

/* A key has 64 bytes at most. */
void sha256_hmac(unsigned char out[SHA256_SIZE], struct span key, struct span bytes);

/* Takes the same time wherever the first difference is. */
bool sha256_is_same(const unsigned char one[SHA256_SIZE], const unsigned char other[SHA256_SIZE]);

#endif
