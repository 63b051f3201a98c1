/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/text.h"
#include "base/confine.h"
#include "base/path.h"

enum {
	LINKS_MAX = 40, // in one path, as in path_resolution(7)
	RESTARTS_MAX = 8,
	NEW_FOLDER_MODE = 0777, // less the umask
	/* The rest to walk: the path, preceded by targets of links. */
	REST_MAX = 2 * PATH_MAX,
};

static const char rule_outside[] = "it leads out of the session's roots";
static const char rule_swapped[] = "a folder on its way was replaced by a link";
static const char rule_proc[] = "it leads through /proc";
static const char rule_link[] = "it must be free of links and dots";

enum step { STEP_ON, STEP_DONE, STEP_FAILED, STEP_SWAPPED };

struct walk {
	const struct confine *confine;
	const char *asked; // the whole path, for messages
	enum confine_missing missing;
	enum file_links allowed; // whether links in the path are allowed
	struct error *err;

	const struct confine_root *root; // NULL while outside of all roots
	/*
	 * Inside a root: the current folder, relative to the root; "" for the root itself. Outside:
	 * the absolute path so far, "" for "/".
	 */
	char at[PATH_MAX];
	int folder; // O_PATH of the current folder; -1 outside

	char rest[REST_MAX]; // the rest to walk
	int links;
	struct confined *out;
};

static enum step failed(bool ignored)
{
	return STEP_FAILED;
}

static enum step fail_errno(struct walk *walk, int errnum)
{
	if (errnum == ENOENT || errnum == ENOTDIR) {
		return failed(error_set(walk->err, ERROR_NOT_FOUND, "%s: %s", walk->asked,
			libc_error_text(errnum)));
	}
	return failed(error_set_errno(walk->err, errnum, "%s", walk->asked));
}

/* Takes the next name from the rest; false if there is none. Skips slashes and dots. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 1], enum step *out_step)
{
	char *at = walk->rest;
	size_t len;
	do {
		at += strspn(at, "/");
		len = strcspn(at, "/");
		if (len == 1 && *at == '.') {
			at++;
			len = 0;
		}
	} while (len == 0 && *at);
	if (len == 0) {
		return false;
	}
	if (len > NAME_MAX) {
		*out_step = fail_errno(walk, ENAMETOOLONG);
		return false;
	}
	memcpy(name, at, len);
	name[len] = '\0';
	memmove(walk->rest, at + len, strlen(at + len) + 1);
	return true;
}

/*
 * Inside a root: where the path below the root begins; relative to the root, `at` has no leading
 * slash.
 */
static const char *inside_path(const struct walk *walk)
{
	return walk->at[0] ? walk->at + 1 : ".";
}

static enum step reopen_folder(struct walk *walk, int from)
{
	int fd = beneath_open(from, inside_path(walk), O_PATH | O_DIRECTORY);
	int errnum = errno;
	if (fd < 0) {
		return errnum == ELOOP || errnum == EXDEV ? STEP_SWAPPED : fail_errno(walk, errnum);
	}
	fd_close(&walk->folder);
	walk->folder = fd;
	return STEP_ON;
}

/* The owner need not be able to reach the folders above it. */
static int open_root(const struct walk *walk, const struct confine_root *root)
{
	struct error ignored;
	const struct owner *owner = &walk->confine->owner;
	owner_leave(owner);
	int fd = beneath_open(AT_FDCWD, root->real, O_PATH | O_DIRECTORY);
	int errnum = errno;
	if (!owner_enter(owner, &ignored)) {
		fd_close(&fd);
		errnum = EPERM;
	}
	errno = errnum;
	return fd;
}

static enum step enter_root(struct walk *walk, const struct confine_root *root)
{
	int fd = open_root(walk, root);
	int errnum = errno;
	if (fd < 0 && (errnum == ELOOP || errnum == ENOTDIR)) {
		return failed(confine_refuse(walk->err, walk->asked, rule_swapped));
	}
	if (fd < 0) {
		return fail_errno(walk, errnum);
	}
	walk->root = root;
	walk->folder = fd;
	walk->at[0] = '\0';
	return STEP_ON;
}

static bool is_root_path(const char *root, const char *path)
{
	return strcmp(root, path) == 0 || (path[0] == '\0' && strcmp(root, "/") == 0);
}

