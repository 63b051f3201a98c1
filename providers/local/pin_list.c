/* SPDX-License-Identifier: MIT */
#include "providers/local/pin_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/pin_git.h"

/* ---- the list ---- */

static bool is_covered(const struct pin_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct pin_found *found = &list->found[i];
		if (found->kind != PIN_LINK && path_is_at_or_below(path, found->path)) {
			return true;
		}
	}
	return false;
}

static void remove_below(struct pin_list *list, const char *path)
{
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (path_is_at_or_below(list->found[i].path, path)) {
			free(list->found[i].path);
		} else {
			list->found[kept++] = list->found[i];
		}
	}
	list->count = kept;
}

static struct timespec born_of(const char *root, const char *path)
{
	char whole[PATH_MAX];
	bool is_whole = text_whole(whole, sizeof(whole), "%s/%s", root, path);
	return is_whole ? libc_birth(whole) : (struct timespec){0};
}

static bool append(
	struct pin_list *list, const char *root, const struct pin_found *found, struct error *err)
{
	if (list->count == PINS_MAX) {
		return error_set(err, ERROR_LIMIT,
			"%s has more than %d repositories and files from which tools run commands: "
			"let a confined agent work in a copy of it (isolation = copy, or mount = "
			"none for a container)",
			root, PINS_MAX);
	}
	list->found = mem_realloc(list->found, (list->count + 1) * sizeof(*list->found));
	list->found[list->count] = *found;
	list->found[list->count].born = born_of(root, found->path);
	list->found[list->count++].path = mem_strdup(found->path);
	return true;
}

bool pin_list_add(
	struct pin_list *list, const char *root, const struct pin_found *found, struct error *err)
{
	if (is_covered(list, found->path) || pin_list_has(list, found->path)) {
		return true;
	}
	if (found->kind == PIN_FOLDER) {
		remove_below(list, found->path);
	}
	return append(list, root, found, err);
}

/* ---- the walk ---- */

struct walk {
	struct pin_list *list;
	const char *root;
	const struct pin_rules *rules;
	char path[PATH_MAX]; // of the current file, below the root
	long looked_at;
	struct error *err;
};

static bool add(struct walk *walk, enum pin_kind kind, const char *path, const struct stat *status)
{
	const struct pin_found found = {.kind = kind,
		.path = (char *)path,
		.inode = status->st_ino,
		.changed = status->st_ctim};
	return append(walk->list, walk->root, &found, walk->err);
}

static bool is_guarded(const struct walk *walk, const char *path, bool is_link)
{
	return walk->rules->guard &&
	       walk->rules->is_guarded(walk->rules->guard, walk->root, path, is_link);
}

static bool has(int folder, const char *name)
{
	struct stat status;
	return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * git treats such a folder as a repository, whatever its name is. If it has a file commondir,
 * another folder has the rest and the configuration. sync/git_layout.h has the same rule.
 */
static bool is_bare(int folder)
{
	return has(folder, "HEAD") &&
	       (has(folder, "commondir") || (has(folder, "objects") && has(folder, "refs")));
}

/*
 * A file that is gone, or that the user may not read, needs no pin. No other error may be ignored.
 */
static bool may_pass(const struct walk *walk, int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == EACCES ||
	       error_set_errno(walk->err, errnum, "looking through %s/%s", walk->root, walk->path);
}

static bool walk_folder(struct walk *walk, int folder, int depth);

/*
 * Whether a folder on the path to a guarded file is pinned as a whole: its name begins with a dot.
 */
static bool is_pinned_whole(const struct walk *walk, const char *path)
{
	return is_guarded(walk, path, false) ||
	       (path_last_part(path)[0] == '.' && is_guarded(walk, path, true));
}

static bool look_at_folder(
	struct walk *walk, int above, const char *name, const struct stat *status, int depth)
{
	const char *path = walk->path;
	if (is_pinned_whole(walk, path)) {
		return add(walk, PIN_FOLDER, path, status);
	}
	if (strcmp(name, "node_modules") == 0 || depth == PIN_WALK_DEPTH_MAX) {
		return true;
	}
	int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0) {
		return may_pass(walk, errno);
	}
	if (is_bare(folder)) {
		fd_close(&folder);
		return add(walk, PIN_REPOSITORY, path, status);
	}
	return walk_folder(walk, folder, depth + 1);
}

