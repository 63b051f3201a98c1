/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "providers/conformance/files.h"

enum { FILE_MAX = 1 << 20 };

/* ---- waiting for one operation ---- */

static const char *const act_names[] = {"reading", "writing", "looking at", "resolving"};

struct outcome {
	bool is_done;
	bool is_ok;
	struct error err;
	struct buf content;  // of ACT_READ
	struct stat status;  // of ACT_STAT
	char path[PATH_MAX]; // of ACT_RESOLVE
};

static void on_done(void *data, const struct error *err)
{
	struct outcome *outcome = data;
	outcome->is_done = true;
	outcome->is_ok = !err;
	if (err) {
		outcome->err = *err;
	}
}

static void on_read(void *data, struct buf *content, const struct error *err)
{
	struct outcome *outcome = data;
	if (!err) {
		buf_move(&outcome->content, content);
	}
	on_done(data, err);
}

static void on_stat(void *data, const struct stat *status, const struct error *err)
{
	struct outcome *outcome = data;
	if (!err) {
		outcome->status = *status;
	}
	on_done(data, err);
}

static void on_resolve(void *data, const char *path, const struct error *err)
{
	struct outcome *outcome = data;
	if (!err) {
		text_whole(outcome->path, sizeof(outcome->path), "%s", path);
	}
	on_done(data, err);
}

/* True: the operation has ended, and the caller must finish the outcome, which has the result. */
static bool wait_for(struct conformance_place *place, struct file_op *op, struct outcome *outcome,
	struct error *err)
{
	if (place->wait(place->data, &outcome->is_done, err)) {
		return true;
	}
	if (!place->is_closed) {
		file_op_cancel(op);
	}
	buf_finish(&outcome->content);
	return false;
}

static bool read_up_to(struct conformance_place *place, const char *path, size_t max,
	struct outcome *out, struct error *err)
{
	*out = (struct outcome){.is_done = false};
	buf_init(&out->content, max);
	return wait_for(
		place, sandbox_read_file(place->sandbox, path, max, on_read, out), out, err);
}

/* Runs an operation; `content` is for ACT_WRITE. */
static bool act(struct conformance_place *place, enum act act, const char *path,
	struct span content, struct outcome *out, struct error *err)
{
	struct file_op *op;
	if (act == ACT_READ) {
		return read_up_to(place, path, FILE_MAX, out, err);
	}
	*out = (struct outcome){.is_done = false};
	if (act == ACT_WRITE) {
		op = sandbox_write_file(place->sandbox, path, content, on_done, out);
	} else if (act == ACT_STAT) {
		op = sandbox_stat_file(place->sandbox, path, on_stat, out);
	} else {
		op = sandbox_resolve_path(place->sandbox, path, on_resolve, out);
	}
	return wait_for(place, op, out, err);
}

static void outcome_finish(struct outcome *outcome)
{
	buf_finish(&outcome->content);
}

/* The same for an operation that must succeed. */
static bool act_well(struct conformance_place *place, enum act what, const char *path,
	struct span content, struct outcome *out, struct error *err)
{
	if (!act(place, what, path, content, out, err)) {
		return false;
	}
	if (!out->is_ok) {
		*err = out->err;
		outcome_finish(out);
		return false;
	}
	return true;
}

const char *case_path(const struct conformance_place *place, char path[PATH_MAX], const char *name)
{
	text_whole(path, PATH_MAX, "%s%s%s", place->root, name[0] ? "/" : "", name);
	return path;
}

/* ---- checks ---- */

bool case_write(
	struct conformance_place *place, const char *name, struct span content, struct error *err)
{
	char path[PATH_MAX];
	struct outcome outcome;
	if (!act_well(place, ACT_WRITE, case_path(place, path, name), content, &outcome, err)) {
		return false;
	}
	outcome_finish(&outcome);
	return true;
}

bool case_expect_content(
	struct conformance_place *place, const char *name, struct span content, struct error *err)
{
	char path[PATH_MAX];
	struct outcome outcome;
	if (!act_well(place, ACT_READ, case_path(place, path, name), SPAN_LITERAL(""), &outcome,
		    err)) {
		return false;
	}
	bool ok = span_equals(buf_span(&outcome.content), content);
	if (!ok) {
		error_set(err, ERROR_PROTOCOL,
			"%s: expected the %zu bytes that were written, but read %zu others", path,
			content.len, outcome.content.len);
	}
	outcome_finish(&outcome);
	return ok;
}

static bool find_status(
	struct conformance_place *place, const char *path, struct stat *out, struct error *err)
{
	struct outcome outcome;
	if (!act_well(place, ACT_STAT, path, SPAN_LITERAL(""), &outcome, err)) {
		return false;
	}
	outcome_finish(&outcome);
	*out = outcome.status;
	return true;
}

