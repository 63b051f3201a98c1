/* SPDX-License-Identifier: MIT */
#include "base/user_repository.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

static bool join(char *out, const char *folder, const char *name)
{
	char path[2 * PATH_MAX];
	int length = name[0] == '/' ? snprintf(path, sizeof(path), "%s", name)
	                            : snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (length <= 0 || length >= PATH_MAX) {
		return false;
	}
	memcpy(out, path, (size_t)length + 1);
	return true;
}

/* The first line of a small file, after `prefix`; false if the file is not like that. */
static bool read_line(const char *path, const char *prefix, char line[PATH_MAX])
{
	char text[PATH_MAX + 16];
	int fd ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (count <= 0) {
		return false;
	}
	text[count] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	size_t skip = strlen(prefix);
	if (strncmp(text, prefix, skip) != 0 || strlen(text + skip) >= PATH_MAX) {
		return false;
	}
	memcpy(line, text + skip, strlen(text + skip) + 1);
	return line[0] != '\0';
}

/* `.git` is the repository, or a file that says where it is (gitrepository-layout(5)). */
static bool read_dot_git(struct user_repository *repository, const char *top)
{
	char path[PATH_MAX], line[PATH_MAX];
	struct stat status;
	if (!join(path, top, ".git") || stat(path, &status) < 0) {
		return false;
	}
	if (S_ISDIR(status.st_mode)) {
		memcpy(repository->folder, path, sizeof(path));
	} else if (!S_ISREG(status.st_mode) || !read_line(path, "gitdir: ", line) ||
		   !join(repository->folder, top, line)) {
		return false;
	}
	if (!join(path, repository->folder, "HEAD") || access(path, F_OK) < 0) {
		return false;
	}
	memcpy(repository->common, repository->folder, sizeof(repository->common));
	if (join(path, repository->folder, "commondir") && read_line(path, "", line)) {
		return join(repository->common, repository->folder, line);
	}
	return true;
}

static bool is_mine(const char *folder)
{
	struct stat status;
	return stat(folder, &status) == 0 && status.st_uid == geteuid();
}

bool user_repository_find(struct user_repository *repository, const char *path, bool above)
{
	if (text_whole(repository->top, sizeof(repository->top), "%s", path) &&
		read_dot_git(repository, repository->top)) {
		return true;
	}
	char *slash;
	while (above && (slash = strrchr(repository->top, '/')) && slash != repository->top) {
		*slash = '\0';
		if (read_dot_git(repository, repository->top) && is_mine(repository->folder)) {
			return true;
		}
	}
	text_whole(repository->top, sizeof(repository->top), "%s", path);
	repository->folder[0] = '\0';
	repository->common[0] = '\0';
	return false;
}

/* ---- where to place a part of a repository ---- */

static bool is_plain_name(struct span name)
{
	if (name.len == 0 || name.data[0] == '.' || name.data[0] == '-' || name.data[0] == ' ' ||
		name.data[name.len - 1] == ' ') {
		return false;
	}
	for (size_t i = 0; i < name.len; i++) {
		unsigned char at = (unsigned char)name.data[i];
		bool is_word = (at >= 'a' && at <= 'z') || (at >= 'A' && at <= 'Z') ||
		               (at >= '0' && at <= '9') || at >= 0x80;
		if (!is_word && !strchr(" +,-.=@_", at)) {
			return false;
		}
	}
	return true;
}

bool user_repository_is_place(const char *place)
{
	size_t names = 0;
	for (const char *at = place;; names++) {
		size_t length = strcspn(at, "/");
		if (!is_plain_name((struct span){at, length})) {
			return false;
		}
		if (!at[length]) {
			return names > 0 && strlen(place) < REPOSITORY_PLACE_MAX;
		}
		at += length + 1;
	}
}

void user_repository_place(const char *path, char place[REPOSITORY_PLACE_MAX])
{
	struct user_repository *repository = mem_alloc_zero(sizeof(*repository));
	place[0] = '\0';
	if (user_repository_find(repository, path, true) && strcmp(repository->top, path) != 0) {
		const char *name = strrchr(repository->top, '/') + 1;
		bool is_plain = is_plain_name(span_of(name));
		if (!text_whole(place, REPOSITORY_PLACE_MAX, "%s%s", is_plain ? name : "repository",
			    path + strlen(repository->top)) ||
			!user_repository_is_place(place)) {
			place[0] = '\0';
		}
	}
	free(repository);
}
