/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/git.h"
#include "sync/id.h"

enum { BUF_MAX = 64 << 10, FIELDS_MAX = LINE_PATH_MAX + 256 };

/*
 * Objects travel to the runtime as a stream for git-fast-import(1): the difference of two trees,
 * with the contents uncompressed. That avoids making a pack, which would compress everything, and
 * needs only one file in memory at a time. A content that was sent with the history is only named.
 */
struct import {
	struct git_transport *git;
	int fd;
	struct buf buf;
};

static bool flush(struct import *import, struct error *err)
{
	bool written = fd_write_all(import->fd, buf_span(&import->buf), err);
	import->git->delivering.result.sent_bytes += import->buf.len;
	buf_clear(&import->buf);
	return written || error_prefix(err, "sending to the sandbox");
}

static bool put(struct import *import, struct span bytes, struct error *err)
{
	if (import->buf.len + bytes.len > BUF_MAX && !flush(import, err)) {
		return false;
	}
	if (bytes.len <= BUF_MAX) {
		return buf_append(&import->buf, bytes, err);
	}
	import->git->delivering.result.sent_bytes += bytes.len;
	return fd_write_all(import->fd, bytes, err) || error_prefix(err, "sending to the sandbox");
}

/* In quotes for git-fast-import(1), with the end of the line. */
static bool put_path(struct import *import, const char *path, struct error *err)
{
	if (!put(import, SPAN_LITERAL("\""), err)) {
		return false;
	}
	while (*path) {
		size_t plain = strcspn(path, "\"\\\n");
		if (!put(import, (struct span){path, plain}, err)) {
			return false;
		}
		path += plain;
		if (!*path) {
			break;
		}
		const char escaped[] = {'\\', *path == '\n' ? 'n' : *path};
		if (!put(import, (struct span){escaped, sizeof(escaped)}, err)) {
			return false;
		}
		path++;
	}
	return put(import, SPAN_LITERAL("\"\n"), err);
}

static bool put_content(struct import *import, const git_oid *id, struct error *err)
{
	struct store *store = &import->git->store;
	const struct git *git = store->git;
	git_odb_object *object = NULL;
	char head[32];
	if (git->odb_read(&object, store->odb, id) < 0) {
		return error_set_git(git, err, "reading the store %s", store->path);
	}
	struct span content = {git->odb_object_data(object), git->odb_object_size(object)};
	snprintf(head, sizeof(head), "data %zu\n", content.len);
	bool written = put(import, span_of(head), err) && put(import, content, err) &&
	               put(import, SPAN_LITERAL("\n"), err);
	git->odb_object_free(object);
	return written;
}

static bool put_known(struct import *import, const struct tree_change *change, struct error *err)
{
	char head[GIT_OID_HEXSZ + 32], hex[GIT_OID_HEXSZ + 1];
	import->git->store.git->oid_tostr(hex, sizeof(hex), &change->to.id);
	text_whole(head, sizeof(head), "M %o %s ", (unsigned)change->to.mode, hex);
	return put(import, span_of(head), err) && put_path(import, change->path, err);
}

static bool put_change(void *data, const struct tree_change *change, struct error *err)
{
	struct import *import = data;
	char head[32];
	point("import.sending");
	if (change->to.mode == ENTRY_NONE) {
		return put(import, SPAN_LITERAL("D "), err) && put_path(import, change->path, err);
	}
	if (id_set_has(&import->git->shared, &change->to.id)) {
		return put_known(import, change, err);
	}
	snprintf(head, sizeof(head), "M %o inline ", (unsigned)change->to.mode);
	return put(import, span_of(head), err) && put_path(import, change->path, err) &&
	       put_content(import, &change->to.id, err);
}

/* A commit of ours on a ref, without a parent. */
static bool put_commit(struct import *import, const char *ref, struct error *err)
{
	char head[160];
	text_whole(head, sizeof(head), "commit %s\ncommitter acp-broker <> 0 +0000\ndata 0\n", ref);
	return put(import, span_of(head), err);
}

static bool put_trees(struct import *import, const struct stream *stream, struct error *err)
{
	struct store *store = &import->git->store;
	char head[GIT_OID_HEXSZ + 32] = "", hex[GIT_OID_HEXSZ + 1];
	if (id_equal(&stream->from, &stream->to)) {
		return true;
	}
	if (!id_equal(&stream->from, &store_empty_tree)) {
		store->git->oid_tostr(hex, sizeof(hex), &stream->from);
		text_whole(head, sizeof(head), "M 040000 %s \"\"\n", hex);
	}
	return put_commit(import, "refs/acp-broker/to", err) && put(import, span_of(head), err) &&
	       trees_compare(store, &stream->from, &stream->to, put_change, import, err) &&
	       put(import, SPAN_LITERAL("ls \"\"\n"), err); // reports the resulting tree
}

