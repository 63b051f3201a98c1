/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/real_path.h"
#include "sync/snapshot.h"

/* The system's own directories: neither they nor anything below them is synced. */
static const char *const system_folders[] = {"/bin", "/boot", "/dev", "/efi", "/etc", "/lib",
	"/lib32", "/lib64", "/libx32", "/lost+found", "/nix/store", "/proc", "/run", "/sbin",
	"/sys", "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
	"/usr/sbin", "/usr/share", "/var/run"};

/* Only these themselves are refused: projects live below them. */
static const char *const crowded_folders[] = {"/", "/home", "/media", "/mnt", "/nix", "/opt",
	"/root", "/run/media", "/run/user", "/snap", "/srv", "/tmp", "/usr", "/usr/local",
	"/usr/src", "/var", "/var/cache", "/var/lib", "/var/log", "/var/spool", "/var/tmp"};

/* These lie below a system folder, but belong to users. */
static const char *const open_folders[] = {"/run/media", "/run/user"};

static bool is_one_of(const char *path, const char *const *folders, size_t count, bool below)
{
	for (size_t i = 0; i < count; i++) {
		if (below ? path_is_at_or_below(path, folders[i]) : strcmp(path, folders[i]) == 0) {
			return true;
		}
	}
	return false;
}

static bool is_system(const char *path)
{
	if (is_one_of(path, crowded_folders, ARRAY_LENGTH(crowded_folders), false)) {
		return true;
	}
	return is_one_of(path, system_folders, ARRAY_LENGTH(system_folders), true) &&
	       !is_one_of(path, open_folders, ARRAY_LENGTH(open_folders), true);
}

/* Whether `folder` is `path` or is above it; symbolic links are resolved. */
static bool holds(const char *path, const char *folder)
{
	char real[PATH_MAX];
	return folder && realpath(folder, real) && path_is_at_or_below(real, path);
}

bool snapshot_root_check(const char *root, const char *home, struct error *err)
{
	char real[PATH_MAX];
	struct stat status;
	if (!realpath(root, real) || stat(real, &status) < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "the workspace %s", root);
		if (err && (errnum == ENOENT || errnum == ENOTDIR)) {
			err->reason = "DIRECTORY_NOT_FOUND";
		}
		return false;
	}
	if (!S_ISDIR(status.st_mode)) {
		return error_set_reason(err, ERROR_DENIED, "DIRECTORY_NOT_FOUND",
			"the workspace %s is not a directory", root);
	}
	if (is_system(real)) {
		return error_set(err, ERROR_DENIED,
			"%s is a directory of the system and is not synced: open a project's own "
			"directory",
			real);
	}
	if (holds(real, home)) {
		return error_set(err, ERROR_DENIED,
			"%s is the home directory, or holds it, and is not synced: open a "
			"project's "
			"own directory",
			real);
	}
	return true;
}
