/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "broker/cli/doctor_parts.h"
#include "broker/cli/test_provider.h"

/* The findings of one part of the checks. */
struct part {
	size_t ok, failed;
	char code[64];
	char text[ERROR_TEXT_MAX]; // of the first check that failed, was skipped, or had a note, in
	                           // this order
};

struct trying {
	struct doctor *doctor;
	struct test_provider_means means;
	struct trial *trial;
	const char *workspace; // borrowed from the trial
	enum trial_part at;    // the part whose checks run
	struct part parts[TRIAL_PART_COUNT];
};

static const enum doctor_step steps[TRIAL_PART_COUNT] = {
	[TRIAL_SANDBOX] = DOCTOR_SANDBOX,
	[TRIAL_PROCESSES] = DOCTOR_TERMINAL,
	[TRIAL_FILES] = DOCTOR_FILES,
	[TRIAL_NETWORK] = DOCTOR_NETWORK,
	[TRIAL_SYNC] = DOCTOR_SYNC,
	[TRIAL_REMOVAL] = DOCTOR_END,
};

/* A check that saw a wrong result has a code of its own; other failures keep their code. */
static const char *code_of(const char *code)
{
	return strcmp(code, "INVALID_MESSAGE") == 0 ? "SANDBOX_UNFIT" : code;
}

static void tell(struct trying *trying, enum trial_part which)
{
	const struct part *part = &trying->parts[which];
	struct doctor *doctor = trying->doctor;
	enum doctor_step step = steps[which];
	if (part->failed > 0 &&
		which == TRIAL_NETWORK) { // with `required`, the sandbox is not ready then
		doctor_report_warn(&doctor->report, step, "NOT_ENFORCED",
			doctor_advice(doctor, step, "NOT_ENFORCED"), part->text);
	} else if (part->failed > 0) {
		doctor_report_fail(&doctor->report, step, part->code,
			doctor_advice(doctor, step, part->code), part->text);
	} else if (which == TRIAL_REMOVAL) {
		return; // the session's end reports it
	} else if (part->ok == 0) {
		doctor_report_skip(&doctor->report, step, part->text);
	} else if (*part->text) {
		doctor_report_ok(&doctor->report, step, "%s", part->text);
	} else {
		doctor_report_ok(&doctor->report, step, "%zu checks", part->ok);
	}
}

static void on_finding(void *data, const struct trial_finding *finding)
{
	struct trying *trying = data;
	struct part *part = &trying->parts[finding->part];
	if (finding->part != trying->at) {
		tell(trying, trying->at);
		trying->at = finding->part;
	}
	if (finding->outcome == TRIAL_FAILED && part->failed++ == 0) {
		text_format(part->code, sizeof(part->code), "%s", code_of(finding->code));
		text_format(part->text, sizeof(part->text), "%s: %s", finding->name, finding->text);
	} else if (finding->outcome != TRIAL_FAILED && part->failed == 0 && !*part->text) {
		text_format(part->text, sizeof(part->text), "%s", finding->text);
	}
	part->ok += finding->outcome == TRIAL_OK;
}

static void on_warning(void *data, const char *text)
{
	struct trying *trying = data;
	struct doctor *doctor = trying->doctor;
	doctor_report_warn(&doctor->report, DOCTOR_SANDBOX, "NOT_ENFORCED",
		doctor_advice(doctor, DOCTOR_SANDBOX, "NOT_ENFORCED"), text);
}

static void fail(struct doctor *doctor, const struct error *err)
{
	doctor->is_interrupted = err->code == ERROR_UNAVAILABLE;
	doctor_fail_with(doctor, DOCTOR_SANDBOX, err);
}

void doctor_end_sandbox(struct doctor *doctor)
{
	struct trying *trying = doctor->trying;
	struct error err;
	size_t failed;
	if (!trying) {
		return;
	}
	doctor->trying = NULL;
	if (!test_provider_end(trying->trial, &failed, &err)) {
		fail(doctor, &err);
	} else {
		tell(trying, trying->at);
	}
	free(trying);
}

void doctor_hand_over_sandbox(struct doctor *doctor)
{
	if (doctor->trying) {
		test_provider_hand_over(doctor->trying->trial);
	}
}

const char *doctor_workspace(const struct doctor *doctor)
{
	return doctor->trying ? doctor->trying->workspace : NULL;
}

void doctor_try_sandbox(struct doctor *doctor)
{
	static const struct test_provider_listener listener = {
		.on_finding = on_finding,
		.on_warning = on_warning,
	};
	const struct doctor_means *means = doctor->means;
	struct trying *trying = mem_alloc_zero(sizeof(*trying));
	struct error err;
	trying->doctor = doctor;
	trying->means = (struct test_provider_means){
		.loop = means->loop,
		.pool = means->pool,
		.provider = doctor->provider,
		.config = means->config,
		.environment = means->environment,
		.tools = means->tools,
		.listener = &listener,
		.data = trying,
	};
	trying->trial = test_provider_begin(&trying->means, &err);
	if (!trying->trial) {
		fail(doctor, &err);
		free(trying);
		return;
	}
	doctor->trying = trying;
	trying->workspace = test_provider_offer(trying->trial);
	if (!trying->workspace) {
		doctor_end_sandbox(doctor);
		return;
	}
	tell(trying, trying->at);
	trying->at = TRIAL_REMOVAL;
}
