/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path_quote.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"
#include "sync/git/inner.h"
#include "sync/git/take.h"

enum { PRINTED_MAX = 50, ID_PRINTED = 12 };

struct report {
	size_t differing, parked;
};

static void on_differs(void *data, const char *path, const char *how)
{
	struct report *report = data;
	if (report->differing++ < PRINTED_MAX) {
		char *quoted = path_quote(span_of(path));
		stderr_note("%s: %s", quoted, how);
		free(quoted);
	}
}

static void on_parked(void *data, const char *path)
{
	struct report *report = data;
	report->parked++;
	command_print_path(path);
	puts(": your version stays, as a change; the agent's is parked (acp-broker conflicts)");
}

static void print_move(const struct take_result *result)
{
	command_print_path(result->branch);
	if (!*result->now) {
		puts(" has no commit again, and the index is as before. No file was changed.");
		return;
	}
	printf(" is at %.*s", ID_PRINTED, result->now);
	if (*result->old) {
		printf(", and was at %.*s", ID_PRINTED, result->old);
	}
}

static void print_taken(const struct take_result *result)
{
	if (result->has_all) {
		command_print_path(result->branch);
		puts(" already has all of the agent's commits: nothing to do.");
		return;
	}
	print_move(result);
	printf(": it got %zu commit%s from the agent's branch ", result->commits,
		result->commits == 1 ? "" : "s");
	command_print_path(result->taken);
	printf(".\nThe index has their %zu file%s; no file was changed.\n"
	       "acp-broker commits take --undo moves both back.\n",
		result->files, result->files == 1 ? "" : "s");
}

static bool undo(const struct take_request *request, struct error *err)
{
	struct take_result result;
	if (!take_undo(request, &result, err)) {
		return error_prefix(err, "commits take --undo");
	}
	print_move(&result);
	if (*result.now) {
		puts(". The index is as before; no file was changed.");
	}
	return true;
}

static bool take(const struct take_request *request, struct error *err)
{
	struct take_result result;
	const struct report *report = request->data;
	bool ok = take_commits(request, &result, err);
	if (report->differing > PRINTED_MAX) {
		stderr_note("and %zu more", report->differing - PRINTED_MAX);
	}
	if (ok) {
		print_taken(&result);
	}
	return ok || error_prefix(err, "commits take");
}

/*
 * The innermost repository in the workspace that contains the working directory, as git would find
 * it; "" for the workspace's own. The caller frees it.
 */
static char *find_repository(const struct store_place *place, char root[PATH_MAX])
{
	char *path = mem_strdup(place->below);
	while (*path) {
		char folder[PATH_MAX + 8];
		char *slash = strrchr(path, '/');
		if (inner_root(place->real_root, path, root) &&
			text_whole(folder, sizeof(folder), "%s/.git", root) &&
			access(folder, F_OK) == 0) {
			return path;
		}
		*(slash ? slash : path) = '\0';
	}
	(void)!inner_root(place->real_root, "", root);
	return path;
}

bool command_commits_take(struct command_context *context, struct error *err)
{
	const struct options *options = context->options;
	bool is_undo = options->flags & OPTION_UNDO;
	struct report report = {0};
	if (is_undo && options->word_count > 0) {
		return error_set(
			err, ERROR_CONFIG, "commits take: expected a branch or --undo, not both");
	}
	if (!context->place.real_root) {
		return error_set(err, ERROR_NOT_FOUND, "%s is gone", context->place.root);
	}
	char root[PATH_MAX];
	char *repository = find_repository(&context->place, root);
	struct list parked;
	list_init(&parked);
	bool ok = command_lock(context, err) && conflicts_list(&context->store, &parked, err);
	struct take_request request = {
		.store = &context->store,
		.root = root,
		.repository = repository,
		.environment = context->environment,
		.branch = options->word_count > 0 ? options->words[0] : NULL,
		.parked = &parked,
		.on_differs = on_differs,
		.on_parked = on_parked,
		.data = &report,
	};
	ok = ok && (is_undo ? undo(&request, err) : take(&request, err));
	conflicts_finish(&parked);
	free(repository);
	return ok;
}
