/* SPDX-License-Identifier: MIT */
#include "base/git.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/library.h"
#include "base/text.h"

static bool start(struct error *err);
static void stop(void);

#define GIT_NAME(name) "git_" #name,
static const char *const names[] = {GIT_FUNCTIONS(GIT_NAME)};
#undef GIT_NAME
static_assert(sizeof(struct git) == sizeof(names), "a name for each function");

/* One for each process, because libgit2 has global state. */
static struct git functions;
static struct library_use the_git = {.library = &libraries[LIBRARY_GIT2],
	.names = names,
	.count = ARRAY_LENGTH(names),
	.functions = &functions,
	.start = start,
	.stop = stop,
	.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * libgit2 reads no configuration of the user for our repositories. Its cache and its maps of packs
 * get small limits; the defaults are 256 MiB and 8 GiB. It need not check that new objects refer to
 * existing ones, because ours do.
 */
enum { CACHE_MAX = 8 << 20, WINDOW_SIZE = 4 << 20, WINDOWS_MAX = 24 << 20 };

static bool set_options(const struct git *git)
{
	static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
		GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_PROGRAMDATA};
	for (size_t i = 0; i < ARRAY_LENGTH(levels); i++) {
		if (git->libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "") < 0) {
			return false;
		}
	}
	/*
	 * Accepts these extensions. We read their settings where they matter (sync/git/history.c).
	 */
	const char *known[] = {"worktreeconfig", "partialclone"};
	return git->libgit2_opts(GIT_OPT_SET_EXTENSIONS, known, ARRAY_LENGTH(known)) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)CACHE_MAX) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, (size_t)WINDOW_SIZE) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)WINDOWS_MAX) == 0 &&
	       git->libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0) == 0;
}

static bool start(struct error *err)
{
	if (functions.libgit2_init() < 0) {
		return error_set_git(&functions, err, "starting %s", the_git.library->sonames[0]);
	}
	if (!set_options(&functions)) {
		error_set_git(&functions, err, "setting %s up", the_git.library->sonames[0]);
		functions.libgit2_shutdown();
		return false;
	}
	return true;
}

static void stop(void)
{
	functions.libgit2_shutdown();
}

const struct git *git_open(struct error *err)
{
	return library_open(&the_git, err) ? &functions : NULL;
}

void git_close(void)
{
	library_close(&the_git);
}

void git_keep_loaded(void)
{
	library_keep(&the_git);
}

void git_forget_error(const struct git *git)
{
	git->error_clear();
	errno = 0;
}

bool error_set_git(const struct git *git, struct error *err, const char *format, ...)
{
	int number = errno;
	char what[ERROR_TEXT_MAX / 2];
	va_list args;
	va_start(args, format);
	text_vformat(what, sizeof(what), format, args);
	va_end(args);
	const git_error *last = git->error_last();
	if ((!last || !last->message) && number != 0) {
		return error_set_errno(err, number, "%s", what);
	}
	return error_set(err, ERROR_SYSTEM, "%s: %s", what,
		last && last->message ? last->message : "libgit2 gave no reason");
}
