/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_home.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/hex.h"
#include "base/lock_file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "providers/local/copy_cell.h"
#include "providers/local/copy_lock.h"
#include "providers/local/copy_place.h"

enum { HOME_TRIES = 16 };

static bool make_one(const char *path, struct error *err)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s", path);
	}
	return true;
}

static bool find(struct copy_home *home, const char *state_folder, uint64_t name, struct error *err)
{
	char state[PATH_MAX];
	if (!realpath(state_folder, state)) {
		int errnum = errno;
		return error_set_errno(err, errnum, "the state folder %s", state_folder);
	}
	bool fits = copy_put_path(home->path, err, "%s/copies/%016" PRIx64, state, name);
	home->common = strlen(home->path);
	return fits;
}

bool copy_home_is_key(const char *text)
{
	return hex_is_written(text, COPY_KEY_DIGITS);
}

bool copy_home_set_key(struct copy_home *home, const char *key)
{
	struct error ignored;
	char common[PATH_MAX];
	text_whole(common, sizeof(common), "%.*s", (int)home->common, home->path);
	if (strlen(key) != COPY_KEY_DIGITS || strspn(key, "0123456789abcdef") != COPY_KEY_DIGITS ||
		!copy_put_path(home->path, &ignored, "%s.%s", common, key)) {
		return false;
	}
	text_whole(home->key, sizeof(home->key), "%s", key);
	return true;
}

bool copy_home_make(struct copy_home *home, struct error *err)
{
	char copies[PATH_MAX];
	text_whole(copies, sizeof(copies), "%s", home->path);
	*strrchr(copies, '/') = '\0';
	if (!make_one(copies, err)) {
		return false;
	}
	for (int tries = 0; tries < HOME_TRIES; tries++) {
		if (!make_one(home->path, err)) {
			return false;
		}
		if (!home->key[0]) {
			return true;
		}
		int fd = open(home->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* A broker with an exclusive lock is about to remove the folder (copy_sweep.h). */
		if (lock_file_try(fd, LOCK_SHARED) == LOCK_TAKEN &&
			copy_is_in_place(fd, home->path)) {
			fd_close(&home->fd);
			home->fd = fd;
			return true;
		}
		fd_close(&fd);
	}
	return error_set(
		err, ERROR_UNAVAILABLE, "making %s: another broker is removing it", home->path);
}

void copy_home_leave(struct copy_home *home)
{
	if (home->key[0]) {
		(void)!rmdir(home->path); // fails unless it is empty
	}
	fd_close(&home->fd);
}

bool copy_home_open(struct copy_home *home, const char *state_folder, uint64_t name,
	const struct sandbox_request *request, struct error *err)
{
	char key[COPY_KEY_DIGITS + 1];
	*home = (struct copy_home){.fd = -1};
	if (!state_folder) {
		return error_set(err, ERROR_CONFIG,
			"isolation = copy needs a state folder: set HOME or XDG_STATE_HOME");
	}
	if (!folder_make_state(state_folder, err) || !find(home, state_folder, name, err)) {
		return false;
	}
	if (request->reference) {
		return copy_home_set_key(home, request->reference) ||
		       error_set(err, ERROR_CONFIG, "there is no copy with the name %s",
			       request->reference);
	}
	if (request->for_session && copy_is_per_session(request->settings)) {
		random_fill_hex(key, COPY_KEY_DIGITS);
		bool is_key = copy_home_set_key(home, key);
		assert(is_key);
	}
	return copy_home_make(home, err);
}

bool copy_home_take_over(struct copy_home *home, const char *key, struct copy_home *out_old)
{
	struct copy_home other = *home;
	struct error err;
	other.fd = -1;
	if (!home->key[0] || !copy_home_set_key(&other, key)) {
		return false;
	}
	if (!copy_home_make(&other, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
		return false;
	}
	*out_old = *home;
	*home = other;
	return true;
}
