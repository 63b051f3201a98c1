/* SPDX-License-Identifier: MIT */
#include "providers/daytona/account.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"
#include "providers/daytona/api.h"
#include "providers/ssh/crypto.h"

enum { PRINT_BYTES = 16 };

/* ---- accounts ---- */

void daytona_account_init(
	struct daytona_account *account, const char *api, const char *organization, const char *key)
{
	bool is_jwt = key && daytona_key_is_jwt(key);
	*account = (struct daytona_account){.api = mem_strdup(api),
		.organization = mem_strdup_or_null(is_jwt ? organization : NULL),
		.key = mem_strdup_or_null(key)};
}

void daytona_account_finish(struct daytona_account *account)
{
	free(account->api);
	free(account->organization);
	mem_wipe_free(account->key);
	*account = (struct daytona_account){0};
}

/* ---- marks ---- */

static bool put_print(
	char print[DAYTONA_PRINT_SIZE], const char *salt, const char *key, struct error *err)
{
	uint8_t digest[CRYPTO_SHA256_SIZE];
	size_t salt_len = strlen(salt), len = salt_len + strlen(key);
	char *text = mem_alloc_zero(len + 1);
	memcpy(text, salt, salt_len);
	memcpy(text + salt_len, key, len - salt_len);
	bool ok = crypto_sha256((struct span){text, len}, digest, err);
	mem_wipe_free(text);
	if (ok) {
		hex_write(print, digest, PRINT_BYTES);
	}
	return ok;
}

bool daytona_account_mark(
	const struct daytona_account *account, struct daytona_mark *out_mark, struct error *err)
{
	struct daytona_mark mark = {.salt = ""};
	if (!account->organization && account->key) {
		random_fill_hex(mark.salt, DAYTONA_SALT_SIZE - 1);
		if (!put_print(mark.print, mark.salt, account->key, err)) {
			return error_prefix(err, "noting the account of a sandbox");
		}
	}
	mark.api = mem_strdup(account->api);
	mark.organization = mem_strdup_or_null(account->organization);
	*out_mark = mark;
	return true;
}

void daytona_mark_finish(struct daytona_mark *mark)
{
	free(mark->api);
	free(mark->organization);
	*mark = (struct daytona_mark){.salt = ""};
}

char *daytona_mark_describe(const struct daytona_mark *mark)
{
	char text[512];
	if (mark->organization) {
		text_format(text, sizeof(text), "at %s for organization %s", mark->api,
			mark->organization);
	} else {
		text_format(text, sizeof(text), "at %s with another API key", mark->api);
	}
	return mem_strdup(text);
}

bool daytona_account_check(const struct daytona_account *account, const struct daytona_mark *mark,
	bool *out_is_same, struct error *err)
{
	char print[DAYTONA_PRINT_SIZE];
	if (strcmp(account->api, mark->api) != 0) {
		*out_is_same = false;
		return true;
	}
	if (account->organization || mark->organization) {
		*out_is_same = account->organization && mark->organization &&
		               strcmp(account->organization, mark->organization) == 0;
		return true;
	}
	if (!account->key || !*mark->print) {
		*out_is_same = false;
		return true;
	}
	if (!put_print(print, mark->salt, account->key, err)) {
		return error_prefix(err, "finding the account of a sandbox");
	}
	*out_is_same = strcmp(print, mark->print) == 0;
	return true;
}
