/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_KNOWN_AGENTS_H
#define BROKER_CONFIG_KNOWN_AGENTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The agents that this program knows by name: the command that starts each, and what a newcomer
 * must do first. No other place in the code has facts about one agent. These functions do not check
 * whether an agent is installed; that depends on the machine where it runs.
 */
struct known_agent {
	const char *name;           // short name, for `agent = claude` and --agent claude
	const char *title;          // name shown to people
	const char *info_name;      // agentInfo.name in its answer to initialize
	const char *const *argv;    // NULL-terminated command that starts it as an ACP agent
	const char *const *version; // NULL-terminated command that prints its version
	const char *install;        // a shell command
	int node_major; // oldest Node.js that its package accepts; 0: the package names none
	const char *const *key_names; // NULL-terminated variables; any one of them logs it in
	const char *login;            // a shell command that logs it in, in a terminal
	const char *login_step;       // what to choose or type there; NULL: it asks by itself
	bool has_sandbox; // runs its commands in a sandbox of its own, unless it is told not to
	const char *base_url_variable; // redirects its model requests to another URL; NULL: none
};

/* Returns the agent at this index, in display order; NULL after the last. */
const struct known_agent *known_agent_at(size_t index);

/* Returns the agent with that name, or NULL. */
const struct known_agent *known_agent_find(const char *name);

/* Returns the agent whose program is the last part of argv[0] ("/opt/bin/qwen --acp"), or NULL. */
const struct known_agent *known_agent_of_argv(const char *const *argv);

/*
 * Whether an agent confines what it runs: a known one of this agentInfo.name ("": not known yet),
 * or one whose command is a program that makes sandboxes (bwrap, firejail, …).
 */
bool known_agent_sandboxes_itself(const char *const *argv, const char *info_name);

#endif
