/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_SESSION_H
#define PROVIDERS_SSH_LIBSSH2_SESSION_H

#include <stddef.h>

#include "providers/ssh/libssh2_library.h"

/*
 * A session whose memory is ours: libssh2 forgets some of it where an exchange is cut, so
 * that what is left is freed when the session ends. And bounds it: what a server sends
 * unasked is kept by libssh2 until somebody reads it. A session is used by one thread at
 * a time.
 */
enum { SESSION_MEMORY_MAX = 640 * 1024 * 1024 }; // every channel's window full, and some

/* `owner` is for the callbacks of libssh2. NULL: no memory. */
LIBSSH2_SESSION *ssh2_session_create(const struct ssh2 *ssh2, void *owner) ATTR_NODISCARD;

/* Blocks where the session does, and its socket is not shut down. NULL is fine. */
void ssh2_session_destroy(const struct ssh2 *ssh2, LIBSSH2_SESSION *session);

void ssh2_session_set_owner(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, void *owner);
void *ssh2_session_owner(void **abstract); // of what a callback of libssh2 is given

/* Memory that libssh2 frees itself: what a callback answers. NULL: beyond the limit. */
void *ssh2_session_alloc(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, size_t size);

#endif
