/* SPDX-License-Identifier: MIT */
#ifndef SYNC_PLAN_H
#define SYNC_PLAN_H

#include "sync/renames.h"
#include "sync/settled.h"

/*
 * What an apply is about to do, kept in the store as merges/NAME from before it begins until the
 * base is what comes of it. After a kill, sync/settled.h tells by it what was done; and the base,
 * and what was delivered, are these, whatever bases/NAME and deliveries/NAME say by then: the
 * runtime is not touched before the plan is forgotten.
 *
 * What followed is what the merge really went by, after all that dropped some of it. It is never
 * found anew: another list would take a file of the user's for one that has moved. A plan without a
 * list is one in which nothing followed.
 */
struct plan {
	git_oid base, delivered;
	bool has_delivered;
	struct settled_trees trees; // but `now`
	struct renames renames;     // owned where it was read
};

bool plan_keep(struct store *store, const char *sandbox, const struct plan *plan,
	struct error *err) ATTR_NODISCARD;

/* *out_found is false where there is none; the plan is as it was then, and where this fails. */
bool plan_read(struct store *store, const char *sandbox, struct plan *out_plan, bool *out_found,
	struct error *err) ATTR_NODISCARD;

void plan_finish(struct plan *plan); // nothing follows then

bool plan_forget(struct store *store, const char *sandbox, struct error *err) ATTR_NODISCARD;

#endif