/* Outside of the roots, names are only compared and never opened, until they lead to a root. */
static enum step look_for_root(struct walk *walk)
{
	for (size_t i = 0; i < walk->confine->count; i++) {
		const struct confine_root *root = &walk->confine->roots[i];
		if (is_root_path(root->name, walk->at) || is_root_path(root->real, walk->at)) {
			return enter_root(walk, root);
		}
	}
	return STEP_ON;
}

static enum step step_outside(struct walk *walk)
{
	char name[NAME_MAX + 1];
	enum step step = STEP_FAILED;
	if (names_are_over(walk->rest)) {
		return failed(confine_refuse(walk->err, walk->asked, rule_outside));
	}
	if (!next_name(walk, name, &step)) {
		return step;
	}
	if (strcmp(name, "..") == 0) {
		path_pop(walk->at);
	} else if (!path_push(walk->at, name)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	return look_for_root(walk);
}

static enum step go_outside(struct walk *walk, const char *path)
{
	fd_close(&walk->folder);
	walk->root = NULL;
	text_whole(walk->at, sizeof(walk->at), "%s", strcmp(path, "/") == 0 ? "" : path);
	return look_for_root(walk);
}

static enum step step_up(struct walk *walk)
{
	if (walk->at[0]) {
		path_pop(walk->at);
		ATTR_CLEANUP(fd_cleanup) int root = open_root(walk, walk->root);
		return root < 0 ? STEP_SWAPPED : reopen_folder(walk, root);
	}
	char above[PATH_MAX];
	text_whole(above, sizeof(above), "%s", walk->root->real);
	path_pop(above);
	if (strcmp(walk->root->real, "/") == 0) {
		return STEP_ON; // "/.." is "/"
	}
	return go_outside(walk, above);
}

static bool is_proc(int fd)
{
	struct statfs status;
	return fstatfs(fd, &status) != 0 || status.f_type == PROC_SUPER_MAGIC;
}

/* Puts the target of a link in front of the rest. */
static enum step follow_link(struct walk *walk, int link)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);
	if (len <= 0) {
		return STEP_SWAPPED;
	}
	target[len] = '\0';
	if (is_proc(link)) {
		return failed(confine_refuse(walk->err, walk->asked, rule_proc));
	}
	if (++walk->links > LINKS_MAX) {
		return failed(confine_refuse(walk->err, walk->asked, "it has too many links"));
	}
	char rest[REST_MAX];
	text_whole(rest, sizeof(rest), "%s", walk->rest);
	if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", target, rest) >=
		(int)sizeof(walk->rest)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	return target[0] == '/' ? go_outside(walk, "") : STEP_ON;
}

