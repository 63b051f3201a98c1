/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "acp/failure.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/real_path.h"
#include "base/text.h"
#include "broker/cli/disk.h"
#include "broker/cli/doctor_parts.h"
#include "broker/cli/scratch.h"
#include "broker/ledger/record.h"
#include "sync/snapshot.h"
#include "sync/store.h"

static const char *const *environment_of(const struct doctor_look *look)
{
	return (const char *const *)look->environment;
}

/* ---- the state folder ---- */

/* Creates a file there, as for a record. */
static bool try_to_write(const char *folder, struct error *err)
{
	char path[PATH_MAX];
	if (!text_whole(path, sizeof(path), "%s/doctor-XXXXXX", folder)) {
		return error_set_errno(err, ENAMETOOLONG, "writing to %s", folder);
	}
	ATTR_CLEANUP(fd_cleanup) int fd = mkstemp(path);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing to %s", folder);
	}
	unlink(path);
	return fd_write_all(fd, SPAN_LITERAL("acp-broker doctor\n"), err) ||
	       error_prefix(err, "writing to %s", folder);
}

void doctor_look_at_state(struct doctor_look *look)
{
	struct error err;
	struct stat status;
	const char *folder = look->state_folder;
	if (!folder) {
		error_set(&err, ERROR_CONFIG, "neither XDG_STATE_HOME nor HOME is set");
		doctor_look_fail(look, DOCTOR_STATE, "STATE_UNUSABLE", &err);
		return;
	}
	ATTR_CLEANUP(fd_cleanup) int records = record_folder_open(folder, &err);
	if (records < 0 || !try_to_write(folder, &err)) {
		doctor_look_fail(look, DOCTOR_STATE, "STATE_UNUSABLE", &err);
		return;
	}
	if (stat(folder, &status) == 0 && status.st_uid != geteuid()) {
		error_set(&err, ERROR_DENIED,
			"%s belongs to user %u, who can change what is kept there", folder,
			(unsigned)status.st_uid);
		doctor_look_warn(look, DOCTOR_STATE, "STATE_OF_ANOTHER", &err);
		return;
	}
	doctor_report_ok(&look->report, DOCTOR_STATE, "%s", folder);
}

/* ---- the workspace ---- */

static bool check_workspace(const struct doctor_look *look, struct error *err)
{
	const char *workspace = look->workspace;
	struct stat status;
	if (!workspace) {
		return error_set_errno(err, ENOENT, "the current directory");
	}
	if (stat(workspace, &status) != 0) {
		return error_set_errno(err, errno, "%s", workspace);
	}
	if (!S_ISDIR(status.st_mode)) {
		return error_set_errno(err, ENOTDIR, "%s", workspace);
	}
	if (access(workspace, R_OK | X_OK) != 0) {
		return error_set_errno(err, errno, "reading %s", workspace);
	}
	if (access(workspace, W_OK) != 0) {
		return error_set_errno(err, errno, "writing to %s", workspace);
	}
	const char *home = environment_get(environment_of(look), "HOME");
	return !look->is_copy || snapshot_root_check(workspace, home, err);
}

/* Measures what a copy takes. No session can have a copy over the limits of a sync. */
static bool measure(struct doctor_look *look, struct error *err)
{
	struct scratch scratch;
	struct store store;
	struct snapshot snapshot;
	struct snapshot_request request = {
		.root = look->workspace,
		.include = (const char *const *)look->include,
		.exclude = (const char *const *)look->exclude,
		.limits = look->limits,
		.home = environment_get(environment_of(look), "HOME"),
	};
	if (!scratch_make(&scratch, environment_of(look), "doctor", err)) {
		return false;
	}
	char *path = path_join(scratch.folder, "store");
	bool opened = store_open(&store, path, 0, err);
	bool ok = opened && snapshot_measure(&store, &request, &snapshot, err);
	if (opened) {
		store_close(&store);
	}
	if (ok) {
		look->workspace_bytes = snapshot.bytes;
	}
	free(path);
	scratch_remove(&scratch);
	return ok;
}

void doctor_look_at_workspace(struct doctor_look *look)
{
	struct error err;
	char size[DISK_TEXT_SIZE];
	if (!check_workspace(look, &err)) {
		doctor_look_fail(look, DOCTOR_WORKSPACE, "WORKSPACE_UNUSABLE", &err);
	} else if (!look->is_copy) {
		doctor_report_ok(
			&look->report, DOCTOR_WORKSPACE, "%s: read, not changed", look->workspace);
	} else if (!measure(look, &err)) {
		doctor_look_fail(look, DOCTOR_WORKSPACE, failure_code_of(&err), &err);
	} else {
		doctor_report_ok(&look->report, DOCTOR_WORKSPACE,
			"%s: read, not changed; a copy takes %s", look->workspace,
			disk_size_text(size, (long long)look->workspace_bytes));
	}
}

/* ---- the disk ---- */

/* Finds the place, or the nearest existing folder above it. */
static bool find_space(const char *place, struct statvfs *out)
{
	char *at = mem_strdup(place);
	bool is_found = statvfs(at, out) == 0;
	while (!is_found && errno == ENOENT && strrchr(at, '/') > at) {
		*strrchr(at, '/') = '\0';
		is_found = statvfs(at, out) == 0;
	}
	free(at);
	return is_found;
}

/* False if it has reported something. */
static bool look_at_space(struct doctor_look *look, const char *place, unsigned long long *least)
{
	struct error err;
	struct statvfs space;
	char size[DISK_TEXT_SIZE];
	if (!place || !find_space(place, &space)) {
		return true; // the folder's own step has reported it
	}
	unsigned long long bytes = (unsigned long long)space.f_bavail * space.f_frsize;
	bool has_inodes = space.f_files > 0; // some file systems do not count inodes
	*least = bytes < *least ? bytes : *least;
	error_set(&err, ERROR_UNAVAILABLE, "%s has %s free%s", place,
		disk_size_text(size, (long long)bytes),
		has_inodes && space.f_favail < DOCTOR_FILES_LOW ? ", and few free inodes" : "");
	if (bytes >> 20 < DOCTOR_DISK_LEAST_MIB || (has_inodes && space.f_favail == 0)) {
		doctor_look_fail(look, DOCTOR_DISK, "DISK_FULL", &err);
		return false;
	}
	if (bytes >> 20 < DOCTOR_DISK_LOW_MIB ||
		(has_inodes && space.f_favail < DOCTOR_FILES_LOW)) {
		doctor_look_warn(look, DOCTOR_DISK, "DISK_LOW", &err);
		return false;
	}
	return true;
}

void doctor_look_at_disk(struct doctor_look *look)
{
	char size[DISK_TEXT_SIZE];
	unsigned long long least = UINT64_MAX;
	const char *temporary = environment_get(environment_of(look), "TMPDIR");
	bool is_well = look_at_space(look, look->state_folder, &least);
	is_well = look_at_space(look, look->workspace, &least) && is_well;
	is_well = look_at_space(look, temporary ? temporary : "/tmp", &least) && is_well;
	if (is_well) {
		doctor_report_ok(&look->report, DOCTOR_DISK, "%s free",
			disk_size_text(size, (long long)least));
	}
}
