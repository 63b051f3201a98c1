/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SESSIONS_H
#define BROKER_CLI_SESSIONS_H

#include "broker/config/options.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "providers/provider.h"
#include "sync/workspace.h"

/*
 * acp-broker sessions: the records of all sessions (broker/ledger/record.h), seen and finished by
 * people. A record that cannot be read is told by its name and its mistake, changes nothing for the
 * others, and is removed by nobody.
 */
struct session_entry {
	char id[RECORD_ID_SIZE];
	bool is_plain; // works in the workspace itself (broker/ledger/plain_record.h)
	bool is_readable;
	struct error problem; // why it is not
	struct record record; // where it is readable
	struct record_owner owner;
};

struct session_entries {
	struct session_entry *entries; // owned; the one that was written last comes first
	size_t count;
};

bool sessions_load(int folder_fd, struct session_entries *out, struct error *err) ATTR_NODISCARD;
void sessions_finish(struct session_entries *entries);

/*
 * Adds the open sessions that work in the workspace itself, and removes the records of those whose
 * broker has ended. The entries were loaded before.
 */
bool sessions_add_plain(const char *state_folder, struct session_entries *entries,
	struct error *err) ATTR_NODISCARD;

/* Its state as lists show it: that of the record, or "plain". Of a record that can be read. */
const char *sessions_state_text(const struct session_entry *entry);

/* Whether what was in the sandbox is all here. */
bool sessions_is_collected(const struct record *record);

/*
 * Which record a user means: its name, or the beginning of it, four digits at least.
 * ERROR_CONFIG for what is no name, or of several; ERROR_NOT_FOUND.
 */
bool sessions_find(const struct session_entries *entries, const char *word,
	const struct session_entry **out_entry, struct error *err) ATTR_NODISCARD;

/* list, show, prune: blocking, prints to stdout; no loop, and no configuration. */
bool sessions_look(
	const struct options *options, const char *state_folder, struct error *err) ATTR_NODISCARD;

/* collect, stop, discard: runs the loop until it is done. Everything is borrowed. */
struct sessions_means {
	const struct options *options;
	const char *const *environment;
	const struct registry *registry;
	struct ev_loop *loop;
	struct pool *pool;
	const char *state_folder;
	const struct transport_tools *tools;
};
bool sessions_act(const struct sessions_means *means, struct error *err) ATTR_NODISCARD;

/*
 * Syncs what a session of a broker that is gone has in its sandbox once more, also where that was
 * collected before, and ends the sandbox, whatever its persistence. What cannot be collected stays.
 */
bool sessions_end_sandbox(
	const struct sessions_means *means, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Ends the sandbox of a session whose broker is gone, without collecting, and removes the record.
 * Prints nothing.
 */
bool sessions_discard_one(
	const struct sessions_means *means, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Removes a record if its sandbox is collected and no broker has it; *out_removed tells. False: the
 * file could not be removed.
 */
bool sessions_remove(
	int folder_fd, const char *id, bool *out_removed, struct error *err) ATTR_NODISCARD;

#endif
