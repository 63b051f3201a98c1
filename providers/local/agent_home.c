/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_home.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/json_pick.h"

/*
 * What is above the kept folder is never shown: no agent has put a link there. The folder itself
 * is: an agent that took its permissions away would keep the profile's next one from starting.
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
	if (!folder_make_state(folder, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int top = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ATTR_CLEANUP(fd_cleanup) int kept = open_kept(top, agent->files->kept, owner);
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
	       error_set(err, ERROR_LIMIT, "it has more than %zu KiB", max >> 10);
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
		return error_set(err, ERROR_DENIED, "it is no plain file");
	}
	return read_at_most(fd, AGENT_FILE_MAX, out, err);
}

/* ---- what goes in ---- */

static bool take_all(struct span text, struct buf *out, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	json_doc_destroy(doc);
	return doc && buf_append(out, text, err);
}

/* What the user's file gives to the cell; "{}" says nothing. */
static bool take_keys(
	const struct agent_file *file, struct span text, struct buf *out, struct error *err)
{
	return file->keys ? json_pick(text, file->keys, out, err) : take_all(text, out, err);
}

static bool put(const struct agent_file *file, struct cell_drawing *drawing, struct span text,
	struct error *err)
{
	struct buf picked;
	buf_init(&picked, AGENT_FILE_MAX);
	bool is_put = take_keys(file, text, &picked, err);
	if (is_put && !span_is(buf_span(&picked), "{}")) {
		char *content = mem_strndup(buf_span(&picked));
		is_put = cell_drawing_add_own(drawing, CELL_PUT, file->path, content, err);
		mem_wipe_free(content);
	}
	buf_wipe(&picked);
	return is_put;
}

/* What cannot be read is left out, and told: the agent can work without it. */
static bool put_file(const struct agent_home *agent, const struct agent_file *file, int home_fd,
	struct cell_drawing *drawing, struct sandbox *sandbox, struct error *err)
{
	char text[ERROR_TEXT_MAX];
	struct error why;
	struct buf content;
	buf_init(&content, AGENT_FILE_MAX + 1);
	bool is_read = agent_home_read(home_fd, file->path, &content, &why) &&
	               put(file, drawing, buf_span(&content), &why);
	buf_wipe(&content);
	if (is_read || why.code == ERROR_NOT_FOUND) {
		return true;
	}
	if (why.code == ERROR_LIMIT && drawing->count == CELL_ENTRIES_MAX) {
		*err = why;
		return false;
	}
	text_format(text, sizeof(text), "%s/%s does not go into the cell (agent-state = %s): %s",
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
			"%s is not set in the cell: agent-state = %s takes the files of the usual "
			"place",
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
