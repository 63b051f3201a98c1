/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_STATES_H
#define PROVIDERS_DAYTONA_STATES_H

#include <stddef.h>

/*
 * What is done about a sandbox in each state of the platform (document of 0.205, and what was
 * observed): the one table of it, which docs/daytona.md shows. A state that is not in it is
 * waited for: the platform gets new ones in between, never at the end.
 */
enum daytona_step {
	DAYTONA_STEP_WAIT,    // it changes by itself
	DAYTONA_STEP_DONE,    // that is what was wanted
	DAYTONA_STEP_START,   // ask for its start
	DAYTONA_STEP_STOP,    // ask for its stop
	DAYTONA_STEP_RECOVER, // ask for its recovery where the platform says that it has one; or
	                      // fail
	DAYTONA_STEP_FAIL,    // SANDBOX_FAILED, with the platform's reason
	DAYTONA_STEP_GONE,    // as if it were not there
};

struct daytona_state {
	const char *name;
	enum daytona_step to_run;  // where a session is to run in it
	enum daytona_step to_rest; // where it is to stop
};

extern const struct daytona_state daytona_states[];
extern const size_t daytona_state_count;

/* The row of a state; that of "unknown" for one that is not in the table. Never NULL. */
const struct daytona_state *daytona_state_find(const char *name);

#endif
