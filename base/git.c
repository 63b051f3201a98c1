/* SPDX-License-Identifier: MIT */
#include "base/git.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One a process, as libgit2 itself is. */
static struct {
	pthread_mutex_t lock;
	int users;
	bool is_kept;  // for threads that have used it
	void *library; // NULL while unloaded
	struct git functions;
} the_git = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * libgit2 parses all certificates of the system when it is initialised, 3.4 ms
 * of the start, and this program never has it open a connection. Debian's calls
 * mbedTLS for that, and a function of the program comes before one of a library
 * where the program exports it (base/meson.build): these two, which say that
 * all is well and add nothing. Should anybody verify a certificate with mbedTLS
 * in this process all the same, no authority is known and every one is refused.
 * The declarations are those of mbedtls/x509_crt.h.
 */
struct mbedtls_x509_crt;
int mbedtls_x509_crt_parse_file(struct mbedtls_x509_crt *chain, const char *path);
int mbedtls_x509_crt_parse_path(struct mbedtls_x509_crt *chain, const char *path);

int mbedtls_x509_crt_parse_file(struct mbedtls_x509_crt *chain, const char *path)
{
	return 0;
}

int mbedtls_x509_crt_parse_path(struct mbedtls_x509_crt *chain, const char *path)
{
	return 0;
}

static bool find_function(void *library, const char *name, void **out_function, struct error *err)
{
	*out_function = dlsym(library, name);
	return *out_function ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "%s has no function %s: is the package " LIBGIT2_PACKAGE " installed?",
		       LIBGIT2_SONAME, name);
}

static bool find_functions(void *library, struct git *git, struct error *err)
{
#define GIT_FIND(name)                                                                             \
	{                                                                                          \
		void *function;                                                                    \
		if (!find_function(library, "git_" #name, &function, err)) {                       \
			return false;                                                              \
		}                                                                                  \
		memcpy(&git->name, &function, sizeof(function));                                   \
	}
	GIT_FUNCTIONS(GIT_FIND)
#undef GIT_FIND
	return true;
}

/*
 * The user's own configuration is not for our repositories, and what libgit2
 * keeps in memory and maps of packs is bounded: its defaults are 256 MiB and 8 GiB.
 * Objects that we make refer to what we know is there.
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
	/* What it says is read where it matters (sync/git/history.c). */
	const char *known[] = {"worktreeconfig"};
	return git->libgit2_opts(GIT_OPT_SET_EXTENSIONS, known, ARRAY_LENGTH(known)) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, (ssize_t)CACHE_MAX) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, (size_t)WINDOW_SIZE) == 0 &&
	       git->libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, (size_t)WINDOWS_MAX) == 0 &&
	       git->libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0) == 0;
}

static bool load(struct error *err)
{
	void *library = dlopen(LIBGIT2_SONAME, RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		return error_set(err, ERROR_UNAVAILABLE,
			"loading %s: %s: is the package " LIBGIT2_PACKAGE " installed?",
			LIBGIT2_SONAME, dlerror());
	}
	if (!find_functions(library, &the_git.functions, err)) {
		goto fail;
	}
	if (the_git.functions.libgit2_init() < 0) {
		error_set_git(&the_git.functions, err, "starting %s", LIBGIT2_SONAME);
		goto fail;
	}
	if (!set_options(&the_git.functions)) {
		error_set_git(&the_git.functions, err, "setting %s up", LIBGIT2_SONAME);
		the_git.functions.libgit2_shutdown();
		goto fail;
	}
	the_git.library = library;
	return true;
fail:
	dlclose(library);
	return false;
}

const struct git *git_open(struct error *err)
{
	pthread_mutex_lock(&the_git.lock);
	bool loaded = the_git.library || load(err);
	if (loaded) {
		the_git.users++;
	}
	pthread_mutex_unlock(&the_git.lock);
	return loaded ? &the_git.functions : NULL;
}

void git_close(void)
{
	pthread_mutex_lock(&the_git.lock);
	assert(the_git.users > 0);
	the_git.users--;
	if (the_git.users == 0 && !the_git.is_kept) {
		the_git.functions.libgit2_shutdown();
		dlclose(the_git.library);
		the_git.library = NULL;
	}
	pthread_mutex_unlock(&the_git.lock);
}

void git_keep_loaded(void)
{
	pthread_mutex_lock(&the_git.lock);
	assert(the_git.users > 0);
	the_git.is_kept = true;
	pthread_mutex_unlock(&the_git.lock);
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
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	const git_error *last = git->error_last();
	if ((!last || !last->message) && number != 0) {
		return error_set_errno(err, number, "%s", what);
	}
	return error_set(err, ERROR_SYSTEM, "%s: %s", what,
		last && last->message ? last->message : "libgit2 gave no reason");
}
