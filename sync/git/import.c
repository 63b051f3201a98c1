/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/point.h"
#include "sync/git/git.h"
#include "sync/id.h"

/*
 * Objects travel to the runtime as a stream for git-fast-import(1): the difference of two
 * trees with the contents as they are. No pack has to be made here, where it would cost a
 * compression of everything, and one file is in memory at a time.
 */
struct import {
	struct git_transport *git;
	int fd;
	struct buf buf;
};

enum { BUF_MAX = 64 << 10 };

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

/* In quotes as git-fast-import(1) reads them, with the line's end. */
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

static bool put_change(void *data, const struct tree_change *change, struct error *err)
{
	struct import *import = data;
	char head[32];
	point("import.sending");
	if (change->to.mode == ENTRY_NONE) {
		return put(import, SPAN_LITERAL("D "), err) && put_path(import, change->path, err);
	}
	snprintf(head, sizeof(head), "M %o inline ", (unsigned)change->to.mode);
	return put(import, span_of(head), err) && put_path(import, change->path, err) &&
	       put_content(import, &change->to.id, err);
}

static bool put_all(struct import *import, struct error *err)
{
	struct git_transport *git = import->git;
	const git_oid *from = &git->delivering.import_from;
	char head[160], hex[GIT_OID_HEXSZ + 1];
	git->store.git->oid_tostr(hex, sizeof(hex), from);
	bool is_first = id_equal(from, &store_empty_tree);
	int length = snprintf(head, sizeof(head),
		"commit refs/acp-broker/to\ncommitter acp-broker <> 0 +0000\ndata 0\n");
	if (!is_first) {
		snprintf(head + length, sizeof(head) - (size_t)length, "M 040000 %s \"\"\n", hex);
	}
	return put(import, span_of(head), err) &&
	       trees_compare(
		       &git->store, from, &git->delivering.import_to, put_change, import, err) &&
	       put(import, SPAN_LITERAL("done\n"), err) && flush(import, err);
}

static bool take_imported(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	const git_oid *wanted = &git->delivering.import_to;
	if (line->kind == LINE_TREE && id_equal(&line->id, wanted)) {
		return true;
	}
	return error_set(err, ERROR_PROTOCOL, "the sandbox did not take what it was sent");
}

/* What the script says of a stream that could not be sent is worth more than that. */
static bool work_import(struct git_transport *git, struct remote_ends *ends, struct error *err)
{
	struct import import = {.git = git, .fd = ends->out};
	struct error send_err = {.code = ERROR_NONE};
	buf_init(&import.buf, BUF_MAX);
	bool sent = put_all(&import, &send_err);
	buf_finish(&import.buf);
	point("import.sent");
	fd_close(&ends->out);
	if (!git_read_answer(git, ends, take_imported, err)) {
		return false;
	}
	if (!sent && !git->is_missing) {
		*err = send_err;
		return false;
	}
	return true;
}

void git_import(struct git_transport *git, const git_oid *from, const git_oid *to,
	void (*then)(struct git_transport *git))
{
	char hex[GIT_OID_HEXSZ + 1];
	git->delivering.import_from = *from;
	git->delivering.import_to = *to;
	git->store.git->oid_tostr(hex, sizeof(hex), from);
	git_run(git,
		&(struct git_step){
			.script = SCRIPT_IMPORT, .args = {hex}, .work = work_import, .then = then});
}
