/* SPDX-License-Identifier: MIT */
#include "providers/local/write_hint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"

/*
 * Folders of the home that a cell shows by default (copy_cell.c) and that builds write to. This
 * excludes everything that a shell or git runs or reads: .cargo/bin, .cargo/config.toml,
 * .gitconfig.
 */
static const char *const built[] = {".cargo/registry", ".cargo/git", "go/pkg"};

/* Folders that belong to the cell itself, so they are never read-only. */
static const char *const own[] = {"/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp", "/boot"};

static void add(char ***words, const char *home, const char *value)
{
	char *path = value[0] == '/' ? mem_strdup(value)
	             : home ? path_join(home, value + (strncmp(value, "~/", 2) == 0 ? 2 : 0))
	                    : NULL;
	char *real = path ? real_path(path) : NULL;
	if (real) {
		words_append(words, real);
	}
	free(path);
	free(real);
}

static void add_key(
	char ***words, const char *home, const struct settings *settings, const char *key)
{
	char **values = words_of_settings(settings, key);
	for (char **value = values; *value; value++) {
		add(words, home, *value);
	}
	words_free(values);
}

void write_hint_init(struct write_hint *hint, const struct settings *settings, const char *home,
	const char *state, const struct owner *owner)
{
	*hint = (struct write_hint){
		.home = home ? real_path(home) : NULL, .state = mem_strdup(state)};
	hint->uid = owner->is_other ? owner->uid : geteuid();
	for (size_t i = 0; home && i < ARRAY_LENGTH(built); i++) {
		add(&hint->built, home, built[i]);
	}
	add_key(&hint->shown, home, settings, "allow-read");
	add_key(&hint->written, home, settings, "allow-write");
}

void write_hint_finish(struct write_hint *hint)
{
	free(hint->home);
	free(hint->state);
	words_free(hint->built);
	words_free(hint->shown);
	words_free(hint->written);
}

/* Whether one of the two paths contains the other. */
static bool overlap(const char *one, const char *other)
{
	return path_is_at_or_below(one, other) || path_is_at_or_below(other, one);
}

/* Whether this is a folder, not a link, that belongs to the cell's user, who may write in it. */
static bool is_folder(const struct write_hint *hint, const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == hint->uid &&
	       (status.st_mode & S_IWUSR);
}

/*
 * The path itself if it is a folder, or the nearest folder above it. False: a link is on the path.
 */
static bool find_folder(const char *path, char out[PATH_MAX])
{
	struct stat status;
	if (path[0] != '/' || !path[1] || path_goes_up(path) ||
		!text_whole(out, PATH_MAX, "%s", path)) {
		return false;
	}
	while (out[0] && (lstat(out, &status) != 0 || !S_ISDIR(status.st_mode))) {
		path_pop(out);
	}
	char *real = out[0] ? real_path_find(out) : NULL;
	bool is_plain = real && strcmp(real, out) == 0;
	free(real);
	return is_plain;
}

/*
 * Whether the folder has programs or settings that the user's shell, git or desktop uses
 * automatically.
 */
static bool acts_by_itself(const char *path)
{
	static const char *const parts[] = {"/bin/", "/sbin/", "/hooks/", "/."};
	char whole[PATH_MAX + 1];
	text_whole(whole, sizeof(whole), "%s/", path);
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		if (strstr(whole, parts[i])) {
			return true;
		}
	}
	return false;
}

/*
 * Replaces the path by the folder of the list that contains it: a program that writes one file of a
 * store writes many.
 */
static bool find_in(char *const *list, char path[PATH_MAX])
{
	for (; list && *list; list++) {
		if (path_is_at_or_below(path, *list)) {
			return text_whole(path, PATH_MAX, "%s", *list);
		}
	}
	return false;
}

static bool is_own(const char *path)
{
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		if (path_is_at_or_below(path, own[i])) {
			return true;
		}
	}
	return false;
}

static bool may_be_named(const struct write_hint *hint, char path[PATH_MAX])
{
	if (!hint->home || !overlap(path, hint->home)) {
		return !acts_by_itself(path) && !is_own(path);
	}
	return find_in(hint->built, path) ||
	       (find_in(hint->shown, path) && strlen(path) > strlen(hint->home) &&
		       !acts_by_itself(path + strlen(hint->home)));
}

static bool is_taken(const struct write_hint *hint, const struct sandbox *sandbox, const char *path)
{
	bool is = overlap(path, hint->state);
	for (char *const *written = hint->written; written && *written; written++) {
		is = is || overlap(path, *written);
	}
	for (size_t i = 0; i < sandbox->root_count; i++) {
		is = is || overlap(path, sandbox->roots[i].local) ||
		     overlap(path, sandbox->roots[i].runtime);
	}
	return is;
}

bool write_hint_find(const struct write_hint *hint, const struct sandbox *sandbox, const char *path,
	char out[PATH_MAX])
{
	if (!find_folder(path, out)) {
		return false;
	}
	return may_be_named(hint, out) && is_folder(hint, out) && !is_taken(hint, sandbox, out);
}
