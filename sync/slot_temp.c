/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/file_keep.h"
#include "base/libc.h"
#include "base/like_folder.h"
#include "base/text.h"
#include "sync/parked.h"
#include "sync/slot.h"

static const char temp_prefix[] = ".acp-broker-";
static const char temp_suffix[] = ".tmp";

enum { PRIVATE_MODE = 0600 };

/* ---- names ---- */

bool slot_is_temporary(struct span name)
{
	return span_starts_with(name, span_of(temp_prefix)) &&
	       span_ends_with(name, span_of(temp_suffix));
}

static unsigned long long random_id(void)
{
	unsigned long long id = 0;
	if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id)) {
		abort(); // getrandom(2) always returns all of 8 bytes
	}
	return id;
}

void slot_temp_name(char name[TEMP_NAME_MAX], const char *kind)
{
	text_whole(
		name, TEMP_NAME_MAX, "%s%016llx.%s%s", temp_prefix, random_id(), kind, temp_suffix);
}

void slot_discard(struct slot *slot, const char *temp)
{
	if (unlinkat(slot->folder, temp, 0) < 0 && errno != ENOENT) {
		slot->is_untidy = true;
	}
}

/* Creates the name first, which fails if it exists, and then replaces the placeholder. */
static int rename_over_own(int folder, const char *from, const char *to)
{
	struct stat status;
	if (fstatat(folder, from, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		return -1;
	}
	bool is_folder = S_ISDIR(status.st_mode);
	int made = is_folder ? mkdirat(folder, to, PRIVATE_MODE)
	                     : openat(folder, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				       PRIVATE_MODE);
	if (made < 0) {
		return -1;
	}
	if (!is_folder) {
		close(made);
	}
	if (renameat(folder, from, folder, to) == 0) {
		return 0;
	}
	int errnum = errno;
	unlinkat(folder, to, is_folder ? AT_REMOVEDIR : 0);
	errno = errnum;
	return -1;
}

int slot_rename_new(int folder, const char *from, const char *to)
{
	if (libc_rename(folder, from, folder, to, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS) {
		return -1;
	}
	if (linkat(folder, from, folder, to, 0) == 0) {
		return unlinkat(folder, from, 0);
	}
	return errno == EEXIST ? -1 : rename_over_own(folder, from, to);
}

int slot_keep(int folder, const char *temp, const char *name, char kept[NAME_MAX + 1])
{
	char end[64];
	int end_len = snprintf(end, sizeof(end), ".%016llx%s", random_id(), PARKED_SUFFIX);
	int name_max = NAME_MAX - end_len;
	text_whole(kept, NAME_MAX + 1, "%.*s%s", name_max, name, end);
	return slot_rename_new(folder, temp, kept);
}

/* ---- writing ---- */

mode_t slot_mode(mode_t old, bool is_executable)
{
	mode_t bits = old & 0777;
	if (((bits & S_IXUSR) != 0) == is_executable) {
		return bits;
	}
	return is_executable ? bits | (bits & 0444) >> 2 | S_IXUSR : bits & ~(mode_t)0111;
}

static enum slot_outcome write_link(
	struct slot *slot, const struct store_entry *to, const char *name, struct error *err)
{
	struct buf target;
	enum slot_outcome outcome = SLOT_FAILED;
	buf_init(&target, PATH_MAX);
	bool is_read = store_read(slot->store, &to->id, PATH_MAX - 1, &target, err);
	if (is_read) {
		char *text = mem_strndup(buf_span(&target));
		int failed = strlen(text) == target.len ? symlinkat(text, slot->folder, name) : -1;
		int errnum = strlen(text) == target.len ? errno : EINVAL;
		outcome = failed ? slot_give_up(slot, errnum, "making the link", err) : SLOT_DONE;
		free(text);
	} else if (err->code == ERROR_LIMIT) {
		outcome = slot_give_up(slot, ENAMETOOLONG, "making the link", err);
	}
	buf_finish(&target);
	return outcome;
}

static const char why_permissions[] = "its permissions could not be kept";

/* Copies the metadata of the file that it will replace, except for the executable bits. */
static bool be_like(const struct slot *slot, int fd, const struct stat *like, bool is_executable)
{
	struct error err;
	struct stat kept = *like;
	ATTR_CLEANUP(fd_cleanup)
	int old = beneath_open(slot->folder, slot->name, O_PATH | O_NOFOLLOW);
	kept.st_mode = slot_mode(like->st_mode, is_executable);
	return file_keep(old, &kept, fd, &err);
}

static enum slot_outcome write_file(struct slot *slot, const struct store_entry *to,
	const struct stat *like, const char *name, struct error *err)
{
	bool is_executable = store_entry_is_executable(to);
	mode_t mode = is_executable ? 0777 : 0666;
	ATTR_CLEANUP(fd_cleanup)
	int fd = like_folder_open(
		slot->folder, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, like ? PRIVATE_MODE : mode);
	if (fd < 0) {
		return slot_give_up(slot, errno, "writing", err);
	}
	if (!store_copy_out(slot->store, to, fd, err)) {
		error_prefix(err, "writing %s", slot->path);
		return SLOT_FAILED;
	}
	if (like && !be_like(slot, fd, like, is_executable)) {
		slot->why = why_permissions;
		return SLOT_LEFT;
	}
	if (!slot->is_cache && fsync(fd) < 0) {
		return slot_give_up(slot, errno, "writing", err);
	}
	return SLOT_DONE;
}

enum slot_outcome slot_temp_write(struct slot *slot, const struct store_entry *to,
	const struct stat *like, char name[TEMP_NAME_MAX], struct error *err)
{
	slot_temp_name(name, "new");
	enum slot_outcome outcome = to->mode == ENTRY_LINK ? write_link(slot, to, name, err)
	                                                   : write_file(slot, to, like, name, err);
	if (outcome != SLOT_DONE) {
		slot_discard(slot, name);
	}
	return outcome;
}

/* ---- the remains of a killed process ---- */

/* Reports a failure that concerns only this name; returns true if the sweep can go on. */
static bool refuse(
	struct slot *slot, const struct slot_sweeper *sweeper, const char *doing, struct error *err)
{
	if (slot_give_up(slot, errno, doing, err) == SLOT_FAILED) {
		return false;
	}
	sweeper->on_stuck(sweeper->data, slot->name, slot->why);
	return true;
}

/* A file named .old.tmp had its own name until a moment before the kill. */
static bool sweep_one(struct slot *slot, const struct slot_sweeper *sweeper, struct error *err)
{
	struct slot_state state;
	char kept[NAME_MAX + 1];
	const char *name = slot->name;
	if (span_ends_with(span_of(name), SPAN_LITERAL(".new.tmp"))) {
		return unlinkat(slot->folder, name, 0) == 0 || errno == ENOENT ||
		       refuse(slot, sweeper, "removing", err);
	}
	enum slot_outcome outcome = slot_inspect(slot, &state, err);
	if (outcome == SLOT_FAILED) {
		return false;
	}
	bool is_known =
		outcome == SLOT_ALREADY && state.exists && store_has(slot->store, &state.entry);
	if (is_known && slot_is_untouched(slot, name, &state) &&
		unlinkat(slot->folder, name, 0) == 0) {
		return true;
	}
	if (outcome == SLOT_ALREADY && !state.exists) {
		return true;
	}
	if (slot_keep(slot->folder, name, "recovered", kept) < 0) {
		return refuse(slot, sweeper, "renaming", err);
	}
	sweeper->on_kept(sweeper->data, kept);
	return true;
}

bool slot_sweep(
	struct store *store, int folder, const struct slot_sweeper *sweeper, struct error *err)
{
	struct slot slot = {.store = store, .folder = folder, .name = "", .path = "a folder"};
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	if (!names) {
		bool goes_on = refuse(&slot, sweeper, "reading", err);
		fd_close(&fd);
		return goes_on;
	}
	bool swept = true;
	struct dirent *entry;
	while (swept && (entry = readdir(names)) != NULL) {
		if (slot_is_temporary(span_of(entry->d_name))) {
			slot.name = slot.path = entry->d_name;
			swept = sweep_one(&slot, sweeper, err);
		}
	}
	closedir(names);
	return swept;
}
