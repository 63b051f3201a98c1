/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_drawing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "base/path.h"

struct cell_drawing *cell_drawing_create(const char *home, const char *const *own_files)
{
	struct cell_drawing *drawing = mem_alloc_zero(sizeof(*drawing));
	drawing->home_name = home;
	drawing->home = real_path(home);
	drawing->own_files = own_files;
	return drawing;
}

void cell_drawing_destroy(struct cell_drawing *drawing)
{
	if (!drawing) {
		return;
	}
	for (size_t i = 0; i < drawing->count; i++) {
		free(drawing->said[i]);
	}
	for (size_t i = 0; i < drawing->count; i++) {
		if (drawing->entries[i].rule == CELL_PUT) {
			explicit_bzero((char *)drawing->entries[i].source,
				strlen(drawing->entries[i].source));
		}
	}
	words_free(drawing->texts);
	free(drawing->home);
	free(drawing);
}

static bool add(struct cell_drawing *drawing, enum cell_rule rule, const char *path,
	const char *source, struct error *err)
{
	if (drawing->count == ARRAY_LENGTH(drawing->entries)) {
		return error_set(
			err, ERROR_LIMIT, "a cell can have at most %d paths", CELL_ENTRIES_MAX);
	}
	size_t before = words_count(drawing->texts);
	words_append(&drawing->texts, path);
	words_append(&drawing->texts, source);
	drawing->entries[drawing->count++] = (struct cell_entry){
		.rule = rule, .path = drawing->texts[before], .source = drawing->texts[before + 1]};
	return true;
}

/* ---- resolving ---- */

/*
 * Treats ".." as the parent's name. That is correct only without links, which find_source checks.
 */
static bool push_names(char path[PATH_MAX], const char *names)
{
	for (; *names; names += strspn(names, "/")) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(names, "/");
		if (!text_whole(name, sizeof(name), "%.*s", (int)len, names)) {
			return false;
		}
		names += len;
		if (strcmp(name, "..") == 0) {
			path_pop(path);
		} else if (len > 0 && strcmp(name, ".") != 0 && !path_push(path, name)) {
			return false;
		}
	}
	return true;
}

/* Follows a link directly in the home folder, once: no cell can write there. */
static bool follow_in_home(const char *home, const char *rest, char out[PATH_MAX])
{
	char link[PATH_MAX];
	char target[PATH_MAX];
	size_t first = strcspn(rest, "/");
	if (!text_whole(link, sizeof(link), "%s/%.*s", home, (int)first, rest)) {
		return false;
	}
	ssize_t len = first > 0 ? readlink(link, target, sizeof(target) - 1) : -1;
	if (len <= 0) {
		return text_whole(out, PATH_MAX, "%s/%s", home, rest);
	}
	target[len] = '\0';
	bool is_absolute = target[0] == '/';
	text_whole(out, PATH_MAX, "%s", is_absolute ? "" : home);
	return push_names(out, target) && push_names(out, rest + first);
}

