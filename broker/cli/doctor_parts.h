/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DOCTOR_PARTS_H
#define BROKER_CLI_DOCTOR_PARTS_H

#include <stdint.h>

#include "broker/cli/doctor.h"
#include "broker/cli/doctor_report.h"
#include "broker/config/known_agents.h"

/* Shared by the parts of doctor. Each part adds its findings to the report. */
struct doctor {
	const struct doctor_means *means;
	struct doctor_report report;
	struct provider *provider;         // NULL: none
	const struct known_agent *known;   // NULL: not a known agent
	bool is_copy;                      // the sandbox gets a copy of the workspace
	uint64_t workspace_bytes;          // a copy takes at least this much; 0: not measured
	char *agent_title, *agent_version; // owned; from the agent's own answer; may be NULL
	bool is_interrupted;               // by a signal
};

/* Reports the error as a finding, with the advice for its code. */
void doctor_fail_with(struct doctor *doctor, enum doctor_step step, const struct error *err);

/* The advice for a code (docs/errors.md, docs/doctor.md). Never NULL. */
const char *doctor_advice(const struct doctor *doctor, enum doctor_step step, const char *code);

/* ---- doctor_here.c: this machine, before anything starts ---- */

enum {
	DOCTOR_DISK_LEAST_MIB = 16,   // less is a failure
	DOCTOR_DISK_LOW_MIB = 256,    // less is a warning
	DOCTOR_FILES_LOW = 1000,      // free inodes
	DOCTOR_MEASURED_MAX = 200000, // files of the workspace that are examined
};

void doctor_look_at_state(struct doctor *doctor);
void doctor_look_at_workspace(struct doctor *doctor);
void doctor_look_at_disk(struct doctor *doctor);

/* ---- doctor_leftovers.c ---- */

void doctor_look_for_leftovers(struct doctor *doctor);

/* ---- doctor_sandbox.c: the checks of test-provider ---- */

void doctor_try_sandbox(struct doctor *doctor);

/* ---- doctor_session.c: a session ---- */

enum {
	DOCTOR_SLACK_MS = 20 * 1000,    // added to the broker's own deadline
	DOCTOR_SESSION_MS = 300 * 1000, // for session/new without session-timeout
};

void doctor_try_session(struct doctor *doctor);

/* ---- doctor_forget.c ---- */

/* Removes what sessions in a scratch workspace have left: records, their sandboxes, the store. */
bool doctor_forget(
	const struct doctor_means *means, const char *workspace, struct error *err) ATTR_NODISCARD;

#endif
