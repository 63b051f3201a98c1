/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_MIRROR_H
#define SYNC_RSYNC_MIRROR_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * The folder of one sandbox in the store, "rsync/NAME" (0700), in which the local rsync works:
 *
 *     mirror    what the runtime root was when it was last asked, less what does not travel;
 *               times to the nanosecond, so that sizes and times tell what has changed
 *     before    hard links to what a delivery replaces in the mirror
 *     got, more what the runtime had in their place and was not that: to be put back
 *     filter    the rules
 *     state     "is TREE": mirror and runtime were this; "busy": a delivery has begun
 *     narrow    the rules of a pull of what has changed alone
 *     print     what was seen of the runtime root right before the last pull, and
 *     seen      the rules that it was made by (sync/rsync/look.c)
 *     shell     a link to the program that is rsync's remote shell
 *
 * Blocking; worker thread.
 */
enum mirror_state { MIRROR_UNKNOWN, MIRROR_IS, MIRROR_BUSY };

struct mirror {
	char *folder; // owned, absolute
	char *path;   // owned, of "mirror"
	int fd;       // the folder; -1: not open
};

/* The paths alone; nothing is opened. */
void mirror_init(struct mirror *mirror, const char *store_path, const char *name);
void mirror_finish(struct mirror *mirror);

/*
 * Opens the folder, making what is missing; `shell` NULL is this program. *out_is_new: the mirror
 * was not there. ERROR_SYSTEM.
 */
bool mirror_open(struct mirror *mirror, const char *shell, bool *out_is_new,
	struct error *err) ATTR_NODISCARD;

enum mirror_state mirror_state(const struct mirror *mirror, struct store *store, git_oid *out_tree);
/* `tree` is that of MIRROR_IS, else NULL. */
bool mirror_set_state(struct mirror *mirror, struct store *store, enum mirror_state state,
	const git_oid *tree, struct error *err) ATTR_NODISCARD;

/*
 * Makes the mirror, which is as `from` says, what `to` says. ERROR_UNAVAILABLE with
 * RUNTIME_CHANGED where it is not so: it has to be filled anew.
 */
bool mirror_apply(struct mirror *mirror, struct store *store, const git_oid *from,
	const git_oid *to, struct error *err) ATTR_NODISCARD;

/* Fills "before" with what mirror_apply will replace. */
bool mirror_save(struct mirror *mirror, struct store *store, const git_oid *from, const git_oid *to,
	struct error *err) ATTR_NODISCARD;

/* Empties a folder of those above, or makes it. */
bool mirror_empty(struct mirror *mirror, const char *name, struct error *err) ATTR_NODISCARD;

/* Removes from the mirror what the rules leave out: it came before they were known. */
void mirror_sweep(struct mirror *mirror, const struct rules *rules);

/*
 * What stands in a folder of those above and not so in another, `known`, for rsync brings
 * links, and files with other modes, though it knows them: counts the files, and gives those that
 * the rules leave out, which are in nobody's snapshot, a name of parked versions.
 */
struct mirror_found {
	size_t members, parked;
	char first[256]; // path of the first, printable
};
void mirror_look(struct mirror *mirror, const char *name, const char *known,
	const struct rules *rules, struct mirror_found *out);

/* Renames a folder of those above to one that stays; its path, owned by the caller. ERROR_SYSTEM.
 */
char *mirror_rescue(struct mirror *mirror, const char *name, struct error *err) ATTR_NODISCARD;

#endif
