/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SLOT_H
#define SYNC_SLOT_H

#include <limits.h>
#include <sys/stat.h>

#include "sync/store.h"

/*
 * Changes one name in one open folder, carefully. Every change is prepared under a temporary name
 * beside it, and takes effect in one step of the file system. The same step moves the old file to a
 * temporary name. There nobody can save to it any longer, and it is checked once more; if it is not
 * the expected file, it is put back. A file that a program holds open for writing counts as
 * unexpected.
 *
 * Temporary names are .acp-broker-ID.new.tmp, whose content can always be made again, and
 * .acp-broker-ID.old.tmp, which may have content that a user saved (slot_sweep).
 */
struct slot {
	struct store *store;
	int folder;       // borrowed
	const char *name; // the last component of the path
	const char *path; // for messages
	const char *why;  // set with SLOT_LEFT; static storage
	bool is_cache;    // written files need no fsync
	bool is_untidy;   // set if a temporary file could not be removed: sweep
};

enum slot_outcome {
	SLOT_DONE,    // changed as requested
	SLOT_ALREADY, // it was already so
	SLOT_LEFT,    // unchanged; slot->why says why
	SLOT_FAILED,  // err says why: the disk is full, or the store cannot be read
};

/*
 * Changes a place from the state `from` to `to`; a mode of 0 means no file. A new file gets the
 * permissions that the umask leaves; an existing one keeps its own except for the executable bits.
 * Afterwards the content is on the disk, but the folder is not synced yet. If the process is
 * killed, both contents exist as a whole, under the name or a temporary name.
 */
enum slot_outcome slot_set(struct slot *slot, const struct store_entry *from,
	const struct store_entry *to, struct error *err) ATTR_NODISCARD;

/* The current state of a place. */
struct slot_state {
	struct stat status; // valid if it exists
	bool exists;
	struct store_entry entry; // a mode of 0 also for a folder or device
};
/* Returns SLOT_ALREADY on success, because nothing was changed. */
enum slot_outcome slot_inspect(
	struct slot *slot, struct slot_state *out, struct error *err) ATTR_NODISCARD;

/*
 * Removes the temporary files that a killed process left in a folder. If a file has content that
 * the store lacks, somebody saved it at the moment of the kill: then it gets the name of a parked
 * version, and `on_kept` reports it. If a file cannot be removed or renamed, it stays, `on_stuck`
 * reports it, and the sweep goes on. There the name "" means that the folder itself cannot be read.
 */
struct slot_sweeper {
	void (*on_kept)(void *data, const char *name);
	void (*on_stuck)(void *data, const char *name, const char *why); // why: static storage
	void *data;
};
bool slot_sweep(struct store *store, int folder, const struct slot_sweeper *sweeper,
	struct error *err) ATTR_NODISCARD;

bool slot_is_temporary(struct span name);

/* ---- from the other slot_*.c, for slot.c ---- */

enum { TEMP_NAME_MAX = 48 };

/* Returns SLOT_LEFT and sets slot->why to `why`, which is static storage. */
enum slot_outcome slot_leave(struct slot *slot, const char *why);

/* Sorts an errno: SLOT_FAILED if other paths would fail too, else SLOT_LEFT. */
enum slot_outcome slot_give_up(struct slot *slot, int errnum, const char *doing, struct error *err);

/*
 * Whether `name`, which was moved aside, still matches `seen` and will stay so: nobody has it open
 * for writing, and it was not written since it was read.
 */
bool slot_is_untouched(struct slot *slot, const char *name, const struct slot_state *seen);

void slot_temp_name(char name[TEMP_NAME_MAX], const char *kind);
/* Writes the content of `to` to a new temporary file; `like` gives the permissions, or is NULL. */
enum slot_outcome slot_temp_write(struct slot *slot, const struct store_entry *to,
	const struct stat *like, char name[TEMP_NAME_MAX], struct error *err) ATTR_NODISCARD;
mode_t slot_mode(mode_t old, bool is_executable);

/*
 * Makes room for a file at the place of a folder without synced files. Removes folders in it, which
 * a killed apply may have left. If the folder has parked versions, it is renamed like these. False
 * if it has any other file.
 */
bool slot_make_way(int folder, const char *name);

/* Removes a temporary file whose content the store has, or nobody needs. */
void slot_discard(struct slot *slot, const char *temp);

/*
 * renameat2 with RENAME_NOREPLACE, also on file systems without it. If the file system has no hard
 * links either, it first creates the name: a kill at that moment leaves an empty file. -1 with
 * errno.
 */
int slot_rename_new(int folder, const char *from, const char *to);
/* Renames a file to a name that is never synced, NAME.ID.acp-conflict. -1 with errno. */
int slot_keep(int folder, const char *temp, const char *name, char kept[NAME_MAX + 1]);

#endif
