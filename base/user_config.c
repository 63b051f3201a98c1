/* SPDX-License-Identifier: MIT */
#include "base/user_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/config_text.h"
#include "base/fd.h"
#include "base/glob.h"
#include "base/text.h"
#include "base/words.h"

enum {
	FILES_MAX = 256,
	BYTES_MAX = 4 << 20,
	DEPTH_MAX = 10,
	READ_SIZE = 4096,
	NAMES_BYTES = 16384, // for an entry of getpwnam_r(3)
};

/* One per process, like the environment. */
static struct {
	char *xdg;    // owned; NULL: ~/.config
	char *global; // owned; NULL: the user's own two
} the_places;

struct reader {
	struct user_config *config;
	const struct user_repository *repository;
	const char *home;
	struct error *err;
};

/* A file being read. */
struct source {
	const char *path;
	int depth;
	bool is_certain;
};

static void set_place(char **place, const char *const *environment, const char *name)
{
	size_t len = strlen(name);
	free(*place);
	*place = NULL;
	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name, len) == 0) {
			*place = mem_strdup(*environment + len);
		}
	}
}

void user_config_set_environment(const char *const *environment)
{
	set_place(&the_places.xdg, environment, "XDG_CONFIG_HOME=");
	set_place(&the_places.global, environment, "GIT_CONFIG_GLOBAL=");
}

/* ---- paths ---- */

static bool put_path(char path[PATH_MAX], const char *folder, const char *name, struct error *err)
{
	int len = snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return len < PATH_MAX || error_set(err, ERROR_CONFIG, "%s: the path is too long", name);
}

/* "~USER" and "~USER/PATH"; false if there is no such user. */
static bool expand_user(const char *value, char path[PATH_MAX])
{
	char user[256], names[NAMES_BYTES];
	struct passwd found, *entry = NULL;
	size_t len = strcspn(value + 1, "/");
	return len > 0 && text_whole(user, sizeof(user), "%.*s", (int)len, value + 1) &&
	       getpwnam_r(user, &found, names, sizeof(names), &entry) == 0 && entry &&
	       text_whole(path, PATH_MAX, "%s%s", found.pw_dir, value + 1 + len);
}

static bool is_of_user(const char *value)
{
	return value[0] == '~' && value[1] != '/' && value[1] != '\0';
}

static bool expand(const char *value, const char *home, char path[PATH_MAX], struct error *err)
{
	if (strncmp(value, "~/", 2) == 0 && home) {
		return put_path(path, home, value + 2, err);
	}
	if (is_of_user(value) && expand_user(value, path)) {
		return true;
	}
	if (value[0] == '~' || strncmp(value, "%(prefix)", 9) == 0) {
		return error_set(err, ERROR_CONFIG,
			"the path %s of your git configuration cannot be expanded here: write "
			"it in full, or with ~/ for your own home directory",
			value);
	}
	int len = snprintf(path, PATH_MAX, "%s", value);
	return len < PATH_MAX || error_set(err, ERROR_CONFIG, "%s: it is too long", value);
}

/* Git's folder in the user's configuration; "" if there is none. */
static bool put_users_path(
	char path[PATH_MAX], const char *home, const char *name, struct error *err)
{
	char folder[PATH_MAX];
	const char *xdg = the_places.xdg;
	path[0] = '\0';
	if (xdg && xdg[0] == '/') {
		return put_path(folder, xdg, "git", err) && put_path(path, folder, name, err);
	}
	return !home ||
	       (put_path(folder, home, ".config/git", err) && put_path(path, folder, name, err));
}

/* ---- conditions ---- */

static void lower(char *text)
{
	for (; *text; text++) {
		*text = (char)tolower((unsigned char)*text);
	}
}

/*
 * The text before the pattern (the folder) is compared literally: a "*" in it is a plain character.
 */
