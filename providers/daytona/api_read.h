/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_READ_H
#define PROVIDERS_DAYTONA_API_READ_H

#include <stddef.h>

#include "base/span.h"
#include "providers/daytona/api.h"

/*
 * Reads the service's answers. Unknown members are skipped; api.h says what stands for a member
 * that is missing, null or of another type. ERROR_PROTOCOL says what was expected in an invalid
 * text.
 */

/* A sandbox with its texts. */
struct daytona_told_sandbox {
	struct daytona_sandbox sandbox;
	struct daytona_pair *labels;
	char *texts[12];
	size_t text_count;
};

/* The text must have an id. */
bool daytona_read_sandbox(
	struct span json, struct daytona_told_sandbox *out_told, struct error *err) ATTR_NODISCARD;
void daytona_told_sandbox_finish(struct daytona_told_sandbox *told);

/* A token with its texts. */
struct daytona_told_access {
	struct daytona_access access;
	char *token, *host, *expires_at;
};

/*
 * The text must have a token that can be a user's name; finish wipes it. Host and port come from
 * the member sshCommand: "ssh [-p PORT] USER@HOST".
 */
bool daytona_read_access(
	struct span json, struct daytona_told_access *out_told, struct error *err) ATTR_NODISCARD;
void daytona_told_access_finish(struct daytona_told_access *told);

/*
 * The permissions that the broker needs (enum daytona_permission). The text must list permissions.
 */
bool daytona_read_permissions(
	struct span json, unsigned int *out_permissions, struct error *err) ATTR_NODISCARD;

/* One page of a list. */
struct daytona_page {
	struct span *items; // in the text; each is JSON
	size_t count;
	char *cursor; // of the next page; NULL: this was the last
};
bool daytona_read_page(
	struct span json, struct daytona_page *out_page, struct error *err) ATTR_NODISCARD;
void daytona_page_finish(struct daytona_page *page);

/*
 * Returns text: what an error's body says. That is its `message` (a text or a list of texts), or
 * else `error`, or else its first bytes. Control bytes and invalid UTF-8 become spaces, `secret`
 * becomes ***. At most DAYTONA_MESSAGE_MAX - 1 bytes; "" if it says nothing.
 */
enum { DAYTONA_MESSAGE_MAX = 400, DAYTONA_EXCERPT_MAX = 200 };
const char *daytona_read_message(
	struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX]);

/*
 * Whether an error's body concerns one of the service's own objects. False for another server's
 * page, and for "Cannot GET /x", which means that the service lacks the path.
 */
bool daytona_is_own_error(struct span body);

/* Like daytona_read_message, for the first DAYTONA_EXCERPT_MAX bytes of any body. */
const char *daytona_excerpt(struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX]);

#endif
