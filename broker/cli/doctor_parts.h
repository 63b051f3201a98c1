/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DOCTOR_PARTS_H
#define BROKER_CLI_DOCTOR_PARTS_H

#include <stdint.h>

#include "broker/cli/doctor.h"
#include "broker/cli/doctor_report.h"
#include "broker/config/known_agents.h"

/* What the parts of doctor share. Each part adds what it finds to the report. */
struct doctor {
	const struct doctor_means *means;
	struct doctor_report report;
	struct provider *provider;         // NULL: there is none
	const struct known_agent *known;   // NULL: the program knows nothing of this agent
	bool is_copy;                      // the sandbox gets a copy of the workspace
	uint64_t workspace_bytes;          // what a copy takes at least; 0: not measured
	char *agent_title, *agent_version; // owned; what it says of itself; NULL: nothing
	bool is_interrupted;               // by a signal
};

/* The error as a finding; its advice is that of its code. */
void doctor_fail_with(struct doctor *doctor, enum doctor_step step, const struct error *err);

/* What to do about a code (docs/errors.md, docs/doctor.md). Never NULL. */
const char *doctor_advice(const struct doctor *doctor, enum doctor_step step, const char *code);

/* ---- doctor_here.c: this machine, before anything is started ---- */

enum {
	DOCTOR_DISK_LEAST_MIB = 16,   // less is as good as none
	DOCTOR_DISK_LOW_MIB = 256,    // less is worth a word
	DOCTOR_FILES_LOW = 1000,      // free inodes
	DOCTOR_MEASURED_MAX = 200000, // files of the workspace that are looked at
};

void doctor_look_at_state(struct doctor *doctor);
void doctor_look_at_workspace(struct doctor *doctor);
void doctor_look_at_disk(struct doctor *doctor);

/* ---- doctor_leftovers.c ---- */

void doctor_look_for_leftovers(struct doctor *doctor);

/* ---- doctor_sandbox.c: test-provider's checks ---- */

void doctor_try_sandbox(struct doctor *doctor);

/* ---- doctor_session.c: a session ---- */

enum {
	DOCTOR_SLACK_MS = 20 * 1000,    // beyond the broker's own deadline
	DOCTOR_SESSION_MS = 300 * 1000, // for session/new without session-timeout
};

void doctor_try_session(struct doctor *doctor);

/* ---- doctor_forget.c ---- */

/* Removes what sessions in a scratch workspace have left: records, their sandboxes, its store. */
bool doctor_forget(
	const struct doctor_means *means, const char *workspace, struct error *err) ATTR_NODISCARD;

#endif
