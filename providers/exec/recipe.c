/* SPDX-License-Identifier: MIT */
#include "providers/exec/recipe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/real_path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/words.h"

enum {
	FILE_MAX = 1 << 20,
	LISTING_MAX = 16 << 20,
	DEPTH_MAX = 64,
	NAMES_MAX = 10000, // in one folder
	READ_SIZE = 16 * 1024,
	CONTENT_BYTES = (EXEC_RECIPE_SIZE - 1) / 2,
};

/* The work for the pool. It outlives a look that is cancelled. */
struct look {
	struct pool_job job;
	struct exec_recipe *recipe;
	char *named; // owned, like the next three; with `find` all but the workspace by the worker
	char *workspace;
	char *file, *folder;
	exec_recipe_find *find;  // or NULL
	struct exec_found found; // owned
	bool may_be_in_workspace;
	bool is_shown, opens_ports;
	struct writers writers; // by the worker
	char content[EXEC_RECIPE_SIZE];
	bool is_ok;
	struct error err;
};

struct exec_recipe {
	struct look *look;
	exec_recipe_done *done;
	void *data;
};

/* ---- who can write it, on the pool ---- */

static bool refuse(const struct look *look, const char *path, const char *why, struct error *err)
{
	return error_set_reason(err, ERROR_CONFIG, "DOCKERFILE_REFUSED",
		"the image is not built from %s, because %s %s, and a build runs what its files "
		"say without the limits of the profile",
		look->named, path, why);
}

/*
 * Refuses every link on the way to the file, wherever it is: the agents of other profiles, whose
 * workspaces are not known here, may be able to change it.
 */
static bool check_workspace(const struct look *look, struct error *err)
{
	if (look->may_be_in_workspace) {
		return true;
	}
	if (strcmp(look->named, look->file) != 0) {
		return refuse(look, look->file,
			"is reached by a link, which an agent may be able to change. Name the file "
			"by this path, or trust the agents in the workspace "
			"(dockerfile-in-workspace = true)",
			err);
	}
	char *workspace = look->workspace ? real_path(look->workspace) : NULL;
	bool is_fine = !workspace || !paths_overlap(look->folder, workspace) ||
	               refuse(look, look->folder,
			       "is in the workspace or contains it, so an agent can write there. "
			       "Move the file to a folder of its own outside, or trust the agents "
			       "there (dockerfile-in-workspace = true)",
			       err);
	free(workspace);
	return is_fine;
}

/* podman gives such a file to the C preprocessor here, which includes any file of this machine. */
static bool check_name(const struct look *look, struct error *err)
{
	size_t len = strlen(look->file);
	return len < 3 || strcmp(look->file + len - 3, ".in") != 0 ||
	       refuse(look, look->file,
		       "ends in .in, so podman would let it include other files of this machine. "
		       "Give it another name",
		       err);
}

/* Refuses with the reason why somebody else can write there; NULL is fine. */
static bool check_writers(
	const struct look *look, const char *path, const char *why, struct error *err)
{
	return !why || refuse(look, path, why, err);
}

static bool check_above(const struct look *look, const char *path, struct error *err)
{
	char *folder = NULL;
	const char *why = writers_above(&look->writers, path, &folder);
	bool is_fine = check_writers(look, folder, why, err);
	free(folder);
	return is_fine;
}

/* Finds the file that says what to do. Nobody but the user may write that file, either. */
static bool find(struct look *look, struct error *err)
{
	char *workspace = look->workspace ? real_path_find(look->workspace) : NULL;
	if (!workspace) {
		return error_set(err, ERROR_CONFIG,
			"devcontainer = auto: the workspace is not known when the agent starts; "
			"start the broker in the folder of the project");
	}
	mem_set_text(&look->workspace, workspace);
	free(workspace);
	const struct exec_place place = {.workspace = look->workspace,
		.writers = &look->writers,
		.is_shown = look->is_shown,
		.opens_ports = look->opens_ports};
	if (!look->find(&place, &look->found, err)) {
		return false;
	}
	look->named = mem_strdup(look->found.image ? look->found.source : look->found.file);
	return check_writers(look, look->found.source, look->found.writable, err) &&
	       check_above(look, look->found.source, err);
}

/* ---- what it contains, on the pool ---- */

