/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_HEIR_H
#define BROKER_CLI_HEIR_H

#include "broker/config/config.h"
#include "providers/provider.h"

/*
 * The heir of a killed broker (providers/ssh/heir.h): this program with this first word and the
 * options of that broker. It gets a sandbox of the profile, once. Whoever does that ends what
 * killed brokers have left there. Nobody sees what it says.
 */
#define HEIR_WORD "acp-broker-heir"

/* The heir's command for a broker with these arguments. The caller frees it with words_free. */
char **heir_command(const char *const *arguments);

/* False with the error if the sandbox does not get ready within a minute. Runs the loop. */
bool heir_run(struct ev_loop *loop, struct provider *provider, const struct profile *profile,
	struct error *err) ATTR_NODISCARD;

#endif
