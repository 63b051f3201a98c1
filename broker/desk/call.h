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

/*
 * The stages at which a message may wait: first the editor's, then the agents', each in the order
 * in which a message passes them.
 */
enum desk_stage {
	STAGE_NONE,    // has just arrived
	STAGE_ORDER,   // for earlier requests of its session
	STAGE_CLAIM,   // for the check whether another broker has its session
	STAGE_LIST,    // for the sessions that the records know
	STAGE_RESTORE, // for its session to be restored after its agent has ended
	STAGE_READY,   // for the agent's sandbox
	STAGE_MODE,    // for the agent to switch to a mode in which it asks
	STAGE_SYNC,    // for the sync before a prompt
	STAGE_ROOTS,   // for its directories in the sandbox
	STAGE_ANSWER,  // an agent's message: for the sync between a prompt and its answer
	STAGE_BEHIND,  // an agent's message: for an answer of its session that waits for that sync
	STAGE_LINKS,   // an agent's message: for the links in its paths to be resolved
	STAGE_USER,    // an agent's message: for the user's answer to a question about it
	STAGES,
};

/* The message in hand: its bytes, its content, and the edits with which it will be passed on. */
struct call {
	struct frame_reader *from;
	const struct frame *frame;
	struct message message;
	const struct method *method; // static row (session/method.h); NULL: a response
	struct peer *sender;         // the agent that sent it; NULL: the editor
	struct splice *edits;        // borrowed
	enum desk_stage came_from;   // the last stage at which it waited
	char *const *resolved; // borrowed, NULL-terminated; its paths with links resolved, or NULL
	bool is_unresolved;    // the file behind one of these paths may still change
	const struct mcp_commands *mcp; // borrowed; the sandbox's MCP commands; may be NULL
};

/*
 * Whether no stage has looked at the content yet: the message did not wait, or waited only for its
 * turn.
 */
static inline bool call_is_new(const struct call *call)
{
	return call->came_from <= STAGE_ORDER;
}

/*
 * Sets the message aside with its method; the parcel keeps the bytes. The caller owns the parcel.
 */
struct parcel *call_set_aside(const struct call *call, const struct json_places *places);

/*
 * Opens the message of a parcel; possible once. The call borrows the frame, edits and method from
 * the parcel; its other fields stay as they are. False if the message cannot be read again, which
 * is logged.
 */
bool call_open(struct call *call, struct parcel *parcel) ATTR_NODISCARD;

#endif
