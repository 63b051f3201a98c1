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
 * What the files of the transport share. One operation at a time is a chain of steps, each a
 * script in the sandbox with work at its other end, or such work alone. The work has
 * the transport to itself while it runs.
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

/* The text of a script with what they all share before it. */
const char *git_script_text(enum git_script script);

enum { SCRIPT_ARGS_MAX = 15 };

struct git_transport;
struct arrival; // agent_commits.c

struct git_step {
	enum git_script script;
	const char *args[SCRIPT_ARGS_MAX]; // borrowed; up to the first NULL
	bool (*work)(struct git_transport *git, struct remote_ends *ends, struct error *err);
	void (*then)(struct git_transport *git); // the work has done well
};

/* What is going on in a collect. */
struct collecting {
	git_oid base, side_base, side_tree;
	bool has_commits;       // the answer has come to the agent's commits: the tree is checked
	struct list base_files; // of struct big_file: those of base
	struct list files;      // of struct big_file: those that are there
	struct big_file *next;  // to be fetched; NULL: none
	uint64_t fetched_bytes; // of big files, with their holes
	struct transport_collected result;
};

/* What is going on in a deliver. */
struct delivering {
	git_oid from, to, side_from, side_to;
	struct list swaps;      // of struct swap
	struct swap *next;      // to be uploaded; NULL: none
	struct extents extents; // of that one
	bool is_few;            // all that differs is in `few`
	size_t few_count;
	struct buf few;     // as sync/git/remote/deliver.sh reads it
	git_oid seed;       // a whole tree that is sent, since the runtime has lost it
	struct stuck stuck; // paths that stood in the way
	struct transport_delivered result;
};

/* A path that is a big file before or after. */
struct swap {
	struct list link; // delivering.swaps
	char *path;       // owned
	struct store_entry from, to;
};

/* The files that the runtime's git shows as unchanged, for their filters do not run there. */
struct filtered {
	uint64_t count;
	char paths[1024]; // the first of them, for people
};

struct git_transport {
	struct transport transport;
	struct transport_request request; // strings are owned copies
	char *side;                       // the side repository in the runtime
	bool wants_bases; // what the agent's commits build upon is not all in the user's repository
	char *pathspecs, *includes; // a line each
	bool is_busy;

	struct remote *remote; // what runs; NULL: nothing
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

	struct store store; // our own handle, used by one step after the other
	bool has_store;
	struct side_pair known; // the last snapshot and its side tree
	bool is_missing;        // the runtime has not the tree that the step begins with
	bool takes_no_blocks;   // its dd cannot put them where they belong: holes travel as zeros
	bool was_seeded;        // and it was sent once in this operation
	bool is_locked;         // the runtime's HEAD follows once git has let go of it there

	git_oid *received; // owned; trees that were new to the store
	size_t received_count;

	struct collecting collecting;
	struct delivering delivering;
	struct arrival *arrival; // of commits, while they come; NULL
	/* The workspace's own, then those of repositories below its root, in order. Owned. */
	struct history *histories[1 + INNER_MAX];
	size_t history_count;
	struct history *history; // in hand: the first, or one that a script works on or tells of
	size_t turn;             // so many of them are still to be updated
	size_t told;             // the number of the one that a collect tells of
	bool is_near;            // the sandbox is on this machine
	bool sends_pack;         // it is sent commits, and not only where the refs are
	struct id_set shared;    // what SIDE has of the history; for the next stream alone
	struct filtered filtered;
	char note[TRANSPORT_NOTE_MAX]; // what the next collect is to say
};

static inline struct git_transport *git_from(struct transport *transport)
{
	return CONTAINER_OF(transport, struct git_transport, transport);
}

/* ---- git.c: steps ---- */

void git_begin(struct git_transport *git, void (*begin)(struct git_transport *git),
	void (*end)(struct git_transport *git, const struct error *err), void *data);
void git_run(struct git_transport *git, const struct git_step *step);
void git_end(struct git_transport *git, const struct error *err); // NULL: all is well

