/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_IDENTITY_H
#define PROVIDERS_DAYTONA_IDENTITY_H

#include <stdbool.h>

#include "base/attr.h"
#include "providers/daytona/api.h"

/*
 * What a sandbox is called: by this user of this machine, the profile and the workspace, so that
 * whoever makes it a second time is told that the name is taken. A transient one has a random
 * part as well. The labels say the same, without any name of this machine or its directories.
 */
enum {
	DAYTONA_NAME_SIZE = 64,
	DAYTONA_HASH_SIZE = 17, // 16 hexadecimal digits
	DAYTONA_LABELS = 4,
};

#define DAYTONA_LABEL_OWNER "acp-broker/owner"
#define DAYTONA_LABEL_PROFILE "acp-broker/profile"
#define DAYTONA_LABEL_WORKSPACE "acp-broker/workspace"
#define DAYTONA_LABEL_SESSION "acp-broker/session"

struct daytona_identity {
	char name[DAYTONA_NAME_SIZE];
	char owner[DAYTONA_HASH_SIZE];
	char workspace[DAYTONA_HASH_SIZE];
	char *profile;   // owned
	char *directory; // owned; the real path of the workspace; NULL: none is known
};

/* Reads links of the directory (NULL: none), and this machine's id (machine_id_read). Blocks. */
bool daytona_identity_init(struct daytona_identity *identity, const char *state_folder,
	const char *profile, const char *directory, bool is_transient,
	struct error *err) ATTR_NODISCARD;
void daytona_identity_finish(struct daytona_identity *identity); // zeroed is fine

/* What a sandbox that is made bears; the texts are those of the identity. */
void daytona_identity_labels(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1]);

/* Those by which all of this user with this profile and workspace are found. */
void daytona_identity_query(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1]);

/* Whether it bears this user's label: nothing else is touched. */
bool daytona_identity_owns(
	const struct daytona_identity *identity, const struct daytona_sandbox *sandbox);

/* The value of a label; "" where there is none. */
const char *daytona_label(const struct daytona_sandbox *sandbox, const char *name);

/* A name that can be one of ours, or that a user may give an order by: no path. */
bool daytona_name_is_valid(const char *name);

#endif
