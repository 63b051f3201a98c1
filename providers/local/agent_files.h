/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_FILES_H
#define PROVIDERS_LOCAL_AGENT_FILES_H

#include <stdbool.h>

/*
 * The files in a home folder that a confined agent cannot do without, for each agent that we know.
 * The names are those of broker/config/known_agents.h. docs/decisions/confinement.md says why each
 * of them is named; what is not named here neither goes into a cell nor comes out of one.
 */

/* A JSON file that goes into the cell as a file of its own. */
struct agent_file {
	const char *path;        // below the home
	const char *const *keys; // json_pick's, which go in; NULL: all
	const char *const *back; // those that the user's own file gets back; NULL: none
	const char *newer;       // the one that has to be greater for that (json_is_newer)
};

enum { AGENT_FILES_MAX = 2 };

struct agent_files {
	const char *name;
	const char *kept;          // the folder of the sessions, below the home
	const char *variable;      // that has to name a file in it; NULL: none
	const char *variable_file; // that file, below the home
	const char *const *moved;  // variables that would name another place for all this; or NULL
	struct agent_file files[AGENT_FILES_MAX]; // a path of NULL ends them
};

/* "none", and the names; NULL-terminated. */
extern const char *const agent_files_choices[];

/* NULL for "none", an unknown name, and NULL. */
const struct agent_files *agent_files_find(const char *name);

#endif