bool case_expect_file(struct conformance_place *place, const char *name, mode_t mode, size_t size,
	struct error *err)
{
	char path[PATH_MAX];
	struct stat got;
	if (!find_status(place, case_path(place, path, name), &got, err)) {
		return false;
	}
	bool has_mode = mode == 0 || (got.st_mode & 0777) == mode;
	return (S_ISREG(got.st_mode) && has_mode && got.st_size == (off_t)size) ||
	       error_set(err, ERROR_PROTOCOL,
		       "%s: expected a file of %zu bytes and mode %o, got %lld bytes and mode %o",
		       path, size, (unsigned)mode, (long long)got.st_size, (unsigned)got.st_mode);
}

bool case_expect_folder(struct conformance_place *place, const char *path, struct error *err)
{
	struct stat got;
	return find_status(place, path, &got, err) &&
	       (S_ISDIR(got.st_mode) ||
		       error_set(err, ERROR_PROTOCOL, "%s: expected a folder, got mode %o", path,
			       (unsigned)got.st_mode));
}

bool case_expect_resolved(
	struct conformance_place *place, const char *name, const char *wanted, struct error *err)
{
	char path[PATH_MAX];
	char wanted_path[PATH_MAX];
	struct outcome outcome;
	case_path(place, wanted_path, wanted);
	if (!act_well(place, ACT_RESOLVE, case_path(place, path, name), SPAN_LITERAL(""), &outcome,
		    err)) {
		return false;
	}
	outcome_finish(&outcome);
	return strcmp(outcome.path, wanted_path) == 0 ||
	       error_set(err, ERROR_PROTOCOL, "%s: expected %s, got %s", path, wanted_path,
		       outcome.path);
}

static bool is_refusal(const struct error *err, const struct refusal *wanted)
{
	bool has_reason =
		!wanted->reason || (err->reason && strcmp(err->reason, wanted->reason) == 0);
	return err->code == wanted->code && has_reason && strstr(err->text, wanted->words);
}

bool case_expect_error(struct conformance_place *place, enum act what, const char *path,
	const struct refusal *wanted, struct error *err)
{
	struct outcome outcome;
	if (!act(place, what, path, SPAN_LITERAL("no"), &outcome, err)) {
		return false;
	}
	outcome_finish(&outcome);
	return (!outcome.is_ok && is_refusal(&outcome.err, wanted)) ||
	       error_set(err, ERROR_PROTOCOL, "%s %s was not refused in the expected way: %s",
		       act_names[what], path, outcome.is_ok ? "it succeeded" : outcome.err.text);
}

bool case_expect_untouchable(
	struct conformance_place *place, const char *path, const char *words, struct error *err)
{
	struct refusal violation = {ERROR_DENIED, "SECURITY_VIOLATION", words};
	return case_expect_error(place, ACT_READ, path, &violation, err) &&
	       case_expect_error(place, ACT_WRITE, path, &violation, err);
}

bool case_expect_refused(
	struct conformance_place *place, const char *path, const char *words, struct error *err)
{
	struct refusal violation = {ERROR_DENIED, "SECURITY_VIOLATION", words};
	return case_expect_untouchable(place, path, words, err) &&
	       case_expect_error(place, ACT_STAT, path, &violation, err) &&
	       case_expect_error(place, ACT_RESOLVE, path, &violation, err);
}

bool case_expect_failure(
	struct conformance_place *place, enum act what, const char *path, struct error *err)
{
	struct outcome outcome;
	if (!act(place, what, path, SPAN_LITERAL("no"), &outcome, err)) {
		return false;
	}
	outcome_finish(&outcome);
	return !outcome.is_ok ||
	       error_set(err, ERROR_PROTOCOL, "%s %s was not refused", act_names[what], path);
}

bool case_expect_limit(
	struct conformance_place *place, const char *name, size_t size, struct error *err)
{
	char path[PATH_MAX];
	char words[32];
	struct outcome all;
	struct outcome less;
	if (!read_up_to(place, case_path(place, path, name), size, &all, err)) {
		return false;
	}
	bool is_read = all.is_ok && all.content.len == size;
	outcome_finish(&all);
	if (!is_read) {
		return error_set(err, ERROR_PROTOCOL, "%s: cannot read %zu bytes: %s", path, size,
			all.is_ok ? "there are others" : all.err.text);
	}
	if (!read_up_to(place, path, size - 1, &less, err)) {
		return false;
	}
	outcome_finish(&less);
	snprintf(words, sizeof(words), "%zu", size - 1);
	struct refusal limit = {ERROR_LIMIT, NULL, words};
	return (!less.is_ok && is_refusal(&less.err, &limit)) ||
	       error_set(err, ERROR_PROTOCOL, "%s: more than %zu bytes were not refused", path,
		       size - 1);
}
