/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SLOT_H
#define SYNC_SLOT_H

#include <limits.h>
#include <sys/stat.h>

#include "sync/store.h"

/*
 * One name in one open folder, and careful changes of it. Every change is made
 * under a temporary name beside it and takes effect in one step of the file
 * system. What was there before is taken aside in that same step and looked at once more,
 * where nobody can save to it any longer; where it is not what was expected, it is
 * put back. A file that a program still holds open for writing counts as that.
 *
 * Temporary names are .acp-broker-ID.new.tmp, of which nothing is lost, and
 * .acp-broker-ID.old.tmp, which may hold what a user saved (slot_sweep).
 */
struct slot {
	struct store *store;
	int folder;       // borrowed
	const char *name; // the last component of the path
	const char *path; // for messages
	const char *why;  // set with SLOT_LEFT; static storage
	bool is_cache;    // what is written needs no fsync
	bool is_untidy;   // set where a temporary file could not be removed: sweep
};

enum slot_outcome {
	SLOT_DONE,    // changed as asked
	SLOT_ALREADY, // it was so before
	SLOT_LEFT,    // as it is, slot->why says why
	SLOT_FAILED,  // err says why: the disk is full, or the store cannot be read
};

/*
 * Makes of a place, which is as `from` says, what `to` says; a mode of 0 is nothing.
 * A new file gets the permissions the umask leaves; one that was there keeps
 * its own but for the executable bits. The content is on the disk, the folder is
 * not yet synced. Killed at any point, both contents are there whole, under the
 * name or a temporary one.
 */
enum slot_outcome slot_set(struct slot *slot, const struct store_entry *from,
	const struct store_entry *to, struct error *err) ATTR_NODISCARD;

/* What is at a place now. */
struct slot_state {
	struct stat status; // valid if it exists
	bool exists;
	struct store_entry entry; // a mode of 0 also for a folder, a device
};
/* SLOT_ALREADY on success: nothing was changed. */
enum slot_outcome slot_inspect(
	struct slot *slot, struct slot_state *out, struct error *err) ATTR_NODISCARD;

/*
 * Removes the temporary files that a killed process left in a folder. One that
 * holds what the store does not have was saved by somebody in the moment of the
 * kill: it gets a name of a parked version and is reported to `on_kept`. One that cannot be
 * removed or renamed stays, is reported to `on_stuck`, and stops nobody; a name of "" is the
 * folder, which cannot be read.
 */
struct slot_sweeper {
	void (*on_kept)(void *data, const char *name);
	void (*on_stuck)(void *data, const char *name, const char *why); // why: static storage
	void *data;
};
bool slot_sweep(struct store *store, int folder, const struct slot_sweeper *sweeper,
	struct error *err) ATTR_NODISCARD;

bool slot_is_temporary(struct span name);

/* ---- of the other slot_*.c, for slot.c ---- */

enum { TEMP_NAME_MAX = 48 };

/* SLOT_LEFT, and why: static storage. */
enum slot_outcome slot_leave(struct slot *slot, const char *why);

/* Sorts an errno: SLOT_FAILED where no other path would do better, else SLOT_LEFT. */
enum slot_outcome slot_give_up(struct slot *slot, int errnum, const char *doing, struct error *err);

/*
 * Whether `name`, which was taken aside, is what `seen` says and will stay it:
 * nobody has it open for writing, and it was not written since it was read.
 */
bool slot_is_untouched(struct slot *slot, const char *name, const struct slot_state *seen);

void slot_temp_name(char name[TEMP_NAME_MAX], const char *kind);
/* Writes what `to` says to a new temporary file; `like` gives the permissions, or NULL. */
enum slot_outcome slot_temp_write(struct slot *slot, const struct store_entry *to,
	const struct stat *like, char name[TEMP_NAME_MAX], struct error *err) ATTR_NODISCARD;
mode_t slot_mode(mode_t old, bool is_executable);

/*
 * Makes way for a file where a folder is that holds nothing that syncs: folders in it,
 * as a killed apply may leave them, are removed; where it holds parked versions it gets
 * a name as they have. False where it holds anything else.
 */
bool slot_make_way(int folder, const char *name);

/* Removes a temporary file that holds nothing which the store does not have. */
void slot_discard(struct slot *slot, const char *temp);

/*
 * renameat2 that does not replace, also where the file system does not know it. Where it knows no
 * hard links either, the name is taken first: who is killed just then leaves an empty file. -1 with
 * errno.
 */
int slot_rename_new(int folder, const char *from, const char *to);
/* Renames a file to a name that never syncs, NAME.ID.acp-conflict. -1 with errno. */
int slot_keep(int folder, const char *temp, const char *name, char kept[NAME_MAX + 1]);

#endif
