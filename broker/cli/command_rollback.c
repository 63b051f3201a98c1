/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"
#include "sync/apply.h"
#include "sync/graft.h"
#include "sync/id.h"

/* A change of the workspace, or of a part of it, to the content of a checkpoint. */
struct change {
	struct checkpoint *checkpoint;
	const char *what; // "rollback to", "restore from", "undelete from"
	const char *same; // printed if there is nothing to do; NULL: a default text
	git_oid now;      // the workspace before
	git_oid target;   // the workspace after
	unsigned before;  // the checkpoint made of `now`
};

static void on_left(void *data, const char *path, const char *why)
{
	char *quoted = path_quote(span_of(path));
	stderr_note("%s was not changed: %s", quoted, why);
	free(quoted);
}

static void on_remains(void *data, const char *path, const char *why)
{
	char *quoted = path_quote(span_of(path));
	stderr_note("%s, left by an interrupted sync, was not removed: %s", quoted, why);
	free(quoted);
}

static bool keep(struct command_context *context, const struct change *change, const char *when,
	const git_oid *tree, unsigned *out_number, struct error *err)
{
	char reason[CHECKPOINT_REASON_MAX];
	text_format(
		reason, sizeof(reason), "%s %s %u", when, change->what, change->checkpoint->number);
	return checkpoint_add(&context->store, tree, reason, "", out_number, err);
}

static void print_done(const struct change *change, const struct apply_result *result)
{
	char time[COMMAND_TIME_SIZE];
	printf("%zu written, %zu deleted: as in checkpoint %u of %s.\n"
	       "What was there before is checkpoint %u.\n",
		result->written, result->deleted, change->checkpoint->number,
		command_time(time, change->checkpoint->time), change->before);
}

/* First keeps the present state as a checkpoint, so that this change can be undone too. */
static bool make(struct command_context *context, struct change *change, struct error *err)
{
	struct apply_result result;
	unsigned after;
	if (id_equal(&change->now, &change->target)) {
		printf("Nothing to do: %s checkpoint %u.\n",
			change->same ? change->same : "it is as in", change->checkpoint->number);
		return true;
	}
	if (!keep(context, change, "before", &change->now, &change->before, err)) {
		return false;
	}
	point("command.kept");
	struct apply_request request = {.root = context->place.root,
		.from = change->now,
		.to = change->target,
		.on_left = on_left,
		.on_remains = on_remains};
	if (!apply_run(&context->store, &request, &result, err)) {
		return error_prefix(err, "%s %u (the earlier state is checkpoint %u)", change->what,
			change->checkpoint->number, change->before);
	}
	point("command.applied");
	if (result.left > 0) {
		return error_set(err, ERROR_UNAVAILABLE,
			"%s %u: %zu written, %zu deleted, %zu not changed; what was there before "
			"is checkpoint %u. Try again when nothing else changes these files",
			change->what, change->checkpoint->number, result.written, result.deleted,
			result.left, change->before);
	}
	if (!keep(context, change, "after", &change->target, &after, err)) {
		return false;
	}
	print_done(change, &result);
	return true;
}

/*
 * Takes the locks, because an agent at work, or its next prompt, would see a half-changed
 * workspace.
 */
static bool begin(struct command_context *context, struct change *change, struct error *err)
{
	return checkpoint_find(
		       &context->store, context->options->words[0], change->checkpoint, err) &&
	       command_lock(context, err) &&
	       (command_lock_turns(context, err) ||
		       error_prefix(err, "%s %u", change->what, change->checkpoint->number)) &&
	       command_snapshot(context, &change->now, err);
}

bool command_checkpoints_rollback(struct command_context *context, struct error *err)
{
	struct checkpoint checkpoint;
	struct change change = {.checkpoint = &checkpoint, .what = "rollback to"};
	if (!begin(context, &change, err)) {
		return false;
	}
	change.target = checkpoint.tree;
	return make(context, &change, err);
}

/* ---- undelete ---- */

bool command_checkpoints_undelete(struct command_context *context, struct error *err)
{
	struct checkpoint checkpoint;
	struct change change = {.checkpoint = &checkpoint,
		.what = "undelete from",
		.same = "the workspace has every file of"};
	return begin(context, &change, err) &&
	       graft_missing(&context->store, &checkpoint.tree, &change.now, &change.target, err) &&
	       make(context, &change, err);
}

/* ---- restore ---- */

/* Puts the checkpoint's version of a path into the target tree. */
static bool take_path(
	struct command_context *context, struct change *change, const char *word, struct error *err)
{
	struct graft graft;
	char *path = store_place_path(&context->place, word, err);
	bool ok = path && graft_find(&context->store, &change->checkpoint->tree, path, &graft, err);
	if (path && !ok && err->code == ERROR_NOT_FOUND) {
		error_prefix(err, "checkpoint %u", change->checkpoint->number);
	}
	if (ok && !*path) {
		change->target = graft.id;
	} else if (ok) {
		git_oid target;
		ok = graft_set(&context->store, &change->target, path, &graft, &target, err);
		change->target = ok ? target : change->target;
	}
	free(path);
	return ok;
}

bool command_checkpoints_restore(struct command_context *context, struct error *err)
{
	const struct options *options = context->options;
	struct checkpoint checkpoint;
	struct change change = {.checkpoint = &checkpoint, .what = "restore from"};
	if (!begin(context, &change, err)) {
		return false;
	}
	change.target = change.now;
	for (size_t i = 1; i < options->word_count; i++) {
		if (!take_path(context, &change, options->words[i], err)) {
			return false;
		}
	}
	return make(context, &change, err);
}
