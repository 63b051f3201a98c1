/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_COMMITS_NOTE_H
#define SYNC_GIT_COMMITS_NOTE_H

#include "sync/git/commits.h"
#include "sync/id_set.h"

/*
 * What the user is told of the commits that a collect has found: of each branch where it is, how
 * many there are and what the newest say, up to a limit, and what prints all of them.
 * Zero-initialise.
 */
enum { COMMITS_NOTE_MAX = 1024 };

struct commits_note {
	char text[COMMITS_NOTE_MAX]; // "": there were none
	size_t branches;             // that have something new
	size_t untold;               // of those, the ones the text has no room for
};

/* A branch, and its commits as far as they are among the new ones. Blocks. */
void commits_note_add(struct commits_note *note, struct store *store, const struct id_set *made,
	const struct agent_branch *branch);
/* `is_below`: they are of a repository below the root. */
void commits_note_end(struct commits_note *note, bool is_below);

#endif
