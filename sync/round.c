/* SPDX-License-Identifier: MIT */
#include "sync/round_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/apply.h"
#include "sync/checkpoint.h"
#include "sync/conflicts.h"
#include "sync/git/commits.h"
#include "sync/held.h"
#include "sync/id.h"
#include "sync/moved.h"
#include "sync/withheld.h"

void round_init(struct round *round)
{
	*round = (struct round){.base = store_empty_tree,
		.known = store_empty_tree,
		.collected = store_empty_tree,
		.runtime = store_empty_tree};
	list_init(&round->undelivered_changes);
	merge_init(&round->earlier);
}

void round_add_note(struct round *round, const char *format, ...)
{
	char text[sizeof(round->note)];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	if (!strstr(round->note, text)) {
		size_t len = strlen(round->note);
		text_append(round->note, sizeof(round->note), "%s%s", len ? "; " : "", text);
	}
}

static void drop_merge(struct round *round)
{
	if (round->has_merge) {
		merge_finish(&round->merge);
		round->has_merge = false;
	}
}

static void drop_view(struct round *round)
{
	snapshot_drop(round->view);
	round->view = NULL;
}

void round_finish(struct round *round)
{
	drop_view(round);
	drop_merge(round);
	round_drop_undelivered(round);
	merge_finish(&round->earlier);
	renames_finish(&round->renames);
	plan_finish(&round->cut);
	stuck_finish(&round->in_way);
	stuck_finish(&round->avoided);
	deletions_finish(&round->deletions);
	stuck_finish(&round->busy);
	stuck_finish(&round->withheld);
	words_free(round->always);
	round->always = NULL;
}

/* Adds each path once. */
static void on_busy(void *data, const char *path)
{
	struct round *round = data;
	if (!stuck_find(&round->busy, path)) {
		stuck_add(&round->busy, path, "a program is writing to it");
	}
}

bool round_begin_view(struct round *round, struct store *store,
	const struct workspace_request *request, const atomic_bool *is_cancelled, struct error *err)
{
	/* A confined agent reads what its user may read, and that user is never root. */
	bool as_owner = request->is_confined;
	struct snapshot_request local = {
		.root = request->local_root,
		.base = &round->base,
		.include = request->include,
		.exclude = request->exclude,
		.limits = request->limits,
		.home = request->home,
		.cache = as_owner && geteuid() == 0 ? "owners" : "local",
		.as_owner = as_owner,
		.is_cancelled = is_cancelled,
		.on_busy = on_busy,
		.data = round,
	};
	drop_view(round);
	round->view = snapshot_begin(store, &local, err);
	return round->view != NULL;
}

static bool take_local(struct round *round, struct store *store,
	const struct workspace_request *request, const atomic_bool *is_cancelled, struct error *err)
{
	struct snapshot snapshot;
	if (!round->view && !round_begin_view(round, store, request, is_cancelled, err)) {
		return false;
	}
	struct snapshot_view *view = round->view;
	round->view = NULL;
	if (!snapshot_finish(view, store, &snapshot, err)) {
		return false;
	}
	round->local = snapshot.tree;
	round->files = snapshot.files;
	if (*snapshot.note) {
		round_add_note(round, "%s", snapshot.note);
	}
	unsigned excess = snapshot.excess & ~round->told_excess;
	if (excess) {
		snapshot_warning(&snapshot, excess, round->warning);
		round->told_excess |= excess;
	}
	return true;
}

/* Uses the current base and the local directory. */
static bool withhold(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	struct withheld_request taking = {
		.root = request->local_root, .base = &round->base, .local = &round->local};
	stuck_finish(&round->withheld);
	return withheld_take(
		store, &taking, &round->collected, &round->withheld, &round->runtime, err);
}

/* The round's trees, as the merge should see them. */
static bool align(const struct renames *renames, struct store *store,
	const struct merge_trees *trees, struct merge_trees *out, struct error *err)
{
	return renames_align(renames, store, RENAME_BASE, &trees->base, &out->base, err) &&
	       renames_align(renames, store, RENAME_LOCAL, &trees->local, &out->local, err) &&
	       renames_align(renames, store, RENAME_RUNTIME, &trees->runtime, &out->runtime, err);
}

/* Drops an earlier merge, and merges from the beginning. */
static bool merge_once(struct round *round, struct store *store,
	const struct merge_options *options, struct error *err)
{
	struct merge_trees trees = {
		.base = round->base, .local = round->local, .runtime = round->runtime};
	drop_merge(round);
	if (!align(&round->renames, store, &trees, &trees, err)) {
		return false;
	}
	round->has_merge = true; // must be finished, even after a failure
	return merge_run_as(&round->merge, store, &trees, options, err);
}

