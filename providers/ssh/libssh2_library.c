/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "providers/ssh/crypto.h"

#ifndef SSH2_SONAME
#define SSH2_SONAME "libssh2.so.1"
#endif
#define SSH2_PACKAGE "libssh2-1"
#define SSH2_CURE                                                                                  \
	"is the package " SSH2_PACKAGE " installed? (ssh-client = openssh does without it)"

/* One a process, as libssh2's own state is. */
static struct {
	pthread_mutex_t lock;
	void *library; // NULL while not loaded
	struct ssh2 functions;
} the_ssh2 = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_functions(void *library, struct ssh2 *ssh2, struct error *err)
{
#define SSH2_FIND(name)                                                                            \
	{                                                                                          \
		void *function = dlsym(library, "libssh2_" #name);                                 \
		if (!function) {                                                                   \
			return error_set_reason(err, ERROR_UNAVAILABLE, "SSH_UNSUPPORTED",         \
				"%s has no function libssh2_" #name ": " SSH2_CURE, SSH2_SONAME);  \
		}                                                                                  \
		memcpy(&ssh2->name, &function, sizeof(function));                                  \
	}
	SSH2_FUNCTIONS(SSH2_FIND)
#undef SSH2_FIND
	return true;
}

static bool load(struct error *err)
{
	/* First what libssh2 depends on too: glibc loses some bytes where it is the other way
	 * round. */
	uint8_t digest[CRYPTO_SHA256_SIZE];
	(void)!crypto_sha256(SPAN_LITERAL(""), digest, NULL);
	void *library = dlopen(SSH2_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "SSH_UNSUPPORTED",
			"loading %s: %s: " SSH2_CURE, SSH2_SONAME, dlerror());
	}
	if (!find_functions(library, &the_ssh2.functions, err)) {
		dlclose(library);
		return false;
	}
	int failed = the_ssh2.functions.init(0);
	if (failed != 0) {
		dlclose(library);
		return error_set_reason(err, ERROR_UNAVAILABLE, "SSH_UNSUPPORTED",
			"starting %s failed with its error %d", SSH2_SONAME, failed);
	}
	the_ssh2.library = library;
	return true;
}

const struct ssh2 *ssh2_open(struct error *err)
{
	pthread_mutex_lock(&the_ssh2.lock);
	bool is_loaded = the_ssh2.library || load(err);
	pthread_mutex_unlock(&the_ssh2.lock);
	return is_loaded ? &the_ssh2.functions : NULL;
}

const char *ssh2_last_text(const struct ssh2 *ssh2, LIBSSH2_SESSION *session)
{
	char *text = NULL;
	ssh2->session_last_error(session, &text, NULL, 0);
	return text && *text ? text : "libssh2 gave no reason";
}
