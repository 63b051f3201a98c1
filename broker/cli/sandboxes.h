/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SANDBOXES_H
#define BROKER_CLI_SANDBOXES_H

#include "broker/cli/sessions.h"
#include "broker/config/config.h"

/*
 * acp-broker sandboxes: what providers have made elsewhere for this user (provider_inventory),
 * whichever broker it was, and whether a session record of this machine still needs it.
 */
struct sandbox_entry {
	/* Owned; as in struct inventory_entry. */
	char *name, *id, *state, *profile, *workspace, *created, *why;
	int cpu, memory_gib, disk_gib;
	bool is_in_use;
	const struct profile *found_by; // by whose settings it was listed
	char **sessions;                // owned; names of records that are not collected
};

/* A profile of which nothing could be listed. */
struct sandbox_problem {
	const struct profile *profile;
	struct error err;
};

struct sandbox_entries {
	struct sandbox_entry *entries; // owned
	size_t count;
	struct sandbox_problem *problems; // owned
	size_t problem_count;
	size_t asked; // how many profiles have a backend that can be asked
};

/*
 * Asks for the sandboxes of each of the profiles whose backend has any: those of the whole
 * configuration, or the one of --profile. What fails is among the problems. Runs the loop.
 */
void sandboxes_load(const struct sessions_means *means, const struct config *config,
	struct sandbox_entries *out);
void sandboxes_finish(struct sandbox_entries *entries);

/* Does what the order says with one of a profile's sandboxes; runs the loop. */
bool sandboxes_order(const struct sessions_means *means, const struct profile *profile,
	enum inventory_act act, const char *name, struct sandbox_entries *out_entries,
	struct error *err) ATTR_NODISCARD;

/* Whether a record that is not collected, or of what is never synced, is of this sandbox. */
bool sandboxes_is_of(const struct record *record, const struct sandbox_entry *entry);

/* To stdout: a table for people, or one JSON object (docs/schemas/sandboxes-list.json). */
void sandboxes_print(const struct options *options, const struct sandbox_entries *entries);
bool sandboxes_print_json(const struct sandbox_entries *entries, struct error *err) ATTR_NODISCARD;

/* list, stop, delete. Everything is borrowed. */
bool sandboxes_act(const struct sessions_means *means, struct error *err) ATTR_NODISCARD;

#endif
