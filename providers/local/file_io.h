/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_FILE_IO_H
#define PROVIDERS_LOCAL_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/local/confine.h"

/*
 * What the file operations of providers/provider.h do, done at once. They
 * block: for worker threads.
 */
bool file_read(const struct confine *confine, const char *path, enum file_links links,
	size_t max_bytes, struct buf *out,
	struct error *err) ATTR_NODISCARD; // `out` not initialised; to be finished on success
bool file_write(const struct confine *confine, const char *path, enum file_links links,
	struct span content, struct error *err) ATTR_NODISCARD;
bool file_stat(const struct confine *confine, const char *path, struct stat *out,
	struct error *err) ATTR_NODISCARD;
bool file_resolve(const struct confine *confine, const char *path, char out[PATH_MAX],
	struct error *err) ATTR_NODISCARD;

/* The folder's name without links; ERROR_NOT_FOUND where it is no folder. */
bool file_find_root(const char *path, char out[PATH_MAX], struct error *err) ATTR_NODISCARD;

#endif
