/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TRIAL_H
#define BROKER_CLI_TRIAL_H

#include "broker/cli/scratch.h"
#include "broker/cli/test_provider.h"
#include "broker/ledger/keeper.h"
#include "providers/conformance/conformance.h"

/*
 * What the checks of test-provider have to hand: one sandbox with one scratch workspace as its
 * root, and calls that turn the loop until something has happened, or a deadline has passed.
 */
struct trial_outcome {
	bool is_done;
	bool is_ok;
	struct error err;
};

enum { TRIAL_TASKS_MAX = 4 }; // the root, the first sync, changes, the end

struct trial {
	const struct test_provider_means *means;
	struct sandbox *sandbox; // owned; NULL until it is prepared
	struct keeper *keeper;   // owned; of the checks of the sync
	bool is_ready;
	bool is_lost;
	bool is_interrupted;
	bool has_synced;
	struct error lost;              // why
	struct scratch scratch;         // here; removed at the end
	struct conformance_place place; // the same in the sandbox; root is NULL until it is added
	ev_timer due;
	bool is_due;
	/* Of the keeper's and the sandbox's tasks, one each: some end after their deadline. */
	struct trial_outcome outcomes[TRIAL_TASKS_MAX];
	size_t task_count; // begun; the last one is in hand
};

/* One check: false with why it failed. `note` is a line for people on what was found. */
enum { TRIAL_NOTE_MAX = 160 };
typedef bool trial_check(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err);

/* Until *flag; ERROR_TIMEOUT names the key of the deadline. */
bool trial_wait(struct trial *trial, const bool *flag, int timeout_ms, const char *key,
	struct error *err) ATTR_NODISCARD;

/* A sandbox_done that sets what trial_wait waits for: a struct trial_outcome. */
void trial_on_done(void *data, const struct error *err);

/* The outcome of a task that begins, and the wait for it: false where it failed, too. */
struct trial_outcome *trial_begin(struct trial *trial);
bool trial_wait_outcome(
	struct trial *trial, int timeout_ms, const char *key, struct error *err) ATTR_NODISCARD;

/* ---- trial_network.c ---- */

trial_check trial_check_network;

/* ---- trial_sync.c ---- */

trial_check trial_check_first_sync, trial_check_changes;

#endif
