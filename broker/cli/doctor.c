/* SPDX-License-Identifier: MIT */
#include "broker/cli/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/failure.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/doctor_parts.h"

/* ---- advice ---- */

/* doctor's own codes, and codes whose usual help is for a session that goes on. */
static const struct {
	const char *code, *advice;
} own_advice[] = {
	{"AGENT_ERROR", "this error is the agent's own: look it up in the agent's documentation"},
	{"AGENT_EXITED", "run the agent's command in a terminal to see why it ends"},
	{"BROKER_FAILED", "run doctor again with --log-level debug, and report its output"},
	{"CONFIG_INVALID", "correct the setting that the line names, then run acp-broker check"},
	{"DISK_LOW",
		"free some space; acp-broker du shows what the broker keeps, prune removes it"},
	{"DISK_FULL",
		"free some space; acp-broker du shows what the broker keeps, prune removes it"},
	{"LEFTOVERS", "run acp-broker sessions collect"},
	{"LOGIN_NEEDED", "log in to the agent, as its documentation says"},
	{"NOT_ENFORCED",
		"change the setting that the line names, or remove the key from the profile"},
	{"ORPHANS", "end the named processes: kill -CONT, then kill, then kill -KILL"},
	{"RECORD_UNREADABLE",
		"run acp-broker sessions list; if a newer version wrote it, use that one"},
	{"SANDBOX_UNFIT", "run acp-broker test-provider, and report its output"},
	{"SESSION_REFUSED", "run the same session in your editor with --log-level debug"},
	{"STATE_OF_ANOTHER",
		"run acp-broker as that user, or set XDG_STATE_HOME to your own folder"},
	{"STATE_UNUSABLE", "set XDG_STATE_HOME to a folder that you can write to"},
	{"WORKSPACE_UNUSABLE", "start in your project's folder, or name it with --workspace"},
};

static const char *help_of(const struct doctor *doctor, const char *code)
{
	const struct failure_code *known = failure_code_find(code);
	if (known) {
		return known->help;
	}
	const struct error_reason *reason =
		doctor->provider ? provider_reason_find(doctor->provider, code) : NULL;
	return reason ? reason->help : "correct what the line names";
}

const char *doctor_advice(const struct doctor *doctor, enum doctor_step step, const char *code)
{
	if (step == DOCTOR_INITIALIZE && strcmp(code, "TIMEOUT_EXCEEDED") == 0) {
		return "check the command: with these arguments it must speak ACP on stdin and "
		       "stdout";
	}
	if (step < DOCTOR_SANDBOX && strcmp(code, "TIMEOUT_EXCEEDED") == 0) {
		return "wait until that file system answers (df hangs on it, too), or use another "
		       "folder";
	}
	if (step == DOCTOR_SANDBOX && strcmp(code, "PERMISSION_DENIED") == 0) {
		return "correct what the line names"; // not a refusal by policy
	}
	for (size_t i = 0; i < ARRAY_LENGTH(own_advice); i++) {
		if (strcmp(own_advice[i].code, code) == 0) {
			return own_advice[i].advice;
		}
	}
	return help_of(doctor, code);
}

void doctor_fail_with(struct doctor *doctor, enum doctor_step step, const struct error *err)
{
	const char *code = failure_code_of(err);
	doctor_report_fail(
		&doctor->report, step, code, doctor_advice(doctor, step, code), err->text);
}

/* ---- the configuration ---- */

static void look_at_configuration(struct doctor *doctor)
{
	struct error err;
	const struct config *config = doctor->means->config;
	if (!config) {
		doctor_fail_with(doctor, DOCTOR_CONFIGURATION, doctor->means->config_error);
		return;
	}
	doctor->provider = registry_get(doctor->means->registry, config->profile.backend, &err);
	if (!doctor->provider) {
		doctor_fail_with(doctor, DOCTOR_CONFIGURATION, &err);
		return;
	}
	doctor->is_copy = provider_is_isolated(doctor->provider, &config->profile.settings) &&
	                  config->profile.sync.mode != SYNC_MODE_NONE;
	doctor->known = known_agent_of_argv((const char *const *)config->profile.agent_argv);
	doctor_report_ok(&doctor->report, DOCTOR_CONFIGURATION, "%s%s, profile %s, agent %s",
		config->file ? config->file : "no file",
		config->file && !config->file_was_read ? " (does not exist)" : "",
		config->profile.name, config->profile.agent_name);
}

