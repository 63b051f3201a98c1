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
 * The two sides of the broker, and what lies between them: the relay with the editor's link, one
 * peer for each agent, a message in hand (call), and the unanswered requests. Messages leave for
 * either side only through these functions.
 */

struct relay {
	struct relay_config config;
	const struct relay_ops *ops; // static
	struct json_places *places;  // owned
	struct link editor;
	struct pending_table asked_editor; // of struct request
	struct session_table sessions;
	struct list peers;   // of struct peer, oldest first
	struct splice edits; // of the incoming message; its memory is reused
	struct buf scratch;  // for a message that the broker itself is writing
	int next_peer_number;
	struct usage usage;
	struct usage_memo usage_memo; // of the editor
	struct desk desk;             // where messages wait
	struct parts parts;           // the state of each feature
	unsigned agents_started;
	bool is_ending;
	bool was_refused;      // the editor's current frame was raised before
	bool editor_has_ended; // no more messages come from it
	bool was_told_gone;
	bool is_finished;
};

/*
 * An agent as the relay sees it. State that only one feature uses is kept in that feature's part.
 * heard_at, pause and usage_memo also belong to features, but are read for every message; so they
 * are fields.
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
	struct toolhost *toolhost;  // owned; NULL if the editor serves its files and terminals
	struct keeper *keeper;      // owned; of its workspaces; NULL if none is synced
	struct pause *pause;        // owned; NULL until the first pause
	struct usage_memo usage_memo;
	double heard_at;  // ev_now when its last line arrived
	bool is_ready;    // its sandbox can be used
	bool is_greeting; // its initialize is in flight
	bool was_greeted; // its initialize was answered with a result
	bool is_down;     // it no longer responds
	struct parts parts;
};

/* A request that was sent and has no answer yet. */
struct request {
	struct pending pending;
	struct peer *peer; // the agent that gets the request, or whose request the editor gets
	const struct method *method; // NULL: a method that the broker only passes on
	char *session_id;            // owned; params.sessionId, or NULL
	struct buf message;          // the whole request, kept if needed later
	struct ev_timer due;         // the deadline of the file that watches it
	long long away_ms;           // sandbox_extend_timer; of the broker's own request
	bool is_cancelled;           // its turn was cancelled (unanswered.c)
	const char *unanswered; // the broker's own request: the error once `due` expires; static
	bool is_beside;         // the broker's own request, whose answer nothing waits for
	struct parts parts;     // the state of each feature
	/*
	 * For the broker's own request: called with the answer, or with the failure if there is
	 * none. The request is freed after it. NULL: the answer is passed to the side that asked.
	 */
	void (*on_answer)(struct relay *relay, struct request *request, const struct call *answer,
		const struct error *failure);
};

/*
 * Functions of the relay that lower files call; all are set. relay.c has the only table. Nothing
 * else calls upwards.
 */
struct relay_ops {
	/* Handles an agent's request that was set aside, as if it arrived now. */
	void (*on_agent_request)(struct peer *peer, const struct call *call);
	/*
	 * Passes on an agent's request that policy allows, or about which policy does not decide.
	 */
	void (*pass_agent_request)(struct peer *peer, const struct call *call);
	/*
	 * Called before a request with this id (raw) is answered with a failure. True if it was the
	 * broker's own request, which has taken the failure.
	 */
	bool (*takes_failure)(struct relay *relay, struct span id, const struct error *failure);
	/* The broker answers the editor's request with this id (raw) in another way. */
	void (*on_answered)(struct relay *relay, struct span id);
	/* The broker itself answers an agent's question that the editor had. */
	void (*on_unanswered)(
		struct relay *relay, struct request *request, const struct error *failure);
	/* Whether a prompt of the session waits for a sync. */
	bool (*has_waiting_prompt)(const struct peer *peer, const struct session *session);

	/* ---- messages that have waited ---- */

