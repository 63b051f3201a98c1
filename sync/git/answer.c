/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/git.h"

static ssize_t read_fd(void *data, char *to, size_t size)
{
	ssize_t count;
	do {
		count = read(*(const int *)data, to, size);
	} while (count < 0 && errno == EINTR);
	return count;
}

static bool take_failure(struct git_transport *git, const char *why, struct error *err)
{
	char shown[TEXT_SHORT_SIZE];
	const struct transport_request *request = &git->request;
	if (strcmp(why, "missing") == 0) {
		git->is_missing = true;
		return true;
	}
	if (strcmp(why, "blocks") == 0) {
		git->takes_no_blocks = true;
		return true;
	}
	if (strcmp(why, "changed") == 0) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
			"delivering to %s: files have changed there meanwhile",
			request->runtime_root);
	}
	if (strcmp(why, "closed") == 0) {
		git->delivering.result.is_lasting = true;
		const struct stuck *stuck = &git->delivering.stuck;
		char *path = path_quote(span_of(stuck->count > 0 ? stuck->paths[0].path : "?"));
		error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
			"delivering to %s: %s cannot be replaced there: make its folder "
			"writable",
			request->runtime_root, text_short(shown, path));
		free(path);
		return false;
	}
	if (strcmp(why, "content") == 0) {
		return error_set(err, ERROR_PROTOCOL,
			"delivering to %s: a file arrived with another content",
			request->runtime_root);
	}
	if (strcmp(why, "stream") == 0) {
		return error_set(err, ERROR_PROTOCOL,
			"the sandbox did not accept the data that it was sent");
	}
	if (strcmp(why, "other") == 0) {
		return error_set(err, ERROR_UNAVAILABLE, "%s has become a repository of the agent",
			request->runtime_root);
	}
	if (strncmp(why, "full ", 5) == 0) {
		char *place = path_quote(span_of(why + 5));
		error_set_reason(err, ERROR_SYSTEM, "DISK_FULL",
			"syncing %s: the disk is full in the sandbox, at %s: free space there",
			request->runtime_root, text_short(shown, place));
		free(place);
		return false;
	}
	if (strncmp(why, "tool ", 5) == 0) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "SYNC_TOOL_MISSING",
			"syncing %s needs \"%s\" in the sandbox, which is not in its PATH: "
			"install it there",
			request->runtime_root, text_short(shown, why + 5));
	}
	return error_set(err, ERROR_PROTOCOL, "the sandbox failed for an unknown reason");
}

static bool take_end(struct git_transport *git, const struct line *line, struct error *err)
{
	if (line->number == 0) {
		return true;
	}
	return error_set(err, ERROR_SYSTEM, "syncing %s: the script there ended with status %llu",
		git->request.runtime_root, (unsigned long long)line->number);
}

bool git_read_answer(struct git_transport *git, struct remote_ends *ends,
	bool (*take)(struct git_transport *git, struct lines *lines, const struct line *line,
		struct error *err),
	struct error *err)
{
	struct lines lines;
	struct line line;
	bool fine;
	git->is_missing = false;
	lines_init(&lines, read_fd, &ends->in, git->request.bytes_max, git->store.big_file_bytes);
	do {
		fine = lines_next(&lines, &line, err);
		if (!fine || line.kind == LINE_END) {
			break;
		}
		fine = line.kind == LINE_FAIL ? take_failure(git, line.text, err)
		                              : take(git, &lines, &line, err);
	} while (fine);
	fine = fine && take_end(git, &line, err);
	git->collecting.result.received_bytes += lines.received;
	lines_finish(&lines);
	return fine;
}

static void note_received(struct git_transport *git, const git_oid *id)
{
	size_t count = git->received_count + 1;
	bool is_full = (count & (count - 1)) == 0; // the capacity doubles
	if (is_full) {
		git->received = mem_realloc(git->received, 2 * count * sizeof(*git->received));
	}
	git->received[git->received_count++] = *id;
}

void git_discard_received(struct git_transport *git)
{
	struct store *store = &git->store;
	for (size_t i = 0; i < git->received_count; i++) {
		char hex[GIT_OID_HEXSZ + 1], path[GIT_OID_HEXSZ + 16];
		store->git->oid_tostr(hex, sizeof(hex), &git->received[i]);
		text_whole(path, sizeof(path), "objects/%.2s/%s", hex, hex + 2);
		unlinkat(store->folder_fd, path, 0);
	}
	git->received_count = 0;
	git->known = (struct side_pair){store_empty_tree, store_empty_tree};
	store_close(store);
	git->has_store = false;
}

static bool set_write_error(struct store *store, struct error *err)
{
	return error_set_git(store->git, err, "writing to the store %s", store->path);
}

/* Writes an object that is too large for memory. */
static bool write_pieces(struct store *store, struct lines *lines, struct line_object *object,
	git_oid *out_id, struct error *err)
{
	git_odb_stream *stream = NULL;
	bool written = true;
	if (store->git->odb_open_wstream(&stream, store->odb, object->left, object->type) < 0) {
		return set_write_error(store, err);
	}
	while (written && object->left > 0) {
		written = lines_next_piece(lines, object, err);
		git_forget_error(store->git);
		if (written && store->git->odb_stream_write(
				       stream, object->content.data, object->content.len) < 0) {
			written = set_write_error(store, err);
		}
	}
	if (written && store->git->odb_stream_finalize_write(out_id, stream) < 0) {
		written = set_write_error(store, err);
	}
	store->git->odb_stream_free(stream);
	return written;
}

static bool write_object(struct store *store, struct lines *lines, struct line_object *object,
	git_oid *out_id, struct error *err)
{
	git_forget_error(store->git);
	if (object->left > 0) {
		return write_pieces(store, lines, object, out_id, err);
	}
	return store->git->odb_write(out_id, store->odb, object->content.data, object->content.len,
		       object->type) == 0 ||
	       set_write_error(store, err);
}

bool git_receive_objects(struct git_transport *git, struct lines *lines, uint64_t count,
	bool (*check)(struct git_transport *git, struct line_object *object, struct error *err),
	struct error *err)
{
	struct store *store = &git->store;
	git->received_count = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct line_object object;
		git_oid id;
		if (!lines_next_object(lines, &object, err) || !check(git, &object, err)) {
			return false;
		}
		point("transfer.object");
		if (object.is_unwanted) {
			continue;
		}
		if (object.type == GIT_OBJECT_TREE &&
			!store->git->odb_exists(store->odb, &object.id)) {
			note_received(git, &object.id);
		}
		if (!write_object(store, lines, &object, &id, err)) {
			return false;
		}
		if (memcmp(&id, &object.id, sizeof(id)) != 0) {
			return error_set(err, ERROR_PROTOCOL,
				"the sandbox sent an object whose content does not match its id");
		}
	}
	return true;
}