static bool fail(const char *path, int errnum, struct error *err)
{
	return error_set_errno(err, errnum, "dockerfile: reading %s", path);
}

static bool refuse_many(const struct look *look, struct error *err)
{
	return error_set(err, ERROR_LIMIT,
		"dockerfile: %s has too many files: move the Dockerfile to a folder of its own, "
		"with the files that the build needs",
		look->folder);
}

static bool list_folder(const struct look *look, int folder, const char *path, int depth,
	struct buf *listing, struct error *err);

static bool list_one(const struct look *look, int above, const char *name, const char *path,
	int depth, struct buf *listing, struct error *err)
{
	struct stat status;
	char target[FILE_PATH_MAX] = "";
	if (fstatat(above, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT || fail(path, errno, err);
	}
	if (S_ISLNK(status.st_mode)) {
		ssize_t len = readlinkat(above, name, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
	}
	if (!S_ISLNK(status.st_mode) &&
		!check_writers(
			look, path, writers_of_entry(&look->writers, above, name, &status), err)) {
		return false;
	}
	if (!buf_append_format(listing, err, "%o %lld %lld.%09ld %s", (unsigned)status.st_mode,
		    S_ISDIR(status.st_mode) ? 0 : (long long)status.st_size,
		    S_ISDIR(status.st_mode) ? 0 : (long long)status.st_mtim.tv_sec,
		    S_ISDIR(status.st_mode) ? 0 : status.st_mtim.tv_nsec, path) ||
		!buf_append(listing, (struct span){"", 1}, err) ||
		!buf_append(listing, (struct span){target, strlen(target) + 1}, err)) {
		return refuse_many(look, err);
	}
	if (!S_ISDIR(status.st_mode)) {
		return true;
	}
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? list_folder(look, fd, path, depth + 1, listing, err)
	               : fail(path, errno, err);
}

static int compare(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Appends the names in a folder to the list. */
static bool read_names(
	const struct look *look, DIR *folder, const char *path, char ***names, struct error *err)
{
	const struct dirent *entry;
	for (size_t count = 0;; count++) {
		errno = 0;
		entry = readdir(folder);
		if (!entry) {
			return errno == 0 || fail(path, errno, err);
		}
		if (count == NAMES_MAX) {
			return refuse_many(look, err);
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			words_append(names, entry->d_name);
		}
	}
}

/* Closes the descriptor. The names are sorted, so that the listing is the same each time. */
static bool list_folder(const struct look *look, int folder, const char *path, int depth,
	struct buf *listing, struct error *err)
{
	char **names = mem_alloc_zero(sizeof(*names));
	DIR *open = fdopendir(folder);
	bool is_listed = open ? depth > DEPTH_MAX || read_names(look, open, path, &names, err)
	                      : fail(path, errno, err);
	qsort(names, words_count(names), sizeof(*names), compare);
	for (char **name = names; is_listed && *name; name++) {
		char below[FILE_PATH_MAX];
		is_listed = (text_whole(below, sizeof(below), "%s/%s", path, *name) ||
				    fail(path, ENAMETOOLONG, err)) &&
		            list_one(look, folder, *name, below, depth, listing, err);
	}
	words_free(names);
	if (open) {
		closedir(open);
	} else {
		fd_close(&folder);
	}
	return is_listed;
}

static bool append_file(int fd, const char *path, struct buf *listing, struct error *err)
{
	char bytes[READ_SIZE];
	ssize_t count;
	size_t len = 0;
	while ((count = read(fd, bytes, sizeof(bytes))) > 0 && len <= FILE_MAX) {
		len += (size_t)count;
		if (!buf_append(listing, (struct span){bytes, (size_t)count}, err)) {
			return false;
		}
	}
	return count == 0 ||
	       (count < 0 ? fail(path, errno, err)
			  : error_set(err, ERROR_LIMIT, "dockerfile: %s has more than %d bytes",
				    path, FILE_MAX));
}

static bool examine(struct look *look, int fd, struct buf *listing, struct error *err)
{
	struct stat file;
	unsigned char hash[SHA256_SIZE], content[SHA256_SIZE];
	ATTR_CLEANUP(fd_cleanup)
	int above = open(look->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0 || fstat(fd, &file) != 0) {
		return fail(look->folder, errno, err);
	}
	if (!S_ISREG(file.st_mode)) {
		return error_set(err, ERROR_CONFIG, "dockerfile: %s is not a file", look->named);
	}
	if (!check_name(look, err) || !check_workspace(look, err) ||
		!check_writers(look, look->file, writers_of_file(&look->writers, fd), err) ||
		!check_writers(look, look->folder, writers_of_file(&look->writers, above), err) ||
		!check_above(look, look->file, err) || !check_above(look, look->folder, err) ||
		!append_file(fd, look->file, listing, err)) {
		return false;
	}
	/* Two folders never share an image: the listing may be missing, and has no contents. */
	for (char *const *word = look->found.build; word && *word; word++) {
		if (!buf_append(listing, (struct span){*word, strlen(*word) + 1}, err)) {
			return false;
		}
	}
	sha256(content, buf_span(listing));
	buf_clear(listing);
	if (!buf_append(listing, (struct span){(const char *)content, sizeof(content)}, err) ||
		!buf_append(listing, (struct span){look->folder, strlen(look->folder) + 1}, err)) {
		return false;
	}
	int taken = above;
	above = -1;
	if (look->find && strcmp(look->folder, look->workspace) == 0) {
		fd_close(&taken);
	} else if (!list_folder(look, taken, look->folder, 0, listing, err)) {
		return false;
	}
	sha256(hash, buf_span(listing));
	hex_write(look->content, hash, CONTENT_BYTES);
	return true;
}

static void on_run(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	struct buf listing;
	writers_init(&look->writers);
	if (look->find && !find(look, &look->err)) {
		return;
	}
	if (look->found.image) {
		look->is_ok = true;
		return;
	}
	look->file = real_path_find(look->named);
	ATTR_CLEANUP(fd_cleanup)
	int fd = look->file ? open(look->file, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd < 0) {
		look->is_ok = fail(look->named, look->file ? errno : ENOENT, &look->err);
		return;
	}
	look->folder = mem_strdup(look->find ? look->found.folder : look->file);
	if (!look->find) {
		char *slash = strrchr(look->folder, '/');
		slash[slash == look->folder ? 1 : 0] = '\0';
	}
	buf_init(&listing, LISTING_MAX);
	look->is_ok = examine(look, fd, &listing, &look->err);
	buf_finish(&listing);
}

static void look_drop(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	free(look->named);
	free(look->workspace);
	free(look->file);
	free(look->folder);
	exec_found_finish(&look->found);
	free(look);
}

static void on_looked(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	exec_recipe_done *done = look->recipe->done;
	void *data = look->recipe->data;
	const struct exec_recipe_result result = {.file = look->file,
		.folder = look->folder,
		.content = look->file ? look->content : NULL,
		.found = look->find ? &look->found : NULL};
	free(look->recipe);
	done(data, look->is_ok ? &result : NULL, look->is_ok ? NULL : &look->err);
	look_drop(job);
}

/* ---- for the caller ---- */

void exec_found_finish(struct exec_found *found)
{
	free(found->source);
	free(found->image);
	free(found->file);
	free(found->folder);
	words_free(found->build);
	words_free(found->start);
	words_free(found->lines);
	words_free(found->line_names);
	words_free(found->ignored);
	*found = (struct exec_found){.source = NULL};
}

void exec_recipe_cancel(struct exec_recipe *recipe)
{
	if (recipe) {
		pool_leave(&recipe->look->job);
		free(recipe);
	}
}

struct exec_recipe *exec_recipe_look(const struct provider_context *context,
	const struct exec_recipe_request *request, exec_recipe_done *done, void *data,
	struct error *err)
{
	struct exec_recipe *self = mem_alloc_zero(sizeof(*self));
	struct look *look = mem_alloc_zero(sizeof(*look));
	self->look = look;
	self->done = done;
	self->data = data;
	look->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_looked, .drop = look_drop};
	look->recipe = self;
	look->named = mem_strdup_or_null(request->file);
	look->find = request->find;
	look->workspace = mem_strdup_or_null(request->workspace);
	look->may_be_in_workspace = request->may_be_in_workspace;
	look->is_shown = request->is_shown;
	look->opens_ports = request->opens_ports;
	if (!pool_submit(context->pool, &look->job, err)) {
		exec_recipe_cancel(self);
		return NULL;
	}
	return self;
}
