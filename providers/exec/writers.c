/* SPDX-License-Identifier: MIT */
#include "providers/exec/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

enum {
	NAMES_BYTES = 16384, // for an entry of getpwuid_r(3) or getgrgid_r(3)
	PASSWD_MAX = 4 << 20,
	READ_SIZE = 16 * 1024,
	LIST_MAX = 64 * 1024, // the kernel's limit for an attribute
	PLACE_SIZE = 512,
};

static const gid_t NO_GROUP = (gid_t)-1;

static const char by_others[] = "belongs to another user";
static const char by_all[] = "can be written by every user (chmod o-w)";
static const char by_group[] = "can be written by a group that is not yours alone (chmod g-w)";
static const char by_list[] = "can be written by a user or a group of its access list (setfacl -b)";
static const char unknown[] = "has access rights that cannot be read";

/* ---- the user's own group ---- */

/* The number in the field, from 0, of a line of fields between colons. */
static bool has_number(struct span line, int field, unsigned long wanted)
{
	char digits[24];
	for (; field > 0; field--) {
		const char *colon = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;
		if (!colon) {
			return false;
		}
		line.len -= (size_t)(colon + 1 - line.data);
		line.data = colon + 1;
	}
	const char *end = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;
	line.len = end ? (size_t)(end - line.data) : line.len;
	text_format(digits, sizeof(digits), "%lu", wanted);
	return span_is(line, digits);
}

bool writers_share_group(struct span passwd, uid_t user, gid_t group)
{
	enum { FIELD_USER = 2, FIELD_GROUP = 3 };
	while (passwd.len > 0) {
		const char *newline = memchr(passwd.data, '\n', passwd.len);
		size_t len = newline ? (size_t)(newline - passwd.data) : passwd.len;
		const struct span line = {passwd.data, len};
		if (has_number(line, FIELD_GROUP, group) && !has_number(line, FIELD_USER, user)) {
			return true;
		}
		len += newline ? 1 : 0;
		passwd.data += len;
		passwd.len -= len;
	}
	return false;
}

/* A user of a directory service is not in this file: nobody can list all of those. */
static bool is_shared_here(uid_t user, gid_t group)
{
	char piece[READ_SIZE];
	struct buf text;
	ssize_t count = -1;
	ATTR_CLEANUP(fd_cleanup) int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	buf_init(&text, PASSWD_MAX);
	while (fd >= 0 && (count = read(fd, piece, sizeof(piece))) > 0 &&
		buf_append(&text, (struct span){piece, (size_t)count}, NULL)) {
	}
	bool is_shared = count != 0 || writers_share_group(buf_span(&text), user, group);
	buf_finish(&text);
	return is_shared;
}

/*
 * The user's primary group, if it is of the user alone: it has the user's name, as the systems name
 * it that make a group for each user, no other member, and is the primary group of nobody else.
 */
void writers_init(struct writers *writers)
{
	char user_names[NAMES_BYTES], group_names[NAMES_BYTES];
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	writers->own_group = NO_GROUP;
	if (getpwuid_r(geteuid(), &user, user_names, sizeof(user_names), &found_user) != 0 ||
		!found_user ||
		getgrgid_r(user.pw_gid, &group, group_names, sizeof(group_names), &found_group) !=
			0 ||
		!found_group || strcmp(user.pw_name, group.gr_name) != 0) {
		return;
	}
	for (char **member = group.gr_mem; *member; member++) {
		if (strcmp(*member, user.pw_name) != 0) {
			return;
		}
	}
	if (!is_shared_here(user.pw_uid, user.pw_gid)) {
		writers->own_group = user.pw_gid;
	}
}

/* ---- one file ---- */

static unsigned read_le(const char *bytes, size_t count)
{
	unsigned value = 0;
	for (size_t i = count; i > 0; i--) {
		value = value << 8 | (unsigned char)bytes[i - 1];
	}
	return value;
}

const char *writers_of_list(
	const struct writers *writers, struct span list, uid_t user, gid_t group)
{
	/* linux/posix_acl_xattr.h, linux/posix_acl.h: tag, permissions, id */
	enum { HEAD = 4, ENTRY = 8, VERSION = 2, WRITE = 2 };
	enum { TAG_USER = 2, TAG_GROUP_OF_FILE = 4, TAG_GROUP = 8 };
	if (list.len < HEAD || (list.len - HEAD) % ENTRY != 0 || read_le(list.data, 4) != VERSION) {
		return unknown;
	}
	for (const char *at = list.data + HEAD; at < list.data + list.len; at += ENTRY) {
		unsigned tag = read_le(at, 2), id = read_le(at + 4, 4);
		if (!(read_le(at + 2, 2) & WRITE)) {
			continue;
		}
		if ((tag == TAG_USER && id != user && id != 0) ||
			(tag == TAG_GROUP && id != writers->own_group)) {
			return by_list;
		}
		if (tag == TAG_GROUP_OF_FILE && group != writers->own_group) {
			return by_group;
		}
	}
	return NULL;
}

/*
 * With an access list, the bits of the group are its mask: without "w" there, nobody in the list
 * can write. `place` leads to the file through /proc, so that the path is not read again.
 */
static const char *judge(
	const struct writers *writers, const struct stat *status, const char *place)
{
	char list[LIST_MAX];
	if (status->st_uid != geteuid() && status->st_uid != 0) {
		return by_others;
	}
	if (status->st_mode & S_IWOTH) {
		return by_all;
	}
	if (!(status->st_mode & S_IWGRP)) {
		return NULL;
	}
	ssize_t len = getxattr(place, "system.posix_acl_access", list, sizeof(list));
	if (len > 0) {
		return writers_of_list(
			writers, (struct span){list, (size_t)len}, geteuid(), status->st_gid);
	}
	if (len < 0 && errno != ENODATA && errno != ENOTSUP) {
		return unknown;
	}
	/* With the umask 002, the user's files are writable for a group of the user alone. */
	return status->st_gid == writers->own_group ? NULL : by_group;
}

const char *writers_of_file(const struct writers *writers, int fd)
{
	char place[PLACE_SIZE];
	struct stat status;
	text_format(place, sizeof(place), "/proc/self/fd/%d", fd);
	return fstat(fd, &status) == 0 ? judge(writers, &status, place) : unknown;
}

const char *writers_of_entry(
	const struct writers *writers, int folder, const char *name, const struct stat *status)
{
	char place[PLACE_SIZE];
	return text_whole(place, sizeof(place), "/proc/self/fd/%d/%s", folder, name)
	               ? judge(writers, status, place)
	               : unknown;
}

/* ---- the folders above ---- */

/*
 * In a sticky folder, such as /tmp, only the owner of an entry can rename it, or the folder's. The
 * entry has been judged already, or is a folder whose turn was before.
 */
static const char *judge_above(const struct writers *writers, const char *path)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) != 0) {
		return unknown;
	}
	bool is_sticky =
		(status.st_mode & S_ISVTX) && (status.st_uid == geteuid() || status.st_uid == 0);
	return is_sticky ? NULL : writers_of_file(writers, fd);
}

const char *writers_above(const struct writers *writers, const char *path, char **out_folder)
{
	char *folder = mem_strdup(path);
	char *slash;
	while ((slash = strrchr(folder, '/')) && folder[1]) {
		slash[slash == folder ? 1 : 0] = '\0';
		const char *why = judge_above(writers, folder);
		if (why) {
			*out_folder = folder;
			return why;
		}
	}
	free(folder);
	return NULL;
}
