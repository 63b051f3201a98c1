/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "sync/store_impl.h"

/*
 * libgit2 hashes data that goes through a stream into an odb. With an odb whose only backend
 * discards everything, we get the id of a file that does not fit into memory, with libgit2's own
 * SHA-1.
 */

static int stream_write(git_odb_stream *stream, const char *bytes, size_t length)
{
	return 0;
}

static int stream_finalize(git_odb_stream *stream, const git_oid *id)
{
	return 0;
}

static void stream_free(git_odb_stream *stream)
{
	free(stream);
}

static int backend_writestream(
	git_odb_stream **out, git_odb_backend *backend, git_object_size_t size, git_object_t type)
{
	git_odb_stream *stream = mem_alloc_zero(sizeof(*stream));
	stream->backend = backend;
	stream->mode = GIT_STREAM_WRONLY;
	stream->write = stream_write;
	stream->finalize_write = stream_finalize;
	stream->free = stream_free;
	*out = stream;
	return 0;
}

static void backend_free(git_odb_backend *backend)
{
	free(backend);
}

bool hash_odb_create(const struct git *git, git_odb **out_odb, struct error *err)
{
	git_odb *odb = NULL;
	git_odb_backend *backend = mem_alloc_zero(sizeof(*backend));
	if (git->odb_init_backend(backend, GIT_ODB_BACKEND_VERSION) < 0 || git->odb_new(&odb) < 0) {
		goto fail;
	}
	backend->writestream = backend_writestream;
	backend->free = backend_free;
	if (git->odb_add_backend(odb, backend, 1) < 0) {
		goto fail;
	}
	*out_odb = odb;
	return true;
fail:
	error_set_git(git, err, "preparing to hash files");
	git->odb_free(odb);
	free(backend);
	return false;
}

bool hash_init(struct hash *hash, struct store *store, uint64_t size, struct error *err)
{
	*hash = (struct hash){.git = store->git};
	if (hash->git->odb_open_wstream(&hash->stream, store->hasher, size, GIT_OBJECT_BLOB) < 0) {
		return error_set_git(hash->git, err, "hashing");
	}
	return true;
}

bool hash_add(struct hash *hash, struct span bytes, struct error *err)
{
	return hash->git->odb_stream_write(hash->stream, bytes.data, bytes.len) == 0 ||
	       error_set_git(hash->git, err, "hashing");
}

bool hash_end(struct hash *hash, git_oid *out_id, struct error *err)
{
	return hash->git->odb_stream_finalize_write(out_id, hash->stream) == 0 ||
	       error_set_git(hash->git, err, "hashing");
}

void hash_finish(struct hash *hash)
{
	hash->git->odb_stream_free(hash->stream);
	hash->stream = NULL;
}
