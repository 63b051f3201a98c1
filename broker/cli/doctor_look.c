/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/words.h"
#include "broker/cli/doctor_parts.h"
#include "broker/config/config_file.h"

/*
 * A look in progress. If it is late, the loop's thread abandons it, and it frees itself at its end.
 */
struct work {
	struct pool_job job;
	struct doctor_look look;
	doctor_look_run *run;
	bool *is_done; // owned by the waiting thread
};

static void look_finish(struct doctor_look *look)
{
	free(look->state_folder);
	free(look->workspace);
	words_wipe_free(look->environment);
	words_free(look->include);
	words_free(look->exclude);
	words_free(look->named);
	doctor_report_finish(&look->report);
}

static void work_drop(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	look_finish(&work->look);
	free(work);
}

static void work_run(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	work->run(&work->look);
}

static void work_done(struct pool_job *job)
{
	*CONTAINER_OF(job, struct work, job)->is_done = true;
}

static char *workspace_of(const struct config *config)
{
	return config->workspace ? mem_strdup(config->workspace) : getcwd(NULL, 0);
}

static struct work *make_work(const struct doctor *doctor, doctor_look_run *run, bool *is_done)
{
	const struct doctor_means *means = doctor->means;
	struct work *work = mem_alloc_zero(sizeof(*work));
	struct doctor_look *look = &work->look;
	work->job = (struct pool_job){
		.lane = POOL_LANE_LOOKS, .run = work_run, .done = work_done, .drop = work_drop};
	work->run = run;
	work->is_done = is_done;
	look->state_folder = mem_strdup_or_null(means->state_folder);
	look->environment = words_copy(means->environment);
	look->report.is_part = true;
	if (means->config) {
		const struct sync_settings *sync = &means->config->profile.sync;
		look->workspace = workspace_of(means->config);
		look->is_copy = doctor->is_copy;
		look->include = words_copy((const char *const *)sync->include);
		look->exclude = words_copy((const char *const *)sync->exclude);
		look->limits = sync->limits;
	}
	return work;
}

/* ---- waiting ---- */

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	*(bool *)timer->data = true;
}

static void wait_until(struct ev_loop *loop, const bool *is_done, int timeout_ms)
{
	struct ev_timer timer;
	bool is_due = false;
	ev_now_update(loop);
	ev_timer_init(&timer, on_due, timeout_ms / 1000., 0.);
	timer.data = &is_due;
	ev_timer_start(loop, &timer);
	while (!*is_done && !is_due) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &timer);
}

/* ---- findings ---- */

static void take_findings(struct doctor *doctor, const struct doctor_report *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct doctor_finding *finding = &found->findings[i];
		if (finding->outcome == DOCTOR_OK) {
			doctor_report_ok(&doctor->report, finding->step, "%s", finding->text);
			continue;
		}
		(finding->outcome == DOCTOR_WARNING ? doctor_report_warn : doctor_report_fail)(
			&doctor->report, finding->step, finding->code,
			doctor_advice(doctor, finding->step, finding->code), finding->text);
	}
}

void doctor_look_fail(
	struct doctor_look *look, enum doctor_step step, const char *code, const struct error *err)
{
	doctor_report_fail(&look->report, step, code, "", err->text);
}

void doctor_look_warn(
	struct doctor_look *look, enum doctor_step step, const char *code, const struct error *err)
{
	doctor_report_warn(&look->report, step, code, "", err->text);
}

/*
 * Waits for the look, then frees or abandons it. False: it is late; `where` is the path that it
 * tries to read.
 */
static bool run_look(struct doctor *doctor, struct work *work, const char *where, int timeout_ms,
	struct error *err)
{
	if (!pool_submit(doctor->means->pool, &work->job, err)) {
		work_drop(&work->job);
		return false;
	}
	wait_until(doctor->means->loop, work->is_done, timeout_ms);
	if (*work->is_done) {
		take_findings(doctor, &work->look.report);
		doctor->workspace_bytes += work->look.workspace_bytes;
		work_drop(&work->job);
		return true;
	}
	pool_leave(&work->job);
	return error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"the file system of %s did not answer within %d s", where, timeout_ms / 1000);
}

void doctor_look(struct doctor *doctor, enum doctor_step step, doctor_look_run *run, int timeout_ms)
{
	struct error err;
	char where[ERROR_TEXT_MAX];
	bool is_done = false;
	struct work *work = make_work(doctor, run, &is_done);
	const char *state = work->look.state_folder ? work->look.state_folder : "";
	const char *workspace = work->look.workspace ? work->look.workspace : "";
	text_format(where, sizeof(where), "%s%s%s", step == DOCTOR_WORKSPACE ? workspace : state,
		step == DOCTOR_DISK ? ", of $TMPDIR, or of " : "",
		step == DOCTOR_DISK ? workspace : "");
	if (!run_look(doctor, work, where, timeout_ms, &err)) {
		doctor_fail_with(doctor, step, &err);
	}
}

static void look_at_named(struct doctor_look *look)
{
	struct stat ignored; // only tests whether it answers
	for (size_t i = 0; look->named[i]; i++) {
		(void)stat(look->named[i], &ignored);
	}
}

bool doctor_reaches_named(const struct doctor_means *means, struct error *err)
{
	struct doctor doctor = {.means = means};
	bool is_done = false;
	char where[ERROR_TEXT_MAX] = "";
	struct work *work = make_work(&doctor, look_at_named, &is_done);
	const struct options *options = means->options;
	char *file = options->config ? NULL : config_default_path(means->environment);
	const char *const named[] = {options->config ? options->config : file, options->workspace};
	work->look.named = words_copy((const char *const[]){NULL});
	for (size_t i = 0; i < ARRAY_LENGTH(named); i++) {
		if (named[i]) {
			words_append(&work->look.named, named[i]);
			text_append(where, sizeof(where), "%s%s", *where ? " or " : "", named[i]);
		}
	}
	free(file);
	return run_look(&doctor, work, where, DOCTOR_LOOK_MS, err);
}
