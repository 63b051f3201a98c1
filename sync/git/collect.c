/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/git.h"
#include "sync/id.h"
#include "sync/snapshot.h"
#include "sync/walk.h"

enum { BIG_FILES_MAX = 4096 };

void collecting_finish(struct collecting *collecting)
{
	big_files_finish(&collecting->base_files);
	big_files_finish(&collecting->files);
	collecting->next = NULL;
}

static void collect_end(struct git_transport *git, const struct error *err)
{
	struct transport_collected result = git->collecting.result;
	collecting_finish(&git->collecting);
	if (err) { // the findings were not reported
		memcpy(git->note, result.note, sizeof(git->note));
	}
	git->done.collect(git->done_data, err ? NULL : &result, err);
}

/* ---- the answer about the root ---- */

static bool add_big_file(struct git_transport *git, const struct line *line, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	struct store_entry entry = store_big_entry(&line->id, line->is_executable);
	size_t count = 0;
	if (!snapshot_path_is_safe(span_of(line->text))) {
		return error_set_reason(err, ERROR_PROTOCOL, "SECURITY_VIOLATION",
			"the sandbox sent \"%s\": the name is not allowed", line->text);
	}
	if (line->number > git->request.bytes_max) {
		return error_set(err, ERROR_LIMIT,
			"%s has %" PRIu64 " bytes, more than the allowed %" PRIu64, line->text,
			line->number, git->request.bytes_max);
	}
	LIST_FOR_EACH(file, &collecting->files, struct big_file, link) {
		count++;
		if (strcmp(file->path, line->text) ==
			0) { // reported twice, because it changed in between
			file->entry = entry;
			file->size = line->number;
			return true;
		}
	}
	if (count == BIG_FILES_MAX) {
		return error_set(err, ERROR_LIMIT,
			"more than %d files are over the limit of "
			"big files",
			BIG_FILES_MAX);
	}
	big_files_add(&collecting->files, line->text, &entry, line->number);
	return true;
}

/* Refuses before any file is read. */
static bool refuse_excess(
	const struct git_transport *git, const struct line *line, struct error *err)
{
	char shown[TEXT_SHORT_SIZE];
	char *quoted = path_quote(span_of(line->text));
	error_set(err, ERROR_LIMIT,
		"the big files of the sandbox have %" PRIu64 " MiB, more than %" PRIu64
		" MiB (max-size); the largest is %s: delete or exclude it, or raise max-size",
		line->number >> 20, git->request.bytes_max >> 20, text_short(shown, quoted));
	free(quoted);
	return false;
}

/* An unreadable path keeps its old entry. A big file may be reported twice. */
static void leave(struct git_transport *git, const char *path)
{
	struct collecting *collecting = &git->collecting;
	const struct big_file *base = big_files_find(&collecting->base_files, path);
	if (big_files_find(&collecting->files, path)) {
		return;
	}
	transport_left_add(&collecting->result.left, path);
	if (base) {
		big_files_add(&collecting->files, path, &base->entry, 0);
	}
}

static bool check_object(struct git_transport *git, struct line_object *object, struct error *err)
{
	if (object->type == GIT_OBJECT_TREE) {
		return trees_check_bytes(object->content, false, err);
	}
	return object->type == GIT_OBJECT_BLOB ||
	       error_set(err, ERROR_PROTOCOL, "the sandbox sent a commit as a file");
}

/* From here on the objects of the commits are handled separately. */
static bool begin_commits(struct git_transport *git, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	if (!trees_check(&git->store, &collecting->side_base, &collecting->side_tree, err)) {
		return false;
	}
	collecting->has_commits = true;
	git->received_count = 0;
	return true;
}

