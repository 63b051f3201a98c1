/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_IDENTITY_H
#define PROVIDERS_DAYTONA_IDENTITY_H

#include <stdbool.h>

#include "base/attr.h"
#include "providers/daytona/api.h"

/*
 * The name of a sandbox. It depends on this user of this machine, the profile and the workspace. So
 * if we try to create the same sandbox twice, the service refuses because the name is taken. The
 * name of a transient sandbox also has a random part. The labels say the same, without the names of
 * this machine or its folders.
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
	char *directory; // owned; the workspace's real path; NULL: unknown
};

/* Reads the directory's links (NULL: none), and this machine's id (machine_id_read). Blocks. */
bool daytona_identity_init(struct daytona_identity *identity, const char *state_folder,
	const char *profile, const char *directory, bool is_transient,
	struct error *err) ATTR_NODISCARD;
void daytona_identity_finish(struct daytona_identity *identity); // zeroed is fine

/* The labels of a new sandbox; the texts belong to the identity. */
void daytona_identity_labels(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1]);

/* The labels that find all sandboxes of this user, profile and workspace. */
void daytona_identity_query(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1]);

/* Whether the sandbox has this user's label. We touch no other sandbox. */
bool daytona_identity_owns(
	const struct daytona_identity *identity, const struct daytona_sandbox *sandbox);

/* The value of a label; "" if it is missing. */
const char *daytona_label(const struct daytona_sandbox *sandbox, const char *name);

/* Whether a name can be one of ours, or one that a user may give to a command: no path. */
bool daytona_name_is_valid(const char *name);

#endif