/* Merges with `moved`, if there may be moves; the caller finishes it. */
static bool merge_with_moved(struct round *round, struct store *store,
	struct merge_options *options, struct id_set *moved, struct error *err)
{
	if (!merge_once(round, store, options, err)) {
		return false;
	}
	if (round->merge.to_local.deleted > 0) {
		moved_find(moved, store, &round->runtime, &round->collected, &round->merge.held);
	}
	options->moved = moved;
	return moved->count == 0 || merge_once(round, store, options, err);
}

/*
 * Merges with renames. If one of them concerns a change that waits for the user, ignores them all.
 */
static bool merge_with_renames(struct round *round, struct store *store,
	struct merge_options *options, struct id_set *moved, struct error *err)
{
	struct renames_request request = {
		.trees = {.base = round->base, .local = round->local, .runtime = round->runtime},
		.delivered = options->delivered,
		.stuck = options->stuck,
		.guard = options->guard,
		.root = options->root,
		.is_cancelled = round->is_cancelled};
	renames_finish(&round->renames);
	if (!renames_find(&round->renames, store, &request, err) ||
		!merge_with_moved(round, store, options, moved, err)) {
		return false;
	}
	if (!renames_touch(&round->renames, &round->merge.held) &&
		!renames_touch(&round->renames, &round->merge.moved)) {
		return true;
	}
	renames_finish(&round->renames);
	id_set_finish(moved);
	options->moved = NULL;
	return merge_with_moved(round, store, options, moved, err);
}

/* Withholds all changes of the agent; a note names the first held one. */
static void withhold_all(struct round *round)
{
	static const char why[] =
		"the agent has changed more than 10000 guarded files (guard-paths), and none "
		"of its changes come here until there are fewer";
	static_assert(MERGE_HELD_MAX == 10000, "the text says how many");
	const struct merge *merge = &round->merge;
	const struct list *list = merge->held_count > 0 ? &merge->held : &merge->moved;
	const struct held_change *first = LIST_FIRST(list, struct held_change, link);
	assert(first);
	stuck_finish(&round->withheld);
	stuck_add(&round->withheld, first->path, why);
	round->runtime = round->base;
}

static bool merge(struct round *round, struct store *store, const struct workspace_request *request,
	struct stuck *stuck, struct error *err)
{
	struct id_set moved = {0};
	struct merge_options options = {.stuck = stuck,
		.delivered = round->has_delivered ? &round->delivered : NULL,
		.guard = request->guard_paths,
		.root = request->local_root,
		.allowed_once = round->has_allowed ? &round->allowed : NULL,
		.allowed_always = round->has_always ? &round->always_tree : NULL};
	point("merge.begun");
	round->kept = 0;
	round->followed = 0;
	bool merged = merge_with_renames(round, store, &options, &moved, err);
	if (!merged && round->has_merge && round->merge.is_over) {
		withhold_all(round);
		renames_finish(&round->renames);
		merged = merge_once(round, store, &options, err);
	}
	point("merge.done");
	bool keeps = false;
	merged = merged && round_guard_local(round, store, &keeps, err);
	if (keeps) {
		options.keeps_deleted = true;
		renames_finish(&round->renames);
		merged = merge_once(round, store, &options, err);
	}
	id_set_finish(&moved);
	return merged && round_guard_runtime(round, store, request, err);
}

/* The local directory, and the means to change it. */
struct local {
	struct round *round;
	struct store *store;
	const struct workspace_request *request;
	const atomic_bool *is_cancelled;
	struct stuck *left; // paths that an apply left unchanged
};

static void on_left(void *data, const char *path, const char *why)
{
	stuck_add(((const struct local *)data)->left, path, why);
}

static void on_remains(void *data, const char *path, const char *why)
{
	const struct local *local = data;
	char *quoted = path_quote_below(local->request->local_root, path);
	round_add_note(local->round,
		"remains of an interrupted sync cannot be removed (%s), each sync tries again: "
		"%s",
		why, quoted);
	free(quoted);
}

static bool apply(struct local *local, const git_oid *from, const git_oid *to, struct error *err)
{
	struct apply_result result;
	struct apply_request applied = {
		.root = local->request->local_root,
		.from = *from,
		.to = *to,
		.on_left = on_left,
		.on_remains = on_remains,
		.data = local,
		.is_cancelled = local->is_cancelled,
	};
	return apply_run(local->store, &applied, &result, err);
}

static const char rest_waits[] = "the agent's change to it waits for the next sync";
static const char rest_is_back[] =
	"everything else here is as in the checkpoint; the next sync updates the sandbox";

static bool fail_busy(const struct workspace_request *request, const struct stuck *left,
	const char *rest, struct error *err)
{
	const struct stuck_path *first = &left->paths[0];
	char *quoted = path_quote_below(request->local_root, first->path);
	error_set_reason(
		err, ERROR_UNAVAILABLE, "SYNC_BUSY", "%s: %s; %s", quoted, first->why, rest);
	free(quoted);
	return false;
}

