/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_git.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/user_config.h"
#include "base/words.h"

struct finder {
	struct pin_list *list;
	const char *root;
	const char *home;
	struct user_repository *repository;
	struct error *err;
};

static bool add(const struct finder *finder, enum pin_kind kind, const char *path,
	const struct stat *status, const char *reader)
{
	const struct pin_found found = {.kind = kind,
		.path = (char *)path + strlen(finder->root) + 1,
		.reader = reader,
		.inode = status->st_ino,
		.changed = status->st_ctim};
	return pin_list_add(finder->list, finder->root, &found, finder->err);
}

/* Whether the path lies below the root, and is not the root itself. */
static bool is_inside(const struct finder *finder, const char *path)
{
	size_t len = strlen(finder->root);
	return strncmp(path, finder->root, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
}

/* Adds a place that has no link above it. */
static bool add_place(const struct finder *finder, const char *place, const char *reader)
{
	struct stat status;
	if (!is_inside(finder, place) || lstat(place, &status) != 0) {
		return true;
	}
	if (S_ISLNK(status.st_mode)) {
		return add(finder, PIN_LINK, place, &status, reader);
	}
	bool is_folder = S_ISDIR(status.st_mode);
	return !(is_folder || S_ISREG(status.st_mode)) ||
	       add(finder, is_folder ? PIN_FOLDER : PIN_FILE, place, &status, reader);
}

/*
 * Adds the file to which the path leads, and each link on the way: whoever replaces one of them
 * makes the path lead elsewhere.
 */
static bool add_path(const struct finder *finder, const char *path, const char *reader)
{
	char **places = NULL;
	if (access(path, F_OK) != 0) {
		return true; // it does not exist, so nothing can be mounted there
	}
	path_places(path, &places);
	bool is_added = true;
	for (char **place = places; is_added && place && *place; place++) {
		is_added = add_place(finder, *place, reader);
	}
	words_free(places);
	return is_added;
}

/* A relative path is relative to the top of the work tree. */
static bool add_named(const struct finder *finder, const char *path, const char *reader)
{
	char whole[2 * PATH_MAX];
	bool is_absolute = path[0] == '/';
	text_whole(whole, sizeof(whole), "%s%s%s", is_absolute ? "" : finder->repository->top,
		is_absolute ? "" : "/", path);
	return path[0] == '\0' || add_path(finder, whole, reader);
}

static bool add_settings(const struct finder *finder, const struct user_config *config)
{
	static const struct {
		const char *key;
		const char *name; // of the user's own file; NULL: there is none
		const char *reader;
	} settings[] = {
		{"core.hookspath", NULL, "git runs the hooks in it (core.hooksPath)"},
		{"core.attributesfile", "attributes",
			"git chooses filters by it (core.attributesFile)"},
		{"core.excludesfile", "ignore", "git hides new files by it (core.excludesFile)"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++) {
		char path[PATH_MAX];
		struct error ignored;
		bool is_set = settings[i].name || user_config_get(config, settings[i].key);
		if (is_set &&
			user_config_file(config, settings[i].key,
				settings[i].name ? settings[i].name : "", finder->home, path,
				&ignored) &&
			!add_named(finder, path, settings[i].reader)) {
			return false;
		}
	}
	return true;
}

/* What the rest of the configuration names would stay writable, and nobody would know. */
static bool refuse(const struct finder *finder)
{
	struct error *err = finder->err;
	return error_set(err, err->code,
		"%s: %s. Without all of git's configuration, the broker cannot tell which files a "
		"confined agent may not write: mend it, or let the agent work in a copy (isolation "
		"= copy)",
		finder->repository->top, err->text);
}

/* Adds what git reads for finder->repository. */
static bool add_repository(const struct finder *finder)
{
	struct user_config config = {.passes_unreadable = true};
	bool is_added = user_config_read(&config, finder->home, finder->repository, finder->err)
	                        ? add_settings(finder, &config)
	                        : refuse(finder);
	for (char **path = config.paths; is_added && path && *path; path++) {
		is_added = add_named(finder, *path, "git reads its configuration from it");
	}
	user_config_finish(&config);
	return is_added;
}

/* Finds the repository of a .git or of a bare repository, whose path is below the root. */
static bool find_repository(const struct finder *finder, const char *path)
{
	char folder[PATH_MAX];
	bool is_git = strcmp(path_last_part(path), ".git") == 0;
	size_t len = is_git ? strlen(path) - strlen(".git") : strlen(path);
	if (!text_whole(folder, sizeof(folder), "%s/%.*s", finder->root, (int)len, path)) {
		return false;
	}
	if (folder[strlen(folder) - 1] == '/') {
		folder[strlen(folder) - 1] = '\0';
	}
	if (is_git) {
		return user_repository_find(finder->repository, folder, false);
	}
	*finder->repository = (struct user_repository){.top = ""};
	text_whole(finder->repository->top, PATH_MAX, "%s", folder);
	text_whole(finder->repository->folder, PATH_MAX, "%s", folder);
	return text_whole(finder->repository->common, PATH_MAX, "%s", folder);
}

bool pin_git_find(struct pin_list *list, const char *root, const char *home, struct error *err)
{
	struct finder finder = {.list = list,
		.root = root,
		.home = home,
		.repository = mem_alloc_zero(sizeof(*finder.repository)),
		.err = err};
	char **repositories = NULL; // the list changes meanwhile
	for (size_t i = 0; i < list->count; i++) {
		if (list->found[i].kind == PIN_REPOSITORY) {
			words_append(&repositories, list->found[i].path);
		}
	}
	(void)user_repository_find(finder.repository, root, true);
	bool is_found = add_repository(&finder);
	for (char **path = repositories; is_found && path && *path; path++) {
		is_found = !find_repository(&finder, *path) || add_repository(&finder);
	}
	words_free(repositories);
	free(finder.repository);
	return is_found;
}
