/* SPDX-License-Identifier: MIT */
#ifndef SYNC_PLAN_H
#define SYNC_PLAN_H

#include "sync/renames.h"
#include "sync/settled.h"

/*
 * The plan of an apply. The store keeps it as merges/NAME from before the apply begins until the
 * resulting base is stored. After a kill, sync/settled.h uses the plan to find out what the apply
 * has done. Then the plan's base and delivered trees count, not bases/NAME and deliveries/NAME,
 * because nothing changes the runtime while there is a plan.
 *
 * `renames` has only the renames that the merge used. They are never searched for again: another
 * search could take a file of the user's for a moved one. A plan without a list had no renames.
 */
struct plan {
	git_oid base, delivered;
	bool has_delivered;
	struct settled_trees trees; // without `now`
	struct renames renames;     // owned if the plan was read
};

bool plan_keep(struct store *store, const char *sandbox, const struct plan *plan,
	struct error *err) ATTR_NODISCARD;

/*
 * Sets *out_found to false if there is none. In that case, and on failure, the plan is unchanged.
 */
bool plan_read(struct store *store, const char *sandbox, struct plan *out_plan, bool *out_found,
	struct error *err) ATTR_NODISCARD;

void plan_finish(struct plan *plan); // empties `renames`

bool plan_forget(struct store *store, const char *sandbox, struct error *err) ATTR_NODISCARD;

#endif
