/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_WRITE_HINT_H
#define PROVIDERS_LOCAL_WRITE_HINT_H

#include <limits.h>

#include "base/settings.h"
#include "providers/impl.h"
#include "providers/local/owner.h"

/*
 * Suggests a line `allow-write` for a path that was read-only in a cell. The agent names the path,
 * so the path proves nothing. A line is suggested only if the cell forbids writing, the user could
 * write there, and the folder is neither the broker's own nor one whose files the user's shell or
 * git runs automatically.
 */
struct write_hint {
	char *home;     // owned; without links; may be NULL
	char *state;    // owned
	char **built;   // owned; folders in the home that builds write to
	char **shown;   // owned; allow-read
	char **written; // owned; allow-write
	uid_t uid;      // user who works in the cell
};

/* The settings are borrowed until this returns. `home` may be NULL. */
void write_hint_init(struct write_hint *hint, const struct settings *settings, const char *home,
	const char *state, const struct owner *owner);
void write_hint_finish(struct write_hint *hint); // fine for a zeroed one

/*
 * Finds the folder for the line. False: no line is suggested. Roots of the sandbox are never
 * suggested. Reads the state of some folders.
 */
bool write_hint_find(const struct write_hint *hint, const struct sandbox *sandbox, const char *path,
	char out[PATH_MAX]);

#endif
