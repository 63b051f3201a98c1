/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_library.h"

#include <assert.h>

#include "base/library.h"
#include "providers/ssh/crypto.h"

static bool start(struct error *err);

#define SSH2_NAME(name) "libssh2_" #name,
static const char *const names[] = {SSH2_FUNCTIONS(SSH2_NAME)};
#undef SSH2_NAME
static_assert(sizeof(struct ssh2) == sizeof(names), "one name for each function");

/* One for each process, because libssh2 has global state. */
static struct ssh2 functions;
static struct library_use the_ssh2 = {.library = &libraries[LIBRARY_SSH2],
	.reason = "SSH_UNSUPPORTED",
	.alternative = " (ssh-client = openssh does not need it)",
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &functions,
	.start = start,
	.lock = PTHREAD_MUTEX_INITIALIZER};

static bool start(struct error *err)
{
	int failed = functions.init(0);
	return failed == 0 || error_set_reason(err, ERROR_UNAVAILABLE, "SSH_UNSUPPORTED",
				      "starting %s failed with its error %d",
				      the_ssh2.library->sonames[0], failed);
}

const struct ssh2 *ssh2_open(struct error *err)
{
	/*
	 * Loads first the library that libssh2 also depends on: in the other order glibc leaks a
	 * few bytes.
	 */
	uint8_t digest[CRYPTO_SHA256_SIZE];
	(void)!crypto_sha256(SPAN_LITERAL(""), digest, NULL);
	return library_open(&the_ssh2, err) ? &functions : NULL;
}

const char *ssh2_last_text(const struct ssh2 *ssh2, LIBSSH2_SESSION *session)
{
	char *text = NULL;
	ssh2->session_last_error(session, &text, NULL, 0);
	return text && *text ? text : "libssh2 gave no reason";
}
