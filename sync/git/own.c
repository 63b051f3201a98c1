/* SPDX-License-Identifier: MIT */
#include "sync/git/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path_quote.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/user_config.h"

/*
 * A folder of objects is three levels deep, with alternates five more, as in git; names of refs may
 * be deeper.
 */
enum { PLACES_MAX = 5, DEPTH_MAX = 64, LINES_MAX = 1 << 16 };

struct own {
	char *places[PLACES_MAX]; // owned; real paths where its files may lie
	size_t place_count;
	size_t entries; // checked so far
	struct error *err;
};

/* ---- where its files may lie ---- */

static void add_place(struct own *own, const char *path)
{
	char *real = realpath(path, NULL);
	if (real) {
		own->places[own->place_count++] = real;
	}
}

static void add_modules(struct own *own, const char *folder)
{
	char *path = path_join(folder, "modules");
	add_place(own, path);
	free(path);
}

static void add_places(struct own *own, const char *workspace)
{
	struct user_repository *outer = mem_alloc_zero(sizeof(*outer));
	add_place(own, workspace);
	if (user_repository_find(outer, workspace, true)) {
		add_modules(own, outer->folder); // for a linked work tree these differ
		add_modules(own, outer->common);
	}
	free(outer);
}

static bool is_inside(const struct own *own, const char *real)
{
	for (size_t i = 0; i < own->place_count; i++) {
		if (path_is_at_or_below(real, own->places[i])) {
			return true;
		}
	}
	return false;
}

static bool check_inside(struct own *own, const char *real)
{
	char shown[TEXT_SHORT_SIZE];
	if (is_inside(own, real)) {
		return true;
	}
	char *path = path_quote(span_of(real));
	error_set(own->err, ERROR_UNAVAILABLE,
		"its .git leads out of the workspace, to %s, and that repository does not name "
		"this folder as its work tree",
		text_short(shown, path));
	free(path);
	return false;
}

/* ---- whether a repository elsewhere names this folder ---- */

static bool is_same(const char *path, const char *wanted)
{
	char *real = realpath(path, NULL);
	bool is_it = real && strcmp(real, wanted) == 0;
	free(real);
	return is_it;
}

static bool read_lines(const char *folder, const char *name, struct buf *out)
{
	char *path = path_join(folder, name);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t count = fd >= 0 ? 1 : 0;
	while (count > 0) {
		char *at = buf_reserve(out, 4096, NULL);
		count = at ? read(fd, at, 4096) : -1;
		if (count > 0) {
			buf_commit(out, (size_t)count);
		}
	}
	free(path);
	return fd >= 0 && count == 0;
}

/*
 * git-worktree(1) keeps `gitdir` in the repository of the linked work tree: whoever could only
 * write the `.git` here cannot have put it there.
 */
static bool is_linked_worktree(const struct own_request *request)
{
	struct buf text;
	char *all = path_join(request->common, "worktrees");
	char *here = path_join(request->root, ".git");
	size_t length = strlen(all);
	bool is_entry = path_is_at_or_below(request->folder, all) && request->folder[length] &&
	                !strchr(request->folder + length + 1, '/');
	buf_init(&text, LINES_MAX);
	bool is_it = false;
	if (is_entry && read_lines(request->folder, "gitdir", &text)) {
		char *line = mem_strndup(buf_span(&text));
		line[strcspn(line, "\r\n")] = '\0';
		char *path = *line == '/' ? mem_strdup(line) : path_join(request->folder, line);
		is_it = is_same(path, here); // git never makes `.git` a symbolic link here
		free(path);
		free(line);
	}
	buf_finish(&text);
	free(here);
	free(all);
	return is_it;
}

/* Like a submodule whose repository git has moved into the repository around it. */
static bool is_its_work_tree(const struct own_request *request)
{
	struct user_config config = {0};
	struct user_repository *places = mem_alloc_zero(sizeof(*places));
	struct error ignored;
	bool is_it = false;
	if (text_whole(places->folder, sizeof(places->folder), "%s", request->folder) &&
		text_whole(places->common, sizeof(places->common), "%s", request->common) &&
		user_config_read(&config, request->home, places, &ignored)) {
		const char *value = user_config_get(&config, "core.worktree");
		char *path = !value || !*value ? NULL
		             : *value == '/'   ? mem_strdup(value)
		                               : path_join(request->folder, value);
		is_it = path && is_same(path, request->root);
		free(path);
	}
	user_config_finish(&config);
	free(places);
	return is_it;
}

/*
 * Whoever writes to the workspace could let a folder in it name anything, so the naming folder must
 * lie elsewhere.
 */
static bool names_folder(const struct own *own, const struct own_request *request)
{
	return !is_inside(own, request->folder) && !is_inside(own, request->common) &&
	       (is_linked_worktree(request) || is_its_work_tree(request));
}

