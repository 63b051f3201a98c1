/* SPDX-License-Identifier: MIT */
#include "broker/cli/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "base/real_path.h"
#include "base/text.h"

enum { REMOVE_FDS = 16 };

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)!remove(path);
	return 0;
}

void scratch_remove_folder(const char *folder)
{
	nftw(folder, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
}

static bool make_workspace(const struct scratch *scratch, struct error *err)
{
	return mkdir(scratch->workspace, 0700) == 0 ||
	       error_set_errno(err, errno, "making %s", scratch->workspace);
}

bool scratch_make(struct scratch *scratch, const char *const *environment, const char *name,
	struct error *err)
{
	const char *parent = environment_get(environment, "TMPDIR");
	char *real = real_path(parent && parent[0] == '/' ? parent : "/tmp");
	bool fits = text_whole(
		scratch->folder, sizeof(scratch->folder), "%s/acp-broker-%s-XXXXXX", real, name);
	free(real);
	if (!fits) {
		return error_set(err, ERROR_CONFIG, "TMPDIR is too long: %s", parent);
	}
	if (!mkdtemp(scratch->folder)) {
		return error_set_errno(err, errno, "making a scratch folder %s", scratch->folder);
	}
	text_whole(scratch->workspace, sizeof(scratch->workspace), "%s/workspace", scratch->folder);
	if (!make_workspace(scratch, err)) {
		scratch_remove(scratch);
		return false;
	}
	return true;
}

void scratch_remove(const struct scratch *scratch)
{
	scratch_remove_folder(scratch->folder);
}

bool scratch_empty(const struct scratch *scratch, struct error *err)
{
	scratch_remove_folder(scratch->workspace);
	return make_workspace(scratch, err);
}
