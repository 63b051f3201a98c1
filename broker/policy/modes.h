/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_MODES_H
#define BROKER_POLICY_MODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_doc.h"

/*
 * The session modes and configuration options (ACP, "Session Modes" and
 * "Session Config Options") in which an agent asks nobody, or no longer about
 * everything. The same name means one thing to one agent and another to the next, so the table of
 * today's agents is by agent (agentInfo.name; "" where it has none) and mode; of an agent that it
 * does not have, names that mean the same to all agents are known. They are compared without case,
 * dashes, underscores and blanks, and of a URI, or of a package's name, the last part.
 */
enum modes_verdict { MODES_ASK, MODES_ASK_LESS, MODES_UNKNOWN };
enum modes_verdict modes_judge(const char *agent, const char *mode_id);
bool modes_ask_less(const char *agent, const char *mode_id);
bool modes_know_agent(const char *agent); // the table has it

/*
 * The same of an option set to a value ("true" and "false" of a boolean one).
 * The category may be NULL; those of models and thinking are never meant.
 */
bool modes_option_asks_less(
	const char *agent, const char *config_id, const char *category, const char *value);

enum {
	MODES_FIXES_MAX = 4, // a further setting of a session is not looked at
	MODES_NAME_MAX = 256,
};

/* Copies a string, or "true" and "false" of a boolean; false for anything else. */
bool modes_copy_value(const struct json_doc *doc, json_node node, char out[MODES_NAME_MAX]);

/* A setting in which the agent asks less, and what it offers instead. */
struct modes_fix {
	char config_id[MODES_NAME_MAX]; // "": the session's mode
	char from[MODES_NAME_MAX];      // as it is now
	char to[MODES_NAME_MAX];        // "": the agent offers nothing else
	bool is_boolean;                // then `to` is "false"
};

/*
 * Looks through an object with `modes` and `configOptions`, as the result of
 * session/new has them, and fills in at most MODES_FIXES_MAX. Returns how many.
 * Of a mode that is also an option only the mode is told.
 */
size_t modes_find(const char *agent, const struct json_doc *doc, json_node object,
	struct modes_fix *out_fixes);

/*
 * Of a list of configOptions: copies the value of one that holds the mode, where nobody knows what
 * that does; false where there is none.
 */
bool modes_find_unknown(const char *agent, const struct json_doc *doc, json_node options,
	char out_value[MODES_NAME_MAX]);

/* Copies the category an option has in a list of configOptions; "" where it has none. */
void modes_category(const struct json_doc *doc, json_node options, const char *config_id,
	char *out_category, size_t size);

#endif
