/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_INTERNAL_H
#define BROKER_RELAY_INTERNAL_H

#include "acp/failure.h"
#include "acp/link.h"
#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/pending.h"
#include "base/buf.h"
#include "base/list.h"
#include "broker/agent/agent.h"
#include "broker/agent/mcp_lookup.h"
#include "broker/call.h"
#include "broker/parcel.h"
#include "broker/relay.h"
#include "broker/relay_end.h"
#include "broker/session.h"
#include "broker/tool_call_id.h"
#include "broker/toolhost/toolhost.h"
#include "broker/usage.h"

/* What the relay's own files share; nobody else includes this. */

enum { RELAY_GIVEN_UP_MAX = 16 };

struct relay {
	struct relay_config config;
	struct json_places *places; // owned
	struct link editor;
	struct pending_table asked_editor; // of struct request
	struct session_table sessions;
	struct list peers;       // of struct peer, oldest first
	struct list healths;     // of struct health (health.c): not answered yet
	struct splice edits;     // of the message that comes in; its memory is used again
	struct buf scratch;      // the broker's own message in the making
	struct buf initialize;   // the editor's, whole, once it was answered well
	struct buf authenticate; // its last one that succeeded, whole
	struct last_words last_words;
	struct sweep *sweep;       // owned; NULL before it, and after
	struct recovery *recovery; // owned; once an agent was greeted
	struct ev_timer look;      // whether the editor is still there, while it is not read
	double hung_up_at;         // ev_now when it was seen to have left; 0: it has not
	struct ev_timer quiet;     // since the last large message
	size_t held_bytes;         // in parcels
	int next_peer_number;
	unsigned notices;                     // sent so far (notice.c)
	char notice_prefix[TOOL_CALL_ID_MAX]; // of their ids
	unsigned last_terminal;               // of all agents, also of those that have ended
	struct usage usage;
	struct usage_memo usage_memo; // of the editor
	struct list restores;         // of struct restore (restore.c)
	struct list claims;           // of struct claim (relay_claim.c)
	struct list gates;            // of struct gate (relay_order.c)
	struct list list_looks;       // of struct look (listing_records.c)
	struct list listings;         // of struct listing_records: whose page no agent has in hand
	struct leftovers *leftovers;  // owned; what did not come to its end (relay_leftovers.c)
	unsigned restores_begun;
	unsigned agents_started;
	bool offers_load;   // the agent has said that it takes session/load
	bool offers_resume; // … session/resume
	bool offers_close;  // … session/close
	bool is_ending;
	bool tells_states;    // the editor asked for _broker/session/state
	bool shows_terminals; // the editor advertised _meta.terminal_output
	bool knows_mcp;       // the agent has said which types of MCP servers it takes
	bool takes_mcp_http;  // besides stdio
	bool takes_mcp_sse;
	bool was_refused;      // the editor's frame in hand was raised before
	bool editor_has_ended; // nothing comes from it any more
	bool was_told_gone;
	bool is_finished;
};

