/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_HOP_H
#define BROKER_SESSION_HOP_H

#include "acp/failure.h"
#include "acp/link.h"
#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/pending.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/parts.h"
#include "broker/agent/agent.h"
#include "broker/desk/desk.h"
#include "broker/desk/parcel.h"
#include "broker/session/method.h"
#include "broker/session/relay_config.h"
#include "broker/session/session.h"
#include "broker/session/usage.h"

/*
 * The two sides of the broker: the relay with the editor's link, a peer for each agent, and what is
 * between them: a message in hand (call), and the requests that are not answered yet. A message
 * leaves for either side by these functions alone.
 */

struct relay {
	struct relay_config config;
	const struct relay_ops *ops; // static
	struct json_places *places;  // owned
	struct link editor;
	struct pending_table asked_editor; // of struct request
	struct session_table sessions;
	struct list peers;   // of struct peer, oldest first
	struct splice edits; // of the message that comes in; its memory is used again
	struct buf scratch;  // the broker's own message in the making
	int next_peer_number;
	struct usage usage;
	struct usage_memo usage_memo; // of the editor
	struct desk desk;             // where messages wait
	struct parts parts;           // what each feature keeps
	unsigned agents_started;
	bool is_ending;
	bool was_refused;      // the editor's frame in hand was raised before
	bool editor_has_ended; // nothing comes from it any more
	bool was_told_gone;
	bool is_finished;
};

/*
 * An agent, as the relay sees it. What a single feature knows of it is a part of that feature's
 * file. Three fields are of features and no parts, because they are read for every message:
 * heard_at, pause and usage_memo.
 */
struct peer {
	struct list link; // relay.peers
	struct relay *relay;
	struct agent *agent;        // owned
	struct pending_table asked; // of struct request
	int number;                 // 1, 2, …
	char hop[24];               // "agent 1", for the trace and the log
	char agent_name[64];        // agentInfo.name, for quirks
	struct path_map map;        // of its sandbox's roots
	struct toolhost *toolhost;  // owned; NULL where the editor serves its tools
	struct keeper *keeper;      // owned; of its workspaces; NULL where none is synced
	struct pause *pause;        // owned; NULL until it is first paused
	struct usage_memo usage_memo;
	double heard_at;  // ev_now when its last line came
	bool is_ready;    // its sandbox can be used
	bool is_greeting; // its initialize is in flight
	bool was_greeted; // its initialize was answered well
	bool is_down;     // answers nothing any more
	struct parts parts;
};

/* A request the broker waits for the answer of. */
struct request {
	struct pending pending;
	struct peer *peer;           // to an agent: who is asked; to the editor: who asks
	const struct method *method; // NULL: the broker has no interest in it
	char *session_id;            // owned; params.sessionId, or NULL
	struct buf message;          // the whole request, kept where it is needed later
	struct ev_timer due;         // a deadline of who watches it
	bool is_cancelled;           // its turn was (unanswered.c)
	const char *unanswered;      // of the broker's own: why, once it is due; static
	bool is_beside;              // of the broker's own: nothing waits for its answer
	struct parts parts;          // what each feature keeps of it
	/*
	 * The broker's own request: takes the answer, or why there is none (failure).
	 * NULL: the answer goes back to who asked. The request is freed after it.
	 */
	void (*on_answer)(struct relay *relay, struct request *request, const struct call *answer,
		const struct error *failure);
};

/*
 * What the files below the relay need of it, all set. relay.c has the one table; nobody else calls
 * upwards.
 */
struct relay_ops {
	/* A request of the agent's that was set aside: handles it as if it came now. */
	void (*on_agent_request)(struct peer *peer, const struct call *call);
	/* A request of the agent's that policy has let pass (or has nothing to say on). */
	void (*pass_agent_request)(struct peer *peer, const struct call *call);
	/*
	 * A request with this id (raw) is about to be answered with a failure: true where that was
	 * taken, as the request was the broker's own.
	 */
	bool (*takes_failure)(struct relay *relay, struct span id, const struct error *failure);
	/* A request of the editor's with this id (raw) is about to be answered otherwise. */
	void (*on_answered)(struct relay *relay, struct span id);
	/* A question of an agent's, which the editor had, is answered by the broker. */
	void (*on_unanswered)(
		struct relay *relay, struct request *request, const struct error *failure);
	/* Whether a prompt of the session waits for a sync. */
	bool (*has_waiting_prompt)(const struct peer *peer, const struct session *session);