/* The path by which the kernel knows the file; `path` must contain no links. False with errno. */
static bool find_source(const char *path, char out[PATH_MAX])
{
	char name[64];
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open(AT_FDCWD, path, O_PATH);
	if (fd < 0 || fstat(fd, &status) != 0) {
		return false;
	}
	if (S_ISLNK(status.st_mode)) {
		errno = ELOOP; // a kernel without openat2 opened it
		return false;
	}
	text_whole(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(name, out, PATH_MAX - 1);
	out[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Removes repeated slashes. False if a part is "." or "..", or if the path is too long. */
static bool tidy(const char *path, char out[PATH_MAX])
{
	out[0] = '\0';
	while (*path) {
		size_t len = strcspn(path, "/");
		bool is_dots = (len == 1 || len == 2) && strncmp(path, "..", len) == 0;
		if (is_dots || (len > 0 && !text_append(out, PATH_MAX, "%s%.*s", out[0] ? "/" : "",
						   (int)len, path))) {
			return false;
		}
		path += len;
		path += strspn(path, "/");
	}
	return true;
}

/* The part of the path below the home; NULL if it lies elsewhere. */
static const char *below_home(const struct cell_drawing *drawing, const char *value)
{
	const char *const homes[] = {"~", drawing->home_name, drawing->home};
	for (size_t i = 0; i < ARRAY_LENGTH(homes); i++) {
		if (path_is_at_or_below(value, homes[i])) {
			return value + strlen(homes[i]);
		}
	}
	return NULL;
}

/* ---- what can be read and written ---- */

/* False with errno; both texts are set even then. */
static bool locate(const struct cell_drawing *drawing, const char *value, char place[PATH_MAX],
	char source[PATH_MAX])
{
	char rest[PATH_MAX];
	char way[PATH_MAX];
	const char *in_home = below_home(drawing, value);
	errno = EINVAL;
	if (!tidy(in_home ? in_home : value, rest) ||
		!text_whole(place, PATH_MAX, "%s%s%s", in_home ? drawing->home : "",
			in_home && !rest[0] ? "" : "/", rest) ||
		!(in_home ? follow_in_home(drawing->home, rest, way)
			  : text_whole(way, sizeof(way), "%s", place))) {
		return false;
	}
	return find_source(way, source);
}

bool cell_drawing_add_default(struct cell_drawing *drawing, const char *name, struct error *err)
{
	char value[PATH_MAX];
	char place[PATH_MAX];
	char source[PATH_MAX];
	return !text_whole(value, sizeof(value), "~/%s", name) ||
	       !locate(drawing, value, place, source) ||
	       add(drawing, CELL_READ, place, source, err);
}

static bool refuse(const char *said, int errnum, struct error *err)
{
	if (errnum == EINVAL) {
		return error_set(err, ERROR_CONFIG,
			"%s: expected a path that is not too long and has no . or .. in it", said);
	}
	if (errnum == ELOOP) {
		return error_set(err, ERROR_CONFIG,
			"%s: a part of the path is a symbolic link, which an agent could have "
			"made: name the folder that it leads to",
			said);
	}
	const char *why = libc_error_text(errnum);
	return error_set(err, ERROR_CONFIG, "%s: %s", said, why ? why : "it cannot be opened");
}

static bool add_value(struct cell_drawing *drawing, enum cell_rule rule, const char *said,
	const char *value, struct error *err)
{
	char place[PATH_MAX];
	char source[PATH_MAX];
	if (value[0] != '/' && strncmp(value, "~/", 2) != 0) {
		return error_set(
			err, ERROR_CONFIG, "%s: expected a path that begins with / or ~/", said);
	}
	if (!locate(drawing, value, place, source)) {
		bool may_lack = rule == CELL_READ && (errno == ENOENT || errno == EACCES);
		return may_lack || refuse(said, errno, err);
	}
	for (size_t i = 0; i < drawing->count; i++) {
		const struct cell_entry *entry = &drawing->entries[i];
		if (drawing->said[i] && entry->rule == rule && strcmp(entry->path, place) == 0) {
			return true; // named twice
		}
	}
	if (!add(drawing, rule, place, source, err)) {
		return false;
	}
	drawing->said[drawing->count - 1] = mem_strdup(said);
	return true;
}

static bool is_socket(const struct cell_entry *entry)
{
	struct stat status;
	return lstat(entry->source, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool cell_drawing_add_key(struct cell_drawing *drawing, enum cell_rule rule, const char *key,
	const struct settings *settings, struct error *err)
{
	char said[PATH_MAX + 64];
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, key) != 0) {
			continue;
		}
		size_t before = drawing->count;
		text_format(said, sizeof(said), "%s = %s", key, setting->value);
		if (!add_value(drawing, rule, said, setting->value, err)) {
			return false;
		}
		if (drawing->count > before && is_socket(&drawing->entries[before])) {
			return error_set(err, ERROR_CONFIG,
				"%s: it is a socket; use allow-socket for it", said);
		}
	}
	return true;
}

bool cell_drawing_add_socket(
	struct cell_drawing *drawing, const char *said, const char *path, struct error *err)
{
	size_t before = drawing->count;
	if (!add_value(drawing, CELL_READ, said, path, err)) {
		return false;
	}
	return drawing->count == before || is_socket(&drawing->entries[before]) ||
	       error_set(err, ERROR_CONFIG,
		       "%s: %s is not a socket; use allow-read for other files", said,
		       drawing->entries[before].source);
}

/* Leaves it out if it overlaps with a path of the user's. */
static bool add_apart(struct cell_drawing *drawing, enum cell_rule rule, const char *place,
	const char *source, struct error *err)
{
	for (size_t i = 0; i < drawing->count; i++) {
		const char *path = drawing->entries[i].path;
		if (drawing->said[i] &&
			(path_is_at_or_below(place, path) || path_is_at_or_below(path, place))) {
			return true;
		}
	}
	return add(drawing, rule, place, source, err);
}

bool cell_drawing_add_own(struct cell_drawing *drawing, enum cell_rule rule, const char *name,
	const char *source, struct error *err)
{
	char place[PATH_MAX];
	if (!text_whole(place, sizeof(place), "%s/%s", drawing->home, name)) {
		return error_set(err, ERROR_LIMIT, "the path of the home folder is too long");
	}
	return add_apart(drawing, rule, place, source, err);
}

bool cell_drawing_add_program(struct cell_drawing *drawing, const char *program, struct error *err)
{
	return access(program, X_OK) != 0 || add_apart(drawing, CELL_READ, program, program, err);
}

bool cell_drawing_hide(
	struct cell_drawing *drawing, const char *folder, const char *name, struct error *err)
{
	char *path = name[0] ? path_join(folder, name) : mem_strdup(folder);
	char *real = real_path(path);
	bool is_added = add(drawing, CELL_HIDE, real, real, err);
	free(real);
	free(path);
	return is_added;
}

bool cell_drawing_hide_own_files(struct cell_drawing *drawing, struct error *err)
{
	bool is_hidden = true;
	struct stat status;
	const char *const *file = drawing->own_files;
	for (; file && *file && is_hidden; file++) {
		bool is_file = lstat(*file, &status) == 0 && S_ISREG(status.st_mode);
		is_hidden = !is_file || path_is_at_or_below(*file, drawing->home) ||
		            add(drawing, CELL_HIDE, *file, *file, err);
	}
	return is_hidden;
}

/* ---- paths that exclude each other ---- */

static bool contains(const char *folder, const char *path)
{
	return strcmp(folder, "/") == 0 || path_is_at_or_below(path, folder);
}

static bool overlap(const char *a, const char *b)
{
	return contains(a, b) || contains(b, a);
}

static bool refuse_own(const char *said, const char *path, struct error *err)
{
	return error_set(err, ERROR_CONFIG,
		"%s: it contains the broker's own %s or lies in it: name only the folders that the "
		"agent needs",
		said, path);
}

static bool check_pair(const struct cell_drawing *drawing, size_t i, size_t j, struct error *err)
{
	const struct cell_entry *a = &drawing->entries[i];
	const struct cell_entry *b = &drawing->entries[j];
	if (b->rule == CELL_PUT || !overlap(a->source, b->source)) {
		return true;
	}
	if (b->rule == CELL_HIDE) {
		return refuse_own(drawing->said[i], b->path, err);
	}
	return (a->rule == CELL_READ && b->rule == CELL_READ) || !drawing->said[j] ||
	       error_set(err, ERROR_CONFIG,
		       "%s and %s: one contains the other, and an agent could replace the inner "
		       "one by a link: remove one of the two keys",
		       drawing->said[i], drawing->said[j]);
}

static bool check_own_files(const struct cell_drawing *drawing, size_t i, struct error *err)
{
	const char *const *file = drawing->own_files;
	for (; file && *file; file++) {
		if (overlap(drawing->entries[i].source, *file)) {
			return refuse_own(drawing->said[i], *file, err);
		}
	}
	return true;
}

bool cell_drawing_check(const struct cell_drawing *drawing, struct error *err)
{
	for (size_t i = 0; i < drawing->count; i++) {
		if (drawing->said[i] && !check_own_files(drawing, i, err)) {
			return false;
		}
		for (size_t j = i + 1; drawing->said[i] && j < drawing->count; j++) {
			if (!check_pair(drawing, i, j, err)) {
				return false;
			}
		}
	}
	return true;
}
