/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SESSION_H
#define BROKER_SESSION_SESSION_H

/*
 * This folder is what the two sides of a session share: which agent has which session, a message in
 * hand and the requests under way (hop.h), and what sends, edits, answers, counts, traces and asks.
 * It knows ACP's envelope, agents and sandboxes. It does not know what a method means, nor what
 * policy says; what it needs of those it calls by struct relay_ops. All folders of the broker above
 * it use it.
 */

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/session/choices.h"
#include "broker/session/usage.h"

/*
 * Which agent has which session. A session's id is the agent's own; a session
 * outlives its agent here, so that the editor is told what became of it.
 */
enum { SESSION_BUCKETS = 64 };

struct memory;
struct mode_guard;
struct peer;

struct session {
	struct list link;  // session_table.buckets
	char *id;          // owned; decoded; as the editor knows it
	char *agent_id;    // owned; as its agent knows it: the same, but where two agents minted it
	struct peer *peer; // NULL once its agent has ended
	int prompts;       // in flight
	char **roots;      // owned, NULL-terminated; cwd and additionalDirectories; may be NULL
	char *instance;    // owned; sandbox_instance of where it is, or was; may be NULL
	int agent_number;  // of the agent that has it, or had it last (peer.number)
	char *words;       // owned; how its last prompt begins; may be NULL
	bool knows_copy;   // its agent was told that a name in a prompt is that of a copy
	bool hides_replay; // the broker has loaded it, and no prompt has begun since
	char *opening;     // owned; params it was opened with (JSON), to open it again; may be NULL
	double restarts_since;  // ev_now; the first restart of the minute that counts
	int restarts;           // of an agent for it, since then
	bool was_link_lost;     // that is how it lost its agent, which has not ended by itself
	struct memory *memory;  // owned; what the user has said "always" to
	struct choices choices; // what the editor has chosen, to tell it to the next agent
	struct usage_counts usage;
	struct mode_guard *guard; // owned; where policy gates the agent's modes; may be NULL
};

struct session_table {
	struct list buckets[SESSION_BUCKETS]; // of struct session
	int count;
	int aliases;        // sessions whose two ids differ
	unsigned forgotten; // sessions, since the start
	int max;
	void (*destroy_guard)(struct mode_guard *guard); // NULL: no session has one
	/* One is about to be forgotten. May be NULL. */
	void (*on_forget)(void *data, const struct session *session);
	void *data;
};

void session_table_init(struct session_table *table, int max);
void session_table_finish(struct session_table *table); // frees the sessions

struct session *session_find(struct session_table *table, const char *id); // or NULL

/*
 * Whether one more session fits (max-sessions). In a full table those of agents that have
 * ended are forgotten: what became of them has been told to whoever asked.
 */
bool session_table_has_room(struct session_table *table);

/*
 * The session of that id, made where there is none; it belongs to peer from now
 * on. ERROR_LIMIT (max-sessions); ERROR_DENIED with SESSION_CONFLICT where
 * another living agent has it.
 */
struct session *session_bind(struct session_table *table, const char *id, struct peer *peer,
	struct error *err) ATTR_NODISCARD;

/*
 * As session_bind for a session an agent has just made: where another living
 * agent has minted the same id, the editor gets to know this one by a name of its
 * own, "ID~NUMBER". One of that id whose agent has ended is forgotten, with all
 * that was remembered in it.
 */
struct session *session_bind_new(struct session_table *table, const char *agent_id,
	struct peer *peer, int number, struct error *err) ATTR_NODISCARD;

/* The session an agent knows by this id; NULL where it has none. */
struct session *session_find_agent(
	struct session_table *table, const struct peer *peer, const char *agent_id);

bool session_has_alias(const struct session *session);

/* Takes the roots (NULL-terminated, malloc'ed). */
void session_set_roots(struct session *session, char **roots);

/* Copies; may be NULL. */
void session_set_instance(struct session *session, const char *instance);

void session_forget(struct session_table *table, struct session *session);

/* The agent has ended: its sessions are nobody's, and no prompt is in flight. */
void session_table_orphan(struct session_table *table, const struct peer *peer);

/* Calls visit for each session of a peer (NULL: of all). It may not change the table. */
void session_table_visit(struct session_table *table, const struct peer *peer,
	void (*visit)(void *data, struct session *session), void *data);

#endif
