/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SESSIONS_H
#define BROKER_CLI_SESSIONS_H

#include "broker/config/options.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "providers/provider.h"
#include "sync/workspace.h"

/*
 * acp-broker sessions: lets people see and finish the records of all sessions
 * (broker/ledger/record.h). A record that cannot be read is listed by its name with the error. It
 * does not affect the others, and no command removes it.
 */
struct session_entry {
	char id[RECORD_ID_SIZE];
	bool is_plain; // works in the workspace itself (broker/ledger/plain_record.h)
	bool is_readable;
	struct error problem; // if it is not readable
	struct record record; // if it is readable
	struct record_owner owner;
};

struct session_entries {
	struct session_entry *entries; // owned; the most recently written first
	size_t count;
};

bool sessions_load(int folder_fd, struct session_entries *out, struct error *err) ATTR_NODISCARD;
void sessions_finish(struct session_entries *entries);

/*
 * Adds the open sessions that work in the workspace itself, and removes the records of those whose
 * broker has ended. Call it after sessions_load.
 */
bool sessions_add_plain(const char *state_folder, struct session_entries *entries,
	struct error *err) ATTR_NODISCARD;

/* The state shown in lists: that of the record, or "plain". The record must be readable. */
const char *sessions_state_text(const struct session_entry *entry);

/* Whether all changes in the sandbox were collected. */
bool sessions_is_collected(const struct record *record);

/*
 * Finds the record that the user means, by its name or the first four or more digits of it.
 * ERROR_CONFIG if the word is not such a name or matches several records; ERROR_NOT_FOUND if it
 * matches none.
 */
bool sessions_find(const struct session_entries *entries, const char *word,
	const struct session_entry **out_entry, struct error *err) ATTR_NODISCARD;

/* list, show, prune: block and print to stdout; use no loop and no configuration. */
bool sessions_look(
	const struct options *options, const char *state_folder, struct error *err) ATTR_NODISCARD;

/* collect, stop, discard: run the loop until they are done. All pointers are borrowed. */
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
 * Syncs the sandbox of a dead broker's session once more, even if it was collected before. Then
 * ends the sandbox, whatever its persistence says; but a sandbox that cannot be collected stays.
 */
bool sessions_end_sandbox(
	const struct sessions_means *means, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Ends the sandbox of a dead broker's session without collecting, and removes the record. Prints
 * nothing.
 */
bool sessions_discard_one(
	const struct sessions_means *means, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Removes a record if its sandbox is collected and no broker has it; *out_removed says whether it
 * did. False if the file could not be removed.
 */
bool sessions_remove(
	int folder_fd, const char *id, bool *out_removed, struct error *err) ATTR_NODISCARD;

#endif