/* Adds to what the collect that runs is to say. "" adds nothing; too much loses its end. */
void git_tell_user(struct git_transport *git, const char *format, ...) ATTR_PRINTF(2, 3);

/* Work: the store, opened where it is not. */
bool git_open_store(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/* Work: the user's repositories as they are now. */
bool git_read_history(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/*
 * The paths of those below the root whose history travels, a line each; the caller frees it. One
 * that cannot be read here any more may have commits of the agent's there.
 */
char *git_list_inner(const struct git_transport *git);
/* Work: the side tree of a snapshot. */
bool git_strip(struct git_transport *git, const git_oid *whole, git_oid *out_side,
	struct error *err) ATTR_NODISCARD;

/* ---- answer.c: what a script tells ---- */

/*
 * Reads to the script's end. `take` is given each line but the last; objects have to be
 * read by it. ERROR_UNAVAILABLE with reason RUNTIME_CHANGED where the script said so;
 * git->is_missing is set where it lacks a tree, and that is no error.
 */
bool git_read_answer(struct git_transport *git, struct remote_ends *ends,
	bool (*take)(struct git_transport *git, struct lines *lines, const struct line *line,
		struct error *err),
	struct error *err) ATTR_NODISCARD;

/*
 * Takes `count` objects into the store but those that `check` does not want; their ids are computed
 * anew and compared.
 */
bool git_receive_objects(struct git_transport *git, struct lines *lines, uint64_t count,
	bool (*check)(struct git_transport *git, struct line_object *object, struct error *err),
	struct error *err) ATTR_NODISCARD;

/*
 * Takes the trees of git_receive_objects back where they turned out to be none that anybody may
 * refer to, so that the store stays sound. The store is opened anew by git_open_store.
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

/* ---- import.c: what goes to the runtime ---- */

struct stream {
	git_oid from, to;
	bool has_swaps; // delivering.swaps go along
};

/* Work: writes a stream for git-fast-import(1) that makes the one tree the other. */
bool git_send_stream(struct git_transport *git, const struct stream *stream, int fd,
	struct error *err) ATTR_NODISCARD;

/* Sends a whole tree; then `then`. */
void git_import(
	struct git_transport *git, const git_oid *tree, void (*then)(struct git_transport *git));

/* An id less its last digit: of a big file's content the last bit is not known. */
void git_short_id(const struct git_transport *git, const struct store_entry *entry, char *hex);

/* repository.c: brings the runtime's repositories up to the user's; then ends the operation. */
void git_update_repository(struct git_transport *git);

/* ---- agent_commits.c: the commits that the agent made, which a collect brings along ---- */

/* Of more that are new none are taken: each collect notes it, and the user is told once. */
enum { AGENT_COMMITS_MAX = 1 << 16 };

/* Work: writes the ids of those that are known, each ended by NUL. */
bool git_write_known_commits(struct git_transport *git, int fd, struct error *err) ATTR_NODISCARD;
/*
 * Work: takes LINE_COMMITS and what follows it. LINE_WITHIN keeps what has come before it, and
 * git->history is of that repository from there on.
 */
bool git_take_commits(struct git_transport *git, struct lines *lines, const struct line *line,
	struct error *err) ATTR_NODISCARD;
/*
 * Work, at the end of the answer: checks what has come and keeps it. What cannot be kept is no
 * reason to leave the files where they are: it is noted. Fails where the store is lost.
 */
bool git_keep_commits(struct git_transport *git, struct error *err) ATTR_NODISCARD;
/*
 * Work: the commits that come are lost for this time, and that is noted, whatever the reason: the
 * agent does what it likes with its repository. Fails where the store is lost.
 */
bool git_refuse_commits(
	struct git_transport *git, const struct error *why, struct error *err) ATTR_NODISCARD;
/*
 * Work: brings what is missing of a commit's tree from the user's repository to the store. Fails
 * where that has not got it either.
 */
bool git_fill_tree(
	struct git_transport *git, const git_oid *tree, struct error *err) ATTR_NODISCARD;
/* Drops what has come and was not kept. */
void git_drop_commits(struct git_transport *git);

#endif
