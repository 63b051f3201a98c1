/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DOCTOR_REPORT_H
#define BROKER_CLI_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/secrets.h"

/*
 * The findings of doctor: printed as lines one by one, or as one JSON object at the end
 * (docs/schemas/doctor.json). Texts may come from an agent or a host. Secrets in them are masked,
 * control characters are shown as letters, and each text is one line.
 */

/* In the order of a session. */
enum doctor_step {
	DOCTOR_CONFIGURATION,
	DOCTOR_STATE,
	DOCTOR_WORKSPACE,
	DOCTOR_DISK,
	DOCTOR_LEFTOVERS,
	DOCTOR_SANDBOX,
	DOCTOR_TERMINAL,
	DOCTOR_FILES,
	DOCTOR_NETWORK,
	DOCTOR_SYNC,
	DOCTOR_AGENT,
	DOCTOR_INITIALIZE,
	DOCTOR_LOGIN,
	DOCTOR_SESSION,
	DOCTOR_END,
	DOCTOR_STEP_COUNT,
};

enum doctor_outcome { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAILED, DOCTOR_SKIPPED };

struct doctor_finding {
	enum doctor_step step;
	enum doctor_outcome outcome;
	char *code, *text, *advice; // owned; code and advice are NULL if nothing is wrong
};

struct doctor_report {
	const struct secrets *secrets; // borrowed; may be NULL
	bool is_json;
	bool is_part; // kept for another report: prints nothing, and skips no step
	struct doctor_finding *findings; // owned
	size_t count;
	size_t failed;
	bool is_told[DOCTOR_STEP_COUNT]; // the step has a finding
	bool has_failed[DOCTOR_STEP_COUNT];
};

void doctor_report_finish(struct doctor_report *report);

/* Reports a step that went well, or one that is skipped; there is nothing to do. */
void doctor_report_ok(struct doctor_report *report, enum doctor_step step, const char *format, ...)
	ATTR_PRINTF(3, 4);
void doctor_report_skip(struct doctor_report *report, enum doctor_step step, const char *why);

/* Reports a fault. `advice` is the one thing to do. */
void doctor_report_fail(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text);
void doctor_report_warn(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text);

/*
 * Returns another program's text masked like the findings, and cut to a readable length. The caller
 * owns it.
 */
char *doctor_report_clean(const struct doctor_report *report, const char *text);

/* Writes the array "findings" into an open object. */
void doctor_report_write(const struct doctor_report *report, struct json_writer *writer);

#endif