	/*
	 * Handles a message of the editor as if it arrived now. False if it must continue to wait.
	 */
	bool (*on_editor_call)(struct relay *relay, const struct call *call);
	/*
	 * The same for a message that has waited for this agent; it goes to this agent even if
	 * another would be chosen now.
	 */
	void (*on_parked_call)(struct peer *peer, const struct call *call);
	/* Passes on a request of the editor. Its agent is known and ready, and has its roots. */
	void (*pass_editor_request)(struct peer *peer, const struct call *call);
	/* Handles an agent's request or notification as if it arrived now. */
	void (*on_agent_call)(struct peer *peer, const struct call *call);
	/* Passes on an agent's answer to the editor's request. The request is freed. */
	void (*pass_response)(
		struct relay *relay, struct request *request, const struct call *call);
	/* Returns the row of a request that the broker writes for the editor. */
	const struct method *(*method_of)(const struct message *message);

	/* ---- the life of agents ---- */

	/* The agent of relay_running_peer; starts one if none runs. NULL while ending. */
	struct peer *(*current_peer)(struct relay *relay);
	/*
	 * Starts one more agent, whose sandbox is for this workspace; NULL: for the broker's own.
	 * NULL while ending, and if RELAY_PEERS_MAX agents run.
	 */
	struct peer *(*further_peer)(struct relay *relay, const char *directory);
	/* The agent no longer responds; `failure` says why (void * for the listener). */
	void (*peer_down)(void *peer, const struct error *failure);
	/* Nothing of the agent runs any more: frees the peer (void * for the listener). */
	void (*peer_gone)(void *peer);
	/* While ending: sends the last messages once no agent is left. */
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
void peer_send_taken(struct peer *peer, struct buf *message); // takes the buffer's memory
void peer_send_ahead(struct peer *peer, struct span message);

/* Sends the message in hand on, with its edits. */
bool relay_forward_editor(
	struct relay *relay, const struct call *call, struct error *err) ATTR_NODISCARD;
bool peer_forward(struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;

/* The agent does not read its answers: it may make no more requests until it does. */
bool relay_agent_is_flooded(const struct peer *peer);

/*
 * Notifications and answers of the editor cannot be refused. They wait in the agent's queue, even
 * beyond the limit for requests, so that an agent that does not read does not delay other agents.
 * Beyond this second limit the broker stops reading from the editor; it drops nothing.
 */
bool relay_agent_takes_nothing(const struct peer *peer);

/* ---- edits ---- */

/* Gives the message in hand another id: a raw one, or one that the broker has made. */
bool relay_edit_id(const struct call *call, struct span id, struct error *err) ATTR_NODISCARD;
bool relay_edit_minted(const struct call *call, const struct json_hit *hit, uint64_t id,
	struct error *err) ATTR_NODISCARD;

/* Gives the message in hand the session id that the other side knows. */
bool relay_edit_session(struct relay *relay, const struct call *call, const struct session *session,
	const char *id, struct error *err) ATTR_NODISCARD;

/* Inserts `"name":value` as the first member of an object of the message. */
bool relay_insert_member(struct relay *relay, const struct call *call, struct span object,
	const char *name, struct span value, struct error *err);

/* ---- who and what a message is about ---- */

/*
 * The directory that the agent was started for, until a session asks for it; NULL: any session may
 * use the agent.
 */
const char *peer_reserved_for(const struct peer *peer);
void peer_reserve(struct peer *peer, const char *directory); // copied; NULL: any session

/* Whether each session has its own sandbox, and therefore its own agent. */
bool relay_is_per_session(const struct relay *relay);

/* The agent to use for a message that names no known session; NULL if none runs. */
struct peer *relay_running_peer(struct relay *relay);
struct peer *relay_peer_of_number(struct relay *relay, int number); // or NULL

/*
 * The running agent that already has the directory in which a message opens a session; NULL if none
 * has it, or if sessions do not share it.
 */
struct peer *relay_peer_with_root(struct relay *relay, const struct call *call);

/* The session of a message from the editor, by params.sessionId; NULL if unknown. */
struct session *relay_session_of(struct relay *relay, const struct message *message);

/* The session of a message from an agent, which knows it by its own id. */
struct session *relay_session_of_agent(struct peer *peer, const struct message *message);

#endif
