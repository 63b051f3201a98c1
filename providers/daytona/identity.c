/* SPDX-License-Identifier: MIT */
#include "providers/daytona/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/real_path.h"
#include "providers/notes.h"

static void put_hash(char text[DAYTONA_HASH_SIZE], uint64_t hash)
{
	snprintf(text, DAYTONA_HASH_SIZE, "%016" PRIx64, hash);
}

static uint64_t hash_owner(const char *machine)
{
	char user[32];
	snprintf(user, sizeof(user), "%lu", (unsigned long)getuid());
	return hash_text(hash_text(hash_text(HASH_START, "acp-broker"), machine), user);
}

bool daytona_identity_init(struct daytona_identity *identity, const char *state_folder,
	const char *profile, const char *directory, bool is_transient, struct error *err)
{
	char machine[MACHINE_ID_SIZE];
	if (!machine_id_read("", state_folder, machine, err)) {
		return false;
	}
	*identity = (struct daytona_identity){.profile = mem_strdup(profile),
		.directory = directory ? real_path(directory) : NULL};
	uint64_t owner = hash_owner(machine);
	uint64_t workspace =
		hash_text(owner, identity->directory ? identity->directory : "no workspace");
	put_hash(identity->owner, owner);
	put_hash(identity->workspace, workspace);
	uint64_t whole = hash_text(workspace, profile);
	uint32_t random = 0;
	while (is_transient && getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		/* interrupted by a signal, before the system's first random bytes */
	}
	if (is_transient) {
		snprintf(identity->name, sizeof(identity->name), "acp-broker-%016" PRIx64 "-%08x",
			whole, random);
	} else {
		snprintf(identity->name, sizeof(identity->name), "acp-broker-%016" PRIx64, whole);
	}
	return true;
}

void daytona_identity_finish(struct daytona_identity *identity)
{
	free(identity->profile);
	free(identity->directory);
	*identity = (struct daytona_identity){0};
}

void daytona_identity_labels(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1])
{
	daytona_identity_query(identity, labels);
	labels[3] = (struct daytona_pair){DAYTONA_LABEL_SESSION, identity->name};
	labels[4] = (struct daytona_pair){NULL, NULL};
}

void daytona_identity_query(
	const struct daytona_identity *identity, struct daytona_pair labels[DAYTONA_LABELS + 1])
{
	labels[0] = (struct daytona_pair){DAYTONA_LABEL_OWNER, identity->owner};
	labels[1] = (struct daytona_pair){DAYTONA_LABEL_PROFILE, identity->profile};
	labels[2] = (struct daytona_pair){DAYTONA_LABEL_WORKSPACE, identity->workspace};
	labels[3] = (struct daytona_pair){NULL, NULL};
}

const char *daytona_label(const struct daytona_sandbox *sandbox, const char *name)
{
	for (const struct daytona_pair *label = sandbox->labels; label && label->name; label++) {
		if (strcmp(label->name, name) == 0) {
			return label->value;
		}
	}
	return "";
}

bool daytona_identity_owns(
	const struct daytona_identity *identity, const struct daytona_sandbox *sandbox)
{
	return strcmp(daytona_label(sandbox, DAYTONA_LABEL_OWNER), identity->owner) == 0;
}

bool daytona_name_is_valid(const char *name)
{
	return notes_name_is_valid(name);
}
