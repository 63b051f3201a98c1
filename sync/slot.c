/* SPDX-License-Identifier: MIT */
#include "sync/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/libc.h"
#include "base/point.h"

static const char why_changed[] = "it changed since it was read";
static const char why_saved[] = "it was saved at this moment";
static const char why_appeared[] = "something is there now";

/* Drops a temporary file whose content the store has. */
static enum slot_outcome drop(struct slot *slot, const char *temp, enum slot_outcome outcome)
{
	slot_discard(slot, temp);
	return outcome;
}

/* ---- creating ---- */

static enum slot_outcome put_new(struct slot *slot, const struct store_entry *to, struct error *err)
{
	char temp[TEMP_NAME_MAX];
	enum slot_outcome outcome = slot_temp_write(slot, to, NULL, temp, err);
	if (outcome != SLOT_DONE) {
		return outcome;
	}
	if (!point("slot.new") && slot_rename_new(slot->folder, temp, slot->name) == 0) {
		point("slot.there");
		return SLOT_DONE;
	}
	int errnum = errno;
	outcome = errnum == EEXIST ? slot_leave(slot, why_appeared)
	                           : slot_give_up(slot, errnum, "writing", err);
	return drop(slot, temp, outcome);
}

/* ---- replacing ---- */

/*
 * Puts back the file at `aside`, which was taken from its name and is what a user saved a moment
 * ago. The name now has our file, or nothing, or a file saved even later (perhaps by writing into
 * ours). In the last case the file at `aside` is kept under a name of its own. `ours` may be NULL.
 */
static void put_back(struct slot *slot, const char *aside, const struct slot_state *ours)
{
	struct stat now;
	char kept[NAME_MAX + 1];
	bool is_there = fstatat(slot->folder, slot->name, &now, AT_SYMLINK_NOFOLLOW) == 0;
	if (is_there && ours && now.st_ino == ours->status.st_ino &&
		libc_rename(slot->folder, aside, slot->folder, slot->name, RENAME_EXCHANGE) == 0) {
		if (slot_is_untouched(slot, aside, ours)) {
			slot_discard(slot, aside);
			return;
		}
		/* It was saved once more in between; that newest file goes back again. */
		libc_rename(slot->folder, aside, slot->folder, slot->name, RENAME_EXCHANGE);
	} else if (slot_rename_new(slot->folder, aside, slot->name) == 0) {
		return;
	}
	if (slot_keep(slot->folder, aside, slot->name, kept) < 0) {
		slot->is_untidy = true; // the sweep keeps the file
	}
}

/* If the file system cannot exchange names: checks, and then replaces at once. */
static enum slot_outcome replace_blindly(
	struct slot *slot, const char *temp, const struct slot_state *seen, struct error *err)
{
	if (!slot_is_untouched(slot, slot->name, seen)) {
		return drop(slot, temp, slot_leave(slot, why_saved));
	}
	if (renameat(slot->folder, temp, slot->folder, slot->name) < 0) {
		return drop(slot, temp, slot_give_up(slot, errno, "replacing", err));
	}
	return SLOT_DONE;
}

/* After the exchange the temporary name has the user's file, so its name must say so beforehand. */
static enum slot_outcome exchange(struct slot *slot, const char *temp,
	const struct slot_state *seen, const struct slot_state *ours, struct error *err)
{
	char aside[TEMP_NAME_MAX];
	slot_temp_name(aside, "old");
	if (point("slot.written") || renameat(slot->folder, temp, slot->folder, aside) < 0) {
		return drop(slot, temp, slot_give_up(slot, errno, "replacing", err));
	}
	if (point("slot.aside") ||
		libc_rename(slot->folder, aside, slot->folder, slot->name, RENAME_EXCHANGE) < 0) {
		int errnum = errno;
		if (errnum == EINVAL || errnum == ENOSYS) {
			return replace_blindly(slot, aside, seen, err);
		}
		return drop(slot, aside,
			errnum == ENOENT ? slot_leave(slot, why_changed)
					 : slot_give_up(slot, errnum, "replacing", err));
	}
	point("slot.exchanged");
	if (!slot_is_untouched(slot, aside, seen)) {
		put_back(slot, aside, ours);
		return slot_leave(slot, why_saved);
	}
	return drop(slot, aside, SLOT_DONE);
}

