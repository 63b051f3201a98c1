/* SPDX-License-Identifier: MIT */
#include "providers/exec/runner_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/real_path.h"
#include "base/text.h"
#include "providers/runner/image.h"

enum { READ_SIZE = 64 * 1024 };

static const char machine[] = "x86_64";
static const char file_name[] = "runner/" EXEC_RUNNER_NAME;

/* The work for the pool. It outlives an order that is cancelled meanwhile. */
struct writing {
	struct pool_job job;
	struct exec_runner_file *file;
	struct runner_image image;
	char path[FILE_PATH_MAX];
	bool is_ok;
	struct error err;
};

struct exec_runner_file {
	struct writing *writing;
	exec_runner_file_done *done;
	void *data;
};

char *exec_runner_file_path(const struct provider_context *context, const char *folder)
{
	if (!context->state_folder) {
		return NULL;
	}
	char *whole = path_join(context->state_folder, folder);
	char *path = path_join(whole, file_name);
	free(whole);
	return path;
}

bool exec_runner_file_build(char out_build[41])
{
	struct runner_image image;
	return runner_image_find(machine, &image) && text_whole(out_build, 41, "%s", image.build);
}

/* ---- on the pool ---- */

static bool has_bytes(int fd, struct span bytes)
{
	char read_bytes[READ_SIZE];
	ssize_t count;
	while ((count = read(fd, read_bytes, sizeof(read_bytes))) > 0) {
		if ((size_t)count > bytes.len ||
			memcmp(read_bytes, bytes.data, (size_t)count) != 0) {
			return false;
		}
		bytes.data += count;
		bytes.len -= (size_t)count;
	}
	return count == 0 && bytes.len == 0;
}

static bool is_whole(const struct writing *writing)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(writing->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_uid == geteuid() && (status.st_mode & 07777) == 0755 &&
	       has_bytes(fd, writing->image.bytes);
}

static bool write_whole(const struct writing *writing, struct error *err)
{
	char part[FILE_PATH_MAX + 32];
	text_whole(part, sizeof(part), "%s.%d", writing->path, (int)getpid());
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0755);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening %s", part);
	}
	if (!fd_write_all(fd, writing->image.bytes, err)) {
		unlink(part);
		return error_prefix(err, "writing %s", part);
	}
	if (fchmod(fd, 0755) != 0 || rename(part, writing->path) != 0) {
		int errnum = errno;
		unlink(part);
		return error_set_errno(err, errnum, "writing %s", writing->path);
	}
	return true;
}

/* Every user of an instance that mounts the folder may read it. The folder above is private. */
static bool make_folder(const char *path, struct error *err)
{
	return folder_make_state(path, err) &&
	       (chmod(path, 0755) == 0 ||
		       error_set_errno(err, errno, "opening %s to readers", path));
}

static void on_run(struct pool_job *job)
{
	struct writing *writing = CONTAINER_OF(job, struct writing, job);
	char folder[FILE_PATH_MAX];
	text_whole(folder, sizeof(folder), "%s", writing->path);
	*strrchr(folder, '/') = '\0';
	writing->is_ok = make_folder(folder, &writing->err) &&
	                 (is_whole(writing) || write_whole(writing, &writing->err));
	runner_image_drop(&writing->image);
}

static void on_written(struct pool_job *job)
{
	struct writing *writing = CONTAINER_OF(job, struct writing, job);
	struct exec_runner_file *self = writing->file;
	exec_runner_file_done *done = self->done;
	void *data = self->data;
	bool is_ok = writing->is_ok;
	struct error err = writing->err;
	exec_runner_file_cancel(self);
	done(data, is_ok ? NULL : &err);
}

static void writing_drop(struct pool_job *job)
{
	free(CONTAINER_OF(job, struct writing, job));
}

/* ---- for the caller ---- */

void exec_runner_file_cancel(struct exec_runner_file *file)
{
	if (file) {
		pool_leave(&file->writing->job);
		free(file);
	}
}

struct exec_runner_file *exec_runner_file_write(const struct provider_context *context,
	const char *path, exec_runner_file_done *done, void *data, struct error *err)
{
	struct runner_image image;
	if (!runner_image_find(machine, &image)) {
		error_set_reason(err, ERROR_UNAVAILABLE, "EXEC_NO_RUNNER",
			"this program does not include the runner");
		return NULL;
	}
	struct exec_runner_file *self = mem_alloc_zero(sizeof(*self));
	struct writing *writing = mem_alloc_zero(sizeof(*writing));
	self->writing = writing;
	self->done = done;
	self->data = data;
	writing->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_written, .drop = writing_drop};
	writing->file = self;
	writing->image = image;
	bool is_ok = path ? text_whole(writing->path, sizeof(writing->path), "%s", path) ||
	                             error_set(err, ERROR_LIMIT, "%s is too long", path)
	                  : error_set(err, ERROR_CONFIG,
				    "there is no folder for the runner's file: set HOME or "
				    "XDG_STATE_HOME");
	if (!is_ok || !pool_submit(context->pool, &writing->job, err)) {
		exec_runner_file_cancel(self);
		return NULL;
	}
	return self;
}
