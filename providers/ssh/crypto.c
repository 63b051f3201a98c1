/* SPDX-License-Identifier: MIT */
#include "providers/ssh/crypto.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* As <openssl/sha.h>, <openssl/hmac.h> and <openssl/evp.h> declare them, since 1.1 alike. */
typedef struct evp_md_st evp_md;
struct libcrypto {
	unsigned char *(*sha256)(const unsigned char *bytes, size_t len, unsigned char *digest);
	const evp_md *(*evp_sha1)(void);
	unsigned char *(*hmac)(const evp_md *type, const void *key, int key_len,
		const unsigned char *bytes, size_t len, unsigned char *digest,
		unsigned int *digest_len);
};

static const char *const library_names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};

static struct {
	pthread_once_t once;
	bool is_loaded;
	struct libcrypto functions;
} the_library = {.once = PTHREAD_ONCE_INIT};

static bool find_function(void *library, const char *name, void *to)
{
	void *function = dlsym(library, name);
	memcpy(to, &function, sizeof(function));
	return function != NULL;
}

/* The handle is never closed: what was found lives as long as the process. */
static void load(void)
{
	struct libcrypto *functions = &the_library.functions;
	void *library = NULL;
	for (size_t i = 0; !library && i < ARRAY_LENGTH(library_names); i++) {
		library = dlopen(library_names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	}
	the_library.is_loaded = library && find_function(library, "SHA256", &functions->sha256) &&
	                        find_function(library, "EVP_sha1", &functions->evp_sha1) &&
	                        find_function(library, "HMAC", &functions->hmac);
}

static const struct libcrypto *open_library(struct error *err)
{
	pthread_once(&the_library.once, load);
	if (!the_library.is_loaded) {
		error_set(err, ERROR_UNAVAILABLE, "loading %s: is the package libssl3 installed?",
			library_names[0]);
		return NULL;
	}
	return &the_library.functions;
}

bool crypto_sha256(struct span bytes, uint8_t out_digest[CRYPTO_SHA256_SIZE], struct error *err)
{
	const struct libcrypto *library = open_library(err);
	if (!library) {
		return false;
	}
	if (!library->sha256((const unsigned char *)bytes.data, bytes.len, out_digest)) {
		return error_set(err, ERROR_UNAVAILABLE, "libcrypto refuses to compute a SHA-256");
	}
	return true;
}

bool crypto_hmac_sha1(
	struct span key, struct span bytes, uint8_t out_digest[CRYPTO_SHA1_SIZE], struct error *err)
{
	unsigned int len = CRYPTO_SHA1_SIZE;
	const struct libcrypto *library = open_library(err);
	if (!library) {
		return false;
	}
	if (key.len > INT_MAX ||
		!library->hmac(library->evp_sha1(), key.data, (int)key.len,
			(const unsigned char *)bytes.data, bytes.len, out_digest, &len) ||
		len != CRYPTO_SHA1_SIZE) {
		return error_set(err, ERROR_UNAVAILABLE, "libcrypto refuses to compute a SHA-1");
	}
	return true;
}
