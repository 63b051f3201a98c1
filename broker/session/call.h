/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_CALL_H
#define BROKER_SESSION_CALL_H

#include "acp/message.h"
#include "acp/splice.h"

struct mcp_commands;
struct parcel;

/* One message in hand: where it lies, what it says, and what is changed of it on its way. */
struct call {
	struct frame_reader *from;
	const struct frame *frame;
	struct message message;
	struct splice *edits;  // borrowed
	bool was_granted;      // policy has decided already
	char *const *resolved; // borrowed, NULL-terminated; its paths without links, or NULL
	bool is_unresolved;    // one of them may mean another file all the same
	bool was_parked;       // it waited for the agent's sandbox, or for its roots
	bool has_roots;        // the directories it names are roots of the sandbox
	const struct mcp_commands *mcp; // borrowed; what was asked of its MCP servers; may be NULL
	bool was_synced;                // the workspaces were synced for it
	bool was_claimed;               // the records were asked for its session
	bool was_behind;                // it waited for another request of its session
	bool was_looked_up;             // the records were read for its list
};

/*
 * The message of a parcel, once; it borrows from that, with its edits. The call's own words are
 * left as they are. False, which is logged: it cannot be read again.
 */
bool call_open(struct call *call, struct parcel *parcel) ATTR_NODISCARD;

#endif
