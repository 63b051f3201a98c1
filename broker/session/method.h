/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_METHOD_H
#define BROKER_SESSION_METHOD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/span.h"
#include "broker/policy/policy.h"
#include "broker/session/usage.h"

/*
 * What a method means to the broker. Two tables of these hold the methods of ACP version 1:
 * broker/relay/relay_methods.c (the editor's) and relay_agent_methods.c (the agent's). A message
 * is looked up once, as it comes in; struct call carries its row, also while the message waits.
 * All other files depend on what the row says, and not on the method's name.
 */

struct call;
struct deadline;
struct peer;
struct relay;
struct request;

enum route {
	ROUTE_ANY,     // the current agent, started where none runs
	ROUTE_SESSION, // the agent of params.sessionId
	ROUTE_LIST,    // the agent that params.cursor names (listing.h)
	ROUTE_OWN,     // the broker itself
};

enum meaning {
	MEANS_NOTHING,     // that any file but the table depends on
	MEANS_GREETING,    // an agent is greeted
	MEANS_OPEN_AGAIN,  // the editor opens a session that has been there before
	MEANS_END_SESSION, // … closes or deletes one
	MEANS_SET_MODE,    // … chooses the mode of one
	MEANS_SET_MODEL,
	MEANS_SET_OPTION,
	MEANS_PROMPT,
	MEANS_CANCEL_TURN,
	MEANS_CANCEL_REQUEST, // either side takes a request back
	MEANS_UPDATE,         // an agent tells of a session
	MEANS_TOOL,           // an agent asks for what policy decides on: `operation`
};

struct method {
	const char *name; // NULL: no table has it
	enum route route;
	enum meaning means;
	enum policy_operation operation; // of MEANS_TOOL
	enum usage_tool tool;            // of an agent's method: as what it is counted
	bool is_notification; // of an editor's method; a request of this name is not known
	bool opens_session;   // its cwd and additionalDirectories become roots
	bool takes_unopened; // of a session that is not open here, also where workspaces are synced
	bool makes_session;  // which is new
	bool is_request;     // of an agent's: in ACP it is one, or in a later version may be one
	bool is_terminal;    // of an agent's: starts a command in a terminal, or is about one
	const struct deadline *deadline; // while its agent is silent (relay_due.h); NULL: none
	/*
	 * Raises one of our events (broker/relay/relay_events.h) before the request goes on, or
	 * before its answer does. True: who listens has set it aside, or answered it. May be NULL.
	 */
	bool (*raise)(struct peer *peer, const struct call *call);
	bool (*raise_answered)(struct request *request, const struct call *answer);
	/* Before it goes to the agent: adds edits. May be NULL. */
	bool (*on_send)(struct relay *relay, struct request *request, const struct call *call,
		struct error *err);
	/* The editor is about to be answered, in whatever way. May be NULL. */
	void (*before_answer)(struct relay *relay, struct request *request);
	/* Its result, before it goes to the editor: adds edits; false refuses it. May be NULL. */
	bool (*on_result)(struct relay *relay, struct request *request, const struct call *call,
		struct error *err);
	/*
	 * Its error (JSON), or a failure of ours (empty): true where this has answered the editor
	 * instead. May be NULL.
	 */
	bool (*on_error)(struct relay *relay, struct request *request, struct span error);
	/* Answered, in whatever way. May be NULL. */
	void (*on_over)(struct relay *relay, struct request *request);
	/* Of an agent's request: its result where nobody is there to answer; NULL: an error. */
	const char *result_when_gone;
};

/* Whether an agent asks policy for this operation. */
static inline bool method_asks(const struct method *method, enum policy_operation operation)
{
	return method->means == MEANS_TOOL && method->operation == operation;
}

#endif
