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
 * What doctor has found: lines that are printed as they come, or one JSON object at the end
 * (docs/schemas/doctor.json). The texts may be an agent's or a host's: secrets are masked in them,
 * control characters are spelled, and each is one line.
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
	char *code, *text, *advice; // owned; code and advice are NULL where nothing is wrong
};

struct doctor_report {
	const struct secrets *secrets; // borrowed; may be NULL
	bool is_json;
	struct doctor_finding *findings; // owned
	size_t count;
	size_t failed;
	bool is_told[DOCTOR_STEP_COUNT]; // something was found of it
	bool has_failed[DOCTOR_STEP_COUNT];
};

void doctor_report_finish(struct doctor_report *report);

/* A step that went well, or cannot be taken: nothing is to be done. */
void doctor_report_ok(struct doctor_report *report, enum doctor_step step, const char *format, ...)
	ATTR_PRINTF(3, 4);
void doctor_report_skip(struct doctor_report *report, enum doctor_step step, const char *why);

/* What is wrong. `advice` is the one thing to do. */
void doctor_report_fail(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text);
void doctor_report_warn(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text);

/* Others' text as the findings have it, and no longer than people read. Owned by the caller. */
char *doctor_report_clean(const struct doctor_report *report, const char *text);

/* The array "findings" of an object that is open. */
void doctor_report_write(const struct doctor_report *report, struct json_writer *writer);

#endif
