/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_HISTORY_H
#define SYNC_GIT_HISTORY_H

#include "base/buf.h"
#include "sync/git/filters.h"
#include "sync/git/remotes.h"
#include "sync/id_set.h"
#include "sync/store.h"

enum { HISTORY_TRIES = 3, HISTORY_PAUSE_MS = 10 * 60 * 1000 }; // after a failed transfer

/*
 * The parts of the user's repository that the runtime's repository gets: HEAD, the other branches,
 * the remote-tracking refs, the tags, the user's name, the remotes, the sparse patterns, and the
 * filters. This only reads the user's repository, and reads its history only to send it. Blocks.
 */
struct history {
	char *path;       // owned; of its folder in the workspace; "" for the root
	bool exists;      // the folder is a readable repository, or lies in one
	char *part;       // owned; the part of the repository that is the workspace; "": all of it
	char *room;       // owned; the part that fits into the runtime; set by the caller
	char *git_folder; // owned; of the user's repository
	bool is_detached; // HEAD names no branch
	char *branch;     // owned; without refs/heads/; "": none
	char id[GIT_OID_HEXSZ + 1]; // "" for an unborn branch
	struct buf refs;            // of other branches, tags and so on: lines of "ID NAME"
	struct buf shallow;         // lines of ids
	struct buf sparse;          // the patterns of the sparse checkout; empty: everything
	bool is_cone;               // the patterns are directories
	char *name, *email;         // owned; "": none
	struct buf remotes;         // sync/git/remotes.h
	char *promisor;       // owned; for a partial clone, the remote that has the rest; else ""
	struct buf nested;    // sync/nested.h, below this one; the caller reads it beforehand
	uint64_t nested_told; // a hash of those that the user was told about
	struct filters filters;
	uint64_t print; // hash of HEAD, refs, patterns, filters: equal if nothing has moved
	char print_there[GIT_OID_HEXSZ + 1]; // the print that the runtime has stored; ""
	bool is_lost;                        // the runtime may have lost a part of what it was sent
	bool is_made;                        // the runtime has a repository there that we made
	uint64_t filters_told; // a hash of the filtered files that the user was told about
	uint64_t sent_print;   // the print of the last state that was sent
	uint64_t failed_print; // the print of the state that could not be sent
	unsigned failures;     // how often in a row
	long long failed_ms;   // time of the last failure
	struct buf have;       // commits that the runtime has: lines of ids
	char note[512];        // why there is none, if the user should know
	char told[512];        // the note that the user was given
};

struct history *history_create(const char *path);
void history_destroy(struct history *history);

/*
 * Reads the repository again. If the repository is missing or unreadable, it succeeds with `exists`
 * false, and `note` says why. `home` may be NULL. A repository above the root counts as the
 * workspace's if its HEAD has files in that folder; it can only be used if `room` is that folder.
 */
bool history_read(struct history *history, const char *root, const char *home,
	struct error *err) ATTR_NODISCARD;

/* Whether the runtime lacks objects that HEAD or a ref leads to. */
bool history_is_new(const struct history *history);

/*
 * Writes a pack of the objects that the runtime lacks to a file descriptor. Uses `git
 * pack-objects`, which reuses existing deltas and runs in a process of its own; without git, uses
 * libgit2. Loose objects are compressed lightly for a distant runtime, and not at all for one on
 * this machine. No new deltas are computed.
 */
bool history_send(struct history *history, bool is_near, int fd, struct error *err) ATTR_NODISCARD;

/*
 * The contents of HEAD's files; the runtime has them once it was sent the history. Unreadable ones
 * are left out.
 */
void history_list_head(const struct history *history, struct id_set *out_ids);

#endif
