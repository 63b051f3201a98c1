/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/text.h"
#include "providers/runner/runner.h"

/* Does the work of providers/ssh/remote/root_add.sh where there may be no shell. */
enum { WORD_BASE, WORD_FOLDER, WORD_NAME, WORD_WHICH, WORD_PLACE, WORDS };

static const char place_file[] = ".place";

static int answer(const char *what, const char *text)
{
	bool is_written = fwrite(what, strlen(what) + 1, 1, stdout) == 1 &&
	                  fwrite(text, strlen(text) + 1, 1, stdout) == 1 &&
	                  fwrite("end", sizeof("end"), 1, stdout) == 1 && fflush(stdout) == 0;
	return is_written ? 0 : 1;
}

static int fail(const char *path, const char *what)
{
	char text[PATH_MAX + 64];
	text_format(text, sizeof(text), "%s %s: %s", path, what, strerror(errno));
	return answer("failed", text);
}

/* Whether it has nothing in it yet, except perhaps an incomplete .place. */
static bool is_new(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool is_empty = true;
	while (dir && (entry = readdir(dir))) { // NOLINT(concurrency-mt-unsafe): its own
		const char *name = entry->d_name;
		is_empty = is_empty && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
					       strncmp(name, ".place.", 7) == 0);
	}
	if (dir) {
		closedir(dir);
	}
	return is_empty;
}

static bool write_place(const char *folder, const char *place)
{
	char path[PATH_MAX], part[PATH_MAX];
	struct error ignored;
	if (!text_whole(path, sizeof(path), "%s/%s", folder, place_file) ||
		!text_whole(part, sizeof(part), "%s/%s.%d", folder, place_file, (int)getpid()) ||
		!folder_make(folder, &ignored)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 && dprintf(fd, "%s\n", place) == (int)strlen(place) + 1 &&
	       rename(part, path) == 0;
}

/* The words of a place: no name is empty, hidden or leads upwards. */
static bool place_is_valid(const char *place)
{
	bool is_first = true;
	for (; *place; place++) {
		if (is_first && (*place == '/' || *place == '.')) {
			return false;
		}
		is_first = *place == '/';
	}
	return !is_first;
}

/* Reads the place that was recorded. False: there is one, and it cannot be used. */
static bool read_place(const char *folder, char place[PATH_MAX], bool *out_has_one)
{
	char path[PATH_MAX];
	if (!text_whole(path, sizeof(path), "%s/%s", folder, place_file)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	*out_has_one = fd >= 0 || errno != ENOENT;
	if (!*out_has_one) {
		return true;
	}
	ssize_t count = fd < 0 ? -1 : read(fd, place, PATH_MAX - 1);
	place[count > 0 ? count : 0] = '\0';
	place[strcspn(place, "\n")] = '\0';
	return place_is_valid(place);
}

/* Makes the folder, and checks that no link leads to it. */
static int make_root(const char *folder, const char *name)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct error why;
	if (!text_whole(path, sizeof(path), "%s/%s", folder, name)) {
		errno = ENAMETOOLONG;
		return fail(folder, "cannot contain the workspace");
	}
	if (!folder_make(path, &why)) {
		return answer("failed", why.text);
	}
	if (!realpath(path, real)) {
		return fail(path, "cannot be entered");
	}
	if (strcmp(path, real) != 0) {
		text_append(path, sizeof(path), " leads elsewhere");
		return answer("failed", path);
	}
	return answer("root", real);
}

int place_root(char **words)
{
	char base[PATH_MAX], real[PATH_MAX], folder[PATH_MAX], place[PATH_MAX];
	struct error why;
	struct stat status;
	bool has_place = false;
	for (int i = 0; i < WORDS; i++) {
		if (!words[i]) {
			return 1;
		}
	}
	umask(077);
	if (!text_whole(base, sizeof(base), "%s/workspaces", words[WORD_BASE])) {
		return 1;
	}
	if (!folder_make(base, &why)) {
		return answer("failed", why.text);
	}
	if (!realpath(base, real)) {
		return fail(base, "cannot be entered");
	}
	if (!text_whole(folder, sizeof(folder), "%s/%s", real, words[WORD_FOLDER])) {
		return 1;
	}
	bool is_there = stat(folder, &status) == 0 && S_ISDIR(status.st_mode);
	if (strcmp(words[WORD_WHICH], "any") != 0 && !is_there) {
		return answer("gone", folder);
	}
	if (words[WORD_PLACE][0] && is_new(folder) && !write_place(folder, words[WORD_PLACE])) {
		return fail(folder, "cannot hold the file .place");
	}
	if (!read_place(folder, place, &has_place)) {
		text_append(folder, sizeof(folder), "/%s cannot be used", place_file);
		return answer("failed", folder);
	}
	return make_root(folder, has_place ? place : words[WORD_NAME]);
}
