/* SPDX-License-Identifier: MIT */
#ifndef SYNC_PARKED_H
#define SYNC_PARKED_H

#include "sync/store.h"

/*
 * The versions of a conflict, as files that the user can open:
 *
 *     STORE/parked/STAMP-ID/NUMBER/runtime/main.c
 *
 * with the folders base/, local/ and merged/ beside runtime/. They lie outside the workspace, so
 * that neither a build nor `git add` finds them. They have the file's own name, so that an editor
 * recognises their type. Each is a regular file that only the user can read and nobody can execute.
 * For a symbolic link it contains the target.
 */
enum parked_version {
	PARKED_BASE,    // the last common version
	PARKED_LOCAL,   // the version that is, or was, in the workspace
	PARKED_RUNTIME, // the agent's
	PARKED_MERGED,  // the user's merge of them
	PARKED_VERSIONS,
};

struct parked_place {
	struct store *store; // borrowed
	const char *id;      // STAMP-ID/NUMBER
	const char *path;    // in the workspace; the parked file gets its last component
};

/* The absolute path of a version's file, whether it exists or not. Owned by the caller. */
char *parked_file(const struct parked_place *place, enum parked_version version);

/*
 * Writes a version; writes nothing for a mode of 0. parked_write_once keeps an existing file,
 * because the user may have edited it.
 */
bool parked_write(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err) ATTR_NODISCARD;
bool parked_write_once(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err) ATTR_NODISCARD;

/* Puts the content of a version's file into the store, as a file that is not executable. */
bool parked_read(const struct parked_place *place, enum parked_version version,
	struct store_entry *out_entry, struct error *err) ATTR_NODISCARD;

/* Renames a version's file, if it exists, to NAME.before-ID in its folder. */
void parked_set_aside(const struct parked_place *place, enum parked_version version);

/* Removes a version's file if its content is still the entry's: nobody has edited it. */
void parked_remove(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry);

/*
 * Removes files that nobody has changed since `cutoff`, if `is_open` says that their conflict has
 * ended.
 */
struct parked_sweeping {
	time_t cutoff;
	bool (*is_open)(void *data, const char *id);
	void *data;
};
void parked_sweep(struct store *store, const struct parked_sweeping *sweeping);

/*
 * More names that are never synced. Files that a change had to move out of its way, and remains of
 * a killed apply, stay beside their place as NAME.ID.acp-conflict.
 */
#define PARKED_SUFFIX ".acp-conflict"

bool parked_is_name(struct span name); // takes the last component

#endif
