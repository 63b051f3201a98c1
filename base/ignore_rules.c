/* SPDX-License-Identifier: MIT */
#include "base/ignore_rules.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/user_config.h"

/* Appends a file, if it exists and fits; completes a last line without a newline. */
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

/* If the configuration cannot be read completely, the settings before the error count. */
static void append_global(
	struct buf *rules, const struct user_repository *repository, const char *home)
{
	char path[PATH_MAX];
	struct error ignored;
	struct user_config config = {0};
	(void)!user_config_read(&config, home, repository, &ignored);
	if (user_config_file(&config, "core.excludesfile", "ignore", home, path, &ignored)) {
		append_file(rules, path);
	}
	user_config_finish(&config);
}

/* Later rules win, so the repository's own come after the global ones. */
void ignore_rules_of_top(
	const struct user_repository *repository, const char *home, struct buf *out)
{
	char path[PATH_MAX + 16];
	append_global(out, repository, home);
	if (repository->common[0]) {
		text_whole(path, sizeof(path), "%s/info/exclude", repository->common);
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
		text_whole(path, sizeof(path), "%s/%.*s.gitignore", top, (int)(at - below), below);
		append_file(file, path);
		ignore_rules_lower(buf_span(file), at, &further, out);
		*ignored |= depth < 64 ? further << depth : 0;
		depth++;
		at = strchr(at, '/');
		at = at ? at + 1 : NULL;
	}
}

/* False if the repository ignores the folder. */
static bool read_from_above(const struct user_repository *repository, const char *below,
	const char *home, struct buf *out)
{
	struct buf file;
	uint64_t ignored = 0;
	size_t before = out->len;
	buf_init(&file, IGNORE_RULES_MAX);
	ignore_rules_of_top(repository, home, &file);
	ignore_rules_lower(buf_span(&file), below, &ignored, out);
	lower_files(repository->top, below, &ignored, &file, out);
	buf_finish(&file);
	if (ignored) {
		out->len = before;
	}
	return !ignored;
}

void ignore_rules_read(const char *folder, const char *home, struct buf *out)
{
	struct user_repository *repository = mem_alloc(sizeof(*repository));
	bool is_found = user_repository_find(repository, folder, true);
	const char *below = folder + strlen(repository->top);
	if (!is_found || !*below || !read_from_above(repository, below + 1, home, out)) {
		user_repository_find(repository, folder, false);
		ignore_rules_of_top(repository, home, out);
	}
	free(repository);
}
