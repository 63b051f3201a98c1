/* SPDX-License-Identifier: MIT */
#ifndef BROKER_POLICY_MODES_H
#define BROKER_POLICY_MODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_doc.h"

/*
 * The session modes and configuration options (ACP, "Session Modes" and "Session Config Options")
 * in which an agent asks nobody, or asks less. The same name means different things to different
 * agents. So a table lists agents (by agentInfo.name, "" if it has none) and their modes. For
 * agents that the table does not have, only names that mean the same everywhere count. Comparisons
 * ignore case, dashes, underscores and blanks, and use only the last part of a URI or a package
 * name.
 */
enum modes_verdict { MODES_ASK, MODES_ASK_LESS, MODES_UNKNOWN };
enum modes_verdict modes_judge(const char *agent, const char *mode_id);
bool modes_ask_less(const char *agent, const char *mode_id);
bool modes_is_read_only(const char *mode_id); // in it, agents change nothing and run nothing
bool modes_know_agent(const char *agent);     // whether the table has it

/*
 * The same for an option with a value ("true" and "false" for a boolean). The category may be NULL;
 * options of the categories for models and thinking never count.
 */
bool modes_option_asks_less(
	const char *agent, const char *config_id, const char *category, const char *value);

enum {
	MODES_FIXES_MAX = 4, // settings checked per session
	MODES_NAME_MAX = 256,
};

/* Copies a string, or a boolean as "true" or "false"; false for any other value. */
bool modes_copy_value(const struct json_doc *doc, json_node node, char out[MODES_NAME_MAX]);

/* A setting in which the agent asks less, and the value that it offers instead. */
struct modes_fix {
	char config_id[MODES_NAME_MAX]; // "": the session's mode
	char from[MODES_NAME_MAX];      // the present value
	char to[MODES_NAME_MAX];        // "": the agent offers no other value
	bool is_boolean;                // then `to` is "false"
};

/*
 * Searches an object with `modes` and `configOptions`, like the result of session/new. Fills in at
 * most MODES_FIXES_MAX and returns how many. If a mode is also an option, only the mode is listed.
 */
size_t modes_find(const char *agent, const struct json_doc *doc, json_node object,
	struct modes_fix *out_fixes);

/* Whether an option, whose category may be "", is also the session's mode. */
bool modes_option_is_mode(const char *config_id, const char *category);

/* Copies the value of the first option that holds the mode; false if the list has none. */
bool modes_find_option(
	const struct json_doc *doc, json_node options, char out_value[MODES_NAME_MAX]);

/*
 * Copies the value of an option that holds the mode if its meaning is unknown; false if there is no
 * such option in the list.
 */
bool modes_find_unknown(const char *agent, const struct json_doc *doc, json_node options,
	char out_value[MODES_NAME_MAX]);

/* Copies an option's category from a list of configOptions; "" if it has none. */
void modes_category(const struct json_doc *doc, json_node options, const char *config_id,
	char *out_category, size_t size);

#endif
