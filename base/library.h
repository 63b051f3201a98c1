/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The libraries that the program opens when it first needs them. It is compiled against their
 * headers but not linked with them: loading them costs more than the rest of the start. The table
 * in library.c is the one list; docs/packaging.md says the same for people who package this
 * program.
 */
enum library_id {
	LIBRARY_GIT2,
	LIBRARY_SSH2,
	LIBRARY_CRYPTO,
	LIBRARY_CURL,
	LIBRARY_SECCOMP,
	LIBRARY_EDIT,
	LIBRARY_SYSTEMD,
	LIBRARY_COUNT
};

enum { LIBRARY_SONAMES_MAX = 2 };

struct library {
	const char *sonames[LIBRARY_SONAMES_MAX]; // the first one found is used
	const char *package;                      // name in Debian
	int mode;                                 // flags of dlopen(3)
};
extern const struct library libraries[LIBRARY_COUNT];

/*
 * One per library and process, in static storage: the table row, the names of the functions in use,
 * and a struct for the pointers to them, in the same order.
 */
struct library_use {
	const struct library *library;
	const char *reason;      // of the error if the library is missing; may be NULL
	const char *alternative; // for the text: a way to do without the library; NULL: none
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
 * Opens the library, finds its functions and starts it, unless that was done before. Fails with
 * ERROR_UNAVAILABLE if the library or one of its functions is missing; the text names the package
 * to install. Also fails if `start` does. The next call tries again. Any thread; may block for some
 * milliseconds.
 */
bool library_open(struct library_use *use, struct error *err) ATTR_NODISCARD;

/*
 * Balances one library_open, for a library with `stop`. The last call stops and unloads the
 * library; after it, nothing of the library may be used, on any thread.
 */
void library_close(struct library_use *use);

/* From now on the last library_close leaves the library loaded. Call it between open and close. */
void library_keep(struct library_use *use);

/*
 * Sets ERROR_UNAVAILABLE with the reason. To the text it appends the question whether the library's
 * package is installed, and the alternative.
 */
bool library_refuse(const struct library_use *use, struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);

#endif
