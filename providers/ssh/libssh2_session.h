/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_SESSION_H
#define PROVIDERS_SSH_LIBSSH2_SESSION_H

#include <stddef.h>

#include "providers/ssh/libssh2_library.h"

/*
 * A session with our own memory. libssh2 loses track of some memory when an exchange is cut off; we
 * free that memory when the session ends. The memory also has a limit, because libssh2 stores
 * everything that a server sends, even unasked, until somebody reads it. Only one thread at a time
 * uses a session.
 */
enum { SESSION_MEMORY_MAX = 640 * 1024 * 1024 }; // all channels with full windows, and some more

/* `owner` is for libssh2's callbacks. NULL: out of memory. */
LIBSSH2_SESSION *ssh2_session_create(const struct ssh2 *ssh2, void *owner) ATTR_NODISCARD;

/* Blocks if the session is blocking and its socket is not shut down. NULL is fine. */
void ssh2_session_destroy(const struct ssh2 *ssh2, LIBSSH2_SESSION *session);

void ssh2_session_set_owner(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, void *owner);
void *ssh2_session_owner(void **abstract); // from the data of a libssh2 callback

/* Memory that libssh2 frees itself, for a callback's answer. NULL: over the limit. */
void *ssh2_session_alloc(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, size_t size);

#endif
