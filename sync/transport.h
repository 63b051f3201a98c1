/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TRANSPORT_H
#define SYNC_TRANSPORT_H

#include <ev.h>

#include "base/pool.h"
#include "providers/provider.h"
#include "sync/store.h"
#include "sync/stuck.h"

/*
 * Moves a tree from the store into the runtime and back, using only the sandbox's exec and file
 * operations. Loop thread. An operation calls `done` exactly once, never before it returns, or not
 * at all if the transport is destroyed first. One operation at a time.
 */
struct transport;

/* The programs that a transport starts on this machine. */
struct transport_tools {
	struct spawner *spawner; // borrowed
	const char *path;        // where to look for them; NULL: the system's folders
	const char *shell;       // rsync's remote shell (sync/rsync/shell.h); NULL: this program
};

struct transport_request {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	struct store *store;    // its place and limit are copied: the transport opens it again
	const char *local_root; // the workspace; its repository, if any, is read
	const char *runtime_root;
	const char
		*name; // identifies the sandbox among those of this store; NULL: by its root alone
	const char *home; // the user's, for the name and the ignore rules; may be NULL
	const char *const *include, *const *exclude;
	long long timeout_ms;                // without any progress; 0: a minute
	uint64_t bytes_max;                  // received in one operation; 0: 20 GiB
	const struct transport_tools *tools; // NULL: none; the texts are copied
};

enum { TRANSPORT_NOTE_MAX = 1536 };

/* Paths that could not be read from the runtime; they keep their old entries. */
struct transport_left {
	size_t count;
	uint64_t print;  // hash of all their paths, in any order
	char first[200]; // for people
};

/*
 * Appends a text to a note, after a semicolon, unless the note has it already; "" adds nothing. A
 * note that is too long is cut.
 */
void transport_note_add(char note[TRANSPORT_NOTE_MAX], const char *text);

void transport_left_add(struct transport_left *left, const char *path);

/*
 * A snapshot of the runtime root, in the store. `base` is the runtime's last known tree, which both
 * the store and the runtime have. The local directory is being read at the same time
 * (snapshot_begin), so that the transport writes to the store through its own handle.
 */
struct transport_collected {
	git_oid tree;
	uint64_t received_bytes;
	char note[TRANSPORT_NOTE_MAX]; // a message for the user, once; "" for none
	struct transport_left left;
	bool commits_left; // some commits of the agent were not taken: only the runtime has them
};
typedef void transport_collect_done(
	void *data, const struct transport_collected *collected, const struct error *err);

/*
 * Changes the runtime root from the tree `from`, which it should match, to `to`. If the runtime has
 * changed since, or something cannot be written there, fails with ERROR_UNAVAILABLE and the reason
 * "RUNTIME_CHANGED". The content that was there instead stays, or is restored: collect again. Other
 * paths may already match `to`. DISK_FULL: there is no space.
 */
struct transport_delivered {
	uint64_t sent_bytes;
	/* The rest describes a failed delivery. */
	const struct stuck *stuck; // the paths that were in the way, as far as known; NULL: none
	bool is_lasting;           // the same delivery would fail again
};
/* `delivered` may also be set together with an error. */
typedef void transport_deliver_done(
	void *data, const struct transport_delivered *delivered, const struct error *err);

struct transport_impl {
	const char *name;
	/*
	 * Checks that the runtime has what the transport needs, and makes the runtime root a
	 * repository.
	 */
	void (*prepare)(struct transport *transport, sandbox_done *done, void *data);
	void (*collect)(struct transport *transport, const git_oid *base,
		transport_collect_done *done, void *data);
	void (*deliver)(struct transport *transport, const git_oid *from, const git_oid *to,
		transport_deliver_done *done, void *data);
	void (*destroy)(struct transport *transport);
	/*
	 * Optional, for a transport that takes snapshots itself. Only one snapshot may walk a
	 * directory at a time, because a store has the ignore rules of one directory
	 * (sync/ignore.h). While `holds` is set, a collect does as much as it can without these
	 * rules, and then waits. Calls no callback before it returns.
	 */
	void (*hold)(struct transport *transport, bool holds);
	/*
	 * Optional; NULL means no. Whether a delivery may have work even if no file differs,
	 * because it transfers more than files.
	 */
	bool (*follows)(const struct transport *transport);
	/* Optional: the name in use, if it can change. */
	const char *(*name_now)(const struct transport *transport);
};

struct transport {
	const struct transport_impl *impl;
};

/* Call the functions of the table. */
void transport_prepare(struct transport *transport, sandbox_done *done, void *data);
void transport_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data);
void transport_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data);

void transport_hold(struct transport *transport, bool holds);
bool transport_follows(const struct transport *transport);

/* Ends everything that runs, in the sandbox too, and calls no more callbacks. NULL is fine. */
void transport_destroy(struct transport *transport);

/* Never fails; if the runtime lacks what it needs, `prepare` reports it. */
typedef struct transport *transport_create(const struct transport_request *request);

/*
 * Uses git in the sandbox and libgit2 here (sync/git). Copies everything except the loop, the pool
 * and the sandbox. Both directions are incremental: a repository of our own beside the root keeps
 * what the runtime was sent or has sent; it is created again if somebody deleted it. The root
 * becomes a repository if local_root is one (sync/git/history.h); it follows the user's HEAD until
 * the agent moves HEAD. The agent's commits come back with the next collect (sync/git/commits.h).
 */
transport_create transport_git_create;

/*
 * Uses the program rsync, here and in the sandbox, for a runtime without git. It works on a mirror
 * of the runtime root in the store's folder (sync/rsync/mirror.h): a collect takes a snapshot of
 * the mirror, and a delivery is applied to the mirror first. No history is transferred. If rsync is
 * missing in the runtime or on this machine: ERROR_UNAVAILABLE with the reason SYNC_TOOL_MISSING.
 */
transport_create transport_rsync_create;

/*
 * Uses git if the runtime has it, else rsync. The first successful `prepare` decides, and the
 * choice stays. The transport's name is that of the one in use.
 */
transport_create transport_auto_create;

/* "git", "rsync", "none"; "auto" before it is decided. */
const char *transport_name(const struct transport *transport);

/* For a workspace in which the agent works directly: there is no other side, only checkpoints. */
transport_create transport_none_create;

#endif
