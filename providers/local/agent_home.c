/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/json_doc.h"
#include "base/lock_file.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/json_pick.h"

enum { USE_TRIES = 100, USE_PAUSE_MS = 10 };

/*
 * Opens the kept folder. Agents never see the folders above it, so none of them can be a link of an
 * agent's. They do see the kept folder itself: an agent could remove its permissions and so keep
 * the next one from starting.
 */
static int open_kept(int top, const char *path, const struct owner *owner)
{
	char name[64];
	int fd = beneath_open(top, path, O_PATH | O_DIRECTORY);
	if (fd < 0 && errno == ENOENT) {
		fd = beneath_open_folder(top, path, true);
	}
	text_whole(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (fd >= 0 &&
		((owner->is_other && !owner_give_one(fd, owner)) || chmod(name, 0700) != 0)) {
		int errnum = errno;
		fd_close(&fd);
		errno = errnum;
	}
	return fd;
}

/*
 * Opens the folder, locks it while a cell uses it, and sets its time to now: acp-broker prune
 * removes folders that nobody has locked. Prune renames the folder first, so the wait is short.
 */
static int open_used(const char *folder, struct error *err)
{
	for (int i = 0; i < USE_TRIES; i++) {
		if (!folder_make_state(folder, err)) {
			return -1;
		}
		int top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (top >= 0 && lock_file_try(top, LOCK_SHARED) == LOCK_TAKEN &&
			lock_file_is_current(top, AT_FDCWD, folder)) {
			(void)!futimens(top, NULL);
			return top;
		}
		fd_close(&top);
		poll(NULL, 0, USE_PAUSE_MS);
	}
	error_set(err, ERROR_UNAVAILABLE, "%s: acp-broker prune is removing this folder", folder);
	return -1;
}

bool agent_home_init(struct agent_home *agent, const struct settings *settings, const char *home,
	const char *folder, const struct owner *owner, struct error *err)
{
	*agent = (struct agent_home){
		.files = agent_files_find(settings_get(settings, "agent-state")), .owner = *owner};
	if (!agent->files) {
		return true;
	}
	agent->home = real_path(home);
	agent->kept = path_join(folder, agent->files->kept);
	agent->top_fd = open_used(folder, err);
	if (agent->top_fd < 0) {
		return false;
	}
	agent->is_used = true;
	ATTR_CLEANUP(fd_cleanup) int kept = open_kept(agent->top_fd, agent->files->kept, owner);
	if (kept < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s", agent->kept);
	}
	return true;
}

void agent_home_finish(struct agent_home *agent)
{
	free(agent->home);
	free(agent->kept);
	if (agent->is_used) {
		fd_close(&agent->top_fd);
	}
	*agent = (struct agent_home){.files = NULL};
}

/* ---- files ---- */

static bool read_at_most(int fd, size_t max, struct buf *out, struct error *err)
{
	ssize_t count = 1;
	while (count > 0 && out->len <= max) {
		char *at = buf_reserve(out, max + 1 - out->len, err);
		if (!at) {
			return false;
		}
		count = read(fd, at, max + 1 - out->len);
		buf_commit(out, count > 0 ? (size_t)count : 0);
		count = out->len <= max ? count : 0;
	}
	if (count < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "reading it");
	}
	return out->len <= max ||
	       error_set(err, ERROR_LIMIT, "it is larger than %zu KiB", max >> 10);
}

bool agent_home_read(int folder, const char *path, struct buf *out, struct error *err)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = beneath_open(folder, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0 && errno == ELOOP) {
		return error_set(err, ERROR_DENIED, "a part of its path is a symbolic link");
	}
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "opening it");
		err->code = errnum == ENOENT || errnum == ENOTDIR ? ERROR_NOT_FOUND : err->code;
		return false;
	}
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return error_set(err, ERROR_DENIED, "it is not a regular file");
	}
	return read_at_most(fd, AGENT_FILE_MAX, out, err);
}

