/* SPDX-License-Identifier: MIT */
#include "broker/ledger/store_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "broker/ledger/state_folder.h"

/* ---- paths as text ---- */

static char *join(const char *folder, const char *rest)
{
	size_t size = strlen(folder) + strlen(rest) + 2;
	char *path = mem_alloc(size);
	bool has_slash = !*folder || folder[strlen(folder) - 1] == '/';
	text_whole(path, size, "%s%s%s", folder, has_slash ? "" : "/", rest);
	return path;
}

/*
 * Removes ".", "..", empty parts and a trailing slash. An absolute path stays absolute. A ".." that
 * leads out of a relative path stays at its beginning.
 */
static void tidy(char *path)
{
	char *start = path + (*path == '/');
	char *end = start;
	for (char *at = start; *at;) {
		size_t len = strcspn(at, "/");
		char *next = at + len + (at[len] == '/');
		bool is_up = len == 2 && memcmp(at, "..", 2) == 0;
		char *last = end;
		while (last > start && last[-1] != '/') {
			last--;
		}
		bool can_go_up = end > start && !(end - last == 2 && memcmp(last, "..", 2) == 0);
		if (is_up && can_go_up) {
			end = last > start ? last - 1 : start;
		} else if (len > 0 && !(len == 1 && *at == '.') && !(is_up && *path == '/')) {
			if (end > start) {
				*end++ = '/';
			}
			memmove(end, at, len);
			end += len;
		}
		at = next;
	}
	*end = '\0';
}

/* The part after the folder, "" for the folder itself; NULL if the path is not in it. */
static const char *path_below(const char *path, const char *folder)
{
	size_t len = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
	if (strncmp(path, folder, len) != 0 || (path[len] != '/' && path[len] != '\0')) {
		return NULL;
	}
	return path[len] == '/' ? path + len + 1 : path + len;
}

/* Cuts off the last part; false for "/". */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');
	if (!path[1]) {
		return false;
	}
	slash[slash == path] = '\0';
	return true;
}

/* ---- searching ---- */

/* The user's spelling, if it leads to the same directory; or NULL. The caller frees it. */
static char *spelled(const char *directory, const char *pwd, const char *real)
{
	struct stat theirs;
	struct stat ours;
	char *path = NULL;
	if (directory && *directory == '/') {
		path = mem_strdup(directory);
	} else if (pwd && *pwd == '/') {
		path = join(pwd, directory ? directory : "");
	}
	if (!path) {
		return NULL;
	}
	tidy(path);
	if (stat(path, &theirs) == 0 && stat(real, &ours) == 0 && theirs.st_dev == ours.st_dev &&
		theirs.st_ino == ours.st_ino) {
		return path;
	}
	free(path);
	return NULL;
}

/* HEAD is the last file that a new store gets. */
static bool has_store(struct store_place *place, const char *state_folder, const char *path)
{
	char *folder = state_folder_store(state_folder, path);
	char *head = join(folder, "HEAD");
	bool is_there = access(head, F_OK) == 0;
	free(head);
	if (is_there) {
		place->store_folder = folder;
	} else {
		free(folder);
	}
	return is_there;
}

static bool look_from(
	struct store_place *place, const char *state_folder, const char *const *paths, size_t count)
{
	char *at[2];
	bool is_done = false;
	const char *found = NULL;
	for (size_t i = 0; i < count; i++) {
		at[i] = mem_strdup(paths[i]);
	}
	while (!found && !is_done) {
		is_done = true;
		for (size_t i = 0; i < count && !found; i++) {
			if (has_store(place, state_folder, at[i])) {
				found = at[i];
				place->root = mem_strdup(at[i]);
				place->below = mem_strdup(path_below(paths[i], at[i]));
			} else if (go_up(at[i])) {
				is_done = false;
			}
		}
	}
	for (size_t i = 0; i < count; i++) {
		free(at[i]);
	}
	return found != NULL;
}

static bool fail_none(const char *real, const char *state_folder, struct error *err)
{
	char *quoted = path_quote((struct span){real, strlen(real)});
	error_set(err, ERROR_NOT_FOUND,
		"nothing is kept of %s or a directory that contains it (looked for in %s/stores): "
		"a profile with isolation = copy or checkpoints = true keeps checkpoints; name "
		"another workspace with --workspace DIR",
		quoted, state_folder);
	free(quoted);
	return false;
}

bool store_place_find(struct store_place *place, const char *state_folder, const char *directory,
	const char *pwd, struct error *err)
{
	*place = (struct store_place){.root = NULL};
	if (!state_folder) {
		return error_set(err, ERROR_NOT_FOUND,
			"looking for checkpoints: neither XDG_STATE_HOME nor HOME is set");
	}
	char *real = realpath(directory ? directory : ".", NULL);
	if (!real) {
		return error_set_errno(err, errno, "%s", directory ? directory : "the directory");
	}
	char *own = spelled(directory, pwd, real);
	const char *paths[2] = {own ? own : real, real};
	size_t count = own && strcmp(own, real) != 0 ? 2 : 1;
	bool found = look_from(place, state_folder, paths, count) ||
	             fail_none(paths[0], state_folder, err);
	free(own);
	free(real);
	if (found) {
		place->real_root = realpath(place->root, NULL);
	}
	return found;
}

void store_place_finish(struct store_place *place)
{
	free(place->root);
	free(place->real_root);
	free(place->store_folder);
	free(place->below);
	*place = (struct store_place){.root = NULL};
}

/* ---- paths from the user ---- */

static char *fail_outside(const struct store_place *place, const char *word, struct error *err)
{
	char *quoted = path_quote((struct span){word, strlen(word)});
	error_set(err, ERROR_CONFIG, "%s is not in the workspace %s", quoted, place->root);
	free(quoted);
	return NULL;
}

char *store_place_path(const struct store_place *place, const char *word, struct error *err)
{
	if (*word != '/') {
		char *path = join(place->below, word);
		tidy(path);
		if (strncmp(path, "..", 2) == 0 && (path[2] == '/' || path[2] == '\0')) {
			free(path);
			return fail_outside(place, word, err);
		}
		return path;
	}
	char *path = mem_strdup(word);
	tidy(path);
	const char *rest = path_below(path, place->root);
	if (!rest && place->real_root) {
		rest = path_below(path, place->real_root);
	}
	char *below = rest ? mem_strdup(rest) : fail_outside(place, word, err);
	free(path);
	return below;
}
