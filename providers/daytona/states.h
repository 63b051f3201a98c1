/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_STATES_H
#define PROVIDERS_DAYTONA_STATES_H

#include <stddef.h>

/*
 * What to do about a sandbox in each state of the platform (from the document of 0.205 and from
 * observation). This is the only such table; docs/daytona.md shows it. In an unknown state we wait,
 * because the platform only adds states that pass.
 */
enum daytona_step {
	DAYTONA_STEP_WAIT,    // the state changes by itself
	DAYTONA_STEP_DONE,    // this is the wanted state
	DAYTONA_STEP_START,   // ask the platform to start it
	DAYTONA_STEP_STOP,    // ask the platform to stop it
	DAYTONA_STEP_RECOVER, // ask for its recovery if the platform says that it is recoverable;
	                      // otherwise fail
	DAYTONA_STEP_FAIL,    // SANDBOX_FAILED, with the platform's reason
	DAYTONA_STEP_GONE,    // treat it as missing
};

struct daytona_state {
	const char *name;
	enum daytona_step to_run;  // when a session needs it
	enum daytona_step to_rest; // when it must stop
};

extern const struct daytona_state daytona_states[];
extern const size_t daytona_state_count;

/* The row of a state, or the row "unknown". Never NULL. */
const struct daytona_state *daytona_state_find(const char *name);

#endif