/* ---- big files ---- */

void git_short_id(const struct git_transport *git, const struct store_entry *entry, char *hex)
{
	git->store.git->oid_tostr(hex, GIT_OID_HEXSZ + 1, &entry->id);
	hex[GIT_OID_HEXSZ - 1] = '\0';
}

/* The format that sync/git/remote/deliver.sh reads. */
static struct span format_swap(
	const struct git_transport *git, const struct swap *swap, char fields[FIELDS_MAX])
{
	char was[GIT_OID_HEXSZ + 1], becomes[GIT_OID_HEXSZ + 1];
	bool is_executable = store_entry_is_executable(&swap->to);
	bool will_be_big = swap->to.mode == ENTRY_BIG;
	git_short_id(git, &swap->from, was);
	git_short_id(git, &swap->to, becomes);
	if (!will_be_big) {
		git->store.git->oid_tostr(becomes, sizeof(becomes), &swap->to.id);
	}
	int length = snprintf(fields, FIELDS_MAX, "%s%c%s%c%s%c%s%c%o%c", swap->path, 0,
		swap->from.mode == ENTRY_NONE  ? "none"
		: swap->from.mode == ENTRY_BIG ? was
					       : "small",
		0,
		swap->to.mode == ENTRY_NONE ? "none"
		: will_be_big               ? "big"
					    : "blob",
		0, becomes, 0,
		will_be_big ? (unsigned)(is_executable ? ENTRY_EXECUTABLE : ENTRY_FILE)
			    : (unsigned)swap->to.mode,
		0);
	return (struct span){fields, (size_t)length};
}

static bool put_swaps(struct import *import, struct error *err)
{
	struct git_transport *git = import->git;
	struct list *swaps = &git->delivering.swaps;
	char head[64], fields[FIELDS_MAX];
	size_t length = 0;
	if (list_is_empty(swaps)) {
		return true;
	}
	LIST_FOR_EACH(counted, swaps, struct swap, link) {
		length += format_swap(git, counted, fields).len;
	}
	snprintf(head, sizeof(head), "M 100644 inline swaps\ndata %zu\n", length);
	if (!put_commit(import, "refs/acp-broker/swaps", err) || !put(import, span_of(head), err)) {
		return false;
	}
	LIST_FOR_EACH(swap, swaps, struct swap, link) {
		if (!put(import, format_swap(git, swap, fields), err)) {
			return false;
		}
	}
	return put(import, SPAN_LITERAL("\n"), err);
}

/* ---- all of it ---- */

static bool put_all(struct import *import, const struct stream *stream, struct error *err)
{
	if (!put_trees(import, stream, err) || !flush(import, err)) {
		return false;
	}
	point("import.sent");
	return (!stream->has_swaps || put_swaps(import, err)) &&
	       put(import, SPAN_LITERAL("done\n"), err) && flush(import, err);
}

bool git_send_stream(
	struct git_transport *git, const struct stream *stream, int fd, struct error *err)
{
	struct import import = {.git = git, .fd = fd};
	buf_init(&import.buf, BUF_MAX);
	bool sent = put_all(&import, stream, err);
	buf_finish(&import.buf);
	id_set_finish(&git->shared); // SIDE may be made again before the next stream
	return sent;
}

/* ---- a single tree ---- */

static bool take_imported(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	const git_oid *wanted = &git->delivering.seed;
	if (line->kind == LINE_TREE && id_equal(&line->id, wanted)) {
		return true;
	}
	return error_set(
		err, ERROR_PROTOCOL, "the sandbox did not accept the data that it was sent");
}

/* If a stream could not be sent, the script's own error is more useful. */
static bool work_import(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	const struct stream stream = {.from = store_empty_tree, .to = git->delivering.seed};
	struct error send_err;
	bool sent = git_send_stream(git, &stream, ends->out, &send_err);
	fd_close(&ends->out);
	if (!git_read_answer(git, ends, take_imported, err)) {
		return false;
	}
	if (!sent) {
		*err = send_err;
	}
	return sent;
}

void git_import(
	struct git_transport *git, const git_oid *tree, void (*then)(struct git_transport *git))
{
	git->delivering.seed = *tree;
	id_set_finish(&git->shared); // it may have lost exactly these
	git_run(git,
		&(struct git_step){.script = SCRIPT_IMPORT, .work = work_import, .then = then});
}
