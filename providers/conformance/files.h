/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_FILES_H
#define PROVIDERS_CONFORMANCE_FILES_H

#include <limits.h>
#include <sys/types.h>

#include "providers/conformance/conformance.h"

/*
 * One file operation each, which the cases wait for and check. A name is relative to the root, and
 * "" is the root itself; a path is passed to the sandbox as it is. Each returns false with what was
 * found instead.
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

/* Checks that it is read up to its size, and refused with a limit that is one byte less. */
bool case_expect_limit(
	struct conformance_place *place, const char *name, size_t size, struct error *err);

struct refusal {
	enum error_code code;
	const char *reason; // NULL: any
	const char *words;  // that its text contains
};
bool case_expect_error(struct conformance_place *place, enum act what, const char *path,
	const struct refusal *wanted, struct error *err);
bool case_expect_failure( // any failure
	struct conformance_place *place, enum act what, const char *path, struct error *err);

/*
 * Checks for SECURITY_VIOLATION: neither read nor written, whatever is there. `refused`: no other
 * operation either.
 */
bool case_expect_untouchable(
	struct conformance_place *place, const char *path, const char *words, struct error *err);
bool case_expect_refused(
	struct conformance_place *place, const char *path, const char *words, struct error *err);

#endif
