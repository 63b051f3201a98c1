/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shell_quote.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"
#include "sync/git/commits.h"
#include "sync/id.h"

enum {
	COMMITS_MAX = 65536,  // per branch
	COMMITS_PRINTED = 20, // per branch, as text
	ID_PRINTED = 12,      // digits
};

/* One branch is read at a time, because all of them may be large. */
struct listing {
	struct command_context *context;
	struct json_writer *writer; // NULL: print text
	size_t branches;
	size_t commits; // of the present branch
};

/* ---- the command that fetches a branch ---- */

/* Leaves out quotes that are not needed, to be easier to read. */
static char *quote(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+=:@%,";
	return word[strspn(word, plain)] ? shell_quote(word) : mem_strdup(word);
}

/* The path of a nested repository; "" for the workspace's own, where the user already is. */
static char *quote_folder(const struct command_context *context, const struct agent_branch *branch)
{
	char *path = NULL;
	if (!*branch->repository) {
		return mem_strdup("");
	}
	if (asprintf(&path, "%s/%s", context->place.root, branch->repository) < 0) {
		abort();
	}
	char *folder = quote(path);
	free(path);
	return folder;
}

/*
 * A line for a shell that is safe whatever name the agent has given its branch; the caller frees
 * it.
 */
static char *fetch_line(const struct listing *listing, const struct agent_branch *branch)
{
	const struct command_context *context = listing->context;
	char *store = quote(context->store.path);
	char *name = quote(branch->ref);
	char *line = NULL;
	char *folder = quote_folder(context, branch);
	const char *space = *folder ? " " : "";
	if (asprintf(&line, "git %s%s%sfetch %s %s", *folder ? "-C " : "", folder, space, store,
		    name) < 0) {
		abort();
	}
	free(folder);
	free(store);
	free(name);
	return line;
}

/* ---- as JSON ---- */

static void write_branch(
	struct listing *listing, const struct agent_branch *branch, const char *fetch)
{
	struct json_writer *writer = listing->writer;
	char id[ID_TEXT_SIZE];
	json_write_object(writer);
	json_write_member(writer, "repository", branch->repository);
	json_write_member(writer, "branch", branch->name);
	json_write_member(writer, "id", id_text(id, &branch->tip));
	json_write_member(writer, "ref", branch->ref);
	json_write_member(writer, "fetch", fetch);
	json_write_key(writer, "commits");
	json_write_array(writer);
}

static void write_commit(struct json_writer *writer, const struct agent_commit *commit)
{
	char id[ID_TEXT_SIZE];
	json_write_object(writer);
	json_write_member(writer, "id", id_text(id, &commit->id));
	json_write_member_int(writer, "time", commit->time);
	json_write_member(writer, "author", commit->author);
	json_write_member(writer, "subject", commit->subject);
	json_write_object_end(writer);
}

/* ---- as text ---- */

static void print_branch(
	const struct listing *listing, const struct agent_branch *branch, const char *fetch)
{
	if (*branch->repository) {
		command_print_path(branch->repository);
		fputs(": ", stdout);
	}
	command_print_path(branch->name);
	fputs("\n    ", stdout);
	command_print(listing->context, span_of(fetch));
	putchar('\n');
}

static void print_commit(const struct listing *listing, const struct agent_commit *commit)
{
	char time[COMMAND_TIME_SIZE];
	char id[ID_TEXT_SIZE];
	printf("    %.*s  %s  ", ID_PRINTED, id_text(id, &commit->id),
		command_time(time, commit->time));
	command_print(listing->context, span_of(commit->author));
	fputs(": ", stdout);
	command_print(listing->context, span_of(commit->subject));
	putchar('\n');
}

/* ---- list ---- */

static void end_branch(const struct listing *listing)
{
	if (listing->branches == 0) {
		return;
	}
	if (listing->writer) {
		json_write_array_end(listing->writer);
		json_write_object_end(listing->writer);
	} else if (listing->commits > COMMITS_PRINTED) {
		printf("    and %zu more\n", listing->commits - COMMITS_PRINTED);
	}
}

static bool on_branch(void *data, const struct agent_branch *branch)
{
	struct listing *listing = data;
	char *fetch = fetch_line(listing, branch);
	end_branch(listing);
	listing->branches++;
	listing->commits = 0;
	if (listing->writer) {
		write_branch(listing, branch, fetch);
	} else {
		print_branch(listing, branch, fetch);
	}
	free(fetch);
	return true;
}

static bool on_commit(void *data, const struct agent_commit *commit)
{
	struct listing *listing = data;
	listing->commits++;
	if (listing->writer) {
		write_commit(listing->writer, commit);
	} else if (listing->commits <= COMMITS_PRINTED) {
		print_commit(listing, commit);
	}
	return true;
}

static bool list(struct listing *listing, struct error *err)
{
	struct agent_commits_visitor visitor = {on_branch, on_commit, listing};
	bool ok = agent_commits_list(&listing->context->store, COMMITS_MAX, &visitor, err);
	end_branch(listing);
	return ok;
}

struct writing {
	struct listing *listing;
	bool *ok;
	struct error *err;
};

static void write_listing(struct json_writer *writer, const void *data)
{
	const struct writing *writing = data;
	json_write_member(writer, "store", writing->listing->context->store.path);
	json_write_key(writer, "branches");
	json_write_array(writer);
	writing->listing->writer = writer;
	*writing->ok = list(writing->listing, writing->err);
	json_write_array_end(writer);
}

bool command_commits_list(struct command_context *context, struct error *err)
{
	struct listing listing = {.context = context};
	if (context->options->flags & OPTION_JSON) {
		bool ok = false;
		struct writing writing = {&listing, &ok, err};
		return command_print_json(write_listing, &writing, err) && ok;
	}
	bool ok = list(&listing, err);
	if (ok && listing.branches == 0) {
		stderr_note("no agent has committed anything here");
	}
	return ok;
}
