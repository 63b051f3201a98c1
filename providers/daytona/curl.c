/* SPDX-License-Identifier: MIT */
#include "providers/daytona/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#ifndef CURL_SONAME
#define CURL_SONAME "libcurl.so.4"
#endif
#define CURL_CURE "is the package libcurl4 installed?"

/* One a process, as libcurl's own state is. */
static struct {
	pthread_mutex_t lock;
	void *library; // NULL while not loaded
	struct curl functions;
} the_curl = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static bool find_functions(void *library, struct curl *curl, struct error *err)
{
#define CURL_FIND(name)                                                                            \
	{                                                                                          \
		void *function = dlsym(library, "curl_" #name);                                    \
		if (!function) {                                                                   \
			return error_set(err, ERROR_UNAVAILABLE,                                   \
				"%s has no function curl_" #name ": " CURL_CURE, CURL_SONAME);     \
		}                                                                                  \
		memcpy(&curl->name, &function, sizeof(function));                                  \
	}
	CURL_FUNCTIONS(CURL_FIND)
#undef CURL_FIND
	return true;
}

static bool start(const struct curl *curl, struct error *err)
{
	CURLcode failed = curl->global_init_mem(CURL_GLOBAL_DEFAULT, piece_alloc, piece_free,
		piece_realloc, piece_strdup, piece_alloc_zero);
	if (failed != CURLE_OK) {
		return error_set(err, ERROR_UNAVAILABLE, "starting %s: %s", CURL_SONAME,
			curl->easy_strerror(failed));
	}
	const curl_version_info_data *version = curl->version_info(CURLVERSION_NOW);
	int needed = CURL_VERSION_ASYNCHDNS | CURL_VERSION_SSL;
	if ((version->features & needed) != needed || version->version_num < 0x075700) {
		return error_set(err, ERROR_UNAVAILABLE,
			"%s is libcurl %s, and needed is 7.87 with TLS and a resolver that does "
			"not block: " CURL_CURE,
			CURL_SONAME, version->version);
	}
	return true;
}

static bool load(struct error *err)
{
	void *library = dlopen(CURL_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		return error_set(err, ERROR_UNAVAILABLE, "loading %s: %s: " CURL_CURE, CURL_SONAME,
			dlerror());
	}
	if (!find_functions(library, &the_curl.functions, err)) {
		dlclose(library);
		return false;
	}
	/* What was started is not unloaded: its cipher library registers what runs at exit. */
	if (!start(&the_curl.functions, err)) {
		return false;
	}
	the_curl.library = library;
	return true;
}

const struct curl *curl_open(struct error *err)
{
	pthread_mutex_lock(&the_curl.lock);
	bool is_loaded = the_curl.library || load(err);
	pthread_mutex_unlock(&the_curl.lock);
	return is_loaded ? &the_curl.functions : NULL;
}
