/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_NOTES_H
#define PROVIDERS_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/lock_file.h"
#include "base/span.h"

/*
 * A provider writes a note on this machine before it makes a sandbox elsewhere, so that no sandbox
 * is forgotten. The note is STATE/FOLDER/NAME.json (0600, its folder 0700); its content is the
 * provider's own. Every broker that uses the sandbox holds a shared lock (flock) on NAME.lock. A
 * broker that gets the exclusive lock is the last user, or cleans up after a killed broker.
 *
 * All functions block: for the worker pool. Names must be valid (notes_name_is_valid).
 */
enum { NOTE_NAME_SIZE = 64, NOTE_MAX = 16 * 1024 };

struct notes {
	const char *state_folder; // borrowed; NULL or "": there is none, and every call fails
	const char *folder;       // "daytona"
	const char *more_lock;    // suffix of a second lock file, ".token"; or NULL
	const char *writing;      // the point before a note is in its place (base/point.h)
};

/* Letters, digits, and between them - . _ */
bool notes_name_is_valid(const char *name);

/*
 * Takes a lock without waiting, and creates its folder and file. Returns a descriptor, which holds
 * the lock until it is closed. With `more`, locks the file of more_lock. Returns -1 with
 * ERROR_UNAVAILABLE if others hold the lock, or with ERROR_SYSTEM.
 */
int notes_lock(const struct notes *notes, const char *name, bool more, enum lock_kind kind,
	struct error *err) ATTR_NODISCARD;

/*
 * Changes the kind of a lock. False: others hold it, too (ERROR_UNAVAILABLE); then our own lock may
 * be lost.
 */
bool notes_change_lock(
	int lock_fd, const char *name, enum lock_kind kind, struct error *err) ATTR_NODISCARD;

/* Whether any process holds the lock. Creates no file. */
bool notes_is_held(const struct notes *notes, const char *name);

/* Writes a note; replaces an earlier one atomically. The caller holds the lock. */
bool notes_write(const struct notes *notes, const char *name, struct span text,
	struct error *err) ATTR_NODISCARD;

/* ERROR_NOT_FOUND: there is none. */
bool notes_read(const struct notes *notes, const char *name, char out_text[NOTE_MAX],
	size_t *out_len, struct error *err) ATTR_NODISCARD;

/* Removes the note and its lock files. The caller holds the exclusive lock. */
void notes_remove(const struct notes *notes, const char *name);

/*
 * Calls `visit` for each name that has a note, in no particular order. Also removes leftover files
 * of names without a note.
 */
bool notes_visit(const struct notes *notes, void (*visit)(void *data, const char *name), void *data,
	struct error *err) ATTR_NODISCARD;

#endif