/* An agent, as the relay sees it. */
struct peer {
	struct list link; // relay.peers
	struct relay *relay;
	struct agent *agent;        // owned
	struct pending_table asked; // of struct request
	int number;                 // 1, 2, …
	char hop[24];               // "agent 1", for the trace and the log
	bool is_down;               // answers nothing any more
	char agent_name[64];        // agentInfo.name, for quirks
	struct path_map map;        // of its sandbox's roots
	struct path_map known;      // … and of what the agent may remember (session/list)
	struct toolhost *toolhost;  // owned; NULL where the editor serves its tools
	bool is_showing_last;       // what the ToolHost shows now comes before an answer
	struct list waiting;        // of struct waiting (relay_roots.c): until it is ready
	struct list openings;  // of struct opening (relay_roots.c): until their roots are there
	struct list resolving; // of struct resolving (grant_resolve.c): until links are known
	size_t waiting_bytes;
	bool is_ready; // its sandbox can be used
	bool stops_when_ready;
	char *reserved_for;    // owned; the directory it was started for, until it is asked for
	struct ev_timer idle;  // idle-timeout, while a prompt is in flight
	double heard_at;       // ev_now when its last line came
	bool is_greeting;      // its initialize is in flight
	bool was_greeted;      // its initialize was answered well
	bool has_served;       // the same, of it or of one before it in this sandbox
	bool is_resting;       // it has ended, and its sandbox is there for another
	bool is_waking;        // it is to be started again once the one before is gone
	struct keeper *keeper; // owned; of its workspaces; NULL where none is synced
	struct list turns;     // of struct turn (relay_turn.c): prompts and answers, until synced
	size_t held_bytes;     // of answers in turns, and of what came after them
	char *unsaid;          // owned; what a sync had to say before there was a session
	char *last_session;    // owned; as the editor knows it; opened or prompted last
	struct pause *pause;   // owned; NULL until it is first paused
	struct list inquiries; // of struct inquiry (sync_methods.c): not answered yet
	struct usage_memo usage_memo;
	uint64_t given_up[RELAY_GIVEN_UP_MAX]; // ids of requests for a new session, answered here
	unsigned given_up_count;               // in all; the oldest make room
	bool is_rolling_back;
	bool is_collecting; // nothing of it runs; the last sync does
	bool is_collected;
};

struct deadline;
struct listing_records;
struct mode_news;
struct old_text;
struct request;
struct subject;

/* What a method means to the broker; tables of these are in relay_editor.c and relay_agent.c. */
enum route {
	ROUTE_ANY,     // the current agent, started where none runs
	ROUTE_SESSION, // the agent of params.sessionId
	ROUTE_LIST,    // the agent that params.cursor names (listing.h)
	ROUTE_OWN,     // the broker itself
};

