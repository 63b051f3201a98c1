/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_AGENT_FILES_H
#define PROVIDERS_LOCAL_AGENT_FILES_H

#include <stdbool.h>

/*
 * Lists, for each known agent, the files in a home folder that it needs when it is confined. The
 * names are those of broker/config/known_agents.h. docs/decisions/confinement.md gives the reason
 * for each file. No other file of the home goes into a cell or comes out of one.
 */

/* A JSON file that is copied into the cell. */
struct agent_file {
	const char *path;        // below the home
	const char *const *keys; // keys (json_pick) that are copied in; NULL: all
	const char *const *back; // keys that are copied back to the user's file; NULL: none
	const char *newer;       // must be greater before `back` is copied (json_is_newer)
};

enum { AGENT_FILES_MAX = 2 };

struct agent_files {
	const char *name;
	const char *kept;          // folder with the agent's sessions, below the home
	const char *variable;      // environment variable that must name variable_file; NULL: none
	const char *variable_file; // below the home
	const char *const *moved;  // variables that would move these files elsewhere; may be NULL
	struct agent_file files[AGENT_FILES_MAX]; // ends with a path of NULL
};

/* "none", then the names; NULL-terminated. */
extern const char *const agent_files_choices[];

/* NULL if the name is "none", unknown or NULL. */
const struct agent_files *agent_files_find(const char *name);

#endif
