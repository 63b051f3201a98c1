/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The libraries that the program opens when it first needs them. It is compiled against
 * their headers and never linked with them: loading them costs more than everything else
 * at the start together. The table in library.c is the one list; docs/packaging.md
 * says the same to those who make a package of this program.
 */
enum library_id {
	LIBRARY_GIT2,
	LIBRARY_SSH2,
	LIBRARY_CRYPTO,
	LIBRARY_CURL,
	LIBRARY_SECCOMP,
	LIBRARY_EDIT,
	LIBRARY_COUNT
};

enum { LIBRARY_SONAMES_MAX = 2 };

struct library {
	const char *sonames[LIBRARY_SONAMES_MAX]; // the first that is there is taken
	const char *package;                      // Debian's name
	int mode;                                 // dlopen's
};
extern const struct library libraries[LIBRARY_COUNT];

/*
 * One a library and process, in static storage: the row, the names of the functions that
 * are used, and where pointers to them go, in the same order.
 */
struct library_use {
	const struct library *library;
	const char *reason;      // of the error where the library is missing; may be NULL
	const char *alternative; // what does without the library, for the text; NULL: nothing
	const char *const *names;
	size_t count;
	void *functions;                  // a struct of `count` pointers to functions
	bool (*start)(struct error *err); // initialises the library; may be NULL
	void (*stop)(void);               // NULL: the library stays until the program ends

	pthread_mutex_t lock; // PTHREAD_MUTEX_INITIALIZER; for the members below, which start as 0
	void *handle;         // NULL while not loaded
	size_t users;
	bool is_kept;
};

/*
 * Opens the library, finds its functions and starts it, where that has not been done. Fails
 * with ERROR_UNAVAILABLE, naming the package to install, where the library or a function of
 * it is missing, and as `start` does; the next call tries again. Any thread; may block for
 * some milliseconds.
 */
bool library_open(struct library_use *use, struct error *err) ATTR_NODISCARD;

/*
 * Balances one library_open, for a library with `stop`: after the last one the library is
 * stopped and unloaded, and nothing of it may be used any more, on any thread.
 */
void library_close(struct library_use *use);

/* From now on the last library_close leaves the library loaded. Between open and close. */
void library_keep(struct library_use *use);

/*
 * Sets ERROR_UNAVAILABLE with the reason. The text ends with the question whether
 * its package is installed, and the alternative.
 */
bool library_refuse(const struct library_use *use, struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);

#endif
