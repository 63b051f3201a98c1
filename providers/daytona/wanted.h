/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_WANTED_H
#define PROVIDERS_DAYTONA_WANTED_H

#include "providers/daytona/identity.h"
#include "providers/daytona/profile.h"
#include "providers/network.h"

/*
 * The sandbox that a profile asks for: the body of a create call, and the settings that an existing
 * sandbox should have. Contains no secret, because the platform shows a create call's environment.
 */
struct daytona_wanted {
	struct daytona_create
		create; // borrows from the profile, the identity and the members below
	struct daytona_pair labels[DAYTONA_LABELS + 1];
	struct daytona_pair query[DAYTONA_LABELS + 1];
	struct network_policy policy;
	bool has_policy;
	char *cidrs, *hosts; // owned; with commas; NULL: not sent
};

/* Reads the network keys. ERROR_CONFIG. */
bool daytona_wanted_init(struct daytona_wanted *wanted, const struct daytona_profile *profile,
	struct error *err) ATTR_NODISCARD;
void daytona_wanted_finish(struct daytona_wanted *wanted);

/* Fills in the body of the create call; borrows both. */
void daytona_wanted_name(struct daytona_wanted *wanted, const struct daytona_profile *profile,
	const struct daytona_identity *identity);

/* Settings of an existing sandbox that differ from the profile and can be changed. */
enum daytona_unfit {
	DAYTONA_UNFIT_NETWORK = 1 << 0,
	DAYTONA_UNFIT_INGRESS = 1 << 1,
	DAYTONA_UNFIT_AUTO_STOP = 1 << 2,
	DAYTONA_UNFIT_AUTO_ARCHIVE = 1 << 3, // never if the profile does not set it
	DAYTONA_UNFIT_AUTO_DELETE = 1 << 4,
	DAYTONA_UNFIT_TTL = 1 << 5, // not reported by the service: only for a new sandbox
};
unsigned int daytona_wanted_unfit(
	const struct daytona_create *create, const struct daytona_sandbox *seen);

/* For people: "network = blocked", "allow-host = a.example,b.example". */
void daytona_network_describe(const struct daytona_network *network, char *text, size_t size);

/* Warns of each key that cannot be changed in an existing sandbox and differs there. */
void daytona_wanted_fixed(const struct daytona_create *create, const struct daytona_sandbox *seen,
	void (*tell)(void *data, const char *key, const char *there, const char *wanted),
	void *data);

#endif
