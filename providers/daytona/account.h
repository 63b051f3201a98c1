/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_ACCOUNT_H
#define PROVIDERS_DAYTONA_ACCOUNT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The account with which a sandbox was made. The service also answers 404 for a sandbox that exists
 * but belongs to another account. Sandboxes belong to an organization. An API key belongs to one
 * organization. A JWT may belong to several, and changes with each login. So we recognise a JWT
 * with an organization by the organization, and everything else by the key.
 */
struct daytona_account {
	char *api;          // owned; the base address
	char *organization; // owned; NULL: the key's own
	char *key;          // owned; wiped
};

/* Copies the texts. An account without a key equals no account. */
void daytona_account_init(struct daytona_account *account, const char *api,
	const char *organization, const char *key);
void daytona_account_finish(struct daytona_account *account); // zeroed is fine

/*
 * The form of an account that we write to disk. Instead of the key it has the first half of the
 * SHA-256 of a random salt and the key, which is enough to recognise the key. Nobody can find the
 * key by trying, because the service makes keys at random; a key that a person chose would not be
 * safe like this.
 */
enum { DAYTONA_SALT_SIZE = 33, DAYTONA_PRINT_SIZE = 33 }; // hexadecimal digits, and a NUL

struct daytona_mark {
	char *api;                                               // owned; the base address
	char *organization;                                      // owned; NULL: the key's own
	char salt[DAYTONA_SALT_SIZE], print[DAYTONA_PRINT_SIZE]; // of the key; "" if not needed
};

/* ERROR_UNAVAILABLE if libcrypto is missing. May block. */
bool daytona_account_mark(const struct daytona_account *account, struct daytona_mark *out_mark,
	struct error *err) ATTR_NODISCARD;
void daytona_mark_finish(struct daytona_mark *mark); // zeroed is fine

/* For people: text that follows "it was made"; the caller frees it. */
char *daytona_mark_describe(const struct daytona_mark *mark);

/* Reports whether the mark belongs to this account. A mark without a key belongs to none. */
bool daytona_account_check(const struct daytona_account *account, const struct daytona_mark *mark,
	bool *out_is_same, struct error *err) ATTR_NODISCARD;

#endif
