/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MOVED_H
#define SYNC_MOVED_H

#include "base/list.h"
#include "sync/id_set.h"
#include "sync/store.h"

/*
 * The agent may move a file of the user's to a place from which it is not brought here: its old
 * place is gone there, and nothing stands here for it. This knows what stays in the sandbox, so
 * that a deletion of the same content can wait. It goes by content alone: what the agent has also
 * edited is no move. An empty file is none either.
 */
enum { MOVED_NAMES_MAX = 1000000 }; // that are looked at; what comes after them is not known

/*
 * Adds the files and the folders in which `full` differs from `part`, which withheld_take made of
 * it, and those of the held changes. What cannot be read has nothing. To be finished.
 */
void moved_find(struct id_set *out, struct store *store, const git_oid *part, const git_oid *full,
	const struct list *held);

/* Whether a file or a link, or a folder, is there in the sandbox under another name. */
bool moved_has_file(
	const struct id_set *moved, struct store *store, const struct store_entry *entry);
bool moved_has_folder(const struct id_set *moved, const git_oid *folder);

#endif
