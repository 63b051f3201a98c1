/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_GIT_H
#define SYNC_GIT_GIT_H

#include "base/soon.h"
#include "sync/git/history.h"
#include "sync/git/inner.h"
#include "sync/git/lines.h"
#include "sync/git/remote.h"
#include "sync/git/trees.h"
#include "sync/stuck.h"
#include "sync/transport.h"

/*
 * Shared by the files of the transport. One operation at a time is a chain of steps. Each step is a
 * script in the sandbox with local work at its other end, or local work alone. While the work runs,
 * only it uses the transport.
 */
enum git_script {
	SCRIPT_OPEN,
	SCRIPT_COLLECT,
	SCRIPT_FETCH,
	SCRIPT_UPLOAD,
	SCRIPT_IMPORT,
	SCRIPT_DELIVER,
	SCRIPT_REPO_OPEN,
	SCRIPT_REPO_UPDATE,
	SCRIPT_NONE,
};

/* The text of a script, after the part that all scripts share. */
const char *git_script_text(enum git_script script);

enum { SCRIPT_ARGS_MAX = 15 };

struct git_transport;
struct arrival; // agent_commits.c

struct git_step {
	enum git_script script;
	const char *args[SCRIPT_ARGS_MAX]; // borrowed; up to the first NULL
	bool (*work)(struct git_transport *git, struct remote_ends *ends,
		struct error *err);              // may be NULL
	void (*then)(struct git_transport *git); // called after the work has succeeded
};

/* The state of a collect. */
struct collecting {
	git_oid base, side_base, side_tree;
	bool has_commits;       // the answer is at the agent's commits: the tree is checked
	struct list base_files; // of struct big_file: those in base
	struct list files;      // of struct big_file: those in the runtime
	struct big_file *next;  // the next to fetch; NULL: none
	uint64_t fetched_bytes; // of big files, including their holes
	struct transport_collected result;
};

/* The state of a deliver. */
struct delivering {
	git_oid from, to, side_from, side_to;
	struct list swaps;      // of struct swap
	struct swap *next;      // the next to upload; NULL: none
	struct extents extents; // of the next swap
	bool is_few;            // `few` has all differences
	size_t few_count;
	struct buf few;     // input of sync/git/remote/deliver.sh
	git_oid seed;       // a whole tree that is sent because the runtime has lost it
	struct stuck stuck; // paths that were in the way
	struct transport_delivered result;
};

/* A path that is a big file before or after the delivery. */
struct swap {
	struct list link; // delivering.swaps
	char *path;       // owned
	struct store_entry from, to;
};

/* Files that the runtime's git shows as unchanged, because their filters do not run there. */
struct filtered {
	uint64_t count;
	char paths[1024]; // the first of them, for people
};

struct git_transport {
	struct transport transport;
	struct transport_request request; // strings are owned copies
	char *side;                       // path of the side repository in the runtime
	bool wants_bases; // the user's repository lacks commits that the agent's commits build upon
	char *pathspecs, *includes; // one per line
	bool is_busy;

	struct remote *remote; // the running one; NULL: none
	struct git_step step;
	struct soon kick; // the first step of an operation
	void (*begin)(struct git_transport *git);
	void (*end)(struct git_transport *git, const struct error *err);
	union {
		sandbox_done *prepare;
		transport_collect_done *collect;
		transport_deliver_done *deliver;
	} done;
	void *done_data;

	struct store store; // our own handle; the steps use it in turn
	bool has_store;
	struct side_pair known; // the last snapshot and its side tree
	bool is_missing;        // the runtime lacks the tree that the step begins with
	bool takes_no_blocks;   // its dd cannot write at offsets: holes are sent as zeros
	bool was_seeded;        // that tree was sent once in this operation
	bool is_locked; // the runtime's HEAD is updated after git has released its lock there

	git_oid *received; // owned; trees that were new to the store
	size_t received_count;

	struct collecting collecting;
	struct delivering delivering;
	struct arrival *arrival; // of commits, while they arrive; else NULL
	/* The workspace's own, then those of repositories below its root, sorted. Owned. */
	struct history *histories[1 + INNER_MAX];
	size_t history_count;
	struct history *history; // the current one: the first, or that of the running script
	size_t turn;             // how many are still to be updated
	size_t told;             // index of the one that the collect's answer is about
	bool is_near;            // the sandbox is on this machine
	bool is_confined;        // the agent in the sandbox is confined
	bool sends_pack;         // it is sent commits, not only refs
	struct id_set shared;    // the part of the history that SIDE has; only for the next stream
	struct filtered filtered;
	char note[TRANSPORT_NOTE_MAX]; // for the next collect
};

static inline struct git_transport *git_from(struct transport *transport)
{
	return CONTAINER_OF(transport, struct git_transport, transport);
}

