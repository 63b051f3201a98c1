/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_session.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"

/*
 * Keys and passwords are in small blocks, streamed data in large ones; only small blocks are wiped.
 */
enum { WIPED_MAX = 8 * 1024 };

/* libssh2's "abstract" of a session. */
struct session_memory {
	void *owner;
	struct list blocks; // block.link
	size_t total;       // bytes in them
};

struct block {
	struct list link; // of session_memory.blocks
	size_t size;
	alignas(max_align_t) char bytes[];
};

static struct block *block_of(void *bytes)
{
	return CONTAINER_OF(bytes, struct block, bytes);
}

static void *memory_alloc(struct session_memory *memory, size_t size)
{
	if (size > SESSION_MEMORY_MAX - memory->total) {
		return NULL;
	}
	struct block *block = malloc(sizeof(*block) + size);
	if (!block) {
		return NULL;
	}
	block->size = size;
	memory->total += size;
	list_append(&memory->blocks, &block->link);
	return block->bytes;
}

static void memory_free(struct session_memory *memory, struct block *block)
{
	list_remove(&block->link);
	memory->total -= block->size;
	if (block->size <= WIPED_MAX) {
		explicit_bzero(block->bytes, block->size);
	}
	free(block);
}

static void *on_alloc(size_t size, void **abstract)
{
	return memory_alloc(*abstract, size);
}

static void on_free(void *bytes, void **abstract)
{
	if (bytes) {
		memory_free(*abstract, block_of(bytes));
	}
}

/* Does not use realloc(3), which may leave a copy behind. */
static void *on_realloc(void *bytes, size_t size, void **abstract)
{
	void *other = memory_alloc(*abstract, size);
	if (other && bytes) {
		struct block *block = block_of(bytes);
		memcpy(other, bytes, size < block->size ? size : block->size);
		memory_free(*abstract, block);
	}
	return other;
}

LIBSSH2_SESSION *ssh2_session_create(const struct ssh2 *ssh2, void *owner)
{
	struct session_memory *memory = mem_alloc_zero(sizeof(*memory));
	memory->owner = owner;
	list_init(&memory->blocks);
	LIBSSH2_SESSION *session = ssh2->session_init_ex(on_alloc, on_free, on_realloc, memory);
	if (!session) {
		free(memory);
	}
	return session;
}

void ssh2_session_destroy(const struct ssh2 *ssh2, LIBSSH2_SESSION *session)
{
	if (!session) {
		return;
	}
	struct session_memory *memory = *ssh2->session_abstract(session);
	(void)ssh2->session_free(session);
	while (!list_is_empty(&memory->blocks)) {
		memory_free(memory, LIST_FIRST(&memory->blocks, struct block, link));
	}
	free(memory);
}

void ssh2_session_set_owner(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, void *owner)
{
	struct session_memory *memory = *ssh2->session_abstract(session);
	memory->owner = owner;
}

void *ssh2_session_owner(void **abstract)
{
	const struct session_memory *memory = *abstract;
	return memory->owner;
}

void *ssh2_session_alloc(const struct ssh2 *ssh2, LIBSSH2_SESSION *session, size_t size)
{
	return memory_alloc(*ssh2->session_abstract(session), size);
}
