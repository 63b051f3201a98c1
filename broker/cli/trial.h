/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TRIAL_H
#define BROKER_CLI_TRIAL_H

#include "broker/cli/scratch.h"
#include "broker/cli/test_provider.h"
#include "broker/ledger/keeper.h"
#include "providers/conformance/conformance.h"

/*
 * Used by the checks of test-provider: one sandbox with one scratch workspace as its root, and
 * calls that run the loop until something has happened or a deadline has passed.
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
	struct keeper *keeper;   // owned; for the checks of the sync
	bool is_ready;
	bool is_lost;
	bool is_back; // the connection was lost and made again
	bool is_interrupted;
	bool has_synced;
	struct error lost;              // why it was lost
	struct scratch scratch;         // on this machine; removed at the end
	struct conformance_place place; // the same in the sandbox; root is NULL until it is added
	ev_timer due;
	bool is_due;
	/*
	 * Of the keeper's and the sandbox's tasks, one each, because some end after their deadline.
	 */
	struct trial_outcome outcomes[TRIAL_TASKS_MAX];
	size_t task_count;             // tasks begun; the last one is running
	struct trial_outcome *removal; // of a sandbox that was handed over; NULL: it was not
	struct finding *findings;      // owned; one for each check
	size_t failed;                 // of them
};

/* One check. False if it failed; `err` says why. `note` is a line for people on what it found. */
enum { TRIAL_NOTE_MAX = 160 };
typedef bool trial_check(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err);

/* Runs the loop until *flag. ERROR_TIMEOUT names the key of the deadline. */
bool trial_wait(struct trial *trial, const bool *flag, int timeout_ms, const char *key,
	struct error *err) ATTR_NODISCARD;

/* A sandbox_done that fills a struct trial_outcome. */
void trial_on_done(void *data, const struct error *err);

/*
 * trial_begin starts a task's outcome. trial_wait_outcome waits for it; false also if the task
 * failed.
 */
struct trial_outcome *trial_begin(struct trial *trial);
bool trial_wait_outcome(
	struct trial *trial, int timeout_ms, const char *key, struct error *err) ATTR_NODISCARD;

/* ---- trial_link.c ---- */

trial_check trial_check_outlives;

/* ---- trial_network.c ---- */

trial_check trial_check_network;

/* ---- trial_sync.c ---- */

trial_check trial_check_first_sync, trial_check_changes;

#endif
