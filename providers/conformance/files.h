/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_FILES_H
#define PROVIDERS_CONFORMANCE_FILES_H

#include <limits.h>
#include <sys/types.h>

#include "providers/conformance/conformance.h"

/*
 * What the cases on files expect of one operation each, waited for. A name is below the root, ""
 * the root itself; a path is as the sandbox gets it. Each is false with what was found instead.
 */
enum act { ACT_READ, ACT_WRITE, ACT_STAT, ACT_RESOLVE };

const char *case_path(const struct conformance_place *place, char path[PATH_MAX], const char *name);

bool case_write(
	struct conformance_place *place, const char *name, struct span content, struct error *err);
bool case_expect_content(
	struct conformance_place *place, const char *name, struct span content, struct error *err);

/* A regular file; mode 0 is any. */
bool case_expect_file(struct conformance_place *place, const char *name, mode_t mode, size_t size,
	struct error *err);
bool case_expect_folder(struct conformance_place *place, const char *path, struct error *err);

/* The path of a name becomes that of another. */
bool case_expect_resolved(
	struct conformance_place *place, const char *name, const char *wanted, struct error *err);

/* It is read up to its size; a limit of one byte less refuses it. */
bool case_expect_limit(
	struct conformance_place *place, const char *name, size_t size, struct error *err);

struct refusal {
	enum error_code code;
	const char *reason; // NULL: any
	const char *words;  // in its text
};
bool case_expect_error(struct conformance_place *place, enum act what, const char *path,
	const struct refusal *wanted, struct error *err);
bool case_expect_failure( // of any kind
	struct conformance_place *place, enum act what, const char *path, struct error *err);

/* SECURITY_VIOLATION: neither read nor written, whatever lies there; refused: nor anything else. */
bool case_expect_untouchable(
	struct conformance_place *place, const char *path, const char *words, struct error *err);
bool case_expect_refused(
	struct conformance_place *place, const char *path, const char *words, struct error *err);

#endif
