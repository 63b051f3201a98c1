/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/path_quote.h"
#include "sync/id.h"
#include "sync/moved.h"
#include "sync/root_note.h"
#include "sync/round_impl.h"

/* Finds more deletions, on either side, than anybody makes on purpose without saying so. */

static bool is_much(size_t deleted, size_t total)
{
	return deleted >= SYNC_DELETIONS_MAX || deleted * 2 > total;
}

/* The files that `from` has and `to` lacks, without those that were only renamed. */
static bool find(struct round *round, struct store *store, const git_oid *from, const git_oid *to,
	const git_oid *was, struct error *err)
{
	struct deletions_moved moved = {0};
	struct list none;
	list_init(&none);
	moved_find(&moved.ids, store, was, to, &none);
	renames_find_moved(&moved.files, store, was, to, round->is_cancelled);
	deletions_finish(&round->deletions);
	bool is_cancelled = round->is_cancelled && *round->is_cancelled;
	bool found = is_cancelled ? error_set(err, ERROR_UNAVAILABLE, "cancelled")
	                          : deletions_find(&round->deletions, store, from, to, &moved, err);
	deletions_moved_finish(&moved);
	return found;
}

static bool is_yes(const struct round *round)
{
	return round->mode == SYNC_DELETIONS_FOLLOW &&
	       id_equal(&round->asked, &round->deletions.id);
}

/* The agent works directly in the local directory. */
static bool is_one(const struct workspace_request *request)
{
	return request->create_transport == transport_none_create;
}

bool round_guard_local(struct round *round, struct store *store, bool *out_keeps, struct error *err)
{
	size_t least = round->is_first ? 1 : SYNC_DELETIONS_MIN;
	size_t deleted = round->merge.to_local.deleted;
	const git_oid *local = &round->local;
	round->gone = deleted;
	if (deleted < least) {
		return true;
	}
	if (!find(round, store, local, &round->merge.merged, local, err)) {
		return false;
	}
	deleted = round->deletions.count;
	round->gone = deleted;
	if (deleted < least || !is_much(deleted, round->files)) {
		return true;
	}
	if (round->mode == SYNC_DELETIONS_KEEP) {
		round->kept = round->merge.to_local.deleted;
		round->gone = 0;
		*out_keeps = true;
		return true;
	}
	if (is_yes(round)) {
		round->followed = deleted;
		return true;
	}
	round->deletions.total = round->files;
	round->asks = true;
	return error_set(err, ERROR_DENIED,
		"the agent has deleted %zu of %zu files: not deleted here yet", deleted,
		round->files);
}

/* Does not deliver these deletions: the answer was no, or nobody can be asked. */
static void spare(struct round *round, size_t deleted, size_t total)
{
	round->spares = true;
	round->merge.to_runtime.deleted = 0;
	round_add_note(round,
		"%zu of %zu files are missing here; they stay in the sandbox until you agree to "
		"delete them there",
		deleted, total);
}

bool round_guard_runtime(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	const git_oid *merged = &round->merge.merged;
	size_t deleted = round->merge.to_runtime.deleted;
	size_t total = round->files + deleted;
	git_oid whole;
	round->spares = false;
	if (deleted < SYNC_DELETIONS_MIN || !is_much(deleted, total) || is_one(request)) {
		return true;
	}
	round->spared =
		(struct spared){.base = round->base, .runtime = round->runtime, .merged = *merged};
	if (!deletions_spare(store, &round->spared, false, merged, &whole, err) ||
		!find(round, store, &whole, merged, &round->runtime, err)) {
		return false;
	}
	deleted = round->deletions.count;
	if (deleted < SYNC_DELETIONS_MIN || !is_much(deleted, total) || is_yes(round)) {
		return true;
	}
	if (round->mode == SYNC_DELETIONS_KEEP ||
		id_equal(&round->deletions.id, &round->refused_deletions)) {
		spare(round, deleted, total);
		return true;
	}
	round->deletions.is_users = true;
	round->deletions.total = total;
	round->asks = true;
	return error_set(err, ERROR_DENIED,
		"%zu of %zu files are missing here: not deleted in the sandbox yet", deleted,
		total);
}

static bool fail_replaced(
	const struct workspace_request *request, const char *store_path, struct error *err)
{
	char *root = path_quote(span_of(request->local_root));
	error_set_reason(err, ERROR_DENIED, "WORKSPACE_REPLACED",
		"%s is another folder than at the last sync: its file system is not mounted, or "
		"somebody made the folder again. Nothing was synced. Mount it again. If this is "
		"the right folder, say yes to the question at the next prompt, or remove "
		"refs/acp-broker/roots/%s in %s",
		root, request->name, store_path);
	free(root);
	return false;
}

bool round_check_root(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	struct root_note now, before;
	round->has_new_root = false;
	if (is_one(request) || !root_note_take(&now, request->local_root, err)) {
		return is_one(request);
	}
	bool is_known = root_note_find(store, request->name, &before);
	round->has_new_root = !is_known || !root_note_is_same(&now, &before);
	if (!is_known || !round->has_new_root || round->began_empty) {
		return true;
	}
	deletions_finish(&round->deletions);
	if (!root_note_id(store, &now, &round->deletions.id, err)) {
		return false;
	}
	if (is_yes(round)) { // noted now: this sync may end with another question
		round->has_new_root = false;
		return root_note_keep(store, request->name, &now, err);
	}
	round->deletions.is_users = true;
	round->deletions.is_replaced = true;
	round->asks = round->mode != SYNC_DELETIONS_KEEP;
	return fail_replaced(request, store->path, err);
}

bool round_keep_root(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	struct root_note now;
	return !round->has_new_root || (root_note_take(&now, request->local_root, err) &&
					       root_note_keep(store, request->name, &now, err));
}
