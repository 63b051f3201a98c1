/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_WANTED_H
#define PROVIDERS_DAYTONA_WANTED_H

#include "providers/daytona/identity.h"
#include "providers/daytona/profile.h"
#include "providers/network.h"

/*
 * What a sandbox of a profile has to be like: the body of a create, and the network settings of
 * one that is found again. Nothing secret is in it: the platform shows a create's environment.
 */
struct daytona_wanted {
	struct daytona_create create; // borrows from the profile, the identity and the rest of this
	struct daytona_pair labels[DAYTONA_LABELS + 1];
	struct daytona_pair query[DAYTONA_LABELS + 1];
	struct network_policy policy;
	bool has_policy;
	char *cidrs, *hosts; // owned; with commas between; NULL: not sent
};

/* Reads the network keys. ERROR_CONFIG. */
bool daytona_wanted_init(struct daytona_wanted *wanted, const struct daytona_profile *profile,
	struct error *err) ATTR_NODISCARD;
void daytona_wanted_finish(struct daytona_wanted *wanted);

/* Fills the body of the create in; borrows both. */
void daytona_wanted_name(struct daytona_wanted *wanted, const struct daytona_profile *profile,
	const struct daytona_identity *identity);

/* Whether one that is there may reach what the profile says, and nothing else. */
bool daytona_wanted_is_network(
	const struct daytona_create *create, const struct daytona_sandbox *seen);

#endif