	/* ---- what waited goes on ---- */

	/* A message of the editor's: handles it as if it came now. False: not now. */
	bool (*on_editor_call)(struct relay *relay, const struct call *call);
	/* The same of one that waited for this agent, whichever would be chosen now. */
	void (*on_parked_call)(struct peer *peer, const struct call *call);
	/* A request of the editor's whose agent is known and ready, and has its roots. */
	void (*pass_editor_request)(struct peer *peer, const struct call *call);
	/* A request or notification of the agent's: handles it as if it came now. */
	void (*on_agent_call)(struct peer *peer, const struct call *call);
	/* An agent's answer to what the editor asked. The request is freed. */
	void (*pass_response)(
		struct relay *relay, struct request *request, const struct call *call);
	/* The row of a request that the broker writes in the editor's name. */
	const struct method *(*method_of)(const struct message *message);

	/* ---- the life of agents ---- */

	/* The agent of relay_running_peer, started where none runs. NULL while ending. */
	struct peer *(*current_peer)(struct relay *relay);
	/* One more, whatever runs already. NULL while ending, and over RELAY_PEERS_MAX. */
	struct peer *(*further_peer)(struct relay *relay);
	/* It answers nothing any more, and why (void * for the listener). */
	void (*peer_down)(void *peer, const struct error *failure);
	/* Nothing of it runs any more: frees the peer (void * for the listener). */
	void (*peer_gone)(void *peer);
	/* While ending: once no agent is left, the last words come. */
	void (*finish_if_empty)(struct relay *relay);
};

/* ---- requests ---- */

struct request *request_create(struct peer *peer, const struct method *method);
void request_destroy(struct request *request);
bool request_is_prompt(const struct request *request);

/* ---- sending ---- */

/* Sends one of the broker's own messages, and traces it. */
void relay_send_editor(struct relay *relay, struct span message);
void peer_send(struct peer *peer, struct span message);
void peer_send_taken(struct peer *peer, struct buf *message); // its memory, too
void peer_send_ahead(struct peer *peer, struct span message);

/* Passes the message in hand on, with its edits. */
bool relay_forward_editor(
	struct relay *relay, const struct call *call, struct error *err) ATTR_NODISCARD;
bool peer_forward(struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;

/* The agent does not read what it was answered: it may ask no more until it does. */
bool relay_agent_is_flooded(const struct peer *peer);

/*
 * The editor's notifications and answers cannot be refused. So that an agent that does not read
 * holds up nobody else they wait in its queue, beyond the limit for requests; beyond this one the
 * editor is not read, for nothing is dropped.
 */
bool relay_agent_takes_nothing(const struct peer *peer);

/* ---- edits ---- */

/* Adds the edit that gives the message in hand another id (raw, or a minted one). */
bool relay_edit_id(const struct call *call, struct span id, struct error *err) ATTR_NODISCARD;
bool relay_edit_minted(const struct call *call, const struct json_hit *hit, uint64_t id,
	struct error *err) ATTR_NODISCARD;

/* Gives the message in hand the id that the other side knows its session by. */
bool relay_edit_session(struct relay *relay, const struct call *call, const struct session *session,
	const char *id, struct error *err) ATTR_NODISCARD;

/* Inserts `"name":value` as the first member of an object of the message. */
bool relay_insert_member(struct relay *relay, const struct call *call, struct span object,
	const char *name, struct span value, struct error *err);

/* ---- who and what a message is about ---- */

/* The directory it was started for, until it is asked for; NULL: it is for anybody. */
const char *peer_reserved_for(const struct peer *peer);
void peer_reserve(struct peer *peer, const char *directory); // copied; NULL: for anybody

/* The agent to use where the session does not say; NULL where none runs. */
struct peer *relay_running_peer(struct relay *relay);
struct peer *relay_peer_of_number(struct relay *relay, int number); // or NULL

/* The agent that runs and has the directory already in which a message opens a session, or NULL. */
struct peer *relay_peer_with_root(struct relay *relay, const struct call *call);

/* The session of a message of the editor's, by params.sessionId; NULL where unknown. */
struct session *relay_session_of(struct relay *relay, const struct message *message);

/* The session of a message of an agent's, which knows it by its own id. */
struct session *relay_session_of_agent(struct peer *peer, const struct message *message);

#endif
