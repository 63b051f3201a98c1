/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_NOTE_H
#define PROVIDERS_DAYTONA_NOTE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/daytona/account.h"

/*
 * The provider writes a note on this machine before it creates a sandbox on the platform, so that
 * no sandbox is forgotten. The note is STATE/daytona/NAME.json (0600, its folder 0700). Every
 * broker that uses the sandbox holds a shared lock (flock) on NAME.lock. A broker that gets the
 * exclusive lock is the last user, or cleans up after a killed broker. A broker holds NAME.token
 * from its request for a token until the connection stands. The files contain no secret, only a
 * mark by which we recognise the key (providers/daytona/account.h).
 *
 * All functions block: for the worker pool. Names must be valid (daytona_name_is_valid).
 */
struct daytona_note {
	struct daytona_mark mark; // owned; the account
	char *profile;            // owned
	char *workspace;          // owned; the real path; NULL: unknown
	bool is_transient;        // deleted when its broker is gone
};

void daytona_note_finish(struct daytona_note *note); // zeroed is fine

enum daytona_lock { DAYTONA_LOCK_SHARED, DAYTONA_LOCK_ALONE, DAYTONA_LOCK_TOKEN };

/*
 * Takes a lock without waiting, and creates its folder and file. Returns a descriptor, which holds
 * the lock until it is closed; or -1 with ERROR_UNAVAILABLE if others hold the lock, or with
 * ERROR_SYSTEM.
 */
int daytona_note_lock(const char *state_folder, const char *name, enum daytona_lock lock,
	struct error *err) ATTR_NODISCARD;

/*
 * Turns a shared lock into an exclusive one. False: others hold it, too (ERROR_UNAVAILABLE); then
 * our own lock may be lost.
 */
bool daytona_note_lock_alone(int lock_fd, const char *name, struct error *err) ATTR_NODISCARD;

/* Whether any process holds the lock. Creates no file. */
bool daytona_note_is_held(const char *state_folder, const char *name);

/* Writes a note; replaces an earlier one atomically. The caller holds the lock. */
bool daytona_note_write(const char *state_folder, const char *name, const struct daytona_note *note,
	struct error *err) ATTR_NODISCARD;

/* Reads a note. ERROR_NOT_FOUND: there is none. ERROR_PROTOCOL: no broker has written this text. */
bool daytona_note_read(const char *state_folder, const char *name, struct daytona_note *out_note,
	struct error *err) ATTR_NODISCARD;

/* Removes the note and its lock files. The caller holds the exclusive lock. */
void daytona_note_remove(const char *state_folder, const char *name);

/*
 * Calls `visit` for each name that has a note, in no particular order. Also removes leftover files
 * of names without a note.
 */
bool daytona_note_visit(const char *state_folder, void (*visit)(void *data, const char *name),
	void *data, struct error *err) ATTR_NODISCARD;

#endif