static enum step finish(struct walk *walk, const char *name, const struct stat *status)
{
	struct confined *out = walk->out;
	const char *root = strcmp(walk->root->name, "/") == 0 ? "" : walk->root->name;
	bool is_bare = !*root && !walk->at[0] && !*name;
	if (snprintf(out->path, sizeof(out->path), "%s%s%s%s", is_bare ? "/" : root, walk->at,
		    *name ? "/" : "", name) >= (int)sizeof(out->path)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	text_whole(out->name, sizeof(out->name), "%s", name);
	out->parent = walk->folder;
	walk->folder = -1;
	out->exists = status != NULL;
	if (status) {
		out->status = *status;
	}
	return STEP_DONE;
}

/* Several missing names at the end are kept as they are. */
static enum step finish_missing(struct walk *walk, const char *name)
{
	enum step step = STEP_ON;
	char next[NAME_MAX + 1];
	char last[NAME_MAX + 1];
	text_whole(last, sizeof(last), "%s", name);
	bool is_deep = false;
	while (next_name(walk, next, &step)) {
		if (!path_push(walk->at, last)) {
			return fail_errno(walk, ENAMETOOLONG);
		}
		text_whole(last, sizeof(last), "%s", next);
		is_deep = true;
	}
	if (step == STEP_FAILED) {
		return step;
	}
	if (is_deep) {
		fd_close(&walk->folder);
	}
	return finish(walk, last, NULL);
}

static enum step step_missing(struct walk *walk, const char *name)
{
	if (walk->missing == CONFINE_MUST_EXIST || names_go_up(walk->rest)) {
		return fail_errno(walk, ENOENT);
	}
	if (walk->missing == CONFINE_MAY_MISS || names_are_over(walk->rest)) {
		return finish_missing(walk, name);
	}
	if (mkdirat(walk->folder, name, NEW_FOLDER_MODE) != 0 && errno != EEXIST) {
		int errnum = errno;
		return fail_errno(walk, errnum);
	}
	char rest[REST_MAX];
	text_whole(rest, sizeof(rest), "%s", walk->rest);
	/* The folder exists now, so the walk tries again. */
	return text_whole(walk->rest, sizeof(walk->rest), "%s%s", name, rest)
	               ? STEP_ON
	               : fail_errno(walk, ENAMETOOLONG);
}

static enum step step_into(struct walk *walk, const char *name, int *entry)
{
	struct stat status;
	if (fstat(*entry, &status) != 0) {
		int errnum = errno;
		return fail_errno(walk, errnum);
	}
	if (S_ISLNK(status.st_mode) && walk->allowed == FILE_LINKS_REFUSED) {
		return failed(confine_refuse(walk->err, walk->asked, rule_link));
	}
	if (S_ISLNK(status.st_mode)) {
		return follow_link(walk, *entry);
	}
	if (names_are_over(walk->rest)) {
		return is_proc(*entry) ? failed(confine_refuse(walk->err, walk->asked, rule_proc))
		                       : finish(walk, name, &status);
	}
	if (!S_ISDIR(status.st_mode)) {
		return fail_errno(walk, ENOTDIR);
	}
	if (!path_push(walk->at, name)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	fd_close(&walk->folder);
	walk->folder = *entry;
	*entry = -1;
	return STEP_ON;
}

static enum step step_inside(struct walk *walk)
{
	char name[NAME_MAX + 1];
	enum step step = STEP_FAILED;
	if (names_are_over(walk->rest)) { // the root itself, or a path that ends in ".."
		struct stat status;
		return fstat(walk->folder, &status) == 0 ? finish(walk, "", &status)
		                                         : fail_errno(walk, errno);
	}
	if (!next_name(walk, name, &step)) {
		return step;
	}
	if (strcmp(name, "..") == 0) {
		return walk->allowed == FILE_LINKS_REFUSED
		               ? failed(confine_refuse(walk->err, walk->asked, rule_link))
		               : step_up(walk);
	}
	ATTR_CLEANUP(fd_cleanup)
	int entry = beneath_open(walk->folder, name, O_PATH | O_NOFOLLOW);
	int errnum = errno;
	if (entry >= 0) {
		return step_into(walk, name, &entry);
	}
	if (errnum == ENOENT) {
		return step_missing(walk, name);
	}
	return errnum == ELOOP || errnum == EXDEV || errnum == EAGAIN ? STEP_SWAPPED
	                                                              : fail_errno(walk, errnum);
}

/*
 * A resolved path begins with the name of its root; earlier names in it may be links in another
 * root.
 */
static enum step begin_in_root(struct walk *walk)
{
	size_t len = 0;
	const struct confine_root *root = confine_find_root(walk->confine, walk->asked, &len);
	if (!root) {
		return failed(confine_refuse(walk->err, walk->asked, rule_outside));
	}
	if (!text_whole(walk->rest, sizeof(walk->rest), "%s", walk->asked + len)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	return enter_root(walk, root);
}

static enum step walk_once(struct walk *walk)
{
	walk->root = NULL;
	walk->folder = -1;
	walk->links = 0;
	walk->at[0] = '\0';
	enum step step = STEP_FAILED;
	if (!text_whole(walk->rest, sizeof(walk->rest), "%s", walk->asked)) {
		return fail_errno(walk, ENAMETOOLONG);
	}
	step = walk->allowed == FILE_LINKS_REFUSED ? begin_in_root(walk) : look_for_root(walk);
	while (step == STEP_ON) {
		step = walk->root ? step_inside(walk) : step_outside(walk);
	}
	fd_close(&walk->folder);
	return step;
}

bool confine_walk(const struct confine *confine, const char *path, enum confine_missing missing,
	enum file_links links, struct confined *out, struct error *err)
{
	if (path[0] != '/') {
		return confine_refuse(err, path, "it is not absolute");
	}
	if (strlen(path) >= PATH_MAX) {
		return error_set(err, ERROR_LIMIT, "a path of %zu bytes is too long", strlen(path));
	}
	struct walk walk = {.confine = confine,
		.asked = path,
		.missing = missing,
		.allowed = links,
		.err = err,
		.out = out};
	*out = (struct confined){.parent = -1};
	for (int i = 0; i < RESTARTS_MAX; i++) {
		enum step step = walk_once(&walk);
		if (step != STEP_SWAPPED) {
			return step == STEP_DONE;
		}
	}
	return confine_refuse(err, path, rule_swapped);
}
