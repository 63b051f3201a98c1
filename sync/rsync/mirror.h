/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_MIRROR_H
#define SYNC_RSYNC_MIRROR_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * The folder of one sandbox in the store, "rsync/NAME" (0700), in which the local rsync works:
 *
 *     mirror    the runtime root at the last transfer, without files that do not travel; times are
 *               exact to the nanosecond, so that sizes and times show changes
 *     before    hard links to the files that a delivery replaces in the mirror
 *     got, more the runtime's different files in their place, which must be put back
 *     filter    the rules
 *     state     "is TREE": mirror and runtime had this tree; "busy": a delivery has begun
 *     narrow    the rules of a pull that transfers only changes
 *     print     a summary of the runtime root right before the last pull, and
 *     seen      the rules with which it was made (sync/rsync/look.c)
 *     shell     a link to the program that is rsync's remote shell
 *
 * Blocking; worker thread.
 */
enum mirror_state { MIRROR_UNKNOWN, MIRROR_IS, MIRROR_BUSY };

struct mirror {
	char *folder; // owned, absolute
	char *path;   // owned; path of "mirror"
	int fd;       // the folder; -1: not open
};

/* Sets the paths; opens nothing. */
void mirror_init(struct mirror *mirror, const char *store_path, const char *name);
void mirror_finish(struct mirror *mirror);

/*
 * Opens the folder and creates what is missing; a `shell` of NULL is this program. *out_is_new: the
 * mirror did not exist. ERROR_SYSTEM.
 */
bool mirror_open(struct mirror *mirror, const char *shell, bool *out_is_new,
	struct error *err) ATTR_NODISCARD;

enum mirror_state mirror_state(const struct mirror *mirror, struct store *store, git_oid *out_tree);
/* `tree` belongs to MIRROR_IS, else it is NULL. */
bool mirror_set_state(struct mirror *mirror, struct store *store, enum mirror_state state,
	const git_oid *tree, struct error *err) ATTR_NODISCARD;

/*
 * Changes the mirror from the tree `from`, which it should match, to `to`. If it does not match,
 * fails with ERROR_UNAVAILABLE and RUNTIME_CHANGED: then fill it again.
 */
bool mirror_apply(struct mirror *mirror, struct store *store, const git_oid *from,
	const git_oid *to, struct error *err) ATTR_NODISCARD;

/* Fills "before" with the files that mirror_apply will replace. */
bool mirror_save(struct mirror *mirror, struct store *store, const git_oid *from, const git_oid *to,
	struct error *err) ATTR_NODISCARD;

/* Empties or creates one of the folders listed above. */
bool mirror_empty(struct mirror *mirror, const char *name, struct error *err) ATTR_NODISCARD;

/* Removes files from the mirror that the rules leave out: they came before the rules were known. */
void mirror_sweep(struct mirror *mirror, const struct rules *rules);

/*
 * Finds files in one of those folders that differ from another one, `known`. (rsync also brings
 * links and files with other modes that it already knows.) Counts them; renames those that the
 * rules leave out, and that no snapshot has, to names of parked versions.
 */
struct mirror_found {
	size_t members, parked;
	char first[256]; // path of the first, printable
};
void mirror_look(struct mirror *mirror, const char *name, const char *known,
	const struct rules *rules, struct mirror_found *out);

/*
 * Renames one of those folders to a permanent name; returns its path, owned by the caller.
 * ERROR_SYSTEM.
 */
char *mirror_rescue(struct mirror *mirror, const char *name, struct error *err) ATTR_NODISCARD;

#endif
