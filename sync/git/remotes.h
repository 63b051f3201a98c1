/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_REMOTES_H
#define SYNC_GIT_REMOTES_H

#include "base/buf.h"
#include "base/user_config.h"

/*
 * The names and URLs of the user's remotes, for the runtime's repository, without credentials. A
 * URL loses its password, and everything after "?" or "#". It also loses the user's name, except
 * for SSH, where the name is not a secret. Two kinds of URL are left out, because they may contain
 * a secret in other places: those of a helper ("NAME::..."), and those with an ambiguous "@".
 */
enum { REMOTES_MAX = 64 << 10 };

/*
 * Reads them again, as lines "remote.NAME.url URL" and "remote.NAME.pushurl URL" like git-config(1)
 * prints them. Those that do not fit, or contain a newline, are left out.
 */
void remotes_read(const struct user_config *config, struct buf *out);

/*
 * The remote that a partial clone asks for missing objects; the caller frees it. "" if it is not a
 * partial clone.
 */
char *remotes_promisor(const struct user_config *config) ATTR_NODISCARD;

/* The URL without secrets; the caller frees it. NULL: it may not be sent. Does no I/O. */
char *remote_url_clean(const char *url) ATTR_NODISCARD;

#endif
