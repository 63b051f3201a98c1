/* SPDX-License-Identifier: MIT */
#include "base/ignore_rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

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
void ignore_rules_of_top(const struct git *git, const struct user_repository *repository,
	const char *home, struct buf *out)
{
	char path[PATH_MAX + 16];
	append_global(out, git, repository, home);
	if (repository->common[0]) {
		snprintf(path, sizeof(path), "%s/info/exclude", repository->common);
		append_file(out, path);
	}
}

/* The .gitignore files from the top of the work tree down to the folder above `below`. */
static void lower_files(
	const char *top, const char *below, uint64_t *ignored, struct buf *file, struct buf *out)
{
	char path[PATH_MAX + 16];
	unsigned depth = 0;
	for (const char *at = below; at;) {
		uint64_t further = 0;
		buf_clear(file);
		snprintf(path, sizeof(path), "%s/%.*s.gitignore", top, (int)(at - below), below);
		append_file(file, path);
		ignore_rules_lower(buf_span(file), at, &further, out);
		*ignored |= depth < 64 ? further << depth : 0;
		depth++;
		at = strchr(at, '/');
		at = at ? at + 1 : NULL;
	}
}

/* False where the repository ignores the folder. */
static bool read_from_above(const struct git *git, const struct user_repository *repository,
	const char *below, const char *home, struct buf *out)
{
	struct buf file;
	uint64_t ignored = 0;
	size_t before = out->len;
	buf_init(&file, IGNORE_RULES_MAX);
	ignore_rules_of_top(git, repository, home, &file);
	ignore_rules_lower(buf_span(&file), below, &ignored, out);
	lower_files(repository->top, below, &ignored, &file, out);
	buf_finish(&file);
	if (ignored) {
		out->len = before;
	}
	return !ignored;
}

void ignore_rules_read(const struct git *git, const char *folder, const char *home, struct buf *out)
{
	struct user_repository *repository = mem_alloc(sizeof(*repository));
	bool is_found = user_repository_find(repository, folder, true);
	const char *below = folder + strlen(repository->top);
	if (!is_found || !*below || !read_from_above(git, repository, below + 1, home, out)) {
		user_repository_find(repository, folder, false);
		ignore_rules_of_top(git, repository, home, out);
	}
	free(repository);
}
