/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONFORMANCE_CONFORMANCE_H
#define PROVIDERS_CONFORMANCE_CONFORMANCE_H

#include <ev.h>

#include "providers/provider.h"

/*
 * Cases that every provider must pass. They need only one sandbox with one root. This folder knows
 * the interface of sandboxes. It knows no provider, no profile and no way to report results.
 * `acp-broker test-provider` runs the cases on a user's sandbox, tests/conformance on every
 * provider's. They destroy nothing, work only below the root, and try to reach files outside only
 * by names that nobody uses.
 */
struct conformance_place {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *root; // an empty folder in the sandbox that is one of its roots
	/*
	 * Runs the loop until *flag. False with the error: a deadline has passed, or the sandbox
	 * was lost. Then it may close the sandbox, and sets is_closed.
	 */
	bool (*wait)(void *data, const bool *flag, struct error *err);
	void *data;
	bool is_closed;
};

/* What a case tests. */
enum conformance_part { CONFORMANCE_PROCESSES, CONFORMANCE_FILES };

struct conformance_case {
	const char *name; // a word or two
	enum conformance_part part;
	bool is_basic;    // one of the few that every session needs
	const char *text; // what must be true
	/* False with the reason. Leaves files below the root; needs no other case. */
	bool (*run)(struct conformance_place *place, struct error *err);
};
extern const struct conformance_case conformance_cases[];
extern const size_t conformance_case_count;

/* Removes what the cases have left below the root. */
bool conformance_tidy(struct conformance_place *place, struct error *err) ATTR_NODISCARD;

/* ---- one process, run to its end; callers with further checks use it, too ---- */

struct conformance_spec {
	const char *const *argv;
	const char *const *env; // NULL: the sandbox's environment
	const char *cwd;        // NULL: the root
	bool is_at_home;        // pass no folder, so that it starts in the sandbox's default one
	struct span input;      // then its stdin is closed
	const char *kill_after; // kill it and its descendants once stdout contains this; or NULL
};

struct conformance_result {
	struct buf out, errors;
	struct process_status status;
};

/* Returns after it has exited, none of its processes runs, and both outputs are at their end. */
bool conformance_run(struct conformance_place *place, const struct conformance_spec *spec,
	struct conformance_result *out, struct error *err) ATTR_NODISCARD;
void conformance_result_finish(struct conformance_result *result);

/* Runs a shell line in the root; fails if its status is not 0. `out` may be NULL. */
bool conformance_shell(struct conformance_place *place, const char *line, struct buf *out,
	struct error *err) ATTR_NODISCARD;

#endif