/* ---- git.c: steps ---- */

void git_begin(struct git_transport *git, void (*begin)(struct git_transport *git),
	void (*end)(struct git_transport *git, const struct error *err), void *data);
void git_run(struct git_transport *git, const struct git_step *step);
void git_end(struct git_transport *git, const struct error *err); // NULL: success

/* Adds to the note of the running collect. "" adds nothing; a text that is too long is cut. */
void git_tell_user(struct git_transport *git, const char *format, ...) ATTR_PRINTF(2, 3);

/* Work: opens the store if it is not open. */
bool git_open_store(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/* Work: reads the current state of the user's repositories. */
bool git_read_history(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/*
 * The paths of the repositories below the root whose history travels, one per line; the caller
 * frees it. A repository that can no longer be read here may still have commits of the agent in the
 * runtime.
 */
char *git_list_inner(const struct git_transport *git);
/* Work: makes the side tree of a snapshot. */
bool git_strip(struct git_transport *git, const git_oid *whole, git_oid *out_side,
	struct error *err) ATTR_NODISCARD;

/* ---- answer.c: the answers of scripts ---- */

/*
 * Reads until the script ends. Calls `take` for each line except the last; `take` must read the
 * objects itself. ERROR_UNAVAILABLE with the reason RUNTIME_CHANGED if the script says so. If the
 * runtime lacks a tree, sets git->is_missing; that is no error.
 */
bool git_read_answer(struct git_transport *git, struct remote_ends *ends,
	bool (*take)(struct git_transport *git, struct lines *lines, const struct line *line,
		struct error *err),
	struct error *err) ATTR_NODISCARD;

/*
 * Puts `count` objects into the store, except those that `check` marks as unwanted; computes their
 * ids again and compares them.
 */
bool git_receive_objects(struct git_transport *git, struct lines *lines, uint64_t count,
	bool (*check)(struct git_transport *git, struct line_object *object, struct error *err),
	struct error *err) ATTR_NODISCARD;

/*
 * Removes the trees of git_receive_objects if they turn out to be unusable, so that the store stays
 * sound. git_open_store then opens the store again.
 */
void git_discard_received(struct git_transport *git);

/* ---- the operations ---- */

void git_prepare(struct transport *transport, sandbox_done *done, void *data);
void git_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data);
void git_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data);
void collecting_finish(struct collecting *collecting);
void delivering_finish(struct delivering *delivering);

/* ---- import.c: data for the runtime ---- */

struct stream {
	git_oid from, to;
	bool has_swaps; // also sends delivering.swaps
};

/* Work: writes a stream for git-fast-import(1) that changes the tree `from` into `to`. */
bool git_send_stream(struct git_transport *git, const struct stream *stream, int fd,
	struct error *err) ATTR_NODISCARD;

/* Sends a whole tree; then calls `then`. */
void git_import(
	struct git_transport *git, const git_oid *tree, void (*then)(struct git_transport *git));

/* An id without its last digit: the last bit of a big file's content id is unknown. */
void git_short_id(const struct git_transport *git, const struct store_entry *entry, char *hex);

/* repository.c: updates the runtime's repositories from the user's; then ends the operation. */
void git_update_repository(struct git_transport *git);

/* ---- agent_commits.c: the agent's commits, which a collect brings ---- */

/*
 * If there are more new commits, none is taken. Each collect notes this, and the user is told once.
 */
enum { AGENT_COMMITS_MAX = 1 << 16 };

/* Work: writes the ids of the known commits, each terminated by NUL. */
bool git_write_known_commits(struct git_transport *git, int fd, struct error *err) ATTR_NODISCARD;
/*
 * Work: handles LINE_COMMITS and the lines after it. LINE_WITHIN stores the commits received before
 * it, and sets git->history to that of the named repository.
 */
bool git_take_commits(struct git_transport *git, struct lines *lines, const struct line *line,
	struct error *err) ATTR_NODISCARD;
/*
 * Work, at the end of the answer: checks the received commits and stores them. If they cannot be
 * stored, the files are taken all the same, and a note says so. Fails if the store is broken.
 */
bool git_keep_commits(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/*
 * Work: drops the arriving commits this time, and notes it. The reason does not matter, because the
 * agent may do what it likes with its repository. Fails only if the store is broken.
 */
bool git_refuse_commits(
	struct git_transport *git, const struct error *why, struct error *err) ATTR_NODISCARD;
/*
 * Work: copies the missing objects of a commit's tree from the user's repository to the store.
 * Fails if that repository lacks them too.
 */
bool git_fill_tree(
	struct git_transport *git, const git_oid *tree, struct error *err) ATTR_NODISCARD;
/* Drops the received commits that were not stored. */
void git_drop_commits(struct git_transport *git);

#endif
