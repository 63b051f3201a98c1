/* SPDX-License-Identifier: MIT */
#include "providers/ssh/crypto.h"

#include <assert.h>
#include <limits.h>

#include "base/library.h"

/* As declared by <openssl/sha.h>, <openssl/hmac.h> and <openssl/evp.h>. */
typedef struct evp_md_st evp_md;
struct libcrypto {
	unsigned char *(*sha256)(const unsigned char *bytes, size_t len, unsigned char *digest);
	const evp_md *(*evp_sha1)(void);
	unsigned char *(*hmac)(const evp_md *type, const void *key, int key_len,
		const unsigned char *bytes, size_t len, unsigned char *digest,
		unsigned int *digest_len);
};

/* In the order of the struct's members. */
static const char *const names[] = {"SHA256", "EVP_sha1", "HMAC"};
static_assert(sizeof(struct libcrypto) == sizeof(names), "one name for each function");

static struct libcrypto functions;
static struct library_use the_crypto = {.library = &libraries[LIBRARY_CRYPTO],
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &functions,
	.lock = PTHREAD_MUTEX_INITIALIZER};

bool crypto_sha256(struct span bytes, uint8_t out_digest[CRYPTO_SHA256_SIZE], struct error *err)
{
	if (!library_open(&the_crypto, err)) {
		return false;
	}
	if (!functions.sha256((const unsigned char *)bytes.data, bytes.len, out_digest)) {
		return error_set(err, ERROR_UNAVAILABLE, "libcrypto refuses to compute a SHA-256");
	}
	return true;
}

bool crypto_hmac_sha1(
	struct span key, struct span bytes, uint8_t out_digest[CRYPTO_SHA1_SIZE], struct error *err)
{
	unsigned int len = CRYPTO_SHA1_SIZE;
	if (!library_open(&the_crypto, err)) {
		return false;
	}
	if (key.len > INT_MAX ||
		!functions.hmac(functions.evp_sha1(), key.data, (int)key.len,
			(const unsigned char *)bytes.data, bytes.len, out_digest, &len) ||
		len != CRYPTO_SHA1_SIZE) {
		return error_set(err, ERROR_UNAVAILABLE, "libcrypto refuses to compute a SHA-1");
	}
	return true;
}
