/* SPDX-License-Identifier: MIT */
#include "broker/cli/merge_tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"

/* The script's own exit status; all others are the tool's. */
enum { STATUS_NOTHING_SET = 100 };

/*
 * $1 is "true" if there is a base version. git-mergetool--lib expects the four file names, and
 * BACKUP, whose time it compares. git must not look for a repository, because the folder lies
 * inside one of the broker's.
 */
static const char script[] =
	"folder=${MERGED%/*}\n"
	"cd \"$folder\" || exit 1\n"
	"unset GIT_DIR GIT_WORK_TREE\n"
	"export GIT_CEILING_DIRECTORIES=\"${folder%/*}\"\n"
	"if tool=$(git config --get merge.tool 2>/dev/null) && [ -n \"$tool\" ]; then\n"
	"  TOOL_MODE=merge\n"
	"  BACKUP=$MERGED.orig\n"
	"  . \"$(git --exec-path)/git-mergetool--lib\" || exit 1\n"
	"  if type initialize_merge_tool >/dev/null 2>&1; then\n"
	"    initialize_merge_tool \"$tool\" || exit 1\n"
	"  fi\n"
	"  run_merge_tool \"$tool\" \"$1\"\n"
	"  status=$?\n"
	"  rm -f \"$BACKUP\"\n"
	"  exit $status\n"
	"fi\n"
	"editor=${VISUAL:-$EDITOR}\n"
	"[ -n \"$editor\" ] || exit 100\n"
	"eval \"$editor\" '\"$MERGED\"'\n";

static const char *const names[PARKED_VERSIONS] = {
	[PARKED_BASE] = "BASE",
	[PARKED_LOCAL] = "LOCAL",
	[PARKED_RUNTIME] = "REMOTE",
	[PARKED_MERGED] = "MERGED",
};

static char **environment_of(const char *const *environment, const struct conflict_edit *edit)
{
	char *additions[PARKED_VERSIONS + 1] = {NULL};
	for (size_t i = 0; i < PARKED_VERSIONS; i++) {
		size_t size = strlen(names[i]) + strlen(edit->files[i]) + 2;
		additions[i] = mem_alloc(size);
		text_whole(additions[i], size, "%s=%s", names[i], edit->files[i]);
	}
	char **result = environment_merge(environment, (const char *const *)additions);
	for (size_t i = 0; i < PARKED_VERSIONS; i++) {
		free(additions[i]);
	}
	return result;
}

static int spawn(pid_t *pid, const char *has_base, char *const *environment)
{
	const char *const argv[] = {"sh", "-c", script, "merge-tool", has_base, NULL};
	posix_spawnattr_t attributes;
	sigset_t interrupts;
	sigemptyset(&interrupts);
	sigaddset(&interrupts, SIGINT);
	sigaddset(&interrupts, SIGQUIT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &interrupts);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	int failed = posix_spawnp(pid, "sh", NULL, &attributes, (char *const *)argv, environment);
	posix_spawnattr_destroy(&attributes);
	return failed;
}

/* Leaves Ctrl-C to the tool, like system(3). */
static bool run(char *const *environment, const char *has_base, int *out_status, struct error *err)
{
	pid_t pid;
	struct sigaction old[2];
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGINT, &ignore, &old[0]);
	sigaction(SIGQUIT, &ignore, &old[1]);
	int errnum = spawn(&pid, has_base, environment);
	while (errnum == 0 && waitpid(pid, out_status, 0) < 0) {
		errnum = errno == EINTR ? 0 : errno;
	}
	sigaction(SIGINT, &old[0], NULL);
	sigaction(SIGQUIT, &old[1], NULL);
	return errnum == 0 || error_set_errno(err, errnum, "running the merge tool");
}

bool merge_tool_run(
	const char *const *environment, const struct conflict_edit *edit, struct error *err)
{
	int status = 0;
	char **changed = environment_of(environment, edit);
	bool ran = run(changed, edit->has_base ? "true" : "false", &status, err);
	words_free(changed);
	if (!ran) {
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOTHING_SET) {
		return error_set(err, ERROR_CONFIG,
			"conflicts edit: neither git's merge.tool nor $VISUAL nor $EDITOR is set");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		return error_set(err, ERROR_UNAVAILABLE,
			"the merge tool ended with status %d: nothing was changed; your edit is "
			"kept in %s",
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
			edit->files[PARKED_MERGED]);
	}
	return true;
}
