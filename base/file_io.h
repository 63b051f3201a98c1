/* SPDX-License-Identifier: MIT */
#ifndef BASE_FILE_IO_H
#define BASE_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/confine.h"
#include "base/error.h"
#include "base/span.h"

/* The file operations of providers/provider.h. They block, so they are for worker threads. */
bool file_read(const struct confine *confine, const char *path, enum file_links links,
	size_t max_bytes, struct buf *out,
	struct error *err) ATTR_NODISCARD; // `out` is not initialised; finish it on success

/*
 * Like file_read, but the loop's thread may call it. It never waits. Reads only files of at most
 * FILE_CACHED_MAX bytes that are on a disk of this machine and already in the kernel's memory.
 * False: the file is not of this kind, or reading it failed; then call file_read. `out` is not
 * initialised; finish it on success.
 */
enum { FILE_CACHED_MAX = 1024 * 1024 }; // the size of a large message
bool file_read_cached(const struct confine *confine, const char *path, enum file_links links,
	size_t max_bytes, struct buf *out) ATTR_NODISCARD;

/* The device of a root where file_read_cached may read; 0 for every other file system. Blocks. */
dev_t file_disk_of(const char *real);

bool file_write(const struct confine *confine, const char *path, enum file_links links,
	struct span content, struct error *err) ATTR_NODISCARD;
bool file_stat(const struct confine *confine, const char *path, struct stat *out,
	struct error *err) ATTR_NODISCARD;
/* Also tells whether the mount on which the file is can only be read. */
bool file_stat_mount(const struct confine *confine, const char *path, struct stat *out,
	bool *out_read_only, struct error *err) ATTR_NODISCARD;
bool file_resolve(const struct confine *confine, const char *path, char out[PATH_MAX],
	struct error *err) ATTR_NODISCARD;

/*
 * Removes temporary files that file_write of a killed process left in a folder: regular files with
 * our temporary names whose process has ended.
 */
void file_sweep_drafts(int folder);

/* Resolves the links in a folder's path. ERROR_NOT_FOUND if it is not a folder. */
bool file_find_root(const char *path, char out[PATH_MAX], struct error *err) ATTR_NODISCARD;

#endif
