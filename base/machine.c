/* SPDX-License-Identifier: MIT */
#include "base/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"

enum { ID_LEN = 32 }; // hexadecimal digits, as machine-id(5) has them

/* Its first line, if that is an id; otherwise false, with errno as open(2) left it, or 0. */
static bool read_id(const char *path, char machine[MACHINE_ID_SIZE])
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t len = read(fd, machine, MACHINE_ID_SIZE - 1);
	machine[len > 0 ? len : 0] = '\0';
	machine[strcspn(machine, "\n")] = '\0';
	errno = 0;
	return hex_is_written(machine, ID_LEN);
}

/* What docker and podman put into their containers. */
static bool is_container(const char *root)
{
	static const char *const marks[] = {"/.dockerenv", "/run/.containerenv"};
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
		text_whole(path, sizeof(path), "%s%s", root, marks[i]);
		if (access(path, F_OK) == 0) {
			return true;
		}
	}
	return false;
}

static bool write_draft(int fd, const char *path, struct error *err)
{
	char text[ID_LEN + 2];
	random_fill_hex(text, ID_LEN);
	text[ID_LEN] = '\n';
	if (write(fd, text, ID_LEN + 1) != ID_LEN + 1 || fsync(fd) != 0) {
		return error_set_errno(err, errno, "writing %s", path);
	}
	return true;
}

/*
 * Only the first of several processes gives its draft the name. The others use the file that then
 * exists.
 */
static bool make_id(const char *folder, const char *path, struct error *err)
{
	char draft[PATH_MAX];
	if (snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= (int)sizeof(draft)) {
		return error_set_errno(err, ENAMETOOLONG, "making %s", path);
	}
	if (!folder_make_state(folder, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0) {
		return error_set_errno(err, errno, "making %s", path);
	}
	bool ok = write_draft(fd, path, err);
	if (ok && link(draft, path) != 0 && errno != EEXIST) {
		ok = error_set_errno(err, errno, "making %s", path);
	}
	unlink(draft);
	return ok;
}

bool folder_id_read(const char *folder, char machine[MACHINE_ID_SIZE], struct error *err)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/machine-id", folder) >= (int)sizeof(path)) {
		return error_set_errno(err, ENAMETOOLONG, "opening %s/machine-id", folder);
	}
	if (read_id(path, machine)) {
		return true;
	}
	if (errno == ENOENT && !make_id(folder, path, err)) {
		return false;
	}
	if (read_id(path, machine)) {
		return true;
	}
	if (errno != 0) {
		return error_set_errno(err, errno, "opening %s", path);
	}
	return error_set(err, ERROR_CONFIG,
		"%s is not an id of 32 hexadecimal digits. By this id the broker finds what it "
		"left "
		"on other machines: restore the file, or remove it",
		path);
}

bool machine_id_read(
	const char *root, const char *folder, char machine[MACHINE_ID_SIZE], struct error *err)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/etc/machine-id", root);
	if (!is_container(root) && read_id(path, machine)) {
		return true;
	}
	if (folder && *folder) {
		return folder_id_read(folder, machine, err);
	}
	memset(machine, 0, MACHINE_ID_SIZE);
	if (gethostname(machine, MACHINE_ID_SIZE - 1) != 0) {
		return error_set_errno(err, errno, "asking for the host's name");
	}
	return true;
}

void boot_id_read(char boot[BOOT_ID_SIZE])
{
	char text[BOOT_ID_SIZE];
	ATTR_CLEANUP(fd_cleanup)
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	memset(boot, 0, BOOT_ID_SIZE);
	memcpy(boot, text, strcspn(text, "\n"));
}
