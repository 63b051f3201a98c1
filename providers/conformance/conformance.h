/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_CONFORMANCE_H
#define PROVIDERS_CONFORMANCE_CONFORMANCE_H

#include <ev.h>

#include "providers/provider.h"

/*
 * Cases that every provider passes and that need one sandbox with one root, nothing else. The
 * folder knows the interface of sandboxes; it knows neither providers, nor profiles, nor who
 * reports what came of a case. `acp-broker test-provider` runs them on a user's sandbox,
 * tests/conformance on every provider's. They destroy nothing, work below the root alone, and try
 * to reach what is outside it only by names that nobody has.
 */
struct conformance_place {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *root; // an empty folder of the sandbox, among its roots
	/*
	 * Turns the loop until *flag. False with the error: its deadline has passed, or the sandbox
	 * was lost. Then it may close the sandbox, and says so in is_closed.
	 */
	bool (*wait)(void *data, const bool *flag, struct error *err);
	void *data;
	bool is_closed;
};

/* What a case is about. */
enum conformance_part { CONFORMANCE_PROCESSES, CONFORMANCE_FILES };

struct conformance_case {
	const char *name; // a word or two
	enum conformance_part part;
	bool is_basic;    // part of the least that a session takes
	const char *text; // what has to be so
	/* False with why it is not. Leaves files below the root; depends on no other case. */
	bool (*run)(struct conformance_place *place, struct error *err);
};
extern const struct conformance_case conformance_cases[];
extern const size_t conformance_case_count;

/* Removes what the cases have left below the root. */
bool conformance_tidy(struct conformance_place *place, struct error *err) ATTR_NODISCARD;

/* ---- one process, run to its end: also for those who have more to try ---- */

struct conformance_spec {
	const char *const *argv;
	const char *const *env; // NULL: the sandbox's
	const char *cwd;        // NULL: the root
	bool is_at_home;        // where a process starts that names no folder
	struct span input;      // then its stdin is closed
	const char *kill_after; // killed, with all it started, once stdout holds this; or NULL
};

struct conformance_result {
	struct buf out, errors;
	struct process_status status;
};

/* It has exited, nothing of it runs, and both outputs were read to their ends. */
bool conformance_run(struct conformance_place *place, const struct conformance_spec *spec,
	struct conformance_result *out, struct error *err) ATTR_NODISCARD;
void conformance_result_finish(struct conformance_result *result);

/* A shell line in the root that has to end with 0; out may be NULL. */
bool conformance_shell(struct conformance_place *place, const char *line, struct buf *out,
	struct error *err) ATTR_NODISCARD;

#endif
