/* SPDX-License-Identifier: MIT */
#include "providers/daytona/states.h"

#include <string.h>

#include "base/attr.h"

#define WAIT DAYTONA_STEP_WAIT
#define DONE DAYTONA_STEP_DONE
#define START DAYTONA_STEP_START
#define STOP DAYTONA_STEP_STOP
#define RECOVER DAYTONA_STEP_RECOVER
#define FAIL DAYTONA_STEP_FAIL
#define GONE DAYTONA_STEP_GONE

/* The service accepts a start while it archives a sandbox, and from all later states. */
const struct daytona_state daytona_states[] = {
	{"unknown", WAIT, WAIT},
	{"pending_build", WAIT, WAIT},
	{"building_snapshot", WAIT, WAIT},
	{"pulling_snapshot", WAIT, WAIT},
	{"creating", WAIT, WAIT},
	{"restoring", WAIT, WAIT},
	{"starting", WAIT, WAIT},
	{"resuming", WAIT, WAIT},
	{"resizing", WAIT, WAIT},
	{"snapshotting", WAIT, WAIT},
	{"forking", WAIT, WAIT},
	{"started", DONE, STOP},
	{"stopping", WAIT, WAIT},
	{"stopped", START, DONE},
	{"pausing", WAIT, WAIT},
	{"paused", START, STOP},
	{"archiving", START, DONE},
	{"archived", START, DONE},
	{"error", RECOVER, FAIL},
	{"build_failed", FAIL, FAIL},
	{"destroying", GONE, GONE},
	{"destroyed", GONE, GONE},
};
const size_t daytona_state_count = ARRAY_LENGTH(daytona_states);

const struct daytona_state *daytona_state_find(const char *name)
{
	for (size_t i = 0; i < daytona_state_count; i++) {
		if (strcmp(daytona_states[i].name, name) == 0) {
			return &daytona_states[i];
		}
	}
	return &daytona_states[0];
}
