/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/path_quote.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/merge_tool.h"
#include "broker/cli/stderr_line.h"
#include "sync/conflicts.h"
#include "sync/graft.h"

/* ---- list ---- */

/*
 * Turns the UTC time in an id like "20260131T101502-…" into local time; returns any other id
 * unchanged.
 */
static const char *time_of(const char *id, char text[COMMAND_TIME_SIZE])
{
	struct tm utc = {0};
	const char *end = strptime(id, "%Y%m%dT%H%M%S", &utc);
	if (end && *end == '-') {
		return command_time(text, (long long)timegm(&utc));
	}
	text_format(text, COMMAND_TIME_SIZE, "%.*s", (int)strcspn(id, "-/"), id);
	return text;
}

/* Whether the parked file is still in its place. */
static bool has_file(const struct parked *parked)
{
	return faccessat(AT_FDCWD, parked->file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void print_one(const struct parked *parked)
{
	char time[COMMAND_TIME_SIZE];
	printf("%s  %s  ", parked->id, time_of(parked->id, time));
	command_print_path(parked->conflict.path);
	fputs("\n    ", stdout);
	if (has_file(parked)) {
		fputs("the sandbox's version: ", stdout);
		command_print_path(parked->file);
		putchar('\n');
	} else {
		fputs("the sandbox's version is only in the store\n", stdout);
	}
}

static void write_listing(struct json_writer *writer, const void *data)
{
	const struct list *list = data;
	json_write_key(writer, "conflicts");
	json_write_array(writer);
	LIST_FOR_EACH(parked, list, struct parked, link) {
		bool is_there = has_file(parked);
		json_write_object(writer);
		json_write_member(writer, "id", parked->id);
		json_write_member(writer, "path", parked->conflict.path);
		json_write_member(writer, "file", is_there ? parked->file : NULL);
		json_write_object_end(writer);
	}
	json_write_array_end(writer);
}

bool command_conflicts_list(struct command_context *context, struct error *err)
{
	struct list list;
	bool ok = conflicts_list(&context->store, &list, err);
	if (ok && context->options->flags & OPTION_JSON) {
		ok = command_print_json(write_listing, &list, err);
	} else if (ok && list_is_empty(&list)) {
		stderr_note("there are no conflicts");
	} else if (ok) {
		LIST_FOR_EACH(parked, &list, struct parked, link) {
			print_one(parked);
		}
	}
	conflicts_finish(&list);
	return ok;
}

/* ---- finding the conflict ---- */

static size_t count_path(const struct list *list, const char *path)
{
	size_t count = 0;
	LIST_FOR_EACH(parked, list, struct parked, link) {
		count += strcmp(parked->conflict.path, path) == 0;
	}
	return count;
}

static struct parked *fail_find(
	const struct list *list, const char *word, const char *path, struct error *err)
{
	char *quoted = path_quote(span_of(word));
	size_t count = count_path(list, path ? path : word);
	if (count > 1) {
		error_set(err, ERROR_NOT_FOUND,
			"%s has %zu conflicts: give the id of one (acp-broker conflicts list)",
			quoted, count);
	} else {
		error_set(err, ERROR_NOT_FOUND,
			"there is no conflict %s: acp-broker conflicts list prints all conflicts",
			quoted);
	}
	free(quoted);
	return NULL;
}

/* Finds it by its id, by its path as the user sees it, or by its path below the root. */
static struct parked *find(
	const struct command_context *context, struct list *list, struct error *err)
{
	struct error ignored;
	const char *word = context->options->words[0];
	char *path = store_place_path(&context->place, word, &ignored);
	struct parked *parked = path ? conflicts_find(list, path) : NULL;
	parked = parked ? parked : conflicts_find(list, word);
	parked = parked ? parked : fail_find(list, word, path, err);
	free(path);
	return parked;
}

static bool with_one(struct command_context *context,
	bool (*action)(struct command_context *, const struct parked *, struct error *),
	struct error *err)
{
	struct list list;
	struct parked *parked = NULL;
	if (conflicts_list(&context->store, &list, err)) {
		parked = find(context, &list, err);
	}
	bool ok = parked && action(context, parked, err);
	conflicts_finish(&list);
	return ok;
}

/* ---- show ---- */

/* Makes a tree with one version at its path, so that two versions can be compared. */
static bool tree_of(struct store *store, const struct parked *parked,
	const struct store_entry *version, git_oid *out_tree, struct error *err)
{
	struct graft graft = {version->mode, version->id};
	*out_tree = store_empty_tree;
	return !version->mode ||
	       graft_set(store, &store_empty_tree, parked->conflict.path, &graft, out_tree, err);
}

/* Shows how a version differs from the last common one. */
static bool show_change(struct command_context *context, const struct parked *parked,
	const struct store_entry *version, const char *whose, struct error *err)
{
	struct store *store = &context->store;
	git_oid base;
	git_oid now;
	struct checkpoint_reader reader = {command_print, context};
	if (!tree_of(store, parked, &parked->conflict.base, &base, err) ||
		!tree_of(store, parked, version, &now, err)) {
		return false;
	}
	printf("\na/: the last common version%s\nb/: %s version%s\n\n",
		parked->conflict.base.mode ? "" : ": nothing", whose,
		version->mode ? "" : ", which was deleted");
	return checkpoint_diff(store, &base, &now, CHECKPOINT_PATCH, &reader, err);
}

static bool show_all(
	struct command_context *context, const struct parked *parked, struct error *err)
{
	char time[COMMAND_TIME_SIZE];
	printf("conflict %s\nTime:    %s\n", parked->id, time_of(parked->id, time));
	return show_change(context, parked, &parked->conflict.local, "the local", err) &&
	       show_change(context, parked, &parked->conflict.runtime, "the sandbox's", err);
}

static bool show(struct command_context *context, const struct parked *parked, struct error *err)
{
	unsigned flags = context->options->flags & (OPTION_LOCAL | OPTION_RUNTIME);
	if (!flags) {
		return show_all(context, parked, err);
	}
	return conflicts_show(&context->store, parked,
		flags == OPTION_LOCAL ? CONFLICT_LOCAL : CONFLICT_RUNTIME, STDOUT_FILENO, err);
}

bool command_conflicts_show(struct command_context *context, struct error *err)
{
	unsigned both = OPTION_LOCAL | OPTION_RUNTIME;
	if ((context->options->flags & both) == both) {
		return error_set(err, ERROR_CONFIG,
			"conflicts show: expected --local or --runtime, not both; without either "
			"it shows how both differ from the last common version");
	}
	return with_one(context, show, err);
}

/* ---- take ---- */

static void print_kept(struct command_context *context, const struct parked *parked,
	enum parked_version version, const char *what)
{
	struct parked_place place = {&context->store, parked->id, parked->conflict.path};
	char *file = parked_file(&place, version);
	printf("    %s is kept for checkpoint-age: ", what);
	command_print_path(file);
	putchar('\n');
	free(file);
}

static bool take(struct command_context *context, const struct parked *parked, struct error *err)
{
	bool is_local = strcmp(context->options->words[1], "local") == 0;
	if (!conflicts_take(&context->store, context->place.root, parked,
		    is_local ? CONFLICT_LOCAL : CONFLICT_RUNTIME, err)) {
		return false;
	}
	command_print_path(parked->conflict.path);
	puts(is_local ? ": the local version stays." : ": the sandbox's version is in its place.");
	if (is_local) {
		print_kept(context, parked, PARKED_RUNTIME, "the sandbox's");
	} else if (parked->conflict.local.mode) {
		print_kept(context, parked, PARKED_LOCAL, "your earlier version");
	}
	return true;
}

bool command_conflicts_take(struct command_context *context, struct error *err)
{
	const char *side = context->options->words[1];
	if (strcmp(side, "local") != 0 && strcmp(side, "runtime") != 0) {
		char *quoted = path_quote(span_of(side));
		error_set(err, ERROR_CONFIG, "conflicts take: expected local or runtime, got %s",
			quoted);
		free(quoted);
		return false;
	}
	return command_lock(context, err) && with_one(context, take, err);
}

/* ---- edit ---- */

static bool edit_one(
	struct command_context *context, const struct parked *parked, struct error *err)
{
	struct conflict_edit edit = {0};
	struct store *store = &context->store;
	const char *root = context->place.root;
	bool ok = conflicts_edit_begin(store, root, parked, &edit, err) &&
	          merge_tool_run(context->environment, &edit, err) && command_lock(context, err) &&
	          conflicts_edit_end(store, root, parked, &edit, err);
	if (ok) {
		command_print_path(parked->conflict.path);
		puts(": your edit is in its place.");
		print_kept(context, parked, PARKED_LOCAL, "your earlier version");
	}
	conflicts_edit_finish(&edit);
	return ok;
}

/* Brokers may sync while the user edits; changes made meanwhile are found at the end. */
bool command_conflicts_edit(struct command_context *context, struct error *err)
{
	return with_one(context, edit_one, err);
}
