/* SPDX-License-Identifier: MIT */
#include "sync/tracked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sync/run_git.h"

enum { LISTED_MAX = 48 << 20 }; // bytes of names that git may list

void tracked_init(struct tracked *tracked, const struct git *git,
	const struct user_repository *repository, const char *home)
{
	*tracked = (struct tracked){.git = git, .repository = *repository, .home = home};
	buf_init(&tracked->listed, LISTED_MAX);
}

void tracked_finish(struct tracked *tracked)
{
	if (tracked->index) {
		tracked->git->index_free(tracked->index);
	}
	buf_finish(&tracked->listed);
	free(tracked->paths);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_listed(struct tracked *tracked)
{
	struct span names = buf_span(&tracked->listed);
	for (size_t i = 0; i < names.len; i++) {
		tracked->count += names.data[i] == '\0';
	}
	tracked->paths = mem_alloc((tracked->count + 1) * sizeof(tracked->paths[0]));
	const char *name = names.data;
	for (size_t i = 0; i < tracked->count; i++) {
		tracked->paths[i] = name;
		name += strlen(name) + 1;
	}
	if (tracked->count > 0) {
		qsort(tracked->paths, tracked->count, sizeof(tracked->paths[0]), compare_paths);
	}
}

/* Only lists: no lock is taken, no index refreshed, nothing fetched, nothing of the user's run. */
static bool ask_program(struct tracked *tracked)
{
	const char *const argv[] = {"git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*",
		"-c", "core.hooksPath=/dev/null", "-C", tracked->repository.top, "ls-files", "-z",
		"--cached", NULL};
	struct error err;
	if (!run_git(argv, tracked->home, &tracked->listed, &err)) {
		buf_clear(&tracked->listed);
		return false;
	}
	sort_listed(tracked);
	return true;
}

/*
 * An index that libgit2 reads without a complaint and wrongly: a repository of
 * SHA-256 has longer ids. Its extension is in the config alone.
 */
static bool is_sha256(const struct tracked *tracked)
{
	char path[PATH_MAX + 16];
	git_config *config = NULL;
	git_buf format = {0};
	bool is_other = false;
	snprintf(path, sizeof(path), "%s/config", tracked->repository.common);
	if (tracked->git->config_new(&config) == 0 &&
		tracked->git->config_add_file_ondisk(
			config, path, GIT_CONFIG_LEVEL_LOCAL, NULL, 0) == 0 &&
		tracked->git->config_get_string_buf(&format, config, "extensions.objectformat") ==
			0) {
		is_other = strcmp(format.ptr, "sha1") != 0;
	}
	tracked->git->buf_dispose(&format);
	tracked->git->config_free(config);
	return is_other;
}

static enum tracked_source read_index(struct tracked *tracked)
{
	char path[PATH_MAX + 16];
	if (!tracked->repository.folder[0]) {
		return TRACKED_NONE;
	}
	snprintf(path, sizeof(path), "%s/index", tracked->repository.folder);
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		return TRACKED_NONE;
	}
	if (!is_sha256(tracked) && tracked->git->index_open(&tracked->index, path) == 0) {
		return TRACKED_INDEX;
	}
	return ask_program(tracked) ? TRACKED_PROGRAM : TRACKED_NOTHING;
}

static void ensure_read(struct tracked *tracked)
{
	if (tracked->source == TRACKED_UNREAD) {
		tracked->source = read_index(tracked);
	}
}

/* The first listed path that is not below `path` in order. */
static const char *listed_from(const struct tracked *tracked, const char *path)
{
	size_t low = 0;
	size_t high = tracked->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(tracked->paths[middle], path) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < tracked->count ? tracked->paths[low] : "";
}

bool tracked_has(struct tracked *tracked, const char *path)
{
	ensure_read(tracked);
	if (tracked->source == TRACKED_INDEX) {
		return tracked->git->index_find(NULL, tracked->index, path) == 0;
	}
	return tracked->source == TRACKED_PROGRAM && strcmp(listed_from(tracked, path), path) == 0;
}

bool tracked_has_below(struct tracked *tracked, const char *folder)
{
	char prefix[PATH_MAX + 1];
	int length = snprintf(prefix, sizeof(prefix), "%s/", folder);
	if (tracked_has(tracked, folder)) {
		return true;
	}
	if (tracked->source == TRACKED_INDEX) {
		return tracked->git->index_find_prefix(NULL, tracked->index, prefix) == 0;
	}
	return tracked->source == TRACKED_PROGRAM &&
	       strncmp(listed_from(tracked, prefix), prefix, (size_t)length) == 0;
}