/* ---- what is copied in ---- */

static bool take_all(struct span text, struct buf *out, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	json_doc_destroy(doc);
	return doc && buf_append(out, text, err);
}

/* Extracts what the cell gets from the user's file; "{}" if there is nothing. */
static bool take_keys(
	const struct agent_file *file, struct span text, struct buf *out, struct error *err)
{
	return file->keys ? json_pick(text, file->keys, out, err) : take_all(text, out, err);
}

static bool put(const struct agent_home *agent, const struct agent_file *file,
	struct cell_drawing *drawing, struct span text, struct error *err)
{
	struct buf picked;
	const char *key;
	buf_init(&picked, AGENT_FILE_MAX);
	bool is_put = take_keys(file, text, &picked, err);
	if (is_put && cell_keys_are_in(agent->keys, buf_span(&picked), &key)) {
		is_put = error_set(err, ERROR_DENIED, "it contains the key of %s", key);
	}
	if (is_put && !span_is(buf_span(&picked), "{}")) {
		char *content = mem_strndup(buf_span(&picked));
		is_put = cell_drawing_add_own(drawing, CELL_PUT, file->path, content, err);
		mem_wipe_free(content);
	}
	buf_wipe(&picked);
	return is_put;
}

/* Leaves out a file that cannot be read, and says so: the agent can work without it. */
static bool put_file(const struct agent_home *agent, const struct agent_file *file, int home_fd,
	struct cell_drawing *drawing, struct sandbox *sandbox, struct error *err)
{
	char text[ERROR_TEXT_MAX];
	struct error why;
	struct buf content;
	buf_init(&content, AGENT_FILE_MAX + 1);
	bool is_read = agent_home_read(home_fd, file->path, &content, &why) &&
	               put(agent, file, drawing, buf_span(&content), &why);
	buf_wipe(&content);
	if (is_read || why.code == ERROR_NOT_FOUND) {
		return true;
	}
	if (why.code == ERROR_LIMIT && drawing->count == CELL_ENTRIES_MAX) {
		*err = why;
		return false;
	}
	text_format(text, sizeof(text), "%s/%s is not copied into the cell (agent-state = %s): %s",
		agent->home, file->path, agent->files->name, why.text);
	sandbox_warn(sandbox, text);
	return true;
}

bool agent_home_draw(const struct agent_home *agent, struct cell_drawing *drawing,
	struct sandbox *sandbox, struct error *err)
{
	const struct agent_files *files = agent->files;
	if (!files) {
		return true;
	}
	ATTR_CLEANUP(fd_cleanup)
	int home_fd = open(agent->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < AGENT_FILES_MAX && files->files[i].path && home_fd >= 0; i++) {
		if (!put_file(agent, &files->files[i], home_fd, drawing, sandbox, err)) {
			return false;
		}
	}
	return cell_drawing_add_own(drawing, CELL_KEEP, files->kept, agent->kept, err);
}

/* ---- variables ---- */

void agent_home_set_variables(
	const struct agent_home *agent, char ***environment, struct sandbox *sandbox)
{
	char text[PATH_MAX + 128];
	const struct agent_files *files = agent->files;
	for (size_t i = 0; files && files->moved && files->moved[i]; i++) {
		if (!environment_get((const char *const *)*environment, files->moved[i])) {
			continue;
		}
		environment_drop(*environment, files->moved[i]);
		text_format(text, sizeof(text),
			"%s is not set in the cell, because agent-state = %s uses the files in "
			"their usual place",
			files->moved[i], files->name);
		sandbox_warn(sandbox, text);
	}
	if (files && files->variable &&
		!environment_get((const char *const *)*environment, files->variable)) {
		text_whole(text, sizeof(text), "%s=%s/%s", files->variable, agent->home,
			files->variable_file);
		words_append(environment, text);
	}
}
