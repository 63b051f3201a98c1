/* SPDX-License-Identifier: MIT */
#include "sync/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store_impl.h"

enum { EXCLUDES_MAX = 4 << 20 };

/* Appends a file, if it is there and fits; a last line without its end gets one. */
static void append_file(struct buf *to, const char *path)
{
	struct stat status;
	struct error err;
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return;
	}
	size_t room = (size_t)status.st_size + 1;
	char *at = buf_reserve(to, room, &err);
	ssize_t count = at ? pread(fd, at, room - 1, 0) : -1;
	if (count <= 0) {
		return;
	}
	if (at[count - 1] != '\n') {
		at[count++] = '\n';
	}
	buf_commit(to, (size_t)count);
}

/* core.excludesFile as the files say, the last one winning; false where none does. */
static bool configured_excludes(const struct git *git, const struct user_repository *repository,
	const char *home, char path[PATH_MAX])
{
	char files[3][PATH_MAX + 32];
	static const git_config_level_t levels[] = {
		GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_LOCAL};
	snprintf(files[0], sizeof(files[0]), "%s/.config/git/config", home);
	snprintf(files[1], sizeof(files[1]), "%s/.gitconfig", home);
	snprintf(files[2], sizeof(files[2]), "%s/config", repository->common);
	git_config *config = NULL;
	git_buf value = {0};
	if (git->config_new(&config) < 0) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		if (i < 2 || repository->common[0]) {
			git->config_add_file_ondisk(config, files[i], levels[i], NULL, 0);
		}
	}
	bool found = git->config_get_string_buf(&value, config, "core.excludesfile") == 0;
	if (found) {
		bool is_home = value.ptr[0] == '~' && value.ptr[1] == '/';
		snprintf(path, PATH_MAX, "%s%s", is_home ? home : "",
			is_home ? value.ptr + 1 : value.ptr);
	}
	git->buf_dispose(&value);
	git->config_free(config);
	return found;
}

static void append_global(struct buf *rules, const struct git *git,
	const struct user_repository *repository, const char *home)
{
	char path[PATH_MAX];
	if (!home) {
		return;
	}
	if (!configured_excludes(git, repository, home, path)) {
		snprintf(path, sizeof(path), "%s/.config/git/ignore", home);
	}
	append_file(rules, path);
}

/* Later rules win: the repository's own come after the global ones. */
static void collect_rules(struct buf *rules, const struct git *git,
	const struct user_repository *repository, const char *home)
{
	char path[PATH_MAX + 16];
	append_global(rules, git, repository, home);
	if (repository->common[0]) {
		snprintf(path, sizeof(path), "%s/info/exclude", repository->common);
		append_file(rules, path);
	}
}

static const char exclude_path[] = "info/exclude";

static bool write_rules(struct store *store, struct buf *rules, struct error *err)
{
	struct buf old;
	char path[PATH_MAX];
	buf_init(&old, EXCLUDES_MAX);
	snprintf(path, sizeof(path), "%s/%s", store->path, exclude_path);
	append_file(&old, path);
	bool is_same = span_equals(buf_span(&old), buf_span(rules));
	buf_finish(&old);
	if (is_same) {
		return true;
	}
	struct temp temp = {.fd = -1};
	bool written = temp_create(store, &temp, err) &&
	               fd_write_all(temp.fd, buf_span(rules), err) &&
	               temp_publish(store, &temp, exclude_path, err);
	temp_discard(store, &temp);
	return written;
}

/* libgit2 1.5 loses some memory where it is told the same again. */
static bool set_work_tree(struct store *store, const char *top, struct error *err)
{
	const char *now = store->git->repository_workdir(store->repository);
	size_t length = strlen(top);
	if (now && strncmp(now, top, length) == 0 && strcmp(now + length, "/") == 0) {
		return true;
	}
	return store->git->repository_set_workdir(store->repository, top, 0) == 0 ||
	       error_set_git(store->git, err, "reading the ignore rules of %s", top);
}

bool ignore_init(struct ignore *ignore, struct store *store,
	const struct user_repository *repository, const char *home, struct error *err)
{
	struct buf rules;
	*ignore = (struct ignore){store};
	buf_init(&rules, EXCLUDES_MAX);
	collect_rules(&rules, store->git, repository, home);
	bool written = write_rules(store, &rules, err);
	buf_finish(&rules);
	if (!written) {
		return false;
	}
	store->git->attr_cache_flush(store->repository);
	return set_work_tree(store, repository->top, err);
}

bool ignore_matches(struct ignore *ignore, const char *path, bool is_folder)
{
	char with_slash[PATH_MAX + 1];
	int ignored = 0;
	snprintf(with_slash, sizeof(with_slash), "%s%s", path, is_folder ? "/" : "");
	const struct git *git = ignore->store->git;
	return git->ignore_path_is_ignored(&ignored, ignore->store->repository, with_slash) == 0 &&
	       ignored;
}