static bool look_at(struct walk *walk, int above, const char *name, int depth)
{
	const char *path = walk->path;
	struct stat status;
	if (++walk->looked_at > PIN_WALK_MAX) {
		return error_set(walk->err, ERROR_LIMIT,
			"%s has more than %d files: let a confined agent work in a copy of a part "
			"of it (isolation = copy, or mount = none for a container)",
			walk->root, PIN_WALK_MAX);
	}
	if (fstatat(above, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		return may_pass(walk, errno);
	}
	bool is_git = strcmp(name, ".git") == 0;
	if (S_ISLNK(status.st_mode)) {
		return !(is_git || is_guarded(walk, path, true)) ||
		       add(walk, PIN_LINK, path, &status);
	}
	if (is_git) {
		return add(walk, PIN_REPOSITORY, path, &status);
	}
	if (S_ISDIR(status.st_mode)) {
		return look_at_folder(walk, above, name, &status, depth);
	}
	return !S_ISREG(status.st_mode) || !is_guarded(walk, path, false) ||
	       add(walk, PIN_FILE, path, &status);
}

/* Closes the descriptor. */
static bool walk_folder(struct walk *walk, int folder, int depth)
{
	bool is_walked = true;
	size_t len = strlen(walk->path);
	DIR *names = fdopendir(folder);
	struct dirent *entry;
	if (!names) {
		int errnum = errno;
		fd_close(&folder);
		return may_pass(walk, errnum);
	}
	while (is_walked) {
		errno = 0;
		entry = readdir(names);
		if (!entry) {
			is_walked = errno == 0 || may_pass(walk, errno);
			break;
		}
		const char *name = entry->d_name;
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
			text_append(
				walk->path, sizeof(walk->path), "%s%s", len > 0 ? "/" : "", name)) {
			is_walked = look_at(walk, dirfd(names), name, depth);
		}
		walk->path[len] = '\0';
	}
	closedir(names);
	return is_walked;
}

static int compare(const void *one, const void *other)
{
	return strcmp(
		((const struct pin_found *)one)->path, ((const struct pin_found *)other)->path);
}

bool pin_list_find(
	struct pin_list *list, const char *root, const struct pin_rules *rules, struct error *err)
{
	struct walk walk = {.list = list, .root = root, .rules = rules, .path = "", .err = err};
	*list = (struct pin_list){.found = NULL};
	int folder = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "%s", root);
	}
	if (is_bare(folder)) {
		fd_close(&folder);
		return error_set(err, ERROR_CONFIG,
			"%s is itself a git repository: a confined agent cannot work in it without "
			"a copy (isolation = copy)",
			root);
	}
	if (!walk_folder(&walk, folder, 0) ||
		(rules->home && !pin_git_find(list, root, rules->home, err))) {
		return false;
	}
	if (list->count > 0) {
		qsort(list->found, list->count, sizeof(*list->found), compare);
	}
	return true;
}

void pin_list_finish(struct pin_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->found[i].path);
	}
	free(list->found);
	*list = (struct pin_list){.found = NULL};
}

