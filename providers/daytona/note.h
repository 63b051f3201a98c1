/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_NOTE_H
#define PROVIDERS_DAYTONA_NOTE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/daytona/account.h"

/*
 * What may exist on the platform, written down here before it is made: STATE/daytona/NAME.json
 * (0600, its folder 0700). Beside it lies NAME.lock: every broker that uses the sandbox holds it
 * shared (flock); who gets it alone is the last one out, or ends what a killed broker left.
 * NAME.token is held from the asking for a token until the connection stands. Nothing secret is
 * in them: of the key what it is known again by (providers/daytona/account.h).
 *
 * All functions block: for the worker pool. Names have to be valid (daytona_name_is_valid).
 */
struct daytona_note {
	struct daytona_mark mark; // owned; whose it is
	char *profile;            // owned
	char *workspace;          // owned; the real path; NULL: none is known
	bool is_transient;        // deleted once its broker is gone
};

void daytona_note_finish(struct daytona_note *note); // zeroed is fine

enum daytona_lock { DAYTONA_LOCK_SHARED, DAYTONA_LOCK_ALONE, DAYTONA_LOCK_TOKEN };

/*
 * Takes a lock, which the descriptor holds until it is closed; does not wait. -1:
 * ERROR_UNAVAILABLE where others have it, ERROR_SYSTEM. The folder and the file are made.
 */
int daytona_note_lock(const char *state_folder, const char *name, enum daytona_lock lock,
	struct error *err) ATTR_NODISCARD;

/*
 * Makes a shared lock one that is held alone. False: others hold it, too (ERROR_UNAVAILABLE) -
 * and it may not be held any more.
 */
bool daytona_note_lock_alone(int lock_fd, const char *name, struct error *err) ATTR_NODISCARD;

/* Whether somebody has it. Nothing is made. */
bool daytona_note_is_held(const char *state_folder, const char *name);

/* With the lock held. A note that is there is replaced, at once. */
bool daytona_note_write(const char *state_folder, const char *name, const struct daytona_note *note,
	struct error *err) ATTR_NODISCARD;

/* ERROR_NOT_FOUND; ERROR_PROTOCOL for what no broker has written. */
bool daytona_note_read(const char *state_folder, const char *name, struct daytona_note *out_note,
	struct error *err) ATTR_NODISCARD;

/* With the lock held alone: the note and the files of its locks. */
void daytona_note_remove(const char *state_folder, const char *name);

/* Calls visit with each name that has a note, in no order; removes what is left of others on the
 * way. */
bool daytona_note_visit(const char *state_folder, void (*visit)(void *data, const char *name),
	void *data, struct error *err) ATTR_NODISCARD;

#endif
