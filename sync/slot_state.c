/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/timestamp.h"
#include "sync/slot.h"

/* If a file's time is younger than this when it is read, another change may get the same time. */
enum { RACY_SECONDS = 2 };

static const char why_changing[] = "it changed while it was read";
static const char why_folder[] = "a folder is there";
static const char why_other[] = "it is neither a file nor a link";

enum slot_outcome slot_give_up(struct slot *slot, int errnum, const char *doing, struct error *err)
{
	static const int of_all[] = {ENOSPC, EDQUOT, EIO, EROFS, EMFILE, ENFILE, ENOMEM};
	for (size_t i = 0; i < ARRAY_LENGTH(of_all); i++) {
		if (errnum == of_all[i]) {
			error_set_errno(err, errnum, "%s %s", doing, slot->path);
			return SLOT_FAILED;
		}
	}
	const char *why = libc_error_text(errnum);
	slot->why = why ? why : "the system refused it";
	return SLOT_LEFT;
}

enum slot_outcome slot_leave(struct slot *slot, const char *why)
{
	slot->why = why;
	return SLOT_LEFT;
}

/* Ignores the change time, because a rename changes it. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && timespec_equals(&a->st_mtim, &b->st_mtim);
}

static enum slot_outcome inspect_link(struct slot *slot, struct slot_state *out, struct error *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(slot->folder, slot->name, target, sizeof(target));
	if (len < 0) {
		return slot_give_up(slot, errno, "reading", err);
	}
	out->entry.mode = ENTRY_LINK;
	const struct git *git = slot->store->git;
	if (git->odb_hash(&out->entry.id, target, (size_t)len, GIT_OBJECT_BLOB) < 0) {
		error_set_git(git, err, "hashing %s", slot->path);
		return SLOT_FAILED;
	}
	return SLOT_ALREADY;
}

/* Hashes the bytes read from `fd`. Its status must be the same before and after. */
static enum slot_outcome hash_file(
	struct slot *slot, int fd, struct stat *status, git_oid *out_id, struct error *err)
{
	char path[32];
	struct stat before;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fstat(fd, &before) < 0 || !S_ISREG(before.st_mode)) {
		return slot_leave(slot, why_changing);
	}
	const struct git *git = slot->store->git;
	bool hashed = git->odb_hashfile(out_id, path, GIT_OBJECT_BLOB) == 0;
	if (fstat(fd, status) < 0 || !is_same_file(&before, status)) {
		return slot_leave(slot, why_changing);
	}
	if (!hashed) {
		error_set_git(git, err, "reading %s", slot->path);
		return SLOT_FAILED;
	}
	return SLOT_ALREADY;
}

static enum slot_outcome inspect_file(struct slot *slot, struct slot_state *out, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = beneath_open(
		slot->folder, slot->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return slot_give_up(slot, errno, "reading", err);
	}
	git_oid content;
	enum slot_outcome outcome = hash_file(slot, fd, &out->status, &content, err);
	if (outcome != SLOT_ALREADY) {
		return outcome;
	}
	bool is_executable = out->status.st_mode & S_IXUSR;
	if ((uint64_t)out->status.st_size > slot->store->big_file_bytes) {
		out->entry = store_big_entry(&content, is_executable);
	} else {
		out->entry.mode = is_executable ? ENTRY_EXECUTABLE : ENTRY_FILE;
		out->entry.id = content;
	}
	return SLOT_ALREADY;
}

enum slot_outcome slot_inspect(struct slot *slot, struct slot_state *out, struct error *err)
{
	*out = (struct slot_state){.exists = true};
	if (fstatat(slot->folder, slot->name, &out->status, AT_SYMLINK_NOFOLLOW) < 0) {
		int errnum = errno;
		out->exists = false;
		return errnum == ENOENT ? SLOT_ALREADY
		                        : slot_give_up(slot, errnum, "looking at", err);
	}
	if (S_ISLNK(out->status.st_mode)) {
		return inspect_link(slot, out, err);
	}
	if (S_ISREG(out->status.st_mode)) {
		return inspect_file(slot, out, err);
	}
	return slot_leave(slot, S_ISDIR(out->status.st_mode) ? why_folder : why_other);
}

/*
 * The kernel grants a read lease only if nobody has the file open for writing; we return it at
 * once. SIGURG, which does nothing, would tell us that somebody waits for the lease. File systems
 * without leases say nothing: there the times must do.
 */
static bool is_open_for_writing(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0) {
		return errno == EAGAIN;
	}
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

static bool is_racy(const struct stat *status)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return status->st_mtim.tv_sec + RACY_SECONDS >= now.tv_sec;
}

bool slot_is_untouched(struct slot *slot, const char *name, const struct slot_state *seen)
{
	struct stat status;
	if (fstatat(slot->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		!is_same_file(&status, &seen->status)) {
		return false;
	}
	if (!S_ISREG(status.st_mode)) {
		return true; // a link's target never changes
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = beneath_open(slot->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || is_open_for_writing(fd) || fstat(fd, &status) < 0 ||
		!is_same_file(&status, &seen->status)) {
		return false;
	}
	if (!is_racy(&status)) {
		return true;
	}
	struct slot aside = *slot;
	struct slot_state now;
	aside.name = name;
	return slot_inspect(&aside, &now, NULL) == SLOT_ALREADY &&
	       store_entry_equal(&now.entry, &seen->entry);
}
