/* SPDX-License-Identifier: MIT */
#include "sync/git/git.h"

/*
 * The build makes each text from sync/git/remote/common.sh and files of its own. Steps that belong
 * together are one script, because each script costs a round trip.
 */
static const char *const texts[] = {
	[SCRIPT_OPEN] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/open.sh.inc"
#include "sync/git/remote/inner.sh.inc"
#include "sync/git/remote/nested.sh.inc"
#include "sync/git/remote/repo_open.sh.inc"
		,
	[SCRIPT_COLLECT] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/inner.sh.inc"
#include "sync/git/remote/nested.sh.inc"
#include "sync/git/remote/collect.sh.inc"
#include "sync/git/remote/commits.sh.inc"
		,
	[SCRIPT_FETCH] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/fetch.sh.inc"
		,
	[SCRIPT_UPLOAD] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/upload.sh.inc"
		,
	[SCRIPT_IMPORT] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/import.sh.inc"
		,
	[SCRIPT_DELIVER] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/inner.sh.inc"
#include "sync/git/remote/nested.sh.inc"
#include "sync/git/remote/deliver.sh.inc"
		,
	[SCRIPT_REPO_OPEN] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/inner.sh.inc"
#include "sync/git/remote/nested.sh.inc"
#include "sync/git/remote/repo_open.sh.inc"
		,
	[SCRIPT_REPO_UPDATE] =
#include "sync/git/remote/common.sh.inc"
#include "sync/git/remote/inner.sh.inc"
#include "sync/git/remote/nested.sh.inc"
#include "sync/git/remote/repo_update.sh.inc"
#include "sync/git/remote/repo_refs.sh.inc"
		,
};

const char *git_script_text(enum git_script script)
{
	return texts[script];
}
