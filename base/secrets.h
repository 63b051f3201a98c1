/* SPDX-License-Identifier: MIT */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * The secrets the broker knows by value: those of secret-env, and of variables
 * whose name ends in KEY, TOKEN, SECRET, PASSWORD or PASSWD. Values of fewer
 * than 6 bytes are left out: they would mask half of everything. Wiped when
 * destroyed.
 */
struct secrets;

/* Both lists are NULL-terminated; names may be NULL. The values are copied. */
struct secrets *secrets_create(const char *const *environment, const char *const *names);

/*
 * Adds those of a further environment: one that was read on another host. Of variables that are
 * not among the names only values of 16 bytes and more without blanks count: else whoever can write
 * that host's login files would choose words that the logs here do not show. What is known already
 * is not added again. False where there is no room for all of them (256).
 */
bool secrets_learn(
	struct secrets *secrets, const char *const *environment, const char *const *names);
void secrets_destroy(struct secrets *secrets); // NULL is fine

/*
 * Replaces every secret in a piece of JSON text by ***, in whatever way its
 * strings are spelled: \u0041 is an A. A number that holds a secret becomes the
 * string "***". What was JSON still is. Secrets may be NULL.
 */
void secrets_mask(const struct secrets *secrets, struct buf *json);

/*
 * The same in any text, which may be broken JSON. Of one that was cut (is_cut) the end goes, too,
 * where a secret may begin there.
 */
void secrets_mask_text(const struct secrets *secrets, struct buf *text, bool is_cut);

/* How many bytes at the end of a text may be the beginning of a secret that goes on after it. */
size_t secrets_begun(const struct secrets *secrets, struct span text);

/* A line of a program's, less the secrets, to the log; secrets may be NULL. */
void secrets_log_line(
	const struct secrets *secrets, const char *subject, struct span line, bool is_cut);

#endif
