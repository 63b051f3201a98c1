/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_HISTORY_H
#define SYNC_GIT_HISTORY_H

#include "base/buf.h"
#include "sync/git/filters.h"
#include "sync/git/remotes.h"
#include "sync/id_set.h"
#include "sync/store.h"

enum { HISTORY_TRIES = 3, HISTORY_PAUSE_MS = 10 * 60 * 1000 }; // of what could not be sent

/*
 * What the runtime's repository shall have of the user's: where HEAD is, the other branches, the
 * remote-tracking refs, the tags, a name, the remotes, which files are left out on purpose, what
 * filters files have. The user's repository is only read, and its history when it is sent. Blocks.
 */
struct history {
	char *path;       // owned; of its folder in the workspace; "" for the root
	bool exists;      // the folder is a repository, or in one, and that can be read
	char *part;       // owned; the part of it that the workspace is; "": all of it
	char *room;       // owned; the part that the runtime has a place for; the caller's
	char *git_folder; // owned; of the user's repository
	bool is_detached; // no branch
	char *branch;     // owned; without refs/heads/; "" for none
	char id[GIT_OID_HEXSZ + 1]; // "" for an unborn branch
	struct buf refs;            // of the other branches and so on: lines of "ID NAME"
	struct buf shallow;         // lines of ids
	struct buf sparse;          // the patterns of what is there; empty: all of it
	bool is_cone;               // they are directories
	char *name, *email;         // owned; "" for none
	struct buf remotes;         // sync/git/remotes.h
	char *promisor;             // owned; of a partial clone the remote that has the rest; ""
	struct buf nested;          // sync/nested.h, below it; the caller's to read beforehand
	uint64_t nested_told;       // a hash of those that the user was told of
	struct filters filters;
	uint64_t print; // of HEAD, refs, patterns, filters: equal where nothing has moved
	char print_there[GIT_OID_HEXSZ + 1]; // what the runtime has kept of it; ""
	bool is_lost;                        // the runtime may not have it as it was sent
	bool is_made;                        // the runtime has a repository of ours there
	uint64_t filters_told; // a hash of the files with filters that the user was told of
	uint64_t sent_print;   // the print of what the runtime was last sent
	uint64_t failed_print; // the print of what could not be sent
	unsigned failures;     // so often, one after the other
	long long failed_ms;   // the last time
	struct buf have;       // what the runtime has: lines of ids
	char note[512];        // why there is none, where that is worth telling
	char told[512];        // the note that was told
};

struct history *history_create(const char *path);
void history_destroy(struct history *history);

/*
 * Reads anew. That there is no repository, or one that cannot be read, is no error: `exists`
 * is false then and `note` says why. `home` may be NULL. A repository above the root is the
 * workspace's where its HEAD has files of that folder, and is of use where `room` is that folder.
 */
bool history_read(struct history *history, const char *root, const char *home,
	struct error *err) ATTR_NODISCARD;

/* Whether the runtime lacks something that HEAD or a ref leads to. */
bool history_is_new(const struct history *history);

/*
 * Writes a pack of what the runtime lacks to a descriptor: by `git pack-objects`, which sends on
 * the deltas that are there and runs in a process of its own, or where there is no git
 * by libgit2. What is in no pack yet is compressed a little for a runtime that is far, and
 * not at all for one on this machine; no deltas are looked for.
 */
bool history_send(struct history *history, bool is_near, int fd, struct error *err) ATTR_NODISCARD;

/*
 * The contents of HEAD's files, which are with the runtime once it was sent the history.
 * What cannot be read is left out.
 */
void history_list_head(const struct history *history, struct id_set *out_ids);

#endif
