/* SPDX-License-Identifier: MIT */
#include "sync/rsync/reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"

struct reading {
	struct reach *reach;
	const struct rules *rules;
	int mirror;
	size_t capacity;
	const char **inside; // the folders there, inside of the current one; sorted, borrowed
	size_t inside_count, inside_capacity;
	size_t folders_read;
};

/* ---- adding to the reach ---- */

static void add_folder(struct reading *reading, const char *path, size_t length)
{
	struct reach *reach = reading->reach;
	const char *last = reach->count > 0 ? reach->folders[reach->count - 1] : NULL;
	if (last && strncmp(last, path, length) == 0 && !last[length]) {
		return;
	}
	if (reach->count == reading->capacity) {
		reading->capacity = reading->capacity ? 2 * reading->capacity : 64;
		reach->folders =
			mem_realloc(reach->folders, reading->capacity * sizeof(*reach->folders));
	}
	reach->folders[reach->count++] = mem_strndup((struct span){path, length});
}

/* Adds the folder, and those above it. */
static bool reach_folder(struct reading *reading, const char *path)
{
	size_t length = strlen(path);
	if (length > REACH_PATH_MAX || reading->reach->count > 16 * REACH_FOLDERS_MAX) {
		return false;
	}
	if (*path && rules_exclude(reading->rules, path, true)) {
		return true;
	}
	add_folder(reading, "", 0);
	for (size_t i = 1; i < length; i++) {
		if (path[i] == '/') {
			add_folder(reading, path, i);
		}
	}
	add_folder(reading, path, length);
	return true;
}

static bool reach_file(struct reading *reading, const char *path)
{
	char folder[REACH_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	if (strcmp(slash ? slash + 1 : path, ".gitignore") == 0 || strlen(path) > REACH_PATH_MAX) {
		return false;
	}
	text_whole(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	return reach_folder(reading, folder);
}

static void sort_folders(struct reach *reach)
{
	size_t kept = 0;
	qsort(reach->folders, reach->count, sizeof(*reach->folders), words_compare);
	for (size_t i = 0; i < reach->count; i++) {
		if (kept > 0 && strcmp(reach->folders[kept - 1], reach->folders[i]) == 0) {
			free(reach->folders[i]);
		} else {
			reach->folders[kept++] = reach->folders[i];
		}
	}
	reach->count = kept;
}

/* ---- folders that have disappeared ---- */

static void add_inside(struct reading *reading, const char *name)
{
	if (reading->inside_count == reading->inside_capacity) {
		reading->inside_capacity =
			reading->inside_capacity ? 2 * reading->inside_capacity : 64;
		reading->inside = mem_realloc(
			reading->inside, reading->inside_capacity * sizeof(*reading->inside));
	}
	reading->inside[reading->inside_count++] = name;
}

/* Whether a folder of the mirror, which may travel, is not a folder there any more. */
static bool is_gone(const struct reading *reading, const char *folder, const char *name)
{
	char path[REACH_PATH_MAX + 256 + 2];
	text_whole(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
	bool is_there =
		reading->inside_count > 0 && bsearch(&name, reading->inside, reading->inside_count,
						     sizeof(*reading->inside), words_compare);
	return !is_there && !rules_exclude(reading->rules, path, true);
}

static bool is_folder(int at, const struct dirent *entry)
{
	struct stat status;
	return entry->d_type == DT_DIR ||
	       (entry->d_type == DT_UNKNOWN &&
		       fstatat(at, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		       S_ISDIR(status.st_mode));
}

/* Whether everything in the mirror's folder still exists there; false also if it cannot be read. */
static bool has_lost_nothing(struct reading *reading, const char *folder)
{
	int fd = beneath_open(reading->mirror, *folder ? folder : ".", O_RDONLY | O_DIRECTORY);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		bool is_none = fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
		fd_close(&fd);
		return is_none; // it is new there
	}
	if (reading->inside_count > 0) {
		qsort(reading->inside, reading->inside_count, sizeof(*reading->inside),
			words_compare);
	}
	bool has_lost = false;
	const struct dirent *entry;
	for (errno = 0; !has_lost && (entry = readdir(stream)); errno = 0) {
		const char *name = entry->d_name;
		has_lost = strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		           is_folder(dirfd(stream), entry) && is_gone(reading, folder, name);
	}
	bool is_whole = errno == 0;
	closedir(stream);
	return is_whole && !has_lost;
}

/* ---- the words ---- */

/* The path in the next word; NULL if it is not a path below the root. */
static const char *take_word(struct span *words, char *out_mark)
{
	if (words->len == 0) {
		return NULL;
	}
	const char *word = words->data;
	size_t size = strlen(word) + 1;
	*words = (struct span){word + size, words->len - size};
	*out_mark = *word;
	word += *out_mark == '0' || *out_mark == '1';
	bool is_below = word[0] == '.' && (!word[1] || (word[1] == '/' && word[2] != '/'));
	return is_below ? word + 1 + (word[1] == '/') : NULL;
}

/* Reads a changed folder, and the folders in it, which are the following words. */
static bool read_folder(struct reading *reading, const char *folder, struct span *words)
{
	reading->inside_count = 0;
	while (words->len > 0 && words->data[0] == '1') {
		char mark;
		const char *path = take_word(words, &mark);
		if (!path) {
			return false;
		}
		const char *slash = strrchr(path, '/');
		add_inside(reading, slash ? slash + 1 : path);
	}
	bool is_out = *folder && rules_exclude(reading->rules, folder, true);
	return ++reading->folders_read <= REACH_FOLDERS_MAX && reach_folder(reading, folder) &&
	       (is_out || has_lost_nothing(reading, folder));
}

static bool read_words(struct reading *reading, struct span words)
{
	while (words.len > 0) {
		char mark;
		const char *path = take_word(&words, &mark);
		if (!path || mark == '1' ||
			!(mark == '0' ? read_folder(reading, path, &words)
				      : reach_file(reading, path))) {
			return false;
		}
	}
	return true;
}

bool reach_read(struct reach *reach, struct span words, const struct rules *rules, int mirror)
{
	static const char differs[] = "differs";
	struct reading reading = {.reach = reach, .rules = rules, .mirror = mirror};
	*reach = (struct reach){0};
	if (words.len < sizeof(differs) || memcmp(words.data, differs, sizeof(differs)) != 0) {
		return false;
	}
	words = (struct span){words.data + sizeof(differs), words.len - sizeof(differs)};
	bool is_read = read_words(&reading, words);
	free(reading.inside);
	if (reach->count > 0) {
		sort_folders(reach);
	}
	if (!is_read || reach->count > REACH_FOLDERS_MAX) {
		reach_finish(reach);
		return false;
	}
	return true;
}

void reach_finish(struct reach *reach)
{
	for (size_t i = 0; i < reach->count; i++) {
		free(reach->folders[i]);
	}
	free(reach->folders);
	*reach = (struct reach){0};
}

/* ---- the rules ---- */

void reach_add_rules(const struct reach *reach, const struct rules *rules, struct rules *out)
{
	for (size_t i = 0; i < reach->count; i++) {
		if (*reach->folders[i]) {
			rules_add_path(out, true, reach->folders[i], "", true);
		}
	}
	rules_add(out, false, "*", true);
	rules_copy(out, rules);
}
