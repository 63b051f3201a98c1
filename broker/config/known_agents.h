/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_KNOWN_AGENTS_H
#define BROKER_CONFIG_KNOWN_AGENTS_H

#include <stddef.h>

/*
 * The agents that this program knows by name: what starts them, and what a newcomer has to do
 * before that works. A fact about one agent stands here and nowhere else. Nothing here is looked
 * up: whether an agent is installed depends on the machine that it runs on.
 */
struct known_agent {
	const char *name;              // short: `agent = claude`, --agent claude
	const char *title;             // for people
	const char *info_name;         // agentInfo.name in its answer to initialize
	const char *const *argv;       // NULL-terminated: what starts it as an ACP agent
	const char *const *version;    // NULL-terminated: prints its version and exits
	const char *install;           // a shell line
	int node_major;                // the oldest Node.js its package accepts; 0: it names none
	const char *const *key_names;  // NULL-terminated: variables, one of which logs it in
	const char *login;             // a shell line for a terminal, which logs it in
	const char *login_step;        // what to choose or type there; NULL: it asks by itself
	const char *base_url_variable; // leads its model's requests elsewhere; NULL: it has none
};

/* The n-th one, in the order in which they are shown; NULL after the last. */
const struct known_agent *known_agent_at(size_t index);

/* The one of that name, or NULL. */
const struct known_agent *known_agent_find(const char *name);

/* The one whose program a command names, by its last part ("/opt/bin/qwen --acp"), or NULL. */
const struct known_agent *known_agent_of_argv(const char *const *argv);

#endif
