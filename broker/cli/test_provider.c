/* SPDX-License-Identifier: MIT */
#include "broker/cli/test_provider.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/failure.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/end_signals.h"
#include "broker/cli/trial.h"

/* ---- waiting ---- */

void trial_on_done(void *data, const struct error *err)
{
	struct trial_outcome *outcome = data;
	outcome->is_done = true;
	outcome->is_ok = !err;
	if (err) {
		outcome->err = *err;
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	CONTAINER_OF(timer, struct trial, due)->is_due = true;
}

/* Closes the sandbox; its open operations are never answered. */
static void close_sandbox(struct trial *trial)
{
	keeper_destroy(trial->keeper);
	trial->keeper = NULL;
	sandbox_close(trial->sandbox);
	trial->sandbox = NULL;
	trial->place.root = NULL;
	trial->place.is_closed = true;
}

bool trial_wait(
	struct trial *trial, const bool *flag, int timeout_ms, const char *key, struct error *err)
{
	struct ev_loop *loop = trial->means->loop;
	trial->is_due = false;
	ev_now_update(loop);
	ev_timer_set(&trial->due, timeout_ms / 1000., 0.);
	ev_timer_start(loop, &trial->due);
	while (!*flag && !trial->is_due && !trial->is_lost && !trial->is_interrupted) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &trial->due);
	if (*flag) {
		return true;
	}
	if (trial->is_lost) {
		close_sandbox(trial);
		*err = trial->lost;
		return false;
	}
	return trial->is_interrupted ? error_set(err, ERROR_UNAVAILABLE, "interrupted by a signal")
	                             : error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
					       "not done within %d s (%s)", timeout_ms / 1000, key);
}

/* The wait function of the conformance cases. */
static bool wait_file(void *data, const bool *flag, struct error *err)
{
	struct trial *trial = data;
	return trial_wait(trial, flag,
		trial->means->config->profile.toolhost_limits.file_timeout_ms, "file-timeout", err);
}

struct trial_outcome *trial_begin(struct trial *trial)
{
	assert(trial->task_count < TRIAL_TASKS_MAX);
	return &trial->outcomes[trial->task_count++];
}

bool trial_wait_outcome(struct trial *trial, int timeout_ms, const char *key, struct error *err)
{
	const struct trial_outcome *outcome = &trial->outcomes[trial->task_count - 1];
	if (!trial_wait(trial, &outcome->is_done, timeout_ms, key, err)) {
		return false;
	}
	if (!outcome->is_ok) {
		*err = outcome->err;
	}
	return outcome->is_ok;
}

/* ---- the sandbox ---- */

static void on_ready(void *data)
{
	struct trial *trial = data;
	trial->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	struct trial *trial = data;
	trial->is_lost = true;
	trial->lost = *err;
}

static void on_link_lost(void *data, const char *place, const struct error *why)
{
	((struct trial *)data)->is_back = false;
}

static void on_link_back(void *data)
{
	((struct trial *)data)->is_back = true;
}