/* ---- the whole command ---- */

static void write_doctor(struct json_writer *writer, const void *data)
{
	const struct doctor *doctor = data;
	const struct config *config = doctor->means->config;
	json_write_member_bool(writer, "isWell", doctor->report.failed == 0);
	json_write_member(writer, "profile", config ? config->profile.name : NULL);
	json_write_member(writer, "agent", config ? config->profile.agent_name : NULL);
	json_write_member(writer, "agentTitle", doctor->agent_title);
	json_write_member(writer, "agentVersion", doctor->agent_version);
	doctor_report_write(&doctor->report, writer);
}

/* A step that needs earlier steps. */
static bool may_go_on(const struct doctor *doctor)
{
	return doctor->report.failed == 0 && !doctor->is_interrupted;
}

static const char earlier_step_failed[] = "an earlier step has failed";

static void look_here(struct doctor *doctor)
{
	const struct config *config = doctor->means->config;
	const struct profile *profile = config ? &config->profile : NULL;
	int file_ms = profile ? profile->toolhost_limits.file_timeout_ms : DOCTOR_LOOK_MS;
	doctor_look(doctor, DOCTOR_STATE, doctor_look_at_state, file_ms);
	if (profile && doctor->provider) {
		doctor_look(doctor, DOCTOR_WORKSPACE, doctor_look_at_workspace,
			doctor->is_copy ? profile->sync.timeout_ms : file_ms);
		doctor_look(doctor, DOCTOR_DISK, doctor_look_at_disk, file_ms);
	} else { // now, so that the lines come in the order of the steps
		doctor_report_skip(&doctor->report, DOCTOR_WORKSPACE, earlier_step_failed);
		doctor_report_skip(&doctor->report, DOCTOR_DISK, earlier_step_failed);
	}
	if (!doctor->report.has_failed[DOCTOR_STATE]) {
		doctor_look(doctor, DOCTOR_LEFTOVERS, doctor_look_for_leftovers, file_ms);
	}
}

static void look_at_all(struct doctor *doctor)
{
	look_at_configuration(doctor);
	look_here(doctor);
	if (may_go_on(doctor)) {
		doctor_try_sandbox(doctor);
	}
	if (may_go_on(doctor)) {
		doctor_try_session(doctor);
	}
	doctor_end_sandbox(doctor);
	for (size_t i = 0; i < DOCTOR_STEP_COUNT; i++) {
		if (!doctor->report.is_told[i]) {
			doctor_report_skip(
				&doctor->report, (enum doctor_step)i, earlier_step_failed);
		}
	}
}

static void print_end(const struct doctor *doctor)
{
	if (doctor->is_interrupted) {
		return; // unknown
	}
	if (doctor->report.failed == 0) {
		puts("A session works.");
	} else {
		printf("A session does not work: see the %s above.\n",
			doctor->report.failed == 1 ? "line with FAILED" : "lines with FAILED");
	}
}

bool doctor_run(const struct doctor_means *means, bool *out_is_well, struct error *err)
{
	struct doctor doctor = {
		.means = means,
		.report = {.secrets = means->secrets,
			.is_json = (means->options->flags & OPTION_JSON) != 0},
	};
	bool ok = true;
	look_at_all(&doctor);
	if (doctor.report.is_json) {
		ok = command_print_json(write_doctor, &doctor, err);
	} else {
		print_end(&doctor);
	}
	errno = 0;
	if (ok && (fflush(stdout) != 0 || ferror(stdout))) {
		ok = error_set_errno(err, errno ? errno : EIO, "writing to stdout");
	}
	if (ok && doctor.is_interrupted) {
		ok = error_set(err, ERROR_UNAVAILABLE, "doctor: interrupted by a signal");
	}
	*out_is_well = doctor.report.failed == 0;
	doctor_report_finish(&doctor.report);
	free(doctor.agent_title);
	free(doctor.agent_version);
	return ok;
}
