/* SPDX-License-Identifier: MIT */
#ifndef BROKER_DESK_DESK_H
#define BROKER_DESK_DESK_H

#include <stdbool.h>
#include <stddef.h>

#include "acp/failure.h"
#include "acp/places.h"
#include "base/attr.h"
#include "base/list.h"
#include "base/span.h"
#include "broker/desk/call.h"

/*
 * All messages that wait, the editor's and the agents', wait here. The desk knows each by its
 * sender, id, session and stage. It answers a message that no longer needs to wait: the sender
 * cancelled it, its agent has ended, or the broker ends. It knows neither what a stage does nor
 * what an agent is: each stage is a row of a table and belongs to one file of the relay or the
 * gate. Loop thread only.
 */
struct waiting;
struct method;
struct parcel;
struct peer;

struct stage_row {
	const char *name; // data.stage of its errors
	const char *what; // for texts: "prompts", "requests"
	const char *that; // for texts: what they wait for
	size_t most;   // bytes of all that wait here (desk_has_room); 0: the owner sets the bound
	bool is_turn;  // a prompt cancelled here is answered as a cancelled turn
	bool outlasts; // still handled, not just answered, when the broker ends
	/*
	 * For messages in the owner's memory. on_left: the message was cancelled (failure is NULL)
	 * or failed; the desk answers it after this call. The owner frees it now, or later once
	 * nothing refers to it. NULL: the owner always frees it later. on_gone: the owner frees it
	 * now; NULL: none is left by then.
	 */
	void (*on_left)(struct waiting *waiting, const struct error *failure);
	void (*on_gone)(struct waiting *waiting);
	/*
	 * Handles $/cancel_request if the owner wants it; true if the owner has answered. NULL: the
	 * desk answers.
	 */
	bool (*takes_cancel)(struct waiting *waiting);
	/*
	 * Called after a message was cancelled and answered: lets the messages of the same peer
	 * behind it go on. May be NULL.
	 */
	void (*on_cancelled)(struct peer *peer);
};

/* The side that waits for an answer. */
struct asker {
	struct peer *sender;         // the agent that asked; NULL: the editor
	const struct method *method; // the request's; static
	struct span id;              // the request's, raw
};

/* How the desk answers requests, and how it knows prompts. */
struct desk_ops {
	void (*fail)(void *data, const struct asker *asker, const struct error *failure);
	void (*answer)(void *data, struct span id, struct span result); // to the editor
	void (*answer_cancelled)(void *data, const struct asker *asker);
	bool (*is_prompt)(const struct call *call);
};

struct desk {
	const struct stage_row *rows; // borrowed; STAGES of them
	const struct desk_ops *ops;
	void *data;
	const struct json_places *places; // borrowed
	struct list stages[STAGES];       // of struct waiting, in the order in which they came
	size_t bytes[STAGES];             // parcel_size of the messages that wait at each stage
};

/* A message that waits at a stage. The stage's owner may embed it in a larger struct. */
struct waiting {
	struct list link; // desk.stages
	struct desk *desk;
	enum desk_stage stage;
	struct peer *sender;   // the agent that sent it; NULL: the editor
	struct peer *peer;     // the agent for which it waits, at an agent's stage; or NULL
	char *session_id;      // owned; params.sessionId, as the sender knows it; NULL: none
	struct parcel *parcel; // owned; NULL: already answered, and its owner has not freed it yet
	size_t size;           // its part of desk.bytes while it waits
	char *id;              // owned, raw; NULL: no request, or already answered
	bool is_prompt;
	bool is_kept; // the desk owns this struct
};

/* Selects waiting messages. A NULL member matches all; so does STAGE_NONE. */
struct desk_pick {
	enum desk_stage stage;
	const struct peer *peer;
	const char *session_id;
};

void desk_init(struct desk *desk, const struct stage_row *rows, const struct json_places *places,
	const struct desk_ops *ops, void *data);

/*
 * Sets the message in hand aside. `waiting` is the caller's, zeroed; with NULL the desk allocates
 * it. The caller calls desk_drop when it no longer uses the message.
 */
struct waiting *desk_hold(struct desk *desk, struct waiting *waiting, enum desk_stage stage,
	struct peer *peer, const struct call *call);

/* Whether the message in hand still fits within the row's limit of bytes. */
bool desk_has_room(const struct desk *desk, enum desk_stage stage, const struct call *call);

/* Refuses to let the message in hand wait: answers it with the failure if it is a request. */
void desk_refuse(struct desk *desk, const struct call *call, const struct error *failure);

/*
 * Moves the message to another stage, in memory that the desk allocates. A struct of the caller's
 * is emptied.
 */
void desk_move(struct waiting *waiting, enum desk_stage stage, struct peer *peer);

/*
 * desk_open takes the message off the desk and opens it; out_call says where it waited. False if it
 * cannot be read: that is logged, and a request is answered (desk_unreadable). In both cases the
 * caller calls desk_drop when it no longer uses the call. desk_read and desk_release are the same
 * in two steps: desk_read opens the message, once, while it still waits; desk_release takes it off
 * the desk.
 */
bool desk_open(struct waiting *waiting, struct call *out_call) ATTR_NODISCARD;
bool desk_read(struct waiting *waiting, struct call *out_call) ATTR_NODISCARD;
void desk_release(struct waiting *waiting);
extern const struct error desk_unreadable;

void desk_drop(struct waiting *waiting);

/*
 * Takes the message off the desk and moves it to memory of its own, so that it may outlive its
 * owner.
 */
struct waiting *desk_detach(struct waiting *waiting);

/* ---- what waits ---- */

struct waiting *desk_first(const struct desk *desk, struct desk_pick pick); // the oldest, or NULL
struct waiting *desk_first_prompt(const struct desk *desk, struct desk_pick pick);

/* How much waits: the number of requests and notifications, and their bytes. */
struct desk_load {
	int count;
	size_t bytes;
};

struct desk_load desk_load(const struct desk *desk, struct desk_pick pick);

/*
 * Whether the desk has such a message. Answered messages that their owner has not freed count too.
 */
bool desk_has(const struct desk *desk, struct desk_pick pick);

/* ---- messages that no longer need to wait ---- */

/*
 * Answers a request with the failure and takes the message off the desk; the owner does the rest
 * (stage_row.on_left).
 */
void desk_fail(struct waiting *waiting, const struct error *failure);
void desk_fail_all(struct desk *desk, struct desk_pick pick, const struct error *failure);

/* $/cancel_request. True if a request of this sender with this id waited; it is answered now. */
bool desk_cancel_request(struct desk *desk, const struct peer *sender, struct span id);

/* session/cancel: answers waiting prompts as cancelled turns. True if there was one. */
bool desk_cancel_prompts(struct desk *desk, struct desk_pick pick);

/* The broker ends: answers all messages of stages that do not outlast it. */
void desk_end(struct desk *desk, const struct error *failure);

/*
 * Frees the messages without an answer, because what they wait for, or the desk, is about to go
 * away.
 */
void desk_forget(struct desk *desk, struct desk_pick pick);

#endif
