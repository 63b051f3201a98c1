/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_REMOTES_H
#define SYNC_GIT_REMOTES_H

#include "base/buf.h"
#include "base/user_config.h"

/*
 * The names and URLs of the user's remotes, for the runtime's repository. No credential goes along:
 * a URL loses its password and what follows "?" or "#"; with it the user's name goes, but that of
 * SSH, which is no secret. A URL that may have a secret elsewhere is left out: one of a helper
 * ("NAME::..."), and one in which nobody can tell what the "@" is for.
 */
enum { REMOTES_MAX = 64 << 10 };

/*
 * Reads anew: lines "remote.NAME.url URL" and "remote.NAME.pushurl URL", as git-config(1) prints
 * them. What does not fit, or would not be one line, is left out.
 */
void remotes_read(const struct user_config *config, struct buf *out);

/*
 * The remote that a partial clone would ask for what it has not got, the caller's to free; "" where
 * it is none.
 */
char *remotes_promisor(const struct user_config *config) ATTR_NODISCARD;

/* The URL as it may travel; the caller's to free. NULL: it may not. Pure. */
char *remote_url_clean(const char *url) ATTR_NODISCARD;

#endif
