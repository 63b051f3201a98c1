/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_WANTED_H
#define PROVIDERS_DAYTONA_WANTED_H

#include "providers/daytona/identity.h"
#include "providers/daytona/profile.h"
#include "providers/network.h"

/*
 * What a sandbox of a profile has to be like: the body of a create, and the settings of
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

/* What one that is there has otherwise than the profile says, and can be changed. */
enum daytona_unfit {
	DAYTONA_UNFIT_NETWORK = 1 << 0,
	DAYTONA_UNFIT_INGRESS = 1 << 1,
	DAYTONA_UNFIT_AUTO_STOP = 1 << 2,
	DAYTONA_UNFIT_AUTO_ARCHIVE = 1 << 3, // never where the profile does not say it
	DAYTONA_UNFIT_AUTO_DELETE = 1 << 4,
	DAYTONA_UNFIT_TTL = 1 << 5, // not told: of one that was just made alone
};
unsigned int daytona_wanted_unfit(
	const struct daytona_create *create, const struct daytona_sandbox *seen);

/* For people: "network = blocked", "allow-host = a.example,b.example". */
void daytona_network_describe(const struct daytona_network *network, char *text, size_t size);

/* Tells of each key that the profile has, and the sandbox otherwise for as long as it is there. */
void daytona_wanted_fixed(const struct daytona_create *create, const struct daytona_sandbox *seen,
	void (*tell)(void *data, const char *key, const char *there, const char *wanted),
	void *data);

#endif
