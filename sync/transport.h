/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TRANSPORT_H
#define SYNC_TRANSPORT_H

#include <ev.h>

#include "base/pool.h"
#include "providers/provider.h"
#include "sync/store.h"
#include "sync/stuck.h"

/*
 * How a tree gets from the store into the runtime and back. All of it works
 * through the sandbox's exec and file operations alone. Loop thread; an operation
 * never raises its end before it returns and raises exactly one, unless the
 * transport is destroyed before. One operation at a time.
 */
struct transport;

/* For the programs that a transport starts on this machine. */
struct transport_tools {
	struct spawner *spawner; // borrowed
	const char *path;        // where they are looked for; NULL: the system's folders
	const char *shell;       // rsync's remote shell (sync/rsync/shell.h); NULL: this program
};

struct transport_request {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	struct store *store;    // where it is and its limit are copied: it is opened anew
	const char *local_root; // the workspace; its repository, if any, is read
	const char *runtime_root;
	const char *name; // of the sandbox among those of this store; NULL: by its root alone
	const char *home; // the user's, for the name and the ignore rules; may be NULL
	const char *const *include, *const *exclude;
	long long timeout_ms;                // without any progress; 0: a minute
	uint64_t bytes_max;                  // received in one operation; 0: 20 GiB
	const struct transport_tools *tools; // NULL: there are none; the texts are copied
};

enum { TRANSPORT_NOTE_MAX = 1536 };

/* What could not be taken from the runtime, and stays as it was. */
struct transport_left {
	size_t count;
	uint64_t print;  // of all their paths, in whatever order they come
	char first[200]; // for people
};

/*
 * Adds to a note what is not in it yet, behind a semicolon; "" adds nothing, too much loses its
 * end.
 */
void transport_note_add(char note[TRANSPORT_NOTE_MAX], const char *text);

void transport_left_add(struct transport_left *left, const char *path);

/*
 * A snapshot of the runtime root in the store. `base` is what the runtime was
 * last known to be, and is in the store and there. The local directory is looked at
 * meanwhile (snapshot_begin), so the store is written through a handle of the transport's own.
 */
struct transport_collected {
	git_oid tree;
	uint64_t received_bytes;
	char note[TRANSPORT_NOTE_MAX]; // what the user should be told once; "" for nothing
	struct transport_left left;
	bool commits_left; // some of the agent's could not be taken, and are there alone
};
typedef void transport_collect_done(
	void *data, const struct transport_collected *collected, const struct error *err);

/*
 * Makes the runtime root, which is as the tree `from` says, what `to` says. Where it
 * is no longer so, or something cannot be written there, ERROR_UNAVAILABLE with reason
 * "RUNTIME_CHANGED", and what was there instead is there still, or again: collect again. Other
 * paths may be as `to` says already. DISK_FULL: there is no room.
 */
struct transport_delivered {
	uint64_t sent_bytes;
	/* The rest is of a delivery that has failed. */
	const struct stuck *stuck; // the paths that were in the way, as far as known; NULL: none is
	bool is_lasting;           // the same delivery would fail again
};
/* `delivered` may be there with an error, too. */
typedef void transport_deliver_done(
	void *data, const struct transport_delivered *delivered, const struct error *err);

struct transport_impl {
	const char *name;
	/* Whether the runtime has what it needs; and makes the runtime root a repository. */
	void (*prepare)(struct transport *transport, sandbox_done *done, void *data);
	void (*collect)(struct transport *transport, const git_oid *base,
		transport_collect_done *done, void *data);
	void (*deliver)(struct transport *transport, const git_oid *from, const git_oid *to,
		transport_deliver_done *done, void *data);
	void (*destroy)(struct transport *transport);
	/*
	 * Optional, for one that takes snapshots by itself: nobody else may look through a
	 * directory meanwhile, for the ignore rules that a store has been told are those of one
	 * directory (sync/ignore.h). While `holds`, a collect does what it can without them, and
	 * waits. Raises nothing before it returns.
	 */
	void (*hold)(struct transport *transport, bool holds);
	/*
	 * Optional, NULL: no. Whether a delivery may have something to do also where no file
	 * differs: more than the files follows.
	 */
	bool (*follows)(const struct transport *transport);
	/* Optional: the name in use, where it is not always the same. */
	const char *(*name_now)(const struct transport *transport);
};

struct transport {
	const struct transport_impl *impl;
};

/* As in the table. */
void transport_prepare(struct transport *transport, sandbox_done *done, void *data);
void transport_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data);
void transport_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data);

void transport_hold(struct transport *transport, bool holds);
bool transport_follows(const struct transport *transport);

/* Ends what runs, in the sandbox too, and raises nothing more. NULL is fine. */
void transport_destroy(struct transport *transport);

/* Never fails; a runtime without what it needs is told by prepare. */
typedef struct transport *transport_create(const struct transport_request *request);

/*
 * By git there and libgit2 here (sync/git). Everything but the loop, the pool and the
 * sandbox is copied. Both directions are incremental: what the runtime was sent or has
 * told is kept in a repository of our own beside the root, which is made anew where
 * it was deleted. The root becomes a repository where local_root is one (sync/git/history.h);
 * it follows the user's HEAD as long as the agent leaves HEAD where it is. Commits of the
 * agent's come back with the next collect (sync/git/commits.h).
 */
transport_create transport_git_create;

/*
 * By the program rsync, here and there, for a runtime without git. It works on a mirror of the
 * runtime root that lies in the store's folder (sync/rsync/mirror.h); a snapshot of that is
 * what is collected, and what is delivered is applied to it first. No history travels. A
 * runtime without rsync, or a machine: ERROR_UNAVAILABLE with reason SYNC_TOOL_MISSING.
 */
transport_create transport_rsync_create;

/*
 * By git where the runtime has it, else by rsync; which is decided by the first prepare that
 * goes well and stays so. The name of the transport is that of the one in use.
 */
transport_create transport_auto_create;

/* "git", "rsync", "none"; "auto" before it is decided. */
const char *transport_name(const struct transport *transport);

/* Of a workspace in which the agent works itself: there is no other side, only checkpoints. */
transport_create transport_none_create;

#endif
