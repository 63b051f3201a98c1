/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/point.h"
#include "sync/git/git.h"
#include "sync/id.h"
#include "sync/snapshot.h"

enum { FEW_MAX = 100 };

static const char stuck_there[] = "it cannot be replaced in the sandbox";

void delivering_finish(struct delivering *delivering)
{
	buf_finish(&delivering->few);
	LIST_FOR_EACH(swap, &delivering->swaps, struct swap, link) {
		list_remove(&swap->link);
		free(swap->path);
		free(swap);
	}
	delivering->next = NULL;
	stuck_finish(&delivering->stuck);
}

static void deliver_end(struct git_transport *git, const struct error *err)
{
	struct transport_delivered result = git->delivering.result;
	struct stuck stuck = git->delivering.stuck;
	git->delivering.stuck = (struct stuck){0};
	delivering_finish(&git->delivering);
	if (err) {
		result.stuck = &stuck;
		result.is_lasting = result.is_lasting || error_has_reason(err, "DISK_FULL");
	}
	git->done.deliver(git->done_data, &result, err); // may destroy the transport
	stuck_finish(&stuck);
}

/* ---- what to do ---- */

static void add_swap(struct delivering *delivering, const struct tree_change *change)
{
	struct swap *swap = mem_alloc_zero(sizeof(*swap));
	swap->path = mem_strdup(change->path);
	swap->from = change->from;
	swap->to = change->to;
	list_append(&delivering->swaps, &swap->link);
}

/*
 * Whether the change can be added. A path must be one line, and git gives a quote a special
 * meaning.
 */
static bool add_to_few(struct git_transport *git, const struct tree_change *change, struct buf *few)
{
	const struct git *library = git->store.git;
	char from[GIT_OID_HEXSZ + 1];
	if (change->to.mode == ENTRY_NONE || change->path[0] == '"' || strchr(change->path, '\n') ||
		++git->delivering.few_count > FEW_MAX) {
		return false;
	}
	library->oid_tostr(from, sizeof(from), &change->from.id);
	return buf_append_format(
		few, NULL, "%o %s\t%s\n", (unsigned)change->from.mode, from, change->path);
}

static bool note_change(void *data, const struct tree_change *change, struct error *err)
{
	struct git_transport *git = data;
	struct delivering *delivering = &git->delivering;
	if (change->from.mode == ENTRY_BIG || change->to.mode == ENTRY_BIG) {
		add_swap(delivering, change);
		delivering->is_few = false;
	}
	delivering->is_few = delivering->is_few && add_to_few(git, change, &delivering->few);
	return true;
}

static void find_next(struct delivering *delivering)
{
	struct list *at = delivering->next ? &delivering->next->link : &delivering->swaps;
	delivering->next = NULL;
	for (at = at->next; at != &delivering->swaps && !delivering->next; at = at->next) {
		struct swap *swap = LIST_ENTRY(at, struct swap, link);
		delivering->next = swap->to.mode == ENTRY_BIG ? swap : NULL;
	}
}

static bool work_open(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct delivering *delivering = &git->delivering;
	bool opened = git_open_store(git, err) &&
	              git_strip(git, &delivering->from, &delivering->side_from, err) &&
	              git_strip(git, &delivering->to, &delivering->side_to, err) &&
	              trees_compare(&git->store, &delivering->from, &delivering->to, note_change,
			      git, err);
	find_next(delivering);
	return opened && git_read_history(git, err);
}

/* ---- big files ---- */