static bool is_below(const char *folder, const char *prefix, const char *pattern, bool in_any_case)
{
	char below[PATH_MAX], wanted[PATH_MAX + 8];
	size_t len = strlen(prefix), length = strlen(pattern);
	bool is_open = length > 0 && pattern[length - 1] == '/';
	int same = in_any_case ? strncasecmp(folder, prefix, len) : strncmp(folder, prefix, len);
	if (same != 0) {
		return false;
	}
	text_whole(below, sizeof(below), "%s", folder + len);
	text_whole(wanted, sizeof(wanted), "%s%s", pattern, is_open ? "**" : "");
	if (in_any_case) {
		lower(below);
		lower(wanted);
	}
	return glob_match(wanted, below);
}

static bool is_git_folder(const struct reader *reader, const struct source *source,
	const char *pattern, bool in_any_case)
{
	char folders[2][PATH_MAX], prefixes[2][PATH_MAX] = {"", ""}, wanted[PATH_MAX];
	const char *folder = reader->repository->folder;
	const char *slash = strrchr(source->path, '/');
	if (!folder[0] || strlen(pattern) > PATH_MAX - 8) {
		return false;
	}
	text_whole(folders[0], PATH_MAX, "%s", folder);
	if (!realpath(folder, folders[1])) {
		text_whole(folders[1], PATH_MAX, "%s", folder);
	}
	bool is_homes = strncmp(pattern, "~/", 2) == 0 && reader->home;
	bool is_beside = strncmp(pattern, "./", 2) == 0 && slash;
	text_whole(wanted, sizeof(wanted), "%s%s", *pattern == '/' ? "" : "**/", pattern);
	if (is_homes || is_beside) {
		text_whole(wanted, sizeof(wanted), "%s", pattern + 1);
		const char *prefix = is_homes ? reader->home : source->path;
		size_t len = is_homes ? strlen(prefix) : (size_t)(slash - source->path);
		if (!text_whole(prefixes[0], PATH_MAX, "%.*s", (int)len, prefix)) {
			return false;
		}
		if (!realpath(prefixes[0], prefixes[1])) {
			text_whole(prefixes[1], PATH_MAX, "%s", prefixes[0]);
		}
	}
	for (size_t i = 0; i < 4; i++) {
		if (is_below(folders[i % 2], prefixes[i / 2], wanted, in_any_case)) {
			return true;
		}
	}
	return false;
}

static bool is_branch(const struct reader *reader, const char *pattern)
{
	static const char start[] = "ref: refs/heads/";
	char path[PATH_MAX], head[PATH_MAX];
	struct error ignored;
	if (!reader->repository->folder[0] ||
		!put_path(path, reader->repository->folder, "HEAD", &ignored)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = fd >= 0 ? read(fd, head, sizeof(head) - 1) : -1;
	head[len > 0 ? len : 0] = '\0';
	head[strcspn(head, "\n")] = '\0';
	return strncmp(head, start, sizeof(start) - 1) == 0 &&
	       is_below(head + sizeof(start) - 1, "", pattern, false);
}

/* Whether the file is included. Under a condition that we do not know it may be. */
static bool meets(const struct reader *reader, const struct source *source, const char *condition,
	bool *is_certain)
{
	const char *pattern = strchr(condition, ':');
	size_t len = pattern ? (size_t)(pattern - condition) : 0;
	*is_certain = true;
	if (len == 6 && strncmp(condition, "gitdir", len) == 0) {
		return is_git_folder(reader, source, pattern + 1, false);
	}
	if (len == 8 && strncmp(condition, "gitdir/i", len) == 0) {
		return is_git_folder(reader, source, pattern + 1, true);
	}
	if (len == 8 && strncmp(condition, "onbranch", len) == 0) {
		return is_branch(reader, pattern + 1);
	}
	*is_certain = false;
	return true;
}

/* ---- files ---- */

static bool count_bytes(struct reader *reader, const char *path, size_t more)
{
	struct user_config *config = reader->config;
	config->bytes += more;
	return (config->files <= FILES_MAX && config->bytes <= BYTES_MAX) ||
	       error_set(reader->err, ERROR_LIMIT,
		       "reading %s: your git configuration has more than %d files or %d MiB", path,
		       FILES_MAX, BYTES_MAX >> 20);
}

static bool read_file(struct reader *reader, const char *path, struct buf *out, bool *out_exists)
{
	struct stat status;
	struct error *err = reader->err;
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*out_exists = false;
	if (fd < 0) {
		int errnum = errno;
		return errnum == ENOENT || errnum == ENOTDIR ||
		       (errnum == EACCES && reader->config->passes_unreadable) ||
		       error_set_errno(err, errnum, "reading %s", path);
	}
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		return true; // such as /dev/null
	}
	ssize_t count = 1;
	while (count > 0) {
		char *at = buf_reserve(out, READ_SIZE, err);
		count = at ? read(fd, at, READ_SIZE) : 0;
		if (!at) {
			return error_prefix(err, "reading %s", path);
		}
		if (count < 0) {
			return error_set_errno(err, errno, "reading %s", path);
		}
		buf_commit(out, (size_t)count);
	}
	*out_exists = true;
	reader->config->files++;
	return count_bytes(reader, path, out->len);
}

