/* SPDX-License-Identifier: MIT */
#include "sync/round.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/point.h"
#include "sync/apply.h"
#include "sync/checkpoint.h"
#include "sync/conflicts.h"
#include "sync/id.h"

void round_init(struct round *round)
{
	*round = (struct round){.base = store_empty_tree, .runtime = store_empty_tree};
}

static void drop_merge(struct round *round)
{
	if (round->has_merge) {
		merge_finish(&round->merge);
		round->has_merge = false;
	}
}

void round_finish(struct round *round)
{
	drop_merge(round);
}

static void base_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	snprintf(name, SYNC_NAME_MAX, "bases/%s", sandbox);
}

bool round_forget_base(struct store *store, const char *name, struct error *err)
{
	char base[SYNC_NAME_MAX];
	git_oid tree;
	base_name(base, name);
	return store_find(store, base, &tree, err) ? store_forget(store, base, err)
	                                           : err->code == ERROR_NOT_FOUND;
}

bool round_read_base(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	char name[SYNC_NAME_MAX];
	struct error missing;
	base_name(name, request->name);
	if (store_find(store, name, &round->base, &missing)) {
		return true;
	}
	round->base = store_empty_tree;
	if (missing.code == ERROR_NOT_FOUND) {
		return true;
	}
	*err = missing;
	return false;
}

static bool set_base(struct store *store, const struct workspace_request *request,
	const git_oid *tree, struct error *err)
{
	char name[SYNC_NAME_MAX];
	git_oid commit;
	git_oid known;
	struct error missing;
	base_name(name, request->name);
	point("base.setting");
	if (store_find(store, name, &known, &missing) && id_equal(&known, tree)) {
		return true;
	}
	return store_keep(store, name, tree, NULL, "base", &commit, err);
}

static bool take_local(struct round *round, struct store *store,
	const struct workspace_request *request, const atomic_bool *is_cancelled, struct error *err)
{
	struct snapshot snapshot;
	struct snapshot_request local = {
		.root = request->local_root,
		.base = &round->base,
		.include = request->include,
		.exclude = request->exclude,
		.limits = request->limits,
		.home = request->home,
		.cache = "local",
		.is_cancelled = is_cancelled,
	};
	if (!snapshot_take(store, &local, &snapshot, err)) {
		return false;
	}
	round->local = snapshot.tree;
	round->files = snapshot.files;
	if (*snapshot.note) {
		snprintf(round->note, sizeof(round->note), "%s", snapshot.note);
	}
	return true;
}

/*
 * Merges. Where the runtime has deleted more than anybody does on purpose
 * without saying so, its deletions are not followed.
 */
static bool merge(struct round *round, struct store *store, struct error *err)
{
	struct merge_trees trees = {
		.base = round->base, .local = round->local, .runtime = round->runtime};
	point("merge.begun");
	drop_merge(round);
	round->kept = 0;
	round->has_merge = true; // to be finished, also where it fails
	if (!merge_run(&round->merge, store, &trees, err)) {
		return false;
	}
	point("merge.done");
	size_t deleted = round->merge.to_local.deleted;
	if (deleted < SYNC_DELETIONS_MAX && deleted * 2 <= round->files) {
		return true;
	}
	if (deleted < SYNC_DELETIONS_MIN && !round->is_first) {
		return true;
	}
	drop_merge(round);
	round->has_merge = true;
	if (!merge_run_keeping(&round->merge, store, &trees, err)) {
		return false;
	}
	round->kept = deleted;
	return true;
}

/* What was left as it is, one path of it for the message. */
struct left {
	char path[256];
	char why[128];
};

static void on_left(void *data, const char *path, const char *why)
{
	struct left *left = data;
	snprintf(left->path, sizeof(left->path), "%s", path);
	snprintf(left->why, sizeof(left->why), "%s", why);
}

static bool apply(struct store *store, const struct workspace_request *request, const git_oid *from,
	const git_oid *to, const atomic_bool *is_cancelled, struct left *out_left,
	struct error *err)
{
	struct apply_result result;
	struct apply_request applied = {
		.root = request->local_root,
		.from = *from,
		.to = *to,
		.on_left = on_left,
		.data = out_left,
		.is_cancelled = is_cancelled,
	};
	return apply_run(store, &applied, &result, err);
}

static bool fail_busy(
	const struct workspace_request *request, const struct left *left, struct error *err)
{
	return error_set_reason(err, ERROR_UNAVAILABLE, "SYNC_BUSY",
		"%s/%s: %s; what the agent did to it waits for the next sync", request->local_root,
		left->path, left->why);
}

static bool park(struct round *round, struct store *store, const struct workspace_request *request,
	struct error *err)
{
	char stamp[32];
	struct tm utc;
	time_t now = time(NULL);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", gmtime_r(&now, &utc));
	struct park_request parking = {.root = request->local_root, .stamp = stamp};
	return conflicts_park(store, &round->merge, &parking, err);
}

bool round_merge(struct round *round, struct store *store, const struct workspace_request *request,
	const atomic_bool *is_cancelled, struct error *err)
{
	struct left left = {.path = ""};
	for (int i = 0; i < SYNC_ROUNDS_MAX; i++) {
		left.path[0] = '\0';
		if (!take_local(round, store, request, is_cancelled, err) ||
			!merge(round, store, err) || !park(round, store, request, err) ||
			!apply(store, request, &round->local, &round->merge.merged, is_cancelled,
				&left, err)) {
			return false;
		}
		point("round.applied");
		if (!*left.path) {
			round->target = round->merge.merged;
			return set_base(store, request, &round->runtime, err);
		}
	}
	return fail_busy(request, &left, err);
}

bool round_keep(struct store *store, const struct workspace_request *request, const git_oid *tree,
	const char *reason, const char *session, unsigned *out_checkpoint, struct error *err)
{
	char base[SYNC_NAME_MAX];
	char checkpoint[CHECKPOINT_NAME_SIZE];
	size_t forgotten;
	base_name(base, request->name);
	bool added = checkpoint_add(store, tree, reason, session, out_checkpoint, err);
	point("checkpoint.added");
	checkpoint_name(checkpoint, added ? *out_checkpoint : 0);
	bool set = added && store_keep_also(store, base, checkpoint, err);
	point("base.set");
	return set &&
	       checkpoint_forget(store, request->max_checkpoints, request->checkpoint_age_ms / 1000,
		       (long long)time(NULL), &forgotten, err);
}

bool round_go_back(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *tree,
	const atomic_bool *is_cancelled, struct error *err)
{
	struct left left = {.path = ""};
	if (!apply(store, request, &round->target, tree, is_cancelled, &left, err)) {
		return false;
	}
	if (*left.path) {
		return fail_busy(request, &left, err);
	}
	round->runtime = round->target;
	round->target = *tree;
	return true;
}
