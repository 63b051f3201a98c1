/* SPDX-License-Identifier: MIT */
#include "base/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

const struct library libraries[LIBRARY_COUNT] = {
	// Ignore rules, trees and merges: every sync.
	[LIBRARY_GIT2] = {{LIBGIT2_SONAME}, LIBGIT2_PACKAGE, RTLD_LAZY},
	// Connections to hosts.
	[LIBRARY_SSH2] = {{"libssh2.so.1"}, "libssh2-1", RTLD_NOW},
	// Digests of known hosts, for the same connections. Since 1.1 the functions are the same.
	// Pointers that were looked up stay valid as long as the process lives.
	[LIBRARY_CRYPTO] = {{"libcrypto.so.3", "libcrypto.so.1.1"}, "libssl3",
		RTLD_LAZY | RTLD_NODELETE},
	// An API over HTTP. It is never unloaded: its cipher library registers exit handlers.
	[LIBRARY_CURL] = {{"libcurl.so.4"}, "libcurl4", RTLD_NOW | RTLD_NODELETE},
	// Filters of system calls, in the processes of a cell.
	[LIBRARY_SECCOMP] = {{"libseccomp.so.2"}, "libseccomp2", RTLD_NOW},
	// The line editor of chat; Debian's soname, and everybody else's.
	[LIBRARY_EDIT] = {{"libedit.so.2", "libedit.so.0"}, "libedit2", RTLD_NOW},
	// The system bus, on which a suspend of this machine is announced.
	[LIBRARY_SYSTEMD] = {{"libsystemd.so.0"}, "libsystemd0", RTLD_NOW},
};

/* Reports the error of the first name. */
static void *open_any(const struct library_use *use, const char **out_soname, struct error *err)
{
	const struct library *library = use->library;
	for (size_t i = 0; i < LIBRARY_SONAMES_MAX && library->sonames[i]; i++) {
		const char *soname = library->sonames[i];
		void *handle = dlopen(soname, library->mode | RTLD_LOCAL);
		if (handle) {
			*out_soname = soname;
			return handle;
		}
		if (i == 0) {
			library_refuse(use, err, "loading %s: %s", soname, dlerror());
		}
	}
	return NULL;
}

static bool find_functions(
	const struct library_use *use, void *handle, const char *soname, struct error *err)
{
	for (size_t i = 0; i < use->count; i++) {
		void *function = dlsym(handle, use->names[i]);
		if (!function) {
			return library_refuse(
				use, err, "%s has no function %s", soname, use->names[i]);
		}
		memcpy((char *)use->functions + i * sizeof(function), &function, sizeof(function));
	}
	return true;
}

static bool load(struct library_use *use, struct error *err)
{
	const char *soname = NULL;
	void *handle = open_any(use, &soname, err);
	if (!handle) {
		return false;
	}
	if (!find_functions(use, handle, soname, err) || (use->start && !use->start(err))) {
		dlclose(handle);
		return false;
	}
	use->handle = handle;
	return true;
}

bool library_open(struct library_use *use, struct error *err)
{
	pthread_mutex_lock(&use->lock);
	bool is_loaded = use->handle || load(use, err);
	use->users += is_loaded;
	pthread_mutex_unlock(&use->lock);
	return is_loaded;
}

void library_close(struct library_use *use)
{
	pthread_mutex_lock(&use->lock);
	assert(use->users > 0);
	use->users--;
	if (use->users == 0 && !use->is_kept) {
		use->stop();
		dlclose(use->handle);
		use->handle = NULL;
	}
	pthread_mutex_unlock(&use->lock);
}

void library_keep(struct library_use *use)
{
	pthread_mutex_lock(&use->lock);
	assert(use->users > 0);
	use->is_kept = true;
	pthread_mutex_unlock(&use->lock);
}

bool library_refuse(const struct library_use *use, struct error *err, const char *format, ...)
{
	char what[ERROR_TEXT_MAX / 2];
	va_list args;
	va_start(args, format);
	text_vformat(what, sizeof(what), format, args);
	va_end(args);
	return error_set_reason(err, ERROR_UNAVAILABLE, use->reason,
		"%s: is the package %s installed?%s", what, use->library->package,
		use->alternative ? use->alternative : "");
}
