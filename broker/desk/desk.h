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
 * The one place where messages wait, the editor's and the agents'. The desk knows each by its
 * sender, its id, its session and the stage it is at, and answers it where it need not wait any
 * longer: it was cancelled, its agent has ended, the broker ends. It does not know what a stage
 * does, nor what an agent is: each stage is a row of a table, and belongs to one file of the relay
 * or the gate. Loop thread only.
 */
struct waiting;
struct method;
struct parcel;
struct peer;

struct stage_row {
	const char *name; // data.stage of its errors
	const char *what; // "prompts", "requests"
	const char *that; // what they wait for
	size_t most;      // parcel_size of all together (desk_has_room); 0: its owner bounds them
	bool is_turn;     // a prompt that is cancelled here is answered as a turn that was
	bool outlasts;    // the end of the broker answers none: what they ask for is still done
	/*
	 * For those in the owner's memory. on_left: it was cancelled (failure is NULL) or failed,
	 * and its answer follows; the owner frees it now, or once nothing refers to it any more;
	 * NULL: it always does that later. on_gone: the owner frees it now; NULL: none is left
	 * then.
	 */
	void (*on_left)(struct waiting *waiting, const struct error *failure);
	void (*on_gone)(struct waiting *waiting);
	/* $/cancel_request is the owner's: true where it has answered. NULL: the desk answers. */
	bool (*takes_cancel)(struct waiting *waiting);
	/* One was cancelled and answered: those behind it of the same peer go on. May be NULL. */
	void (*on_cancelled)(struct peer *peer);
};

/* Who waits for an answer. */
struct asker {
	struct peer *sender;         // the agent; NULL: the editor
	const struct method *method; // of the request; static
	struct span id;              // of the request; raw
};

/* How the desk answers requests; and which messages are prompts. */
struct desk_ops {
	void (*fail)(void *data, const struct asker *asker, const struct error *failure);
	void (*answer)(void *data, struct span id, struct span result); // the editor's
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

/* A message that waits at a stage. The file that owns the stage may embed it in a larger struct. */
struct waiting {
	struct list link; // desk.stages
	struct desk *desk;
	enum desk_stage stage;
	struct peer *sender;   // the agent that says it; NULL: the editor
	struct peer *peer;     // whose stage it is at, of those that each agent has; may be NULL
	char *session_id;      // owned; params.sessionId, as the sender knows it; NULL: none
	struct parcel *parcel; // owned; NULL: it was answered, and only its owner has it yet
	size_t size;           // in desk.bytes, as long as it waits
	char *id;              // owned; raw; NULL: it is no request, or was answered
	bool is_prompt;
	bool is_kept; // the memory is the desk's
};

/* Selects messages that wait. A member that is NULL, or STAGE_NONE, matches all of them. */
struct desk_pick {
	enum desk_stage stage;
	const struct peer *peer;
	const char *session_id;
};

void desk_init(struct desk *desk, const struct stage_row *rows, const struct json_places *places,
	const struct desk_ops *ops, void *data);

/*
 * Sets the message in hand aside. `waiting` is the caller's, zeroed; NULL: the desk has the memory.
 * desk_drop follows once it is not used any more.
 */
struct waiting *desk_hold(struct desk *desk, struct waiting *waiting, enum desk_stage stage,
	struct peer *peer, const struct call *call);

/* Whether the message in hand may wait there, too, within the bytes of the row. */
bool desk_has_room(const struct desk *desk, enum desk_stage stage, const struct call *call);

/* Answers the message in hand with a failure, if it is a request: it does not wait. */
void desk_refuse(struct desk *desk, const struct call *call, const struct error *failure);

/* It waits at another stage from now on, in the desk's memory; one of the caller's is left without
 * anything. */
void desk_move(struct waiting *waiting, enum desk_stage stage, struct peer *peer);

/*
 * It goes on: it is off the desk, and the call says where it comes from. False: it cannot be read,
 * which was logged, and a request was answered (desk_unreadable). desk_drop follows in either
 * case, once the call is not used any more. The same in two steps: it is read, once, while it
 * waits; then it goes on.
 */
bool desk_open(struct waiting *waiting, struct call *out_call) ATTR_NODISCARD;
bool desk_read(struct waiting *waiting, struct call *out_call) ATTR_NODISCARD;
void desk_release(struct waiting *waiting);
extern const struct error desk_unreadable;

void desk_drop(struct waiting *waiting);

/* It goes on apart from its owner, who may be freed before it: off the desk, in its own memory. */
struct waiting *desk_detach(struct waiting *waiting);

/* ---- what waits ---- */

struct waiting *desk_first(const struct desk *desk, struct desk_pick pick); // the oldest; or NULL
struct waiting *desk_first_prompt(const struct desk *desk, struct desk_pick pick);

/* How much waits: requests and notifications. */
struct desk_load {
	int count;
	size_t bytes;
};

struct desk_load desk_load(const struct desk *desk, struct desk_pick pick);

/* Whether there is any, also one that was answered and that its owner still has. */
bool desk_has(const struct desk *desk, struct desk_pick pick);

/* ---- what need not wait any longer ---- */

/* Answered, if it is a request, and off the desk; the rest is the owner's (stage_row.on_left). */
void desk_fail(struct waiting *waiting, const struct error *failure);
void desk_fail_all(struct desk *desk, struct desk_pick pick, const struct error *failure);

/* $/cancel_request: whether a request of this sender's with this id waited, and was answered. */
bool desk_cancel_request(struct desk *desk, const struct peer *sender, struct span id);

/* session/cancel: prompts are answered as turns that were cancelled. Whether there was one. */
bool desk_cancel_prompts(struct desk *desk, struct desk_pick pick);

/* The broker ends: answers what does not outlast that. */
void desk_end(struct desk *desk, const struct error *failure);

/* What it waits for is about to be gone, or the desk: frees these, without an answer. */
void desk_forget(struct desk *desk, struct desk_pick pick);

#endif
