/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_ACCOUNT_H
#define PROVIDERS_DAYTONA_ACCOUNT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Who a sandbox was made as: the service answers 404 for what another account has, too. Sandboxes
 * are an organization's; an API key is of one, a JWT may be of several and is another after each
 * login. So a JWT with an organization is known by that, everything else by its key.
 */
struct daytona_account {
	char *api;          // owned; the base address
	char *organization; // owned; NULL: the key says it
	char *key;          // owned; wiped
};

/* Copies. Without a key it is nobody's, which is never the same as another. */
void daytona_account_init(struct daytona_account *account, const char *api,
	const char *organization, const char *key);
void daytona_account_finish(struct daytona_account *account); // zeroed is fine

/*
 * What can be written down of it. The key is there as the first half of SHA-256 of a random salt
 * and itself: enough to know it again. Guessing the key from that means trying all keys there can
 * be, of which the service makes random ones; one chosen by a user would not be safe so.
 */
enum { DAYTONA_SALT_SIZE = 33, DAYTONA_PRINT_SIZE = 33 }; // hexadecimal digits, and a NUL

struct daytona_mark {
	char *api;                                               // owned; the base address
	char *organization;                                      // owned; NULL: the key says it
	char salt[DAYTONA_SALT_SIZE], print[DAYTONA_PRINT_SIZE]; // of the key; "" where not needed
};

/* ERROR_UNAVAILABLE where libcrypto is missing. May block. */
bool daytona_account_mark(const struct daytona_account *account, struct daytona_mark *out_mark,
	struct error *err) ATTR_NODISCARD;
void daytona_mark_finish(struct daytona_mark *mark); // zeroed is fine

/* For people, as what follows "it was made"; the caller's. */
char *daytona_mark_describe(const struct daytona_mark *mark);

/* Sets whether the mark is of this account; one that says nothing of the key is not. */
bool daytona_account_check(const struct daytona_account *account, const struct daytona_mark *mark,
	bool *out_is_same, struct error *err) ATTR_NODISCARD;

#endif