static bool add_file(struct reader *reader, const char *path, int depth, bool is_certain);

/* A relative path is relative to the including file. */
static bool include(
	struct reader *reader, const struct source *source, const char *value, bool is_certain)
{
	char named[PATH_MAX], folder[PATH_MAX], path[PATH_MAX];
	const char *slash = strrchr(source->path, '/');
	/* The look-up may ask a server, so it counts like a file. */
	reader->config->files += is_of_user(value);
	if (!count_bytes(reader, source->path, 0)) {
		return false;
	}
	if (!expand(value, reader->home, named, reader->err)) {
		return reader->config->passes_unreadable ||
		       error_prefix(reader->err, "reading %s", source->path);
	}
	if (!text_whole(folder, sizeof(folder), "%.*s", slash ? (int)(slash - source->path) : 0,
		    source->path)) {
		return error_set(reader->err, ERROR_CONFIG, "%s: it is too long", source->path);
	}
	if (named[0] != '/' && !put_path(path, folder, named, reader->err)) {
		return false;
	}
	return add_file(reader, named[0] == '/' ? named : path, source->depth + 1,
		is_certain && source->is_certain);
}

/* Takes ownership of the texts. */
static bool add_setting(struct reader *reader, const struct source *source, char *key, char *value)
{
	static const char start[] = "includeif.", end[] = ".path";
	struct user_config *config = reader->config;
	size_t len = strlen(key);
	config->settings =
		mem_realloc(config->settings, (config->count + 1) * sizeof(*config->settings));
	config->settings[config->count++] =
		(struct user_setting){.key = key, .value = value, .is_certain = source->is_certain};
	if (!count_bytes(reader, source->path, len)) { // each setting also has its section's name
		return false;
	}
	if (value && *value && strcmp(key, "include.path") == 0) {
		return include(reader, source, value, true);
	}
	if (!value || !*value || len < sizeof(start) + sizeof(end) ||
		strncmp(key, start, sizeof(start) - 1) != 0 ||
		strcmp(key + len - (sizeof(end) - 1), end) != 0) {
		return true;
	}
	bool is_certain;
	char *condition = mem_strndup((struct span){
		key + sizeof(start) - 1, len - (sizeof(start) - 1) - (sizeof(end) - 1)});
	bool is_met = meets(reader, source, condition, &is_certain);
	free(condition);
	return !is_met || include(reader, source, value, is_certain);
}

static bool refuse(const struct reader *reader, const struct source *source,
	const struct config_text *text, const char *what)
{
	return error_set(reader->err, ERROR_CONFIG,
		"reading %s: git would not understand line %zu: %s", source->path, text->line,
		what);
}

