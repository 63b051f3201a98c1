/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/point.h"
#include "base/text.h"
#include "sync/held.h"
#include "sync/id.h"
#include "sync/root_note.h"
#include "sync/round_impl.h"

/* The store's names for a sandbox: the last common tree, and anything interrupted since. */

static void base_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	text_whole(name, SYNC_NAME_MAX, "bases/%s", sandbox);
}

static void delivery_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	text_whole(name, SYNC_NAME_MAX, "deliveries/%s", sandbox);
}

static void known_name(char name[SYNC_NAME_MAX], const char *sandbox)
{
	text_whole(name, SYNC_NAME_MAX, "known/%s", sandbox);
}

static bool forget(struct store *store, const char *name, struct error *err)
{
	return store_forget(store, name, err) || err->code == ERROR_NOT_FOUND;
}

bool round_forget_base(struct store *store, const char *name, struct error *err)
{
	char base[SYNC_NAME_MAX];
	char delivery[SYNC_NAME_MAX];
	char known[SYNC_NAME_MAX];
	base_name(base, name);
	delivery_name(delivery, name);
	known_name(known, name);
	return forget(store, delivery, err) && forget(store, base, err) &&
	       forget(store, known, err) && plan_forget(store, name, err) &&
	       root_note_forget(store, name, err);
}

static bool fail_damaged(const char *sandbox, const struct error *damage, struct error *err)
{
	return error_set(err, damage->code,
		"%s; if this does not go away, remove refs/acp-broker/bases/%s, "
		"refs/acp-broker/deliveries/%s and refs/acp-broker/merges/%s in that store: then "
		"both sides are compared from scratch, which deletes nothing and makes a conflict "
		"of "
		"each difference",
		damage->text, sandbox, sandbox, sandbox);
}

/* Leaves `out_tree` unchanged if there is no such name. */
static bool find(struct store *store, const char *name, const char *sandbox, git_oid *out_tree,
	bool *out_found, struct error *err)
{
	struct error missing;
	*out_found = store_find(store, name, out_tree, &missing);
	return *out_found || missing.code == ERROR_NOT_FOUND ||
	       fail_damaged(sandbox, &missing, err);
}

/* Reads the plan of an interrupted apply, with the base and delivered trees of its start. */
static bool read_cut(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	struct error damage;
	plan_finish(&round->cut);
	if (!plan_read(store, request->name, &round->cut, &round->was_cut, &damage)) {
		return fail_damaged(request->name, &damage, err);
	}
	if (round->was_cut) {
		round->base = round->cut.base;
		round->delivered = round->cut.delivered;
		round->has_delivered = round->cut.has_delivered;
	}
	return true;
}

/* An unreadable one counts as missing: then the runtime is asked for everything. */
static void read_known(
	struct round *round, struct store *store, const struct workspace_request *request)
{
	char name[SYNC_NAME_MAX];
	struct error missing;
	known_name(name, request->name);
	round->known = round->base;
	bool found = store_find(store, name, &round->known, &missing);
	round->has_known = found || missing.code != ERROR_NOT_FOUND;
}

bool round_set_known(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base, const git_oid *tree,
	struct error *err)
{
	char name[SYNC_NAME_MAX];
	git_oid commit;
	known_name(name, request->name);
	bool is_needed = !id_equal(base, tree);
	bool is_set = round->has_known && id_equal(&round->known, tree);
	if (is_needed ? is_set : !round->has_known) {
		return true;
	}
	round->known = *tree;
	round->has_known = is_needed;
	return is_needed ? store_keep(store, name, tree, NULL, "known", &commit, err)
	                 : forget(store, name, err);
}

bool round_read_base(struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	char base[SYNC_NAME_MAX];
	char delivery[SYNC_NAME_MAX];
	bool has_base;
	base_name(base, request->name);
	delivery_name(delivery, request->name);
	round->base = store_empty_tree;
	if (!find(store, base, request->name, &round->base, &has_base, err) ||
		!find(store, delivery, request->name, &round->delivered, &round->has_delivered,
			err) ||
		!read_cut(round, store, request, err)) {
		return false;
	}
	read_known(round, store, request);
	return held_keep_always(store, round->always, &round->always_tree, &round->has_always, err);
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

/* From here on the runtime may partly match the target. */
bool round_set_delivery(const struct round *round, struct store *store,
	const struct workspace_request *request, struct error *err)
{
	char name[SYNC_NAME_MAX];
	git_oid commit;
	delivery_name(name, request->name);
	return id_equal(&round->collected, &round->sent) ||
	       store_keep(store, name, &round->target, NULL, "delivery", &commit, err);
}

bool round_note_applied(struct round *round, struct store *store,
	const struct workspace_request *request, const git_oid *base, struct error *err)
{
	char delivery[SYNC_NAME_MAX];
	bool is_all = !round_holds(round);
	delivery_name(delivery, request->name);
	return forget(store, delivery, err) && set_base(store, request, base, err) &&
	       round_set_known(
		       round, store, request, base, is_all ? base : &round->collected, err) &&
	       round_set_delivery(round, store, request, err) &&
	       plan_forget(store, request->name, err);
}

static bool keep_as_base(struct round *round, struct store *store,
	const struct workspace_request *request, const char *checkpoint, git_oid *out_base,
	struct error *err)
{
	char name[SYNC_NAME_MAX];
	base_name(name, request->name);
	*out_base = round->target;
	if (!round_holds(round)) {
		return store_keep_also(store, name, checkpoint, err);
	}
	return round_graft(round, store, HELD_BASE, &round->target, out_base, err) &&
	       set_base(store, request, out_base, err);
}

bool round_keep_as_base(struct round *round, struct store *store,
	const struct workspace_request *request, const char *checkpoint, struct error *err)
{
	git_oid base;
	if (round->why_no_delivery) {
		return true; // the base stays the runtime's tree: the local directory has the
		             // merge
	}
	return keep_as_base(round, store, request, checkpoint, &base, err) &&
	       round_set_known(round, store, request, &base, &round->sent, err);
}