static bool park(struct round *round, struct store *store, struct error *err)
{
	char stamp[32];
	struct tm utc;
	time_t now = time(NULL);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", gmtime_r(&now, &utc));
	return conflicts_park(store, &round->merge, stamp, err) &&
	       (!round->parks_held || held_park(store, &round->merge.held, stamp, err));
}

bool round_graft(const struct round *round, struct store *store, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	bool is_base = version == HELD_BASE;
	const git_oid *from = is_base ? &round->found : &round->taken;
	const git_oid *to = is_base ? &round->taken : &round->found;
	git_oid spared = *tree;
	if (round->spares && !deletions_spare(store, &round->spared, is_base, tree, &spared, err)) {
		return false;
	}
	return withheld_add(store, &spared, from, to, out_tree, err) &&
	       held_graft(store, &round->merge.held, version, out_tree, out_tree, err) &&
	       held_graft(store, &round->merge.moved, version, out_tree, out_tree, err) &&
	       held_graft(store, &round->undelivered_changes, version, out_tree, out_tree, err);
}

/* Sets the tree for the runtime, and the changes about which to ask the user. */
static bool set_sent(
	struct round *round, struct store *store, struct stuck *stuck, struct error *err)
{
	struct list *held = &round->merge.held;
	round->asked_count = held_choose(store, held, round->refused, ROUND_REFUSED);
	round->taken = round->runtime;
	round->found = round->collected;
	return round_take_undelivered(round, store, stuck, err) &&
	       held_tree(store, held, HELD_STATES, &round->held, err) &&
	       held_tree(store, held, HELD_ASKED, &round->asked_held, err) &&
	       held_tree(store, held, HELD_REFUSED, &round->still_refused, err) &&
	       held_read(store, held, err);
}

/*
 * Keeps the old base for stuck paths, for conflicts of an earlier round, and for held or withheld
 * paths.
 */
static bool note_applied(struct round *round, struct store *store,
	const struct workspace_request *request, struct stuck *stuck, struct error *err)
{
	git_oid base = stuck->count > 0 ? round->base : round->runtime;
	struct settle_request settling = {.merge = &round->merge,
		.runtime = &round->runtime,
		.once = &round->allowed,
		.always = round->has_always ? &round->always_tree : NULL};
	round->target = round->merge.merged;
	return set_sent(round, store, stuck, err) &&
	       (!round->has_allowed || conflicts_settle(store, &settling, err)) &&
	       round_graft(round, store, HELD_BASE, &base, &base, err) &&
	       round_note_applied(round, store, request, &base, err);
}

/*
 * The base of the applied paths becomes the runtime's version (sync/settled.h); the tree delivered
 * before no longer counts for them.
 */
static bool settle(struct round *round, struct store *store, const struct settled_trees *trees,
	struct stuck *left, struct error *err)
{
	struct merge_trees of_merge = {
		.base = round->base, .local = trees->local, .runtime = trees->runtime};
	if (!align(&round->renames, store, &of_merge, &of_merge, err)) {
		return false;
	}
	struct settled_trees aligned = *trees;
	git_oid base = of_merge.base;
	aligned.local = of_merge.local;
	aligned.runtime = of_merge.runtime;
	if (!settled_base(store, &aligned, left, &base, err) ||
		!renames_restore(&round->renames, store, trees, left, &base, err)) {
		return false;
	}
	round->base = base;
	return !round->has_delivered || settled_base(store, trees, left, &round->delivered, err);
}

/* Call this once `local` is known: settles the part of its plan that a cut apply has done. */
static bool settle_cut(struct round *round, struct store *store, struct error *err)
{
	if (!round->was_cut) {
		return true;
	}
	round->was_cut = false;
	round->cut.trees.now = round->local;
	renames_finish(&round->renames);
	round->renames = round->cut.renames;
	round->cut.renames = (struct renames){0};
	return settle(round, store, &round->cut.trees, NULL, err);
}

/* Stores the plan of an apply, if there is anything to do. */
static bool keep_plan(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	struct plan plan = {.base = round->base,
		.delivered = round->delivered,
		.has_delivered = round->has_delivered,
		.trees = {.local = round->local,
			.merged = round->merge.merged,
			.runtime = round->runtime},
		.renames = round->renames};
	return id_equal(&round->local, &round->merge.merged) ||
	       plan_keep(store, request->name, &plan, err);
}

/*
 * Applies in two steps: a moved file leaves its old place only after it has arrived at the new one.
 */
