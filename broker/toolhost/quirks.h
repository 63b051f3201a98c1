/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_QUIRKS_H
#define BROKER_TOOLHOST_QUIRKS_H

#include <stdbool.h>

/*
 * What some agents need beyond the protocol, by the name that they give themselves
 * (agentInfo.name).
 */
struct quirks {
	const char *agent_name;
	bool missing_file_is_empty; // it writes a new file only after it could read it
};

/* The quirks of an agent; one that is not in the table has none. Never NULL. */
const struct quirks *quirks_of(const char *agent_name);

#endif
