/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SANDBOXES_H
#define BROKER_CLI_SANDBOXES_H

#include "broker/cli/sessions.h"
#include "broker/config/config.h"

/*
 * acp-broker sandboxes: lists the sandboxes that providers have created elsewhere for this user
 * (provider_inventory), by any broker, and says which of them a session record of this machine
 * still needs.
 */
struct sandbox_entry {
	/* Owned; as in struct inventory_entry. */
	char *name, *id, *state, *profile, *workspace, *created, *why;
	int cpu, memory_gib, disk_gib;
	bool is_in_use;
	const struct profile *found_by; // the profile whose settings were used to list it
	char **sessions;                // owned; ids of records that are not collected
};

/* A profile whose sandboxes could not be listed. */
struct sandbox_problem {
	const struct profile *profile;
	struct error err;
};

struct sandbox_entries {
	struct sandbox_entry *entries; // owned
	size_t count;
	struct sandbox_problem *problems; // owned
	size_t problem_count;
	size_t asked; // profiles whose backend can list sandboxes
};

/*
 * Lists the sandboxes of --profile, or of all profiles, whose backends can list them. Adds failures
 * to the problems. Runs the loop.
 */
void sandboxes_load(const struct sessions_means *means, const struct config *config,
	struct sandbox_entries *out);
void sandboxes_finish(struct sandbox_entries *entries);

/* Carries out the order on one of a profile's sandboxes. Runs the loop. */
bool sandboxes_order(const struct sessions_means *means, const struct profile *profile,
	enum inventory_act act, const char *name, struct sandbox_entries *out_entries,
	struct error *err) ATTR_NODISCARD;

/* Whether the record belongs to this sandbox, and its session is not collected or never syncs. */
bool sandboxes_is_of(const struct record *record, const struct sandbox_entry *entry);

/* Prints to stdout: a table for people, or one JSON object (docs/schemas/sandboxes-list.json). */
void sandboxes_print(const struct options *options, const struct sandbox_entries *entries);
bool sandboxes_print_json(const struct sandbox_entries *entries, struct error *err) ATTR_NODISCARD;

/* list, stop, delete. All pointers are borrowed. */
bool sandboxes_act(const struct sessions_means *means, struct error *err) ATTR_NODISCARD;

#endif
