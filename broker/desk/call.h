/* SPDX-License-Identifier: MIT */
#ifndef BROKER_DESK_CALL_H
#define BROKER_DESK_CALL_H

#include "acp/message.h"
#include "acp/splice.h"

struct json_places;
struct mcp_commands;
struct method;
struct parcel;
struct peer;

/* What a message may wait for: the editor's and then the agents', in the order of their way. */
enum desk_stage {
	STAGE_NONE,    // it has just come in
	STAGE_ORDER,   // other requests of its session
	STAGE_CLAIM,   // whether another broker has its session
	STAGE_LIST,    // the sessions that the records know
	STAGE_RESTORE, // its session, whose agent has ended, to be restored
	STAGE_READY,   // the agent's sandbox
	STAGE_MODE,    // the agent to be in a mode in which it asks
	STAGE_SYNC,    // the sync before a prompt
	STAGE_ROOTS,   // its directories in the sandbox
	STAGE_ANSWER,  // an agent's: the sync between a prompt and its answer
	STAGE_BEHIND,  // an agent's: an answer of its session that waits for that
	STAGE_LINKS,   // an agent's: the links in the paths that it names
	STAGE_USER,    // an agent's: what the user says to it
	STAGES,
};

/* One message in hand: where it lies, what it says, and what is changed of it on its way. */
struct call {
	struct frame_reader *from;
	const struct frame *frame;
	struct message message;
	const struct method *method; // static; its row (session/method.h); NULL: a response
	struct peer *sender;         // the agent that says it; NULL: the editor
	struct splice *edits;        // borrowed
	enum desk_stage came_from;   // where it has waited last
	char *const *resolved;       // borrowed, NULL-terminated; its paths without links, or NULL
	bool is_unresolved;          // one of them may mean another file all the same
	const struct mcp_commands *mcp; // borrowed; what was asked of its MCP servers; may be NULL
};

/* Nobody has looked yet at what it is about: it waited for nothing, or only for its turn. */
static inline bool call_is_new(const struct call *call)
{
	return call->came_from <= STAGE_ORDER;
}

/* Sets the message aside, with its method: the bytes are kept. Owned by the caller. */
struct parcel *call_set_aside(const struct call *call, const struct json_places *places);

/*
 * The message of a parcel, once; it borrows from that, with its edits and its method. The call's
 * own words are left as they are. False, which is logged: it cannot be read again.
 */
bool call_open(struct call *call, struct parcel *parcel) ATTR_NODISCARD;

#endif
