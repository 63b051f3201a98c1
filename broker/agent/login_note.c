/* SPDX-License-Identifier: MIT */
#include "broker/agent/login_note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/hex.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/lock_file.h"
#include "base/random.h"
#include "base/text.h"
#include "base/words.h"

static const char again[] = "start the session again in the editor, and log in from there";

static bool is_token(const char *text)
{
	return hex_is_written(text, LOGIN_TOKEN_SIZE - 1);
}

static char *folder_of(const char *state_folder)
{
	char *folder;
	return asprintf(&folder, "%s/logins", state_folder) < 0 ? mem_strdup("") : folder;
}

/* ---- writing ---- */

static bool is_old(const struct stat *status)
{
	return time(NULL) - status->st_mtime > LOGIN_NOTE_AGE_S;
}

/* Removes expired notes, and the oldest if there are too many. */
static void sweep(const char *folder)
{
	DIR *dir = opendir(folder);
	char oldest[NAME_MAX + 1] = "";
	time_t oldest_time = 0;
	size_t count = 0;
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		struct stat status;
		if (!is_token(entry->d_name) ||
			fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
			continue;
		}
		if (is_old(&status)) {
			unlinkat(dirfd(dir), entry->d_name, 0);
		} else if (++count == 1 || status.st_mtime < oldest_time) {
			oldest_time = status.st_mtime;
			text_whole(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	}
	if (count >= LOGIN_NOTES_MAX) {
		unlinkat(dirfd(dir), oldest, 0);
	}
	if (dir) {
		closedir(dir);
	}
}

static bool write_text(struct buf *text, const char *profile, char *const *args, char *const *env,
	struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, text);
	json_write_object(&writer);
	if (profile) {
		json_write_member(&writer, "profile", profile);
	}
	json_write_member_words(&writer, "args", (const char *const *)args);
	json_write_member_words(&writer, "env", (const char *const *)env);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

static bool write_file(const char *path, struct span text, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1) {
		return error_set_errno(err, errno, "making %s", path);
	}
	if (!fd_write_all(fd, text, err)) {
		unlink(path);
		return error_prefix(err, "writing %s", path);
	}
	return true;
}

bool login_note_write(const char *state_folder, const char *profile, char *const *args,
	char *const *env, char out_token[LOGIN_TOKEN_SIZE], struct error *err)
{
	if (!state_folder) {
		return error_set(
			err, ERROR_CONFIG, "there is no state folder: set HOME or XDG_STATE_HOME");
	}
	char token[LOGIN_TOKEN_SIZE];
	char path[PATH_MAX];
	char *folder = folder_of(state_folder);
	struct buf text;
	buf_init(&text, LOGIN_NOTE_MAX);
	bool ok = write_text(&text, profile, args, env, err) && folder_make_state(folder, err);
	if (ok) {
		sweep(folder);
		random_fill_hex(token, sizeof(token) - 1);
		text_whole(path, sizeof(path), "%s/%s", folder, token);
		ok = write_file(path, buf_span(&text), err);
	}
	if (ok) {
		memcpy(out_token, token, sizeof(token));
	}
	buf_finish(&text);
	free(folder);
	return ok;
}

/* ---- reading ---- */

static char **read_words(const struct json_doc *doc, const char *key)
{
	char **words = mem_alloc_zero(sizeof(*words));
	for (json_node node = json_first(doc, json_get(doc, 0, key)); node != JSON_NODE_NONE;
		node = json_next(doc, node)) {
		char *word = json_string(doc, node);
		words_append(&words, word ? word : "");
		free(word);
	}
	return words;
}

static bool read_note(struct login_note *note, struct error *err)
{
	char *text = mem_alloc(LOGIN_NOTE_MAX);
	ssize_t len = pread(note->fd, text, LOGIN_NOTE_MAX, 0);
	struct json_doc *doc = NULL;
	if (len < 0) {
		error_set_errno(err, errno, "reading");
	} else {
		doc = json_doc_parse((struct span){text, (size_t)len}, err);
	}
	bool ok = doc != NULL;
	if (ok) {
		note->args = read_words(doc, "args");
		note->env = read_words(doc, "env");
		note->profile = json_string(doc, json_get(doc, 0, "profile"));
	}
	json_doc_destroy(doc);
	free(text);
	return ok || error_prefix(err, "%s", note->path);
}

/* Checks that only this user can have written the command that is about to run. */
static bool check_file(const struct login_note *note, struct error *err)
{
	struct stat status;
	if (fstat(note->fd, &status) != 0) {
		return error_set_errno(err, errno, "checking %s", note->path);
	}
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
		return error_set(err, ERROR_DENIED,
			"%s: expected a file that belongs to you, with the mode 0600", note->path);
	}
	if (lock_file_try(note->fd, LOCK_ALONE) != LOCK_TAKEN) {
		return error_set(err, ERROR_DENIED,
			"another terminal is running this login: continue there, or end it");
	}
	if (fstat(note->fd, &status) != 0 || status.st_nlink == 0 || is_old(&status)) {
		return error_set(err, ERROR_NOT_FOUND,
			"this login was done already, or was offered more than a day ago: %s",
			again);
	}
	return true;
}

struct login_note *login_note_open(const char *state_folder, const char *token, struct error *err)
{
	if (!is_token(token)) {
		error_set(err, ERROR_CONFIG,
			"expected the token of a login that the broker has offered: %s", again);
		return NULL;
	}
	struct login_note *note = mem_alloc_zero(sizeof(*note));
	char *folder = folder_of(state_folder ? state_folder : "");
	if (asprintf(&note->path, "%s/%s", folder, token) < 0) {
		note->path = NULL;
	}
	free(folder);
	note->fd =
		note->path ? open(note->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (note->fd == -1) {
		error_set(err, ERROR_NOT_FOUND,
			"this login was done already, or was offered more than a day ago: %s",
			again);
	} else if (check_file(note, err) && read_note(note, err)) {
		return note;
	}
	login_note_close(note);
	return NULL;
}

void login_note_remove(const struct login_note *note)
{
	unlink(note->path);
}

void login_note_close(struct login_note *note)
{
	if (note) {
		fd_close(&note->fd);
		words_free(note->args);
		words_free(note->env);
		free(note->profile);
		free(note->path);
		free(note);
	}
}
