/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_API_READ_H
#define PROVIDERS_DAYTONA_API_READ_H

#include <stddef.h>

#include "base/span.h"
#include "providers/daytona/api.h"

/*
 * What the service answers. Unknown members are passed over; one that is missing, null or of
 * another type is told as the header api.h has it. ERROR_PROTOCOL, saying what was
 * expected, where the text is not what it has to be.
 */

/* A sandbox with the texts it points to. */
struct daytona_told_sandbox {
	struct daytona_sandbox sandbox;
	struct daytona_pair *labels;
	char *texts[12];
	size_t text_count;
};

/* It must have an id. */
bool daytona_read_sandbox(
	struct span json, struct daytona_told_sandbox *out_told, struct error *err) ATTR_NODISCARD;
void daytona_told_sandbox_finish(struct daytona_told_sandbox *told);

/* A token with the texts it points to. */
struct daytona_told_access {
	struct daytona_access access;
	char *token, *host, *expires_at;
};

/*
 * It must have a token that can be a user's name; finish wipes it. Host and port are those of the
 * member sshCommand: "ssh [-p PORT] USER@HOST".
 */
bool daytona_read_access(
	struct span json, struct daytona_told_access *out_told, struct error *err) ATTR_NODISCARD;
void daytona_told_access_finish(struct daytona_told_access *told);

/* enum daytona_permission; those that the broker needs. It must have a list of them. */
bool daytona_read_permissions(
	struct span json, unsigned int *out_permissions, struct error *err) ATTR_NODISCARD;

/* One page of a list. */
struct daytona_page {
	struct span *items; // in the text, each a piece of JSON
	size_t count;
	char *cursor; // of the next page; NULL: this was the last
};
bool daytona_read_page(
	struct span json, struct daytona_page *out_page, struct error *err) ATTR_NODISCARD;
void daytona_page_finish(struct daytona_page *page);

/*
 * What an error's body says: its `message`, a text or a list of them, or else `error`; of
 * what has neither, its first bytes. Control bytes and what is no UTF-8 are spaces, `secret` is
 * ***, and it is at most DAYTONA_MESSAGE_MAX - 1 bytes. "" where it says nothing. Returns text.
 */
enum { DAYTONA_MESSAGE_MAX = 400, DAYTONA_EXCERPT_MAX = 200 };
const char *daytona_read_message(
	struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX]);

/*
 * Whether an error's body is what the service says of one of its things, and not another server's
 * page, or "Cannot GET /x", which is what it says of a path that it does not have.
 */
bool daytona_is_own_error(struct span body);

/* As daytona_read_message, of the body's first DAYTONA_EXCERPT_MAX bytes, whatever they are. */
const char *daytona_excerpt(struct span body, const char *secret, char text[DAYTONA_MESSAGE_MAX]);

#endif
