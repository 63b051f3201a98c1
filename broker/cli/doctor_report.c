/* SPDX-License-Identifier: MIT */
#include "broker/cli/doctor_report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mask.h"
#include "base/text.h"

static const char *const step_names[DOCTOR_STEP_COUNT] = {
	[DOCTOR_CONFIGURATION] = "configuration",
	[DOCTOR_STATE] = "state",
	[DOCTOR_WORKSPACE] = "workspace",
	[DOCTOR_DISK] = "disk",
	[DOCTOR_LEFTOVERS] = "leftovers",
	[DOCTOR_SANDBOX] = "sandbox",
	[DOCTOR_TERMINAL] = "terminal",
	[DOCTOR_FILES] = "files",
	[DOCTOR_NETWORK] = "network",
	[DOCTOR_SYNC] = "sync",
	[DOCTOR_AGENT] = "agent",
	[DOCTOR_INITIALIZE] = "initialize",
	[DOCTOR_LOGIN] = "login",
	[DOCTOR_SESSION] = "session",
	[DOCTOR_END] = "end",
};

static const struct {
	const char *for_people, *for_programs;
} outcome_names[] = {
	[DOCTOR_OK] = {"ok", "ok"},
	[DOCTOR_WARNING] = {"warning", "warning"},
	[DOCTOR_FAILED] = {"FAILED", "failed"},
	[DOCTOR_SKIPPED] = {"skipped", "skipped"},
};

/* As one line, without control characters and secrets. */
static char *clean(const struct doctor_report *report, const char *text)
{
	struct buf out;
	buf_init(&out, SIZE_MAX / 2);
	bool ok = buf_append(&out, span_of(text), NULL);
	(void)ok; // the buffer has no maximum
	secrets_mask_text(report->secrets, &out, false);
	char *line = mask_line(buf_span(&out));
	buf_finish(&out);
	return line;
}

char *doctor_report_clean(const struct doctor_report *report, const char *text)
{
	char shown[TEXT_SHORT_SIZE];
	char *line = clean(report, text);
	text_short(shown, line);
	free(line);
	return mem_strdup(shown);
}

static void print(const struct doctor_finding *finding)
{
	printf("%-8s %-13s ", outcome_names[finding->outcome].for_people,
		step_names[finding->step]);
	if (finding->code) {
		printf("%s: ", finding->code);
	}
	puts(finding->text);
	if (finding->advice) {
		printf("%-8s %-13s to do: %s\n", "", "", finding->advice);
	}
	fflush(stdout);
}

static void keep(struct doctor_report *report, struct doctor_finding finding)
{
	report->findings =
		mem_realloc(report->findings, (report->count + 1) * sizeof(*report->findings));
	report->findings[report->count++] = finding;
	report->failed += finding.outcome == DOCTOR_FAILED;
	report->is_told[finding.step] = true;
	report->has_failed[finding.step] |= finding.outcome == DOCTOR_FAILED;
	if (!report->is_json && !report->is_part) {
		print(&finding);
	}
}

/* After a failure, the steps before it without a result are reported first. */
static void add(struct doctor_report *report, struct doctor_finding finding)
{
	char why[64];
	for (size_t i = 0; finding.outcome == DOCTOR_FAILED && i < finding.step; i++) {
		if (!report->is_told[i] && !report->is_part) {
			text_format(why, sizeof(why), "the step %s has failed",
				step_names[finding.step]);
			keep(report, (struct doctor_finding){.step = (enum doctor_step)i,
					     .outcome = DOCTOR_SKIPPED,
					     .text = mem_strdup(why)});
		}
	}
	keep(report, finding);
}

static void add_wrong(struct doctor_report *report, struct doctor_finding finding, const char *code,
	const char *advice, const char *text)
{
	finding.code = clean(report, code);
	finding.advice = clean(report, advice);
	finding.text = clean(report, text);
	add(report, finding);
}

void doctor_report_ok(struct doctor_report *report, enum doctor_step step, const char *format, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	add(report, (struct doctor_finding){.step = step, .text = clean(report, text)});
}

void doctor_report_skip(struct doctor_report *report, enum doctor_step step, const char *why)
{
	add(report, (struct doctor_finding){
			    .step = step, .outcome = DOCTOR_SKIPPED, .text = clean(report, why)});
}

void doctor_report_fail(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text)
{
	struct doctor_finding finding = {.step = step, .outcome = DOCTOR_FAILED};
	add_wrong(report, finding, code, advice, text);
}

void doctor_report_warn(struct doctor_report *report, enum doctor_step step, const char *code,
	const char *advice, const char *text)
{
	struct doctor_finding finding = {.step = step, .outcome = DOCTOR_WARNING};
	add_wrong(report, finding, code, advice, text);
}

void doctor_report_write(const struct doctor_report *report, struct json_writer *writer)
{
	json_write_key(writer, "findings");
	json_write_array(writer);
	for (size_t i = 0; i < report->count; i++) {
		const struct doctor_finding *finding = &report->findings[i];
		json_write_object(writer);
		json_write_member(writer, "step", step_names[finding->step]);
		json_write_member(writer, "outcome", outcome_names[finding->outcome].for_programs);
		json_write_member(writer, "code", finding->code);
		json_write_member(writer, "text", finding->text);
		json_write_member(writer, "advice", finding->advice);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

void doctor_report_finish(struct doctor_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		free(report->findings[i].code);
		free(report->findings[i].text);
		free(report->findings[i].advice);
	}
	free(report->findings);
}
