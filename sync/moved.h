/* SPDX-License-Identifier: MIT */
#ifndef SYNC_MOVED_H
#define SYNC_MOVED_H

#include "base/list.h"
#include "sync/id_set.h"
#include "sync/store.h"

/*
 * The agent may move a file of the user's to a place that is not synced. Then the file is missing
 * at its old place in the sandbox, and its new place does not exist here. This collects the
 * contents that stay in the sandbox, so that the deletion of a file with such a content can wait.
 * It compares only contents: a file that the agent also edited does not count as moved. Empty files
 * do not count either.
 */
enum { MOVED_NAMES_MAX = 1000000 }; // names that are looked at; the rest is ignored

/*
 * Adds the files and folders in which `full` differs from `part` (withheld_take made `part` from
 * `full`), and those of the held changes. A tree that cannot be read adds nothing. Finish `out`.
 */
void moved_find(struct id_set *out, struct store *store, const git_oid *part, const git_oid *full,
	const struct list *held);

/* Whether this file or link, or this folder, exists in the sandbox under another name. */
bool moved_has_file(
	const struct id_set *moved, struct store *store, const struct store_entry *entry);
bool moved_has_folder(const struct id_set *moved, const git_oid *folder);

#endif
