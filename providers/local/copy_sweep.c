/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/words.h"
#include "providers/impl.h"
#include "providers/local/copy_home.h"

enum { DEPTH_MAX = 64 }; // folders on the path to a root

struct copy_sweep {
	struct provider_sweep sweep;
	struct pool_job job;
	char *copies; // owned; the folder of all copies
	char **kept;  // owned
	provider_swept *done;
	void *data;
};

/* Removes empty folders, and the broker's own files beside them. Closes the descriptor. */
static void remove_empty(int fd, int depth)
{
	DIR *folder = fdopendir(fd);
	struct dirent *entry;
	if (!folder) {
		fd_close(&fd);
		return;
	}
	while (depth > 0 && (entry = readdir(folder))) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
			continue;
		}
		int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0) {
			remove_empty(inner, depth - 1);
			(void)!unlinkat(fd, name, AT_REMOVEDIR);
		} else if (errno == ENOTDIR && strcmp(name, ".place") == 0) {
			(void)!unlinkat(fd, name, 0);
		}
	}
	closedir(folder);
}

static bool is_kept(const struct copy_sweep *self, const char *key)
{
	for (char **kept = self->kept; *kept; kept++) {
		if (strcmp(*kept, key) == 0) {
			return true;
		}
	}
	return false;
}

/* A broker that uses the folder holds its lock. A broker that is about to use it makes it again. */
static void sweep_one(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || lock_file_try(fd, LOCK_ALONE) != LOCK_TAKEN) {
		fd_close(&fd);
		return;
	}
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0) {
		remove_empty(copy, DEPTH_MAX);
	}
	if (rmdir(path) == 0) {
		log_info("recovery: %s is removed, because no session was begun in it", path);
	}
	fd_close(&fd);
}

/* Sweeps the folders of all profiles; `kept` has those that records need. */
static void on_run(struct pool_job *job)
{
	struct copy_sweep *self = CONTAINER_OF(job, struct copy_sweep, job);
	DIR *folder = opendir(self->copies);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		const char *dot = strchr(entry->d_name, '.');
		if (dot && copy_home_is_key(dot + 1) && !is_kept(self, dot + 1)) {
			char *path = path_join(self->copies, entry->d_name);
			sweep_one(path);
			free(path);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

static void drop(struct pool_job *job)
{
	struct copy_sweep *self = CONTAINER_OF(job, struct copy_sweep, job);
	words_free(self->kept);
	free(self->copies);
	free(self);
}

static void on_done(struct pool_job *job)
{
	struct copy_sweep *self = CONTAINER_OF(job, struct copy_sweep, job);
	provider_swept *done = self->done;
	void *data = self->data;
	drop(job);
	done(data, NULL);
}

struct provider_sweep *copy_sweep(struct provider *provider, const struct provider_context *context,
	const struct sandbox_request *request, const char *const *kept, provider_swept *done,
	void *data, struct error *err)
{
	struct copy_sweep *self = mem_alloc_zero(sizeof(*self));
	self->sweep.provider = provider;
	self->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = drop};
	self->copies = path_join(context->state_folder ? context->state_folder : "", "copies");
	self->kept = mem_alloc_zero(sizeof(*self->kept));
	for (; kept && *kept; kept++) {
		words_append(&self->kept, *kept);
	}
	self->done = done;
	self->data = data;
	if (!pool_submit(context->pool, &self->job, err)) {
		drop(&self->job);
		return NULL;
	}
	return &self->sweep;
}

void copy_sweep_cancel(struct provider_sweep *sweep)
{
	pool_leave(&CONTAINER_OF(sweep, struct copy_sweep, sweep)->job);
}
