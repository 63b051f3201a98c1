/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_DOCTOR_PARTS_H
#define BROKER_CLI_DOCTOR_PARTS_H

#include <stdint.h>

#include "broker/cli/doctor.h"
#include "broker/cli/doctor_report.h"
#include "broker/config/known_agents.h"
#include "sync/snapshot.h"

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
	struct trying *trying; // owned; a sandbox of the checks that the session shares; or NULL
};

/* Reports the error as a finding, with the advice for its code. */
void doctor_fail_with(struct doctor *doctor, enum doctor_step step, const struct error *err);

/* The advice for a code (docs/errors.md, docs/doctor.md). Never NULL. */
const char *doctor_advice(const struct doctor *doctor, enum doctor_step step, const char *code);

/* ---- doctor_look.c: looks at this machine's folders, each with a deadline ---- */

enum { DOCTOR_LOOK_MS = 60 * 1000 }; // if no profile sets file-timeout

/*
 * The data of one look. It runs on a thread and shares nothing with the loop's thread, which stops
 * waiting for it if a file system does not answer (because of a lost server or a dead FUSE
 * program).
 */
struct doctor_look {
	char *state_folder;        // owned; may be NULL
	char *workspace;           // owned; NULL: not found, or there is no configuration
	char **environment;        // owned
	char **include, **exclude; // owned
	char **named;              // owned; paths on the command line; NULL: not looked at
	struct snapshot_limits limits;
	bool is_copy;                // as in struct doctor
	uint64_t workspace_bytes;    // result; 0: not measured
	struct doctor_report report; // result; doctor adds the advice
};

typedef void doctor_look_run(struct doctor_look *look);

/* Runs the look, and reports its findings, or that it was late. */
void doctor_look(
	struct doctor *doctor, enum doctor_step step, doctor_look_run *run, int timeout_ms);

/* Reports a fault that the look found. */
void doctor_look_fail(
	struct doctor_look *look, enum doctor_step step, const char *code, const struct error *err);
void doctor_look_warn(
	struct doctor_look *look, enum doctor_step step, const char *code, const struct error *err);

/* ---- doctor_here.c: this machine, before anything starts ---- */

enum {
	DOCTOR_DISK_LEAST_MIB = 16,   // less is a failure
	DOCTOR_DISK_LOW_MIB = 256,    // less is a warning
	DOCTOR_FILES_LOW = 1000,      // free inodes
	DOCTOR_MEASURED_MAX = 200000, // files of the workspace that are examined
};

doctor_look_run doctor_look_at_state, doctor_look_at_workspace, doctor_look_at_disk;

/* ---- doctor_leftovers.c ---- */

doctor_look_run doctor_look_for_leftovers;

/* ---- doctor_sandbox.c: the checks of test-provider ---- */

/*
 * A kept sandbox that costs something stays for the session in doctor_workspace (NULL: none does).
 * doctor_hand_over_sandbox: the session has it. doctor_end_sandbox removes it if no session has it.
 */
void doctor_try_sandbox(struct doctor *doctor);
const char *doctor_workspace(const struct doctor *doctor);
void doctor_hand_over_sandbox(struct doctor *doctor);
void doctor_end_sandbox(struct doctor *doctor);

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