static bool apply_merge(struct local *local, struct error *err)
{
	struct round *round = local->round;
	const struct renames *renames = &round->renames;
	const git_oid *merged = &round->merge.merged;
	git_oid both;
	git_oid rest;
	if (!renames_move_local(renames)) {
		return apply(local, &round->local, merged, err);
	}
	return renames_keep_old(renames, local->store, NULL, merged, &both, err) &&
	       apply(local, &round->local, &both, err) &&
	       renames_keep_old(renames, local->store, local->left, merged, &rest, err) &&
	       apply(local, &both, &rest, err);
}

/* Changes the local directory to the merge, once; paths left unchanged are added to local->left. */
static bool apply_once(struct local *local, struct stuck *stuck, struct error *err)
{
	struct round *round = local->round;
	struct store *store = local->store;
	const struct workspace_request *request = local->request;
	bool applied = take_local(round, store, request, local->is_cancelled, err) &&
	               settle_cut(round, store, err) && withhold(round, store, request, err) &&
	               merge(round, store, request, stuck, err) && park(round, store, err) &&
	               keep_plan(round, store, request, err) && apply_merge(local, err);
	if (!applied) {
		return false;
	}
	point("round.applied");
	struct settled_trees trees = {
		.local = round->local, .merged = round->merge.merged, .runtime = round->runtime};
	return settle(round, store, &trees, local->left, err);
}

bool round_merge(struct round *round, struct store *store, const struct workspace_request *request,
	const atomic_bool *is_cancelled, struct error *err)
{
	struct local local = {round, store, request, is_cancelled, NULL};
	struct stuck before = {0};
	struct stuck stuck = {0};
	bool is_done = false;
	bool ok = true;
	round->is_cancelled = is_cancelled;
	if (round->has_merge) { // the next merge finds no conflict at a parked path
		merge_take_conflicts(&round->earlier, &round->merge);
	}
	for (int i = 0; ok && !is_done && i < SYNC_ROUNDS_MAX; i++) {
		struct stuck left = {0};
		local.left = &left;
		ok = apply_once(&local, &stuck, err);
		is_done = ok && left.count == 0;
		if (ok && !is_done && i + 1 == SYNC_ROUNDS_MAX) {
			ok = fail_busy(request, &left, rest_waits, err);
		}
		if (!is_done && stuck.count == 0) {
			stuck_intersect(&stuck, &before, &left);
		}
		stuck_finish(&before);
		before = left;
	}
	ok = ok && note_applied(round, store, request, &stuck, err);
	if (ok) {
		merge_take_conflicts(&round->merge, &round->earlier);
	}
	stuck_finish(&before);
	stuck_finish(&stuck);
	return ok;
}

bool round_keep(struct round *round, struct store *store, const struct workspace_request *request,
	const struct round_keeping *keeping, unsigned *out_checkpoint, struct error *err)
{
	struct checkpoint_damage damage;
	char checkpoint[CHECKPOINT_NAME_SIZE];
	struct checkpoint_forgotten forgotten;
	const git_oid *tree = &round->target;
	bool added = keeping->turn ? checkpoint_add_turn(store, tree, keeping->turn,
					     keeping->session, out_checkpoint, err)
	                           : checkpoint_add(store, tree, keeping->reason, keeping->session,
					     out_checkpoint, err);
	point("checkpoint.added");
	checkpoint_name(checkpoint, added ? *out_checkpoint : 0);
	bool set = added && round_keep_as_base(round, store, request, checkpoint, err) &&
	           round_keep_root(round, store, request, err);
	point("base.set");
	struct checkpoint_limits limits = {
		request->max_checkpoints, request->checkpoint_age_ms / 1000};
	long long now = (long long)time(NULL);
	bool kept = set && checkpoint_forget(store, &limits, now, &forgotten, &damage, err) &&
	            agent_commits_forget(store, forgotten.before, err) &&
	            conflicts_sweep(store, (time_t)forgotten.before, err);
	char text[CHECKPOINT_DAMAGE_MAX];
	const char *damaged = kept ? checkpoint_damage_text(&damage, text) : NULL;
	if (damaged) {
		round_add_note(round, "%s", damaged);
	}
	return kept;
}

bool round_go_back(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *tree,
	const atomic_bool *is_cancelled, struct error *err)
{
	struct stuck left = {0};
	struct local local = {round, store, request, is_cancelled, &left};
	bool applied = apply(&local, &round->target, tree, err) &&
	               (left.count == 0 || fail_busy(request, &left, rest_is_back, err));
	stuck_finish(&left);
	if (applied) {
		point("back.applied");
		round->why_no_delivery = NULL;
		round->spares = false;
		round->runtime = round->target;
		round->collected = round->sent;
		round->target = *tree;
		applied = round_graft(round, store, HELD_RUNTIME, tree, &round->sent, err) &&
		          round_set_delivery(round, store, request, err);
	}
	return applied;
}
