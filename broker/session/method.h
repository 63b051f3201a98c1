/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_METHOD_H
#define BROKER_SESSION_METHOD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/span.h"
#include "broker/policy/policy.h"
#include "broker/session/usage.h"

/*
 * What a method means to the broker. Two tables hold the methods of ACP version 1:
 * broker/relay/relay_methods.c (the editor's) and relay_agent_methods.c (the agent's). The broker
 * looks up each message once, when it arrives. struct call carries the row, even while the message
 * waits. All other files depend on the row, not on the method's name.
 */

struct call;
struct deadline;
struct peer;
struct relay;
struct request;

enum route {
	ROUTE_ANY,     // the current agent; started if none runs
	ROUTE_SESSION, // the agent of params.sessionId
	ROUTE_LIST,    // the agent that params.cursor names (listing.h)
	ROUTE_OWN,     // the broker itself
};

enum meaning {
	MEANS_NOTHING,     // only the table knows what it means
	MEANS_GREETING,    // the agent is initialized
	MEANS_OPEN_AGAIN,  // the editor reopens an earlier session
	MEANS_END_SESSION, // the editor closes or deletes a session
	MEANS_SET_MODE,    // the editor chooses the mode of a session
	MEANS_SET_MODEL,
	MEANS_SET_OPTION,
	MEANS_PROMPT,
	MEANS_CANCEL_TURN,
	MEANS_CANCEL_REQUEST, // either side cancels a request
	MEANS_UPDATE,         // an agent reports on a session
	MEANS_TOOL,           // an agent asks for something that policy decides about: `operation`
};

struct method {
	const char *name; // NULL: not in the tables
	enum route route;
	enum meaning means;
	enum policy_operation operation; // for MEANS_TOOL
	enum usage_tool tool;            // for an agent's method: the counter that it adds to
	bool is_notification; // for an editor's method; a request with this name counts as unknown
	bool opens_session;   // its cwd and additionalDirectories become roots
	bool takes_unopened;  // even with syncs, its session need not be open here
	bool makes_session;   // the session is a new one
	bool is_request;      // for an agent's method: it is a request in ACP, or may become one
	bool is_terminal;     // for an agent's method: starts a terminal command, or concerns one
	const struct deadline *deadline; // while its agent is silent (relay_due.h); NULL: none
	/*
	 * Raises one of our events (broker/relay/relay_events.h) before the request or its answer
	 * goes on. True if a listener has set it aside or answered it. May be NULL.
	 */
	bool (*raise)(struct peer *peer, const struct call *call);
	bool (*raise_answered)(struct request *request, const struct call *answer);
	/* Adds edits before the request goes to the agent. May be NULL. */
	bool (*on_send)(struct relay *relay, struct request *request, const struct call *call,
		struct error *err);
	/* Called before the editor is answered, with a result or an error. May be NULL. */
	void (*before_answer)(struct relay *relay, struct request *request);
	/* Adds edits to the result before it goes to the editor; false refuses it. May be NULL. */
	bool (*on_result)(struct relay *relay, struct request *request, const struct call *call,
		struct error *err);
	/*
	 * Gets the agent's error (JSON), or an empty span for a failure of the broker. True if this
	 * has answered the editor instead. May be NULL.
	 */
	bool (*on_error)(struct relay *relay, struct request *request, struct span error);
	/* Called after every answer. May be NULL. */
	void (*on_over)(struct relay *relay, struct request *request);
	/*
	 * For a request that the broker itself makes in an agent's place, so that policy decides
	 * about it: serves it, and takes the failure that the agent would get. Both or none.
	 */
	void (*serve)(struct peer *peer, const struct call *call);
	void (*on_failure)(struct peer *peer, struct span id, const struct error *failure);
	/* For an agent's request: its result if the editor has gone; NULL: an error. */
	const char *result_when_gone;
};

/* Whether a request with this method asks policy about the operation. */
static inline bool method_asks(const struct method *method, enum policy_operation operation)
{
	return method->means == MEANS_TOOL && method->operation == operation;
}

#endif