static void on_progress(void *data, const char *text)
{
	log_info("%s", text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_failed = on_failed,
	.on_link_lost = on_link_lost,
	.on_link_back = on_link_back,
};

static bool check_prepare(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	const struct profile *profile = &trial->means->config->profile;
	struct sandbox_request request = {.profile = profile->name,
		.settings = &profile->settings,
		.directory = trial->scratch.workspace,
		.prepare_timeout_ms = profile->prepare_timeout_ms};
	trial->sandbox =
		sandbox_prepare(trial->means->provider, &request, &sandbox_listener, trial, err);
	if (!trial->sandbox) {
		return false;
	}
	bool ok = trial_wait(
		trial, &trial->is_ready, profile->prepare_timeout_ms, "prepare-timeout", err);
	if (!ok && trial->sandbox) {
		close_sandbox(trial);
	}
	return ok;
}

static bool check_capabilities(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	const struct sandbox_capabilities *can = sandbox_capabilities(trial->sandbox);
	int len = snprintf(note, TRIAL_NOTE_MAX, "%s, %s%s%s",
		!can->isolated  ? "this machine's files"
		: can->confined ? "files of its own, confined"
				: "files of its own, not confined",
		can->many_roots ? "many workspaces" : "one workspace",
		can->maps_paths ? ", paths of its own" : "",
		can->can_suspend ? ", can be suspended" : "");
	if (can->max_processes > 0) {
		snprintf(note + len, TRIAL_NOTE_MAX - (size_t)len, ", %zu processes",
			can->max_processes);
	}
	const struct test_provider_means *means = trial->means;
	for (const char *const *warning = sandbox_warnings(trial->sandbox);
		means->listener && *warning; warning++) {
		means->listener->on_warning(means->data, *warning);
	}
	const char *home = sandbox_home(trial->sandbox);
	if (!home || home[0] != '/') {
		return error_set(err, ERROR_PROTOCOL, "the sandbox has no home directory: \"%s\"",
			home ? home : "");
	}
	return environment_get(sandbox_environment(trial->sandbox), "PATH") ||
	       error_set(err, ERROR_PROTOCOL, "the sandbox's environment has no PATH");
}

static bool check_root(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	const struct profile *profile = &trial->means->config->profile;
	sandbox_add_root(
		trial->sandbox, trial->scratch.workspace, trial_on_done, trial_begin(trial));
	if (!trial_wait_outcome(trial, profile->prepare_timeout_ms, "prepare-timeout", err)) {
		return false;
	}
	trial->place = (struct conformance_place){.loop = trial->means->loop,
		.sandbox = trial->sandbox,
		.root = sandbox_root_at(trial->sandbox, 0)->runtime,
		.wait = wait_file,
		.data = trial};
	text_format(note, TRIAL_NOTE_MAX, "%s", trial->place.root);
	return true;
}

static struct trial_outcome *begin_removal(struct trial *trial)
{
	struct trial_outcome *outcome = trial_begin(trial);
	if (trial->keeper) {
		keeper_discard(trial->keeper, trial_on_done, outcome);
	} else {
		sandbox_destroy(trial->sandbox, NULL, true, trial_on_done, outcome);
	}
	return outcome;
}

/* Removes everything that was created there, without collecting. */
static bool check_remove(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	const struct profile *profile = &trial->means->config->profile;
	bool is_handed_over = trial->removal != NULL;
	if (!is_handed_over) {
		begin_removal(trial);
	}
	return trial_wait_outcome(trial, profile->prepare_timeout_ms, "prepare-timeout", err) ||
	       (is_handed_over && error_has_reason(err, "SANDBOX_IN_USE")) ||
	       error_prefix(err, "%s may be left there",
		       trial->place.root ? trial->place.root : "something");
}

/* ---- the table ---- */

enum need { NEEDS_NOTHING, NEEDS_SANDBOX, NEEDS_ROOT, NEEDS_LIMITS, NEEDS_COPY, NEEDS_SYNC };

struct check {
	const char *name;
	const char *text;
	enum trial_part part;
	enum need need;
	trial_check *run;                     // or a case:
	const struct conformance_case *shown; // NULL: none
};

enum { CASES_AT = 4 }; // all cases of the conformance table come before this check
/* The checks of one part follow each other: doctor tells a part's result once, at its end. */
static const struct check checks[] = {
	{"prepare", "the sandbox gets ready", TRIAL_SANDBOX, NEEDS_NOTHING, check_prepare, NULL},
	{"capabilities", "it reports its capabilities", TRIAL_SANDBOX, NEEDS_SANDBOX,
		check_capabilities, NULL},
	{"root", "it takes a workspace", TRIAL_SANDBOX, NEEDS_SANDBOX, check_root, NULL},
	{"outlives", "what runs there goes on without the connection", TRIAL_SANDBOX, NEEDS_ROOT,
		trial_check_outlives, NULL},
	{"network", "its network matches the profile", TRIAL_NETWORK, NEEDS_LIMITS,
		trial_check_network, NULL},
	{"first-sync", "the workspace is copied there", TRIAL_SYNC, NEEDS_COPY,
		trial_check_first_sync, NULL},
	{"changes", "changes are synced both ways", TRIAL_SYNC, NEEDS_SYNC, trial_check_changes,
		NULL},
	{"remove", "what was made there is removed", TRIAL_REMOVAL, NEEDS_SANDBOX, check_remove,
		NULL},
};

static size_t check_count(void)
{
	return ARRAY_LENGTH(checks) + conformance_case_count;
}

static struct check check_at(size_t index)
{
	if (index < CASES_AT) {
		return checks[index];
	}
	if (index >= CASES_AT + conformance_case_count) {
		return checks[index - conformance_case_count];
	}
	const struct conformance_case *shown = &conformance_cases[index - CASES_AT];
	enum trial_part part = shown->part == CONFORMANCE_PROCESSES ? TRIAL_PROCESSES : TRIAL_FILES;
	return (struct check){shown->name, shown->text, part, NEEDS_ROOT, NULL, shown};
}

/* Why a check cannot run; NULL if it can. */
static const char *why_not(const struct trial *trial, enum need need)
{
	const struct profile *profile = &trial->means->config->profile;
	if (trial->is_interrupted) {
		return "interrupted by a signal";
	}
	if (need >= NEEDS_SANDBOX && !trial->sandbox) {
		return "there is no sandbox";
	}
	if (need >= NEEDS_ROOT && !trial->place.root) {
		return "the sandbox has no workspace";
	}
	const char *network = settings_get(&profile->settings, "network");
	if (need == NEEDS_LIMITS) {
		bool is_open = !network || strcmp(network, "open") == 0;
		return is_open ? "network = open" : NULL;
	}
	if (need >= NEEDS_COPY && !sandbox_capabilities(trial->sandbox)->isolated) {
		return "the agent works in the workspace itself";
	}
	if (need >= NEEDS_COPY && profile->sync.mode == SYNC_MODE_NONE) {
		return "sync = none";
	}
	return need >= NEEDS_SYNC && !trial->has_synced ? "the first sync has failed" : NULL;
}

/* ---- the outcome ---- */

struct finding {
	enum trial_outcome_kind outcome;
	long long duration_ms;
	char note[TRIAL_NOTE_MAX];
	char why[ERROR_TEXT_MAX]; // why it failed or was skipped
	const char *code;         // of a failure
};

static const char *const outcome_names[] = {"ok", "FAILED", "skipped"};

static bool make_check(
	struct trial *trial, const struct check *check, struct finding *out, struct error *err)
{
	return check->shown ? check->shown->run(&trial->place, err)
	                    : check->run(trial, out->note, err);
}

static void run_check(struct trial *trial, const struct check *check, struct finding *out)
{
	struct error err;
	const char *why = why_not(trial, check->need);
	long long start_ms = clock_now_ms();
	*out = (struct finding){.outcome = TRIAL_OK};
	if (why) {
		out->outcome = TRIAL_SKIPPED;
		text_format(out->why, sizeof(out->why), "%s", why);
	} else if (!make_check(trial, check, out, &err)) {
		out->outcome = TRIAL_FAILED;
		text_format(out->why, sizeof(out->why), "%s", err.text);
		out->code = failure_code_of(&err);
	} else if (check->run == trial_check_first_sync) {
		trial->has_synced = true;
	}
	out->duration_ms = clock_now_ms() - start_ms;
}

static void print_finding(const struct check *check, const struct finding *finding)
{
	const char *more = finding->outcome == TRIAL_OK ? finding->note : finding->why;
	printf("%-8s %-13s %s%s%s", outcome_names[finding->outcome], check->name, check->text,
		*more ? ": " : "", more);
	printf(finding->outcome == TRIAL_OK ? " (%lld ms)\n" : "\n", finding->duration_ms);
	fflush(stdout);
}

static void tell_finding(
	const struct trial *trial, const struct check *check, const struct finding *finding)
{
	const struct test_provider_means *means = trial->means;
	if (means->listener) {
		struct trial_finding told = {
			.name = check->name,
			.part = check->part,
			.outcome = finding->outcome,
			.code = finding->code,
			.text = finding->outcome == TRIAL_OK ? finding->note : finding->why,
		};
		means->listener->on_finding(means->data, &told);
	} else if (!means->is_json) {
		print_finding(check, finding);
	}
}

static void write_report(struct json_writer *writer, const void *data)
{
	const struct trial *trial = data;
	const struct profile *profile = &trial->means->config->profile;
	json_write_member(writer, "profile", profile->name);
	json_write_member(writer, "backend", profile->backend);
	json_write_member_int(writer, "failed", (long long)trial->failed);
	json_write_key(writer, "checks");
	json_write_array(writer);
	for (size_t i = 0; i < check_count(); i++) {
		const struct check check = check_at(i);
		const struct finding *finding = &trial->findings[i];
		json_write_object(writer);
		json_write_member(writer, "name", check.name);
		json_write_member(writer, "text", check.text);
		json_write_member(writer, "outcome",
			finding->outcome == TRIAL_FAILED ? "failed"
							 : outcome_names[finding->outcome]);
		json_write_member_int(writer, "durationMs", finding->duration_ms);
		json_write_member(writer, "note", *finding->note ? finding->note : NULL);
		json_write_member(writer, "why", *finding->why ? finding->why : NULL);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

/* ---- the whole command ---- */

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct trial *trial = watcher->data;
	trial->is_interrupted = true;
}

static void run_one(struct trial *trial, size_t index)
{
	const struct check check = check_at(index);
	struct finding *finding = &trial->findings[index];
	bool was_interrupted = trial->is_interrupted;
	bool is_last = check.run == check_remove;
	trial->is_interrupted = was_interrupted && !is_last; // the clean-up runs nevertheless
	run_check(trial, &check, finding);
	trial->is_interrupted = trial->is_interrupted || was_interrupted;
	trial->failed += finding->outcome == TRIAL_FAILED;
	tell_finding(trial, &check, finding);
}

static void run_checks(struct trial *trial, size_t from, size_t to)
{
	struct end_signals signals;
	end_signals_start(&signals, trial->means->loop, on_signal, trial);
	for (size_t i = from; i < to; i++) {
		const struct conformance_case *shown = check_at(i).shown;
		if (!trial->means->listener || !shown || shown->is_basic) {
			run_one(trial, i);
		}
	}
	end_signals_stop(&signals);
}

struct trial *test_provider_begin(const struct test_provider_means *means, struct error *err)
{
	struct trial *trial = mem_alloc_zero(sizeof(*trial));
	trial->means = means;
	if (!scratch_make(&trial->scratch, means->environment, "trial", err)) {
		free(trial);
		return NULL;
	}
	ev_init(&trial->due, on_due);
	trial->findings = mem_alloc_zero(check_count() * sizeof(*trial->findings));
	run_checks(trial, 0, check_count() - 1);
	return trial;
}

const char *test_provider_offer(struct trial *trial)
{
	struct error err;
	bool is_ready = trial->failed == 0 && !trial->is_interrupted && trial->sandbox &&
	                !trial->is_lost && sandbox_can_rest(trial->sandbox);
	if (!is_ready || !conformance_tidy(&trial->place, &err) ||
		!scratch_empty(&trial->scratch, &err)) {
		return NULL;
	}
	return trial->scratch.workspace;
}

void test_provider_hand_over(struct trial *trial)
{
	trial->removal = begin_removal(trial);
}

bool test_provider_end(struct trial *trial, size_t *out_failed, struct error *err)
{
	const struct test_provider_means *means = trial->means;
	run_checks(trial, check_count() - 1, check_count());
	close_sandbox(trial);
	scratch_remove(&trial->scratch);
	bool ok =
		!means->is_json || means->listener || command_print_json(write_report, trial, err);
	if (ok && trial->is_interrupted) {
		ok = error_set(err, ERROR_UNAVAILABLE, "interrupted by a signal");
	}
	*out_failed = trial->failed;
	free(trial->findings);
	free(trial);
	return ok;
}

bool test_provider_run(
	const struct test_provider_means *means, size_t *out_failed, struct error *err)
{
	struct trial *trial = test_provider_begin(means, err);
	return trial && test_provider_end(trial, out_failed, err);
}
