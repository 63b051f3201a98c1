/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <stdlib.h>

#include "base/log.h"

/*
 * Publishes the agent's work in progress for a user command that rolls a workspace back
 * (broker/ledger/turn_lock.h).
 */

/*
 * False if a rollback runs at the moment. Any other failure to take the lock does not delay a
 * prompt.
 */
static bool take(struct keep *keep, const struct turn_text *text, struct error *err)
{
	const struct keeper_config *config = &keep->keeper->config;
	struct error why;
	if (turn_lock_take(&keep->turn, config->state_folder, keep->record.id, text, &why)) {
		return true;
	}
	if (why.reason) {
		return error_set_reason(err, why.code, why.reason, "%s", why.text);
	}
	log_failure(LOG_LEVEL_WARNING, &why, "%s: %s: it can be rolled back while the agent works",
		keep->record.local_root, why.text);
	return true;
}

bool keeper_note_turn(struct keeper *keeper, const struct turn_text *text, struct error *err)
{
	bool ok = true;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (!text) {
			turn_lock_let_go(&keep->turn);
		} else if (ok && keep->workspace) {
			ok = take(keep, text, err);
		}
	}
	return ok;
}

/* ---- a rollback by this broker ---- */

struct turn_guard {
	struct rollback_guard guard;
	char *state_folder, *root; // owned
	int timeout_ms;
	struct turn_locks locks;
};

static bool guard_begin(
	struct rollback_guard *base, const atomic_bool *is_cancelled, struct error *err)
{
	struct turn_guard *guard = CONTAINER_OF(base, struct turn_guard, guard);
	return turn_locks_take(&guard->locks,
		&(struct turn_search){.state_folder = guard->state_folder,
			.root = guard->root,
			.timeout_ms = guard->timeout_ms,
			.is_cancelled = is_cancelled},
		err);
}

static void guard_end(struct rollback_guard *base)
{
	turn_locks_finish(&CONTAINER_OF(base, struct turn_guard, guard)->locks);
}

static void guard_destroy(struct rollback_guard *base)
{
	struct turn_guard *guard = CONTAINER_OF(base, struct turn_guard, guard);
	free(guard->state_folder);
	free(guard->root);
	free(guard);
}

struct rollback_guard *keeper_turn_guard(const struct keeper_config *config, const char *root)
{
	struct turn_guard *guard = mem_alloc_zero(sizeof(*guard));
	guard->guard = (struct rollback_guard){guard_begin, guard_end, guard_destroy};
	guard->state_folder = mem_strdup(config->state_folder);
	guard->root = mem_strdup(root);
	guard->timeout_ms = config->drain_timeout_ms;
	return &guard->guard;
}
