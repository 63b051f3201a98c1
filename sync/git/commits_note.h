/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_COMMITS_NOTE_H
#define SYNC_GIT_COMMITS_NOTE_H

#include "sync/git/commits.h"
#include "sync/id_set.h"

/*
 * The text that tells the user about the commits that a collect found. For each branch it has the
 * ref, the number of commits, and the subjects of the newest ones, up to a limit. It names the
 * command that prints all of them. Zero-initialise.
 */
enum { COMMITS_NOTE_MAX = 1024 };

struct commits_note {
	char text[COMMITS_NOTE_MAX]; // "": there were none
	size_t branches;             // with new commits
	size_t untold;               // those that the text has no room for
};

/* Adds a branch, and those of its commits that are in `made`. Blocks. */
void commits_note_add(struct commits_note *note, struct store *store, const struct id_set *made,
	const struct agent_branch *branch);
/* `is_below`: the commits belong to a repository below the root. */
void commits_note_end(struct commits_note *note, bool is_below);

#endif
