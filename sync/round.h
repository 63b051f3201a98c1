/* SPDX-License-Identifier: MIT */
#ifndef SYNC_ROUND_H
#define SYNC_ROUND_H

#include <stdatomic.h>

#include "sync/plan.h"
#include "sync/renames.h"
#include "sync/stuck.h"
#include "sync/workspace.h"

/*
 * The blocking steps of a sync; sync/workspace.c runs them one after another on the worker pool. In
 * the store, bases/NAME is the last common tree of both sides. deliveries/NAME is the tree that a
 * delivery has been bringing to the runtime since then: if the delivery was interrupted, paths that
 * already match it do not count as the agent's changes. known/NAME exists if some of the runtime's
 * paths are withheld: it is the runtime's last tree with these paths, and a transport starts from
 * it. After an interrupted sync it may be older than the base, which only costs time.
 */
enum { ROUND_NOTE_MAX = 512 };

enum { ROUND_REFUSED = 2 };

struct round {
	git_oid base;      // the last common tree; the empty tree at first
	git_oid delivered; // the tree of an interrupted delivery to the runtime
	bool has_delivered;
	bool was_cut;               // `cut` is set, and its changes are not part of the base yet
	git_oid local;              // the last snapshot of the local directory
	git_oid known;              // the runtime's last tree: the base with what was withheld
	bool has_known;             // known/NAME exists
	git_oid collected;          // the runtime's tree, as collected
	git_oid runtime;            // the part of `collected` that may come here (sync/withheld.h)
	bool has_merge;             // `merge` is set
	struct stuck withheld;      // the paths of the rest
	struct plan cut;            // the plan of an interrupted apply
	struct snapshot_view *view; // of the local directory, for the next snapshot; NULL: none
	struct merge merge;         // the last merge that was applied
	struct renames renames;     // files that one side renamed and the other changed in it
	struct merge earlier;       // only the conflicts of earlier merges whose delivery failed
	git_oid target;             // the tree that both sides become,
	git_oid found, taken;       // `collected` and `runtime` of the last merge
	git_oid sent;          // `target` for the runtime, including what is withheld or held there
	git_oid held;          // identifies the held changes (held_tree)
	git_oid asked_held;    // the same for those in the next question to the user
	git_oid still_refused; // the same for those that the user has refused
	git_oid refused[ROUND_REFUSED]; // refused earlier; and by the last answer
	bool parks_held;                // park held changes, because the runtime may end
	char **always;   // owned, NULL-terminated: paths that the user always allows from now on
	bool has_always; // always_tree is set: the paths allowed before
	git_oid always_tree;
	bool began_empty; // there was no base before this sync
	bool has_allowed; // the user has allowed the changes in `allowed` once
	git_oid allowed;
	/*
	 * Paths of the runtime in this sync: those that were in the way of a delivery, those that
	 * no further delivery touches, and those that the last merge would have changed but did
	 * not.
	 */
	struct stuck in_way, avoided, undelivered;
	struct list undelivered_changes; // the changes in `undelivered`, of struct held_change
	size_t undelivered_count;        // how many these are
	size_t asked_count;              // how many changes `asked_held` is about
	const char *why_no_delivery;     // NULL: deliver as usual
	size_t files;
	size_t kept, followed, gone; // as in struct sync_result
	enum sync_deletions mode;
	git_oid asked;
	bool asks;     // the round ended with a question about `deletions`
	bool is_first; // the first sync of this broker: nobody has watched the runtime's files
	               // disappear
	struct deletions deletions;
	const atomic_bool *is_cancelled; // for the merge; borrowed; may be NULL
	bool has_new_root;         // the local directory is not the noted one (sync/root_note.h)
	git_oid refused_deletions; // id of the user's deletions that the user chose not to deliver
	bool spares;               // the user's deletions are not delivered
	struct spared spared;      // which ones
	char note[ROUND_NOTE_MAX]; // for the user
	struct stuck busy;         // local files that changed at each attempt to read them
	unsigned told_excess;      // of enum snapshot_excess: already mentioned in a warning
	char warning[SNAPSHOT_WARNING_MAX];
};

/* What to note with a checkpoint. */
struct round_keeping {
	const char *reason;
	const char *session; // may be NULL
	const struct checkpoint_turn
		*turn; // the turn that it belongs to, instead of a reason; or NULL
};

void round_init(struct round *round);
void round_finish(struct round *round);

/*
 * Call it when a delivery failed because of these paths. From now on it delivers no path that would
 * fail again or was in the way before. The base of these paths becomes the runtime's version, so
 * that the next sync tries again. False: there are too many.
 */
enum { ROUND_AVOIDED_MAX = 1000 };
bool round_avoid(struct round *round, const struct stuck *paths, bool is_lasting);

/*
 * Makes the next delivery empty, for this reason (static). The local directory still gets the
 * merge, and the base becomes the runtime's tree.
 */
void round_deliver_nothing(struct round *round, const char *why);

/*
 * Reads the base, and the tree of an interrupted delivery, from the store. ERROR_SYSTEM if either
 * cannot be read: the text says how to continue without them.
 */
bool round_read_base(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * Call it after round_read_base: checks that the local directory is still the folder of the last
 * sync with this sandbox. If not, fails with ERROR_DENIED and the reason WORKSPACE_REPLACED. It
 * sets round->asks if somebody should be asked; round->deletions then has the id of the question.
 */
bool round_check_root(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err) ATTR_NODISCARD;

/*
 * With round->base set: begins the view of the local directory for the next merge. Others may write
 * to the store meanwhile (snapshot_begin).
 */
bool round_begin_view(struct round *round, struct store *store,
	const struct workspace_request *request, const atomic_bool *is_cancelled,
	struct error *err) ATTR_NODISCARD;

/*
 * With round->collected set: takes a snapshot, merges, parks and applies. Then bases/NAME becomes
 * round->runtime and deliveries/NAME becomes round->target. Withheld paths are part of neither. For
 * withheld and held paths the base stays the old one, so that they are found as changes of the
 * agent each time. A stuck path becomes a conflict and keeps its old base. Meanwhile merges/NAME
 * has the plan (sync/plan.h). ERROR_UNAVAILABLE with the reason SYNC_BUSY if the directory changes
 * faster than the merge is applied. ERROR_DENIED, with round->asks set, if the user must be asked
 * first.
 */
bool round_merge(struct round *round, struct store *store, const struct workspace_request *request,
	const atomic_bool *is_cancelled, struct error *err) ATTR_NODISCARD;

/*
 * Call it when both sides match round->target, except for withheld paths: sets bases/NAME to this
 * tree, and keeps it as a checkpoint. An earlier checkpoint that cannot be read is noted, and
 * stays.
 */
bool round_keep(struct round *round, struct store *store, const struct workspace_request *request,
	const struct round_keeping *keeping, unsigned *out_checkpoint,
	struct error *err) ATTR_NODISCARD;

/*
 * After a sync: applies the tree of a checkpoint to the local directory. The runtime's tree,
 * round->collected, is then the one that it was sent.
 */
bool round_go_back(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *tree,
	const atomic_bool *is_cancelled, struct error *err) ATTR_NODISCARD;

/*
 * Forgets the base of a sandbox that ends. A new sandbox of the same name then does not look like
 * one in which everything was deleted. Call it with the store's lock.
 */
bool round_forget_base(struct store *store, const char *name, struct error *err) ATTR_NODISCARD;

#endif