static bool take_nothing(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	return error_set(err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
}

/* Work: finds which parts of the next big file must be sent. */
static bool work_extents(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct delivering *delivering = &git->delivering;
	const struct swap *swap = delivering->next;
	if (!store_big_extents(&git->store, &swap->to, &delivering->extents, err)) {
		return error_prefix(err, "sending %s", swap->path);
	}
	if (git->takes_no_blocks) {
		extents_of_all(&delivering->extents, delivering->extents.size);
	}
	return true;
}

/* If it cannot be sent in parts, the next step sends it as a whole. */
static bool work_upload(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct delivering *delivering = &git->delivering;
	const struct swap *swap = delivering->next;
	const struct extents *extents = &delivering->extents;
	struct error send_err;
	bool sent = store_send_big(&git->store, &swap->to, extents, ends->out, &send_err);
	point("upload.sent");
	fd_close(&ends->out);
	delivering->result.sent_bytes += extents_bytes(extents);
	if (!git_read_answer(git, ends, take_nothing, err)) {
		stuck_add(&delivering->stuck, swap->path, stuck_there);
		return error_prefix(err, "sending %s", swap->path);
	}
	bool is_refused = git->takes_no_blocks && !extents_are_all(extents);
	if (!sent && !is_refused) {
		*err = send_err;
		return error_prefix(err, "sending %s", swap->path);
	}
	return true;
}

/* ---- the change ---- */

static bool take_stuck(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	if (line->kind != LINE_STUCK || !snapshot_path_is_safe(span_of(line->text))) {
		return take_nothing(git, lines, line, err);
	}
	stuck_add(&git->delivering.stuck, line->text, stuck_there);
	return true;
}

static bool work_deliver(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct delivering *delivering = &git->delivering;
	const struct stream stream = {
		.from = delivering->side_from, .to = delivering->side_to, .has_swaps = true};
	struct error send_err;
	bool sent = git_send_stream(git, &stream, ends->out, &send_err);
	point("deliver.asked");
	fd_close(&ends->out);
	if (!git_read_answer(git, ends, take_stuck, err)) {
		return false;
	}
	if (git->is_missing) {
		return true;
	}
	point("deliver.done");
	if (!sent) {
		*err = send_err;
	}
	return sent;
}

/* ---- the steps ---- */

static void deliver_apply(struct git_transport *git);

static void deliver_seed(struct git_transport *git)
{
	struct error err;
	if (git->was_seeded) {
		error_set(&err, ERROR_PROTOCOL,
			"the sandbox has lost the data that it was just sent");
		git_end(git, &err);
		return;
	}
	git->was_seeded = true;
	git_import(git, &git->delivering.side_from, deliver_apply);
}

static void deliver_applied(struct git_transport *git)
{
	if (git->is_missing) {
		deliver_seed(git);
		return;
	}
	git_update_repository(git);
}

static void deliver_apply(struct git_transport *git)
{
	char from[GIT_OID_HEXSZ + 1], to[GIT_OID_HEXSZ + 1];
	git->store.git->oid_tostr(from, sizeof(from), &git->delivering.side_from);
	git->store.git->oid_tostr(to, sizeof(to), &git->delivering.side_to);
	char *few = mem_strndup(
		git->delivering.is_few ? buf_span(&git->delivering.few) : SPAN_LITERAL(""));
	git_run(git, &(struct git_step){.script = SCRIPT_DELIVER,
			     .args = {from, to,
				     list_is_empty(&git->delivering.swaps) ? "" : "swaps", few},
			     .work = work_deliver,
			     .then = deliver_applied});
	free(few);
}

static void deliver_next(struct git_transport *git);

static void deliver_uploaded(struct git_transport *git)
{
	struct delivering *delivering = &git->delivering;
	if (!git->takes_no_blocks || extents_are_all(&delivering->extents)) {
		find_next(delivering);
	}
	deliver_next(git);
}

static void deliver_upload(struct git_transport *git)
{
	const struct delivering *delivering = &git->delivering;
	char id[GIT_OID_HEXSZ + 1], size[24], blocks[EXTENTS_TEXT_SIZE] = "all";
	git_short_id(git, &delivering->next->to, id);
	snprintf(size, sizeof(size), "%" PRIu64, delivering->extents.size);
	if (!extents_are_all(&delivering->extents)) {
		extents_format(&delivering->extents, blocks);
	}
	git_run(git, &(struct git_step){.script = SCRIPT_UPLOAD,
			     .args = {id, size, blocks},
			     .work = work_upload,
			     .then = deliver_uploaded});
}

static void deliver_next(struct git_transport *git)
{
	if (!git->delivering.next) {
		deliver_apply(git);
		return;
	}
	git_run(git, &(struct git_step){
			     .script = SCRIPT_NONE, .work = work_extents, .then = deliver_upload});
}

static void deliver_opened(struct git_transport *git)
{
	const struct delivering *delivering = &git->delivering;
	if (id_equal(&delivering->from, &delivering->to)) {
		git_update_repository(git);
		return;
	}
	deliver_next(git);
}

static void deliver_begin(struct git_transport *git)
{
	git_run(git, &(struct git_step){
			     .script = SCRIPT_NONE, .work = work_open, .then = deliver_opened});
}

void git_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data)
{
	struct git_transport *git = git_from(transport);
	git->delivering.from = *from;
	git->delivering.to = *to;
	git->delivering.is_few = true;
	git->delivering.few_count = 0;
	git->delivering.result = (struct transport_delivered){0};
	git->done.deliver = done;
	git_begin(git, deliver_begin, deliver_end, data);
}
