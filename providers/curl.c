/* SPDX-License-Identifier: MIT */
#include "providers/curl.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/library.h"

/* ---- memory that is wiped ---- */

struct piece {
	_Alignas(max_align_t) size_t size;
	char bytes[] __attribute__((aligned(_Alignof(max_align_t))));
};

static void *piece_alloc(size_t size)
{
	struct piece *piece = mem_alloc(sizeof(*piece) + size);
	piece->size = size;
	return piece->bytes;
}

static struct piece *piece_of(void *bytes)
{
	return CONTAINER_OF(bytes, struct piece, bytes);
}

static void piece_free(void *bytes)
{
	if (bytes) {
		struct piece *piece = piece_of(bytes);
		explicit_bzero(piece->bytes, piece->size);
		free(piece);
	}
}

static void *piece_alloc_zero(size_t count, size_t size)
{
	size_t all = 0;
	if (__builtin_mul_overflow(count, size, &all)) {
		return NULL;
	}
	return memset(piece_alloc(all), 0, all);
}

static void *piece_realloc(void *bytes, size_t size)
{
	void *moved = piece_alloc(size);
	if (bytes) {
		size_t old = piece_of(bytes)->size;
		memcpy(moved, bytes, old < size ? old : size);
		piece_free(bytes);
	}
	return moved;
}

static char *piece_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(piece_alloc(size), text, size);
}

/* ---- loading ---- */

static bool start(struct error *err);

#define CURL_NAME(name) "curl_" #name,
static const char *const names[] = {CURL_FUNCTIONS(CURL_NAME)};
#undef CURL_NAME
static_assert(sizeof(struct curl) == sizeof(names), "one name for each function");

/* One for each process, because libcurl has global state. */
static struct curl functions;
static struct library_use the_curl = {.library = &libraries[LIBRARY_CURL],
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &functions,
	.start = start,
	.lock = PTHREAD_MUTEX_INITIALIZER};

static bool start(struct error *err)
{
	const char *soname = the_curl.library->sonames[0];
	CURLcode failed = functions.global_init_mem(CURL_GLOBAL_DEFAULT, piece_alloc, piece_free,
		piece_realloc, piece_strdup, piece_alloc_zero);
	if (failed != CURLE_OK) {
		return error_set(err, ERROR_UNAVAILABLE, "starting %s: %s", soname,
			functions.easy_strerror(failed));
	}
	const curl_version_info_data *version = functions.version_info(CURLVERSION_NOW);
	int needed = CURL_VERSION_ASYNCHDNS | CURL_VERSION_SSL;
	if ((version->features & needed) != needed || version->version_num < 0x075700) {
		return library_refuse(&the_curl, err,
			"%s is libcurl %s; 7.87 or newer is needed, with TLS and a resolver that "
			"does not block",
			soname, version->version);
	}
	return true;
}

const struct curl *curl_open(struct error *err)
{
	return library_open(&the_curl, err) ? &functions : NULL;
}