struct method {
	const char *name;
	enum route route;
	bool opens_session;  // its cwd and additionalDirectories become roots
	bool takes_unopened; // of a session that is not open here, also where workspaces are synced
	bool makes_session;  // which is new
	const struct deadline *deadline; // while its agent is silent (relay_due.h); NULL: none
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

/* A request the broker waits for the answer of. */
struct request {
	struct pending pending;
	struct peer *peer;           // to an agent: who is asked; to the editor: who asks
	const struct method *method; // NULL: the broker has no interest in it
	char *session_id;            // owned; params.sessionId, or NULL
	char **roots;                // owned, NULL-terminated; cwd and the further ones, or NULL
	char **notices;              // owned, NULL-terminated; for the session it opens, or NULL
	bool has_opened;             // the session it opens is there
	struct buf message;          // the whole request, kept where it is needed later
	struct parcel *parcel;       // owned; the agent's message that waits for this answer
	struct ev_timer due;         // permission-timeout, of a question to the person; or
	bool is_cancelled;           // cancel-timeout: its turn was cancelled
	struct mode_news *modes;     // owned; told of the session it opens (mode_gate.c); or NULL
	bool has_cursor;             // of session/list: one that names the agent
	bool has_listed;             // the same: an agent before this one has given a list
	struct listing_records *listed; // owned; the same: what the broker adds to it; may be NULL
	struct subject *subject;        // owned; of a question of the broker's own (grant_ask.c)
	const char *options;            // the same: those it offers, JSON; static
	char *tool_call_id;             // owned; the same: of the tool call that shows it
	char *title;                    // owned; the same: of that
	const char *unanswered;         // of the broker's own: why, once it is due; static
	struct old_text *old_text;      // owned; the same: not shown until this is known; or NULL
	size_t diff_at;                 // the same: where its diff begins; 0: it has none
	char *shown_text;               // owned; the same: what the agent has shown as the old text
	struct held_question *held;     // owned; of one about guarded files (relay_held.c), or NULL
	struct grant_note *note;        // owned; for the audit log once it is answered; may be NULL
	/*
	 * The broker's own request: takes the answer, or why there is none (failure).
	 * NULL: the answer goes back to who asked. The request is freed after it.
	 */
	void (*on_answer)(struct relay *relay, struct request *request, const struct call *answer,
		const struct failure *failure);
};

/* ---- relay.c ---- */

struct request *request_create(struct peer *peer, const struct method *method);
void request_destroy(struct request *request);

/* The agent to use where the session does not say; NULL where none runs. */
struct peer *relay_running_peer(struct relay *relay);
struct peer *relay_peer_of_number(struct relay *relay, int number); // or NULL

/* The same, started where none runs. NULL while ending. */
struct peer *relay_current_peer(struct relay *relay);

/* Sends one of the broker's own messages, and traces it. */
void relay_send_editor(struct relay *relay, struct span message);
void peer_send(struct peer *peer, struct span message);
void peer_send_taken(struct peer *peer, struct buf *message); // its memory, too
void peer_send_ahead(struct peer *peer, struct span message);

extern const struct failure relay_is_ending, relay_has_ended; // SHUTTING_DOWN

/* Answers a request of the editor's, or of an agent's, with an error. */
void relay_fail(struct relay *relay, struct span id, const struct failure *failure);
void peer_fail(struct peer *peer, struct span id, const struct failure *failure);

/* What the editor wants, and waits for the same. */
struct backlog {
	int count;
	size_t bytes;
	const char *stage;
	const char *what; // "prompts", "requests"
	const char *that; // what for, after "wait for"
};

/* Whether one more may wait (max-requests, max-queue); else a request is answered. */
bool relay_admits(struct relay *relay, const struct call *call, const struct backlog *backlog);

/* Passes the message in hand on, with its edits. */
bool relay_forward_editor(
	struct relay *relay, const struct call *call, struct error *err) ATTR_NODISCARD;
bool peer_forward(struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;

/* Adds the edit that gives the message in hand another id (raw, or a minted one). */
bool relay_edit_id(const struct call *call, struct span id, struct error *err) ATTR_NODISCARD;
bool relay_edit_minted(const struct call *call, const struct json_hit *hit, uint64_t id,
	struct error *err) ATTR_NODISCARD;

/* Nobody is there to answer an agent's request: the broker does. */
void peer_answer_when_gone(struct peer *peer, struct span id, const struct method *method);

/* Answers a request of the editor's, or of an agent's, with a result (JSON). */
void relay_answer(struct relay *relay, struct span id, struct span result);
void relay_answer_cancelled(struct relay *relay, struct span id);
void peer_answer(struct peer *peer, struct span id, struct span result);

/* The answer to a request of the editor's is an error; the request is freed. */
void relay_fail_request(
	struct relay *relay, struct request *request, const struct failure *failure);

/* An agent answers nothing any more, and why (void * for the listener). */
void relay_peer_down(void *data, const struct failure *failure);

/* The session of a message of an agent's, which knows it by its own id. */
struct session *relay_session_of_agent(struct peer *peer, const struct message *message);

/* A path as the other side calls it; owned by the caller. */
char *relay_map_path(const struct peer *peer, enum path_direction direction, const char *path);

/* The editor has asked for the sessions of a directory by this name; what it is without links. */
void relay_know_as(struct peer *peer, const char *name, const char *real);

/* The names of the directories in a message of this method. */
const struct path_map *relay_map_of(const struct peer *peer, const char *method);

/* Gives the message in hand the id that the other side knows its session by. */
bool relay_edit_session(struct relay *relay, const struct call *call, const struct session *session,
	const char *id, struct error *err) ATTR_NODISCARD;

/* The session of a message of the editor's, by params.sessionId; NULL where unknown. */
struct session *relay_session_of(struct relay *relay, const struct message *message);

/* Nothing comes from the editor any more: says so, once. */
void relay_editor_gone(struct relay *relay);

/* ---- relay_end.c ---- */

void relay_end_init(struct relay *relay);
void relay_end_finish(struct relay *relay);

/* The last answers have left, or nobody takes them: says so, once. */
void relay_finish(struct relay *relay);

/* While ending: once no agent is left, what was lost is reached for; then come the last words. */
void relay_finish_if_empty(struct relay *relay);

/* Tells the session's agent to stop its prompt. */
void relay_cancel_prompt(struct relay *relay, const struct session *session);

/* Nothing of an agent runs any more: frees the peer (void * for the listener). */
void relay_peer_gone(void *data);

/* ---- relay_methods.c: what the editor's methods mean ---- */

/* Never NULL: a method nobody told us about has a meaning too. */
const struct method *relay_method_of(const char *name);

/* _broker/…: the broker's own. */
bool relay_is_own_method(const char *name);

/* ---- relay_editor.c, relay_agent.c: a line has come in ---- */

bool relay_on_editor_frame(void *data, const struct frame *frame);
bool relay_on_agent_frame(void *data, const struct frame *frame);
void relay_on_agent_drained(void *data); // it has read: what waited for that goes on

/* A message that came before, or was set aside: handles it as if it came now. */
bool relay_on_editor_call(struct relay *relay, const struct call *call);

/* The same of one that waited for this agent, whichever would be chosen now. */
void relay_on_parked_call(struct peer *peer, const struct call *call);

/* The agent that runs and has the directory already in which a message opens a session, or NULL. */
struct peer *relay_peer_with_root(struct relay *relay, const struct call *call);

/* A request of the editor's whose agent is known and ready, and has its roots. */
void relay_pass_editor_request(struct peer *peer, const struct call *call);

/* ---- relay_roots.c: until the sandbox is ready, and until it has the roots ---- */

void relay_roots_init(struct peer *peer);
void relay_roots_finish(struct peer *peer); // once nothing waits; before the agent is destroyed

/* Sets the message aside until the agent's sandbox is ready. ERROR_LIMIT. */
bool relay_wait_until_ready(
	struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;
void relay_peer_ready(void *data);

/*
 * Makes the directories of a session/new, load, resume or fork roots of the
 * sandbox, and asks that for the commands of its MCP servers; then it goes on to
 * the agent, or, where the sandbox takes no more roots, to a further one. False:
 * it needs none of this, and goes on at once.
 */
bool relay_open_roots(struct peer *peer, const struct call *call);

/* ---- relay_mcp.c: the MCP servers of a session ---- */

/* The result of initialize: which servers the agent takes. */
void relay_mcp_learn(struct relay *relay, const struct call *call);

/*
 * Asks the sandbox which commands the servers of a request have; done follows,
 * unless the lookup is destroyed before. NULL: there is nothing to ask.
 */
struct mcp_lookup *relay_mcp_ask(struct peer *peer, const struct call *call,
	struct mcp_commands *commands, void (*done)(void *data), void *data);

/* Edits the list on its way to the agent; keeps in the request what the person is to know. */
bool relay_mcp_edit(struct peer *peer, struct request *request, const struct call *call,
	struct error *err) ATTR_NODISCARD;

/* The session was answered: tells the person. */
void relay_mcp_tell(struct relay *relay, const struct request *request);

/* ---- relay_roots.c, further ---- */
/* Reads a message that was set aside; false where there is nothing to handle. */
bool relay_open_parcel(struct parcel *parcel, struct call *out_call);

/* Answers what waits for this agent with a failure. */
void relay_fail_waiting(struct peer *peer, const struct failure *failure);

/* cwd, then additionalDirectories, of a message that opens a session; NULL-terminated, owned. */
char **relay_directories_of(const struct message *message);

/* A further agent, whatever runs already. NULL while ending, and over RELAY_PEERS_MAX. */
struct peer *relay_further_peer(struct relay *relay);

/* ---- relay_editor.c, relay_agent.c, further ---- */

/* The agent does not read what it was answered: it may ask no more until it does. */
bool relay_agent_is_flooded(const struct peer *peer);

/*
 * The editor's notifications and answers cannot be refused. So that an agent that does not read
 * holds up nobody else they wait in its queue, beyond the limit for requests; beyond this one the
 * editor is not read, for nothing is dropped.
 */
bool relay_agent_takes_nothing(const struct peer *peer);

/* A request or notification of the agent's that was set aside: handles it as if it came now. */
void relay_on_agent_call(struct peer *peer, const struct call *call);
void relay_on_agent_request(struct peer *peer, const struct call *call);

/* An agent's answer to what the editor asked. The request is freed. */
void relay_pass_response(struct relay *relay, struct request *request, const struct call *call);

/* A request of the agent's that policy has let pass (or has nothing to say on). */
void relay_pass_agent_request(struct peer *peer, const struct call *call);

/* ---- relay_toolhost.c: files and terminals served by the broker ---- */

/* Whether the agent works on the files that the editor has: no copy, and no other machine's. */
bool relay_shares_files(const struct peer *peer);

/* Whether the editor serves its own files to an agent that works on others (toolhost = editor). */
bool relay_editor_serves_elsewhere(const struct peer *peer);

/* Whether the editor would run such an agent's commands, and the profile does not allow it. */
bool relay_refuses_terminals(const struct peer *peer);

/* Whether the ToolHost serves this agent, and not the editor. */
bool relay_uses_toolhost(const struct peer *peer);
bool relay_toolhost_serves(const struct peer *peer, const char *method);

/* initialize: what the editor can show, and what the agent is told it may ask for. */
bool relay_toolhost_greet(struct peer *peer, const struct call *call, struct error *err);

void relay_toolhost_call(struct peer *peer, const struct call *call);

/* The edits that show our terminals in a message of the agent's; after all others. */
bool relay_toolhost_edit(struct peer *peer, const struct call *call, struct error *err);

/* What the editor has not been told of the session's terminals; max-queue does not hold it up. */
void relay_toolhost_flush_session(struct peer *peer, const struct session *session);
void relay_toolhost_end_session(struct peer *peer, const char *agent_id);

/* The agent has ended: the last state of its terminals is shown, and they end. */
void relay_toolhost_end(struct peer *peer);

/* ---- mode_gate.c ---- */

void mode_news_destroy(struct mode_news *news); // NULL is fine

/* ---- grant.c: policy on what an agent asks of the editor ---- */

/* True where the request was answered or set aside; false: it passes. */
bool grant_intercept(struct peer *peer, const struct call *call);

/* Calls whose paths are being resolved; fail them before the sandbox is closed. */
void grant_resolve_init(struct peer *peer);
void grant_resolve_fail(struct peer *peer, const struct failure *failure);

/* The session is cancelled or ends: what the broker asks in its name is refused, and withdrawn. */
void grant_cancel_session(struct relay *relay, const char *session_id);

/* A question of the broker's own will not be answered: its tool call is shown as failed. */
void grant_close_question(struct relay *relay, const struct request *request);

/* The agent takes back what it asked: true where the question is not shown yet, and never is. */
bool grant_take_back(struct relay *relay, struct request *request);

/* The same where the links in its path are being resolved: by the agent's id of the request. */
bool grant_take_back_unresolved(struct peer *peer, struct span id);

/* For the audit log: an agent's own question was forwarded; and how that ended. */
void grant_note_forwarded(struct request *request, const struct call *call);

/*
 * The agent says something of a tool call, which an editor shows in the place of what it showed
 * before: a yes to an open question about that one allows nothing but the question.
 */
void grant_note_shown(struct peer *peer, const struct call *call);
void grant_note_answered(struct relay *relay, struct request *request, const struct call *call);
void grant_note_failed(struct relay *relay, struct request *request, const struct failure *failure);

#endif