/* ---- where its files lead ---- */

static bool check_path(struct own *own, const char *path, int depth);

static bool check_folder(struct own *own, const char *path, int depth)
{
	DIR *folder = opendir(path);
	bool is_own = true;
	if (!folder) {
		return true; // nobody else can read it either
	}
	for (struct dirent *entry = readdir(folder); entry && is_own; entry = readdir(folder)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
			continue;
		}
		own->entries++;
		if (entry->d_type != DT_REG) {
			char *inner = path_join(path, entry->d_name);
			is_own = check_path(own, inner, depth + 1);
			free(inner);
		}
	}
	closedir(folder);
	return is_own;
}

static bool check_path(struct own *own, const char *path, int depth)
{
	struct stat status;
	if (++own->entries > OWN_ENTRIES_MAX || depth > DEPTH_MAX) {
		return error_set(own->err, ERROR_LIMIT,
			"its .git has more than %d files, more than %d nested folders, or a loop "
			"of links: `git gc` may reduce the number of files",
			OWN_ENTRIES_MAX, DEPTH_MAX);
	}
	if (lstat(path, &status) < 0) {
		return true;
	}
	if (S_ISLNK(status.st_mode)) {
		char *real = realpath(path, NULL);
		bool is_own =
			!real || (check_inside(own, real) && check_path(own, real, depth + 1));
		free(real);
		return is_own;
	}
	return !S_ISDIR(status.st_mode) || check_folder(own, path, depth);
}

static bool check_objects(struct own *own, const char *objects, int depth);

/* Checks a line of objects/info/alternates (gitrepository-layout(5)). */
static bool check_alternate(struct own *own, const char *objects, const char *line, int depth)
{
	if (!*line || *line == '#') {
		return true;
	}
	if (*line == '"') {
		return error_set(own->err, ERROR_UNAVAILABLE,
			"its .git/objects/info/alternates has a path in quotes");
	}
	char *path = *line == '/' ? mem_strdup(line) : path_join(objects, line);
	char *real = realpath(path, NULL);
	bool is_own = !real || (check_inside(own, real) && check_objects(own, real, depth + 1));
	free(real);
	free(path);
	return is_own;
}

static bool check_objects(struct own *own, const char *objects, int depth)
{
	struct buf text;
	if (!check_path(own, objects, depth)) {
		return false;
	}
	buf_init(&text, LINES_MAX);
	bool is_own = true;
	if (!read_lines(objects, "info/alternates", &text) && text.len > 0) {
		is_own = error_set(own->err, ERROR_LIMIT,
			"its .git/objects/info/alternates has more than %d bytes", LINES_MAX);
	}
	char *lines = mem_strndup(buf_span(&text));
	for (char *line = lines; is_own && *line;) {
		size_t length = strcspn(line, "\n");
		bool is_last = line[length] == '\0';
		line[length] = '\0';
		is_own = check_alternate(own, objects, line, depth);
		line += length + !is_last;
	}
	free(lines);
	buf_finish(&text);
	return is_own;
}

/* Checks everything that git and libgit2 read for a history and its settings. */
static bool check_files(struct own *own, const char *folder)
{
	static const char *const names[] = {
		"HEAD", "config", "config.worktree", "packed-refs", "refs", "shallow", "info"};
	bool is_own = true;
	for (size_t i = 0; is_own && i < ARRAY_LENGTH(names); i++) {
		char *path = path_join(folder, names[i]);
		is_own = check_path(own, path, 0);
		free(path);
	}
	return is_own;
}

static bool check_all(struct own *own, const struct own_request *request)
{
	if (names_folder(own, request)) {
		add_place(own, request->common);
		add_place(own, request->folder);
	}
	if (!check_inside(own, request->folder) || !check_inside(own, request->common)) {
		return false;
	}
	char *objects = path_join(request->common, "objects");
	bool is_own = check_files(own, request->folder) && check_files(own, request->common) &&
	              check_objects(own, objects, 0);
	free(objects);
	return is_own;
}

bool own_check(const struct own_request *request, struct error *err)
{
	struct own own = {.err = err};
	struct own_request real = *request;
	char *folder = realpath(request->folder, NULL), *common = realpath(request->common, NULL);
	bool is_own = folder && common;
	if (!is_own) {
		error_set(err, ERROR_UNAVAILABLE, "its .git is gone");
	} else {
		real.folder = folder;
		real.common = common;
		add_places(&own, request->workspace);
		is_own = check_all(&own, &real);
	}
	for (size_t i = 0; i < own.place_count; i++) {
		free(own.places[i]);
	}
	free(folder);
	free(common);
	return is_own;
}
