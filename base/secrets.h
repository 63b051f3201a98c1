/* SPDX-License-Identifier: MIT */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * The secrets that the broker knows by value: those of secret-env, and of variables whose name ends
 * in KEY, TOKEN, SECRET, PASSWORD or PASSWD. Values of fewer than 6 bytes are left out, because
 * they would mask too much other text. Wiped when destroyed.
 */
struct secrets;

/* Both lists are NULL-terminated; names may be NULL. The values are copied. */
struct secrets *secrets_create(const char *const *environment, const char *const *names);

/*
 * Adds the secrets of another environment, which was read on another host. For variables that are
 * not among the names, only values of at least 16 bytes without spaces count: otherwise whoever can
 * write that host's login files could choose words that our logs then hide. Known values are not
 * added again. False if there is no room for all of them (256).
 */
bool secrets_learn(
	struct secrets *secrets, const char *const *environment, const char *const *names);
void secrets_destroy(struct secrets *secrets); // NULL is fine

/*
 * Replaces every secret in a JSON text by ***, however its strings spell it: \u0041 is an A. A
 * number that contains a secret becomes the string "***". The result is valid JSON if the input
 * was. `secrets` may be NULL.
 */
void secrets_mask(const struct secrets *secrets, struct buf *json);

/*
 * The same in any text, which may be broken JSON. If the text was cut (is_cut) and its end may be
 * the beginning of a secret, that end is removed too.
 */
void secrets_mask_text(const struct secrets *secrets, struct buf *text, bool is_cut);

/* How many bytes at the end of a text may be the beginning of a secret that continues after it. */
size_t secrets_begun(const struct secrets *secrets, struct span text);

/* Logs a line of a program's output without the secrets; `secrets` may be NULL. */
void secrets_log_line(
	const struct secrets *secrets, const char *subject, struct span line, bool is_cut);

#endif
