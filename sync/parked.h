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
 * that neither a build nor `git add` finds them, and have the name that the file has in the
 * workspace, so that an editor knows what is in them. Each is a regular file that only the user can
 * read and nobody can run. Of a link it has the target.
 */
enum parked_version {
	PARKED_BASE,    // what both sides once had
	PARKED_LOCAL,   // what is, or was, in the workspace
	PARKED_RUNTIME, // the agent's
	PARKED_MERGED,  // what the user makes of them
	PARKED_VERSIONS,
};

struct parked_place {
	struct store *store; // borrowed
	const char *id;      // STAMP-ID/NUMBER
	const char *path;    // in the workspace; the file gets its last component
};

/* The absolute path of a version's file, whether it is there or not. Owned by the caller. */
char *parked_file(const struct parked_place *place, enum parked_version version);

/*
 * Writes a version; a mode of 0 is no version, and nothing is written. With `once`, what is there
 * already stays: the user may have edited it.
 */
bool parked_write(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err) ATTR_NODISCARD;
bool parked_write_once(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err) ATTR_NODISCARD;

/* Puts the content of a version's file into the store, as a file that is not executable. */
bool parked_read(const struct parked_place *place, enum parked_version version,
	struct store_entry *out_entry, struct error *err) ATTR_NODISCARD;

/* Gives a version's file, if it is there, another name in its folder: NAME.before-ID. */
void parked_set_aside(const struct parked_place *place, enum parked_version version);

/* Removes a version's file if its content is the entry's: nobody has edited it. */
void parked_remove(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry);

/* Removes what nobody has changed since `cutoff` and `is_open` says is of no open conflict. */
struct parked_sweeping {
	time_t cutoff;
	bool (*is_open)(void *data, const char *id);
	void *data;
};
void parked_sweep(struct store *store, const struct parked_sweeping *sweeping);

/*
 * Other names that are never synced: what a change had to put out of its way, and what a killed
 * apply left, stay beside their place as NAME.ID.acp-conflict.
 */
#define PARKED_SUFFIX ".acp-conflict"

bool parked_is_name(struct span name); // of the last component

#endif
