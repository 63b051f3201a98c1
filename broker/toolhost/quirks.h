/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_QUIRKS_H
#define BROKER_TOOLHOST_QUIRKS_H

#include <stdbool.h>

/*
 * What some agents need besides the protocol, by the name they give themselves
 * (agentInfo.name).
 */
struct quirks {
	const char *agent_name;
	bool missing_file_is_empty; // it can write a new file only after it could read it
};

/* The quirks of an agent; none for one that is not in the table. Never NULL. */
const struct quirks *quirks_of(const char *agent_name);

#endif