bool pin_list_has(const struct pin_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++) {
		if (strcmp(list->found[i].path, path) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- entries for a cell ---- */

static void add_text(char ***texts, const char *root, const char *path, size_t len)
{
	char text[PATH_MAX];
	if (text_whole(text, sizeof(text), "%s/%.*s", root, (int)len, path) &&
		!words_contain((const char *const *)*texts, text)) {
		words_append(texts, text);
	}
}

static int compare_entries(const void *one, const void *other)
{
	return strcmp(
		((const struct cell_entry *)one)->path, ((const struct cell_entry *)other)->path);
}

struct cell_entry *pin_list_entries(const struct pin_list *list, const char *root, bool writes_git,
	size_t *out_count, char ***out_texts)
{
	char **texts = NULL;
	words_append(&texts, root);
	for (size_t i = 0; i < list->count; i++) {
		const struct pin_found *found = &list->found[i];
		bool is_pinned =
			found->kind != PIN_LINK && (found->kind != PIN_REPOSITORY || !writes_git);
		for (const char *at = strchr(found->path, '/'); is_pinned && at;
			at = strchr(at + 1, '/')) {
			add_text(&texts, root, found->path, (size_t)(at - found->path));
		}
	}
	size_t ways = words_count(texts);
	for (size_t i = 0; i < list->count; i++) {
		const struct pin_found *found = &list->found[i];
		if (found->kind != PIN_LINK && (found->kind != PIN_REPOSITORY || !writes_git)) {
			add_text(&texts, root, found->path, strlen(found->path));
		}
	}
	size_t count = words_count(texts);
	struct cell_entry *entries = mem_alloc_zero(count * sizeof(*entries));
	for (size_t i = 0; i < count; i++) {
		entries[i] = (struct cell_entry){
			.rule = i < ways ? CELL_WRITE : CELL_READ, .path = texts[i]};
	}
	qsort(entries, count, sizeof(*entries), compare_entries);
	*out_count = count;
	*out_texts = texts;
	return entries;
}

/* ---- a worktree's repository ---- */

/* Reads the first line of a file. The name must contain no links. */
static bool read_line(int folder, const char *name, char out[PATH_MAX])
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = beneath_open(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	ssize_t len = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)
	                      ? read(fd, out, PATH_MAX - 1)
	                      : -1;
	out[len > 0 ? len : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return len > 0;
}

static bool has_folder(int folder, const char *name)
{
	struct stat status;
	return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* Cuts the last name off and returns it. NULL: there would be no path left. */
static const char *cut_name(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash == path) {
		return NULL;
	}
	*slash = '\0';
	return slash + 1;
}

/* Reads which folder the file .git names: COMMON/worktrees/NAME. */
static bool read_git_file(const char *root, char out_common[PATH_MAX], const char **out_name)
{
	static const char key[] = "gitdir: ";
	char line[PATH_MAX];
	ATTR_CLEANUP(fd_cleanup) int folder = beneath_open(AT_FDCWD, root, O_PATH | O_DIRECTORY);
	if (folder < 0 || !read_line(folder, ".git", line) ||
		strncmp(line, key, strlen(key)) != 0 || line[strlen(key)] != '/' ||
		!realpath(line + strlen(key), out_common)) {
		return false;
	}
	*out_name = cut_name(out_common);
	const char *above = *out_name ? cut_name(out_common) : NULL;
	return above && strcmp(above, "worktrees") == 0;
}

/* gitrepository-layout(5): COMMON/worktrees/NAME/gitdir names the worktree's .git file. */
static bool names_back(int common, const char *name, const char *root)
{
	char path[PATH_MAX], file[PATH_MAX], line[PATH_MAX];
	if (!text_whole(path, sizeof(path), "worktrees/%s", name) ||
		!text_whole(file, sizeof(file), "%s/.git", root)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int folder = beneath_open(common, path, O_PATH | O_DIRECTORY);
	return folder >= 0 && has(folder, "HEAD") && read_line(folder, "gitdir", line) &&
	       strcmp(line, file) == 0 && read_line(folder, "commondir", line) &&
	       strcmp(line, "../..") == 0;
}

/* A folder that has a .git is somebody's working folder, whatever else is in it. */
static bool is_common(int folder)
{
	return has(folder, "HEAD") && has_folder(folder, "objects") && has_folder(folder, "refs") &&
	       !has(folder, "commondir") && !has(folder, ".git");
}

bool pin_list_repository(
	const char *root, const struct pin_places *places, struct pin_repository *out)
{
	char path[PATH_MAX];
	const char *name;
	struct stat status;
	out->path[0] = '\0';
	if (!read_git_file(root, path, &name) || path_is_at_or_below(path, root) ||
		path_is_at_or_below(root, path) || !pin_places_take_repository(places, path)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int common = beneath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY);
	if (common < 0 || fstat(common, &status) != 0 || !is_common(common) ||
		!names_back(common, name, root)) {
		return false;
	}
	out->device = status.st_dev;
	out->inode = status.st_ino;
	return text_whole(out->path, sizeof(out->path), "%s", path);
}

/* ---- for people ---- */

const char *pin_reader(const struct pin_found *found)
{
	static const struct {
		const char *part;
		const char *reader;
	} readers[] = {
		{".envrc", "direnv runs it"},
		{".gitmodules", "git reads commands from it"},
		{".gitattributes", "git chooses filters by it"},
		{".vscode", "VS Code runs commands from it"},
		{".code-workspace", "VS Code runs commands from it"},
		{".zed", "Zed runs commands from it"},
		{".idea", "JetBrains' editors run commands from it"},
		{".mcp.json", "agents start the MCP servers that it names"},
		{".husky", "git hooks run from it"},
		{".githooks", "git hooks run from it"},
		{".devcontainer", "a development container is built from it"},
		{".claude", "Claude Code runs hooks from it"},
		{".codex", "Codex starts the MCP servers that it names"},
		{".gemini", "Gemini CLI starts the MCP servers that it names"},
		{".qwen", "Qwen Code starts the MCP servers that it names"},
		{"opencode", "OpenCode runs commands and plugins from it"},
		{".git", "git runs the commands in it"},
	};
	if (found->reader) {
		return found->reader;
	}
	if (found->kind == PIN_REPOSITORY) {
		return "git runs its hooks and the programs in its configuration";
	}
	for (size_t i = 0; i < ARRAY_LENGTH(readers); i++) {
		if (strstr(found->path, readers[i].part)) {
			return readers[i].reader;
		}
	}
	return "guard-paths names it";
}
