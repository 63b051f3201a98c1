/* SPDX-License-Identifier: MIT */
#include "sync/tracked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/words.h"

enum { LISTED_MAX = 48 << 20 }; // bytes of names; the maximum for git's list

void tracked_init(struct tracked *tracked, struct store *store,
	const struct user_repository *repository, const char *home)
{
	*tracked = (struct tracked){.store = store, .repository = *repository, .home = home};
	buf_init(&tracked->listed, LISTED_MAX);
}

void tracked_finish(struct tracked *tracked)
{
	if (tracked->index) {
		tracked->store->git->index_free(tracked->index);
	}
	buf_finish(&tracked->listed);
	free(tracked->paths);
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
		qsort(tracked->paths, tracked->count, sizeof(tracked->paths[0]), words_compare);
	}
}

static bool ask_program(struct tracked *tracked, bool is_sha256)
{
	struct error err;
	if (!tracked_ask_program(tracked, is_sha256, &err)) {
		buf_clear(&tracked->listed);
		return false;
	}
	sort_listed(tracked);
	return true;
}

/*
 * libgit2 reads the index of a SHA-256 repository without an error but wrongly, because its ids are
 * longer. Only the config names that extension.
 */
static bool is_sha256(const struct tracked *tracked)
{
	char path[PATH_MAX + 16];
	git_config *config = NULL;
	git_buf format = {0};
	bool is_other = false;
	text_whole(path, sizeof(path), "%s/config", tracked->repository.common);
	if (tracked->store->git->config_new(&config) == 0 &&
		tracked->store->git->config_add_file_ondisk(
			config, path, GIT_CONFIG_LEVEL_LOCAL, NULL, 0) == 0 &&
		tracked->store->git->config_get_string_buf(
			&format, config, "extensions.objectformat") == 0) {
		is_other = strcmp(format.ptr, "sha1") != 0;
	}
	tracked->store->git->buf_dispose(&format);
	tracked->store->git->config_free(config);
	return is_other;
}

static enum tracked_source read_index(struct tracked *tracked)
{
	char path[PATH_MAX + 16];
	if (!tracked->repository.folder[0]) {
		return TRACKED_NONE;
	}
	text_whole(path, sizeof(path), "%s/index", tracked->repository.folder);
	if (access(path, F_OK) < 0 && errno == ENOENT) {
		return TRACKED_NONE;
	}
	bool is_other = is_sha256(tracked);
	if (!is_other && tracked->store->git->index_open(&tracked->index, path) == 0) {
		return TRACKED_INDEX;
	}
	return ask_program(tracked, is_other) ? TRACKED_PROGRAM : TRACKED_NOTHING;
}

static void ensure_read(struct tracked *tracked)
{
	if (tracked->source == TRACKED_UNREAD) {
		tracked->source = read_index(tracked);
	}
}

/* The first listed path that does not sort before `path`. */
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
		return tracked->store->git->index_find(NULL, tracked->index, path) == 0;
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
		return tracked->store->git->index_find_prefix(NULL, tracked->index, prefix) == 0;
	}
	return tracked->source == TRACKED_PROGRAM &&
	       strncmp(listed_from(tracked, prefix), prefix, (size_t)length) == 0;
}
