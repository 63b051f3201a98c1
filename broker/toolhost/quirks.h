/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_QUIRKS_H
#define BROKER_TOOLHOST_QUIRKS_H

#include <stdbool.h>

/*
 * The needs of one agent that the protocol does not cover. The agent is found by its own name for
 * itself (agentInfo.name).
 */
struct quirks {
	const char *agent_name;
	bool missing_file_is_empty; // it reads each file before it writes it, new ones too
};

/* The quirks of an agent; one that is not in the table has none. Never NULL. */
const struct quirks *quirks_of(const char *agent_name);

#endif