static bool add_text(struct reader *reader, const struct source *source, struct config_text *text)
{
	for (;;) {
		char *key, *value;
		enum config_text_step step = config_text_next(text, &key, &value);
		if (step == CONFIG_TEXT_END) {
			return true;
		}
		if (step == CONFIG_TEXT_WRONG) {
			return refuse(reader, source, text, text->wrong);
		}
		if (!strchr(key, '.')) {
			free(key);
			free(value);
			return refuse(reader, source, text, "a key before the first section");
		}
		if (!add_setting(reader, source, key, value)) {
			return false;
		}
	}
}

static bool add_file(struct reader *reader, const char *path, int depth, bool is_certain)
{
	struct buf text;
	bool exists;
	if (depth > DEPTH_MAX) {
		return error_set(reader->err, ERROR_LIMIT,
			"reading %s: more than %d files of your git configuration include each "
			"other",
			path, DEPTH_MAX);
	}
	buf_init(&text, BYTES_MAX + READ_SIZE);
	bool is_read = read_file(reader, path, &text, &exists);
	if (is_read && exists) {
		words_append(&reader->config->paths, path);
		const struct source source = {
			.path = path, .depth = depth, .is_certain = is_certain};
		struct config_text settings;
		config_text_init(&settings, buf_span(&text));
		is_read = add_text(reader, &source, &settings);
		config_text_finish(&settings);
	}
	buf_finish(&text);
	return is_read;
}

/* ---- all of it ---- */

static bool add_users(struct reader *reader)
{
	char path[PATH_MAX];
	const char *global = the_places.global;
	if (global) {
		return !*global || add_file(reader, global, 0, true);
	}
	if (!put_users_path(path, reader->home, "config", reader->err) ||
		(path[0] && !add_file(reader, path, 0, true))) {
		return false;
	}
	return !reader->home || (put_path(path, reader->home, ".gitconfig", reader->err) &&
					add_file(reader, path, 0, true));
}

static bool add_repositorys(struct reader *reader)
{
	char path[PATH_MAX];
	const struct user_repository *repository = reader->repository;
	if (repository->common[0] && (!put_path(path, repository->common, "config", reader->err) ||
					     !add_file(reader, path, 0, true))) {
		return false;
	}
	return !repository->folder[0] ||
	       !user_config_is_true(reader->config, "extensions.worktreeconfig") ||
	       (put_path(path, repository->folder, "config.worktree", reader->err) &&
		       add_file(reader, path, 0, true));
}

bool user_config_read(struct user_config *config, const char *home,
	const struct user_repository *repository, struct error *err)
{
	struct reader reader = {
		.config = config, .repository = repository, .home = home, .err = err};
	return add_file(&reader, "/etc/gitconfig", 0, true) && add_users(&reader) &&
	       add_repositorys(&reader);
}

void user_config_finish(struct user_config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		free(config->settings[i].key);
		free(config->settings[i].value);
	}
	free(config->settings);
	words_free(config->paths);
	*config = (struct user_config){0};
}

static const struct user_setting *find(const struct user_config *config, const char *key)
{
	for (size_t i = config->count; i > 0; i--) {
		const struct user_setting *setting = &config->settings[i - 1];
		if (setting->is_certain && strcmp(setting->key, key) == 0) {
			return setting;
		}
	}
	return NULL;
}

const char *user_config_get(const struct user_config *config, const char *key)
{
	const struct user_setting *setting = find(config, key);
	const char *value = setting && setting->value ? setting->value : "";
	return setting ? value : NULL;
}

bool user_config_is_true(const struct user_config *config, const char *key)
{
	const struct user_setting *setting = find(config, key);
	const char *value = setting ? setting->value : "";
	return !value || strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0 || strtol(value, NULL, 0) != 0;
}

bool user_config_file(const struct user_config *config, const char *key, const char *name,
	const char *home, char path[PATH_MAX], struct error *err)
{
	const char *value = user_config_get(config, key);
	return value ? expand(value, home, path, err) : put_users_path(path, home, name, err);
}