static bool take_collected(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	if (git->collecting.has_commits) {
		return git_take_commits(git, lines, line, err);
	}
	switch (line->kind) {
	case LINE_COMMITS:
	case LINE_UNTOLD:
	case LINE_WITHIN:
		return begin_commits(git, err) && git_take_commits(git, lines, line, err);
	case LINE_TREE:
		git->collecting.side_tree = line->id;
		return true;
	case LINE_BIG:
		return add_big_file(git, line, err);
	case LINE_OVER:
		return refuse_excess(git, line, err);
	case LINE_LEFT:
		leave(git, line->text);
		return true;
	case LINE_REPOSITORY:
		git->history->is_lost = strcmp(line->text, "none") == 0;
		return true;
	case LINE_OBJECTS:
		return git_receive_objects(git, lines, line->number, check_object, err);
	default:
		return error_set(
			err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
	}
}

/* ---- the steps ---- */

static bool work_open(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	if (!git_open_store(git, err) ||
		!git_strip(git, &collecting->base, &collecting->side_base, err)) {
		return false;
	}
	bool has_big = !id_equal(&collecting->base, &collecting->side_base);
	return !has_big ||
	       trees_list_big(&git->store, &collecting->base, &collecting->base_files, err);
}

static bool ask(struct git_transport *git, int fd, struct error *err)
{
	LIST_FOR_EACH(file, &git->collecting.base_files, struct big_file, link) {
		struct span name = {file->path, strlen(file->path) + 1};
		if (!fd_write_all(fd, SPAN_LITERAL("./"), err) || !fd_write_all(fd, name, err)) {
			return false;
		}
	}
	return git_write_known_commits(git, fd, err);
}

/* Reads the answer, and decides which part of it is kept. */
static bool take_answer(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	struct error why;
	bool answered = git_read_answer(git, ends, take_collected, &why);
	point("collect.answered");
	if (collecting->has_commits) {
		return answered ? git_keep_commits(git, err) : git_refuse_commits(git, &why, err);
	}
	if (answered && (git->is_missing || trees_check(&git->store, &collecting->side_base,
						    &collecting->side_tree, &why))) {
		return true;
	}
	git_discard_received(git);
	*err = why;
	return false;
}

static bool work_collect(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	struct error ask_err;
	bool asked = ask(git, ends->out, &ask_err);
	point("collect.asked");
	fd_close(&ends->out);
	collecting->side_tree = (git_oid){{0}};
	collecting->has_commits = false;
	big_files_finish(&collecting->files);
	collecting->result.left = (struct transport_left){0};
	git->received_count = 0;
	git->told = 0;
	git->history = git->histories[0];
	if (!take_answer(git, ends, err)) {
		return false;
	}
	if (!asked) {
		*err = ask_err;
	}
	return asked;
}

/*
 * Tells the user, and does not fetch the file again: a file that a program writes all the time
 * would never arrive.
 */
static void note_written(struct git_transport *git, const char *path)
{
	char shown[TEXT_SHORT_SIZE];
	char *quoted = path_quote(span_of(path));
	git_tell_user(git, "%s was written to while it was read: it may mix old and new content",
		text_short(shown, quoted));
	free(quoted);
}

/* A file that became shorter during the transfer keeps its entry from the base. */
static void leave_written(struct git_transport *git, struct big_file *file)
{
	struct collecting *collecting = &git->collecting;
	transport_left_add(&collecting->result.left, file->path);
	uint32_t mode;
	base_lookup(&git->store, &collecting->base, file->path, &mode, &file->entry.id);
	file->entry.mode = mode;
	file->is_left = true;
}

static bool work_fetch(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	struct big_file *file = collecting->next;
	struct store_entry announced = file->entry;
	struct store_before before = {.entry = {.mode = ENTRY_NONE}};
	const struct big_file *base = big_files_find(&collecting->base_files, file->path);
	struct extents extents;
	point("collect.fetching");
	fd_close(&ends->out);
	if (!extents_read(&extents, ends->in, file->size, err)) {
		return error_prefix(err, "fetching %s", file->path);
	}
	before.entry = base ? base->entry : before.entry;
	if (!store_put_big(&git->store, ends->in, &extents, &before, &file->entry, err)) {
		if (error_has_reason(err, "SYNC_BUSY")) {
			leave_written(git, file);
			return true;
		}
		return error_prefix(err, "fetching %s", file->path);
	}
	if (!store_entry_equal(&file->entry, &announced)) {
		note_written(git, file->path);
	}
	collecting->result.received_bytes += extents_bytes(&extents);
	collecting->fetched_bytes += file->size; // holes take time too
	return collecting->fetched_bytes <= git->request.bytes_max ||
	       error_set(err, ERROR_LIMIT,
		       "the sandbox sent more than the allowed %" PRIu64 " bytes",
		       git->request.bytes_max);
}

static bool work_join(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	if (!trees_join(&git->store, &collecting->side_tree, &collecting->files,
		    &collecting->result.tree, err)) {
		return false;
	}
	point("collect.joined");
	git->known = (struct side_pair){collecting->result.tree, collecting->side_tree};
	return true;
}

/* Work: finds the first big file, from `next` on, that the store lacks. */
static bool work_find_next(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct collecting *collecting = &git->collecting;
	struct list *at = collecting->next ? &collecting->next->link : &collecting->files;
	collecting->next = NULL;
	for (at = at->next; at != &collecting->files; at = at->next) {
		struct big_file *file = LIST_ENTRY(at, struct big_file, link);
		if (!file->is_left && !store_has(&git->store, &file->entry)) {
			collecting->next = file;
			return true;
		}
	}
	return work_join(git, ends, err);
}

static void collect_next(struct git_transport *git);

static void collect_find_next(struct git_transport *git)
{
	git_run(git, &(struct git_step){
			     .script = SCRIPT_NONE, .work = work_find_next, .then = collect_next});
}

static void collect_next(struct git_transport *git)
{
	if (!git->collecting.next) {
		git_end(git, NULL);
		return;
	}
	char path[LINE_PATH_MAX + 3], size[24];
	text_whole(path, sizeof(path), "./%s", git->collecting.next->path);
	snprintf(size, sizeof(size), "%" PRIu64, git->collecting.next->size);
	git_run(git, &(struct git_step){.script = SCRIPT_FETCH,
			     .args = {path, size},
			     .work = work_fetch,
			     .then = collect_find_next});
}

static void collect_ask(struct git_transport *git);

static void collect_asked(struct git_transport *git)
{
	if (!git->is_missing) {
		collect_find_next(git);
		return;
	}
	struct error err;
	if (git->was_seeded) {
		error_set(&err, ERROR_PROTOCOL,
			"the sandbox has lost the data that the broker just sent");
		git_end(git, &err);
		return;
	}
	git->was_seeded = true;
	git_import(git, &git->collecting.side_base, collect_ask);
}

static void collect_ask(struct git_transport *git)
{
	char base[GIT_OID_HEXSZ + 1], limit[24], count[16], max[24];
	git->store.git->oid_tostr(base, sizeof(base), &git->collecting.side_base);
	snprintf(limit, sizeof(limit), "%" PRIu64, git->store.big_file_bytes);
	snprintf(count, sizeof(count), "%d", AGENT_COMMITS_MAX);
	snprintf(max, sizeof(max), "%" PRIu64, git->request.bytes_max);
	char *inner = git_list_inner(git);
	git_run(git, &(struct git_step){.script = SCRIPT_COLLECT,
			     .args = {base, limit, git->pathspecs, git->includes, count, max, inner,
				     git->wants_bases ? "bases" : ""},
			     .work = work_collect,
			     .then = collect_asked});
	free(inner);
}

static void collect_begin(struct git_transport *git)
{
	git_run(git,
		&(struct git_step){.script = SCRIPT_NONE, .work = work_open, .then = collect_ask});
}

void git_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data)
{
	struct git_transport *git = git_from(transport);
	git->collecting.base = *base;
	git->collecting.result = (struct transport_collected){0};
	git_tell_user(git, "%s", git->note);
	git->collecting.fetched_bytes = 0;
	git->note[0] = '\0';
	git->done.collect = done;
	git_begin(git, collect_begin, collect_end, data);
}
