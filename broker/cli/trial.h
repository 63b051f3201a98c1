/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_TRIAL_H
#define BROKER_CLI_TRIAL_H

#include <limits.h>

#include "broker/cli/test_provider.h"
#include "broker/ledger/keeper.h"

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
	struct error lost;          // why
	char folder[PATH_MAX - 64]; // here; removed at the end
	char local_root[PATH_MAX];  // in it
	const char *root;           // the same in the sandbox; NULL until it is added
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

/* The same, of checks on processes and files: file-timeout. */
bool trial_wait_file(struct trial *trial, const bool *flag, struct error *err) ATTR_NODISCARD;

/* A sandbox_done that sets what trial_wait waits for: a struct trial_outcome. */
void trial_on_done(void *data, const struct error *err);

/* The outcome of a task that begins, and the wait for it: false where it failed, too. */
struct trial_outcome *trial_begin(struct trial *trial);
bool trial_wait_outcome(
	struct trial *trial, int timeout_ms, const char *key, struct error *err) ATTR_NODISCARD;

/* ---- trial_run.c: one process, run to its end ---- */

struct trial_spec {
	const char *const *argv;
	const char *const *env; // NULL: the sandbox's
	struct span input;      // then its stdin is closed
	const char *kill_after; // killed, with all it started, once stdout holds this; or NULL
};

struct trial_result {
	struct buf out, errors;
	struct process_status status;
};

/* It has exited, nothing of it runs, and both outputs were read to their ends. */
bool trial_run(struct trial *trial, const struct trial_spec *spec, struct trial_result *out,
	struct error *err) ATTR_NODISCARD;
void trial_result_finish(struct trial_result *result);

/* A shell line in the root that has to end with 0; out may be NULL. */
bool trial_shell(
	struct trial *trial, const char *line, struct buf *out, struct error *err) ATTR_NODISCARD;

/* ---- trial_files.c: a file of the root, by name ---- */

bool trial_write(struct trial *trial, const char *name, struct span content,
	struct error *err) ATTR_NODISCARD;
bool trial_expect(struct trial *trial, const char *name, struct span content,
	struct error *err) ATTR_NODISCARD;

/* ---- the checks ---- */

trial_check trial_check_status, trial_check_streams, trial_check_half_close, trial_check_bytes;
trial_check trial_check_environment, trial_check_kill, trial_check_many;
trial_check trial_check_files, trial_check_parents, trial_check_confined, trial_check_links;
trial_check trial_check_first_sync, trial_check_changes;

#endif
