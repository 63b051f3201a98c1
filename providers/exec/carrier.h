/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_CARRIER_H
#define PROVIDERS_EXEC_CARRIER_H

#include "providers/exec/profile.h"
#include "providers/remote/carrier.h"

/*
 * Reaches an instance through the platform's command exec: its words, then "/bin/sh -c LINE" or the
 * words of a program there. The command is the child of a guard process, which ends when the broker
 * ends. The command's stdin and stdout are the stream.
 */
enum { EXEC_SAID_MAX = 600 };

struct exec_carrier {
	struct carrier carrier;
	const struct provider_context *context; // borrowed
	const struct exec_profile *profile;     // borrowed
	const char *instance;                   // borrowed; NULL: it has no name
	bool has_ended;               // the command ended by itself, or could not be started
	char said[EXEC_SAID_MAX + 1]; // the end of its stderr as one printable line
};

void exec_carrier_init(struct exec_carrier *carrier, const struct provider_context *context,
	const struct exec_profile *profile, const char *instance);

#endif
