/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_FILES_H
#define PROVIDERS_CONFORMANCE_FILES_H

#include <limits.h>
#include <sys/types.h>

#include "providers/conformance/conformance.h"

/*
 * Each function runs one file operation, waits for it and checks the result. A name is relative to
 * the root, and "" is the root itself; a path is passed to the sandbox as it is. A function returns
 * false if the result differs; the error says what it found.
 */
enum act { ACT_READ, ACT_WRITE, ACT_STAT, ACT_RESOLVE };

const char *case_path(const struct conformance_place *place, char path[PATH_MAX], const char *name);

bool case_write(
	struct conformance_place *place, const char *name, struct span content, struct error *err);
bool case_expect_content(
	struct conformance_place *place, const char *name, struct span content, struct error *err);

/* Checks for a regular file; mode 0 accepts any. */
bool case_expect_file(struct conformance_place *place, const char *name, mode_t mode, size_t size,
	struct error *err);
bool case_expect_folder(struct conformance_place *place, const char *path, struct error *err);

/* Checks that the path of one name is resolved to that of another. */
bool case_expect_resolved(
	struct conformance_place *place, const char *name, const char *wanted, struct error *err);

/* Checks that a read with the file's size as its limit succeeds, and with one byte less fails. */
bool case_expect_limit(
	struct conformance_place *place, const char *name, size_t size, struct error *err);

struct refusal {
	enum error_code code;
	const char *reason; // NULL: any
	const char *words;  // the error's text must contain them
};
bool case_expect_error(struct conformance_place *place, enum act what, const char *path,
	const struct refusal *wanted, struct error *err);
bool case_expect_failure( // any failure
	struct conformance_place *place, enum act what, const char *path, struct error *err);

/*
 * Checks that reading and writing fail with SECURITY_VIOLATION, whatever is there. `refused`: the
 * other operations must fail with it, too.
 */
bool case_expect_untouchable(
	struct conformance_place *place, const char *path, const char *words, struct error *err);
bool case_expect_refused(
	struct conformance_place *place, const char *path, const char *words, struct error *err);

#endif