static enum slot_outcome replace(struct slot *slot, const struct slot_state *seen,
	const struct store_entry *to, struct error *err)
{
	char temp[TEMP_NAME_MAX];
	struct slot_state ours = {.exists = true, .entry = *to};
	const struct stat *like = S_ISREG(seen->status.st_mode) ? &seen->status : NULL;
	enum slot_outcome outcome = slot_temp_write(slot, to, like, temp, err);
	if (outcome != SLOT_DONE) {
		return outcome;
	}
	if (fstatat(slot->folder, temp, &ours.status, AT_SYMLINK_NOFOLLOW) < 0) {
		return drop(slot, temp, slot_give_up(slot, errno, "replacing", err));
	}
	return exchange(slot, temp, seen, &ours, err);
}

/* ---- removing ---- */

static enum slot_outcome take_away(
	struct slot *slot, const struct slot_state *seen, struct error *err)
{
	char aside[TEMP_NAME_MAX];
	slot_temp_name(aside, "old");
	if (renameat(slot->folder, slot->name, slot->folder, aside) < 0) {
		return errno == ENOENT ? SLOT_ALREADY : slot_give_up(slot, errno, "removing", err);
	}
	if (!slot_is_untouched(slot, aside, seen)) {
		put_back(slot, aside, NULL);
		return slot_leave(slot, why_saved);
	}
	if (point("slot.taken") || unlinkat(slot->folder, aside, 0) < 0) {
		int errnum = errno;
		put_back(slot, aside, NULL);
		return slot_give_up(slot, errnum, "removing", err);
	}
	return SLOT_DONE;
}

/* ---- changing only the executable bit ---- */

static enum slot_outcome set_executable(
	struct slot *slot, const struct slot_state *seen, bool is_executable, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = beneath_open(slot->folder, slot->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct stat now;
	if (fd < 0 || fstat(fd, &now) < 0) {
		return slot_give_up(slot, errno, "changing", err);
	}
	if (now.st_ino != seen->status.st_ino || now.st_mode != seen->status.st_mode) {
		return slot_leave(slot, why_changed);
	}
	mode_t special = now.st_mode & 07000;
	if (point("slot.mode") || fchmod(fd, special | slot_mode(now.st_mode, is_executable)) < 0) {
		return slot_give_up(slot, errno, "changing", err);
	}
	return SLOT_DONE;
}

/* ---- all ---- */

enum slot_outcome slot_set(struct slot *slot, const struct store_entry *from,
	const struct store_entry *to, struct error *err)
{
	struct slot_state seen;
	enum slot_outcome outcome = slot_inspect(slot, &seen, err);
	if (outcome == SLOT_LEFT && seen.exists && S_ISDIR(seen.status.st_mode)) {
		if (!to->mode) {
			return SLOT_ALREADY; // a folder is not a file to remove
		}
		if (!from->mode && slot_make_way(slot->folder, slot->name)) {
			outcome = slot_inspect(slot, &seen, err);
		}
	}
	if (outcome != SLOT_ALREADY) {
		return outcome;
	}
	if (store_entry_equal(&seen.entry, to)) {
		return SLOT_ALREADY;
	}
	if (!store_entry_equal(&seen.entry, from)) {
		return slot_leave(slot, from->mode ? why_changed : why_appeared);
	}
	if (!from->mode) {
		return put_new(slot, to, err);
	}
	if (!to->mode) {
		return take_away(slot, &seen, err);
	}
	if (store_entry_same_content(from, to)) {
		return set_executable(slot, &seen, store_entry_is_executable(to), err);
	}
	return replace(slot, &seen, to, err);
}
