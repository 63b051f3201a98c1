/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/cli/trial.h"

/* What the broker needs of files. */

enum { FILE_MAX = 1 << 20 };

static const char *path_of(const struct trial *trial, char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", trial->root, name);
	return path;
}

/* ---- one operation, waited for ---- */

struct reading {
	struct trial_outcome outcome;
	struct buf content;
	struct stat status;
};

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct reading *reading = data;
	if (!err) {
		buf_move(&reading->content, content);
	}
	trial_on_done(&reading->outcome, err);
}

static void on_stat(void *data, const struct stat *status, const struct error *err)
{
	struct reading *reading = data;
	if (!err) {
		reading->status = *status;
	}
	trial_on_done(&reading->outcome, err);
}

/* Whether it was done; what it found is in the outcome. */
static bool wait_for(
	struct trial *trial, struct file_op *op, struct trial_outcome *outcome, struct error *err)
{
	if (!trial_wait_file(trial, &outcome->is_done, err)) {
		if (!trial->is_lost) {
			file_op_cancel(op);
		}
		return false;
	}
	return true;
}

static bool succeeded(const struct trial_outcome *outcome, struct error *err)
{
	if (!outcome->is_ok) {
		*err = outcome->err;
	}
	return outcome->is_ok;
}

static bool write_file(struct trial *trial, const char *path, struct span content,
	struct trial_outcome *outcome, struct error *err)
{
	*outcome = (struct trial_outcome){.is_done = false};
	struct file_op *op =
		sandbox_write_file(trial->sandbox, path, content, trial_on_done, outcome);
	return wait_for(trial, op, outcome, err);
}

static bool read_file(
	struct trial *trial, const char *path, struct reading *reading, struct error *err)
{
	*reading = (struct reading){.outcome = {.is_done = false}};
	buf_init(&reading->content, FILE_MAX);
	struct file_op *op = sandbox_read_file(trial->sandbox, path, FILE_MAX, on_read, reading);
	return wait_for(trial, op, &reading->outcome, err);
}

bool trial_write(struct trial *trial, const char *name, struct span content, struct error *err)
{
	char path[PATH_MAX];
	struct trial_outcome outcome;
	return write_file(trial, path_of(trial, path, name), content, &outcome, err) &&
	       succeeded(&outcome, err);
}

bool trial_expect(struct trial *trial, const char *name, struct span content, struct error *err)
{
	char path[PATH_MAX];
	struct reading reading;
	bool ok = read_file(trial, path_of(trial, path, name), &reading, err) &&
	          succeeded(&reading.outcome, err);
	if (ok && !span_equals(buf_span(&reading.content), content)) {
		ok = error_set(err, ERROR_PROTOCOL,
			"%s: expected %zu bytes that were written, read %zu others", path,
			content.len, reading.content.len);
	}
	buf_finish(&reading.content);
	return ok;
}

/* ---- the checks ---- */

bool trial_check_files(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	char path[PATH_MAX];
	char bytes[3000];
	struct reading reading = {.outcome = {.is_done = false}};
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (char)(i % 256);
	}
	struct span content = {bytes, sizeof(bytes)};
	if (!trial_write(trial, "file", SPAN_LITERAL("old"), err) ||
		!trial_shell(trial, "chmod 750 file", NULL, err) ||
		!trial_write(trial, "file", content, err) ||
		!trial_expect(trial, "file", content, err)) {
		return false;
	}
	struct file_op *op =
		sandbox_stat_file(trial->sandbox, path_of(trial, path, "file"), on_stat, &reading);
	if (!wait_for(trial, op, &reading.outcome, err) || !succeeded(&reading.outcome, err)) {
		return false;
	}
	mode_t mode = reading.status.st_mode & 0777;
	return (reading.status.st_size == (off_t)sizeof(bytes) && mode == 0750) ||
	       error_set(err, ERROR_PROTOCOL,
		       "%s: expected %zu bytes of mode 750, got %lld of mode %o", path,
		       sizeof(bytes), (long long)reading.status.st_size, (unsigned)mode);
}

bool trial_check_parents(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	return trial_write(trial, "a b/'c'/\xc3\xa4/file", SPAN_LITERAL("deep\n"), err) &&
	       trial_shell(trial, "test \"$(cat \"a b/'c'/\xc3\xa4/file\")\" = deep", NULL, err);
}

static bool is_violation(const struct trial_outcome *outcome)
{
	return !outcome->is_ok && outcome->err.reason &&
	       strcmp(outcome->err.reason, "SECURITY_VIOLATION") == 0;
}

/* Neither read nor written, whatever lies there. */
static bool expect_refused(struct trial *trial, const char *path, struct error *err)
{
	struct trial_outcome outcome;
	struct reading reading;
	if (!read_file(trial, path, &reading, err)) {
		return false;
	}
	buf_finish(&reading.content);
	if (!is_violation(&reading.outcome)) {
		return error_set(err, ERROR_PROTOCOL, "reading %s was not refused: %s", path,
			reading.outcome.is_ok ? "it was read" : reading.outcome.err.text);
	}
	if (!write_file(trial, path, SPAN_LITERAL("no"), &outcome, err)) {
		return false;
	}
	return is_violation(&outcome) ||
	       error_set(err, ERROR_PROTOCOL, "writing %s was not refused: %s", path,
		       outcome.is_ok ? "it was written" : outcome.err.text);
}

bool trial_check_confined(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	/* What does not exist: were it not refused, nothing would be lost. */
	static const char *const names[] = {"../acp-broker-outside", "a b/../../acp-broker-outside",
		"a b/'c'/../../../acp-broker-outside"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		char path[PATH_MAX];
		if (!expect_refused(trial, path_of(trial, path, names[i]), err)) {
			return false;
		}
	}
	return expect_refused(trial, "/acp-broker-outside", err);
}

bool trial_check_links(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	char path[PATH_MAX];
	if (!trial_shell(trial,
		    "ln -s /nowhere/acp-broker-outside out && ln -s / root && ln -s file in &&"
		    "mkfifo pipe",
		    NULL, err) ||
		!expect_refused(trial, path_of(trial, path, "out"), err) ||
		!expect_refused(trial, path_of(trial, path, "root/acp-broker-outside"), err) ||
		!expect_refused(trial, path_of(trial, path, "pipe"), err)) {
		return false;
	}
	return trial_write(trial, "in", SPAN_LITERAL("through\n"), err) &&
	       trial_expect(trial, "file", SPAN_LITERAL("through\n"), err) &&
	       trial_shell(trial, "test -L in && rm -r out root in pipe file 'a b'", NULL, err);
}
