/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SESSION_H
#define BROKER_SESSION_SESSION_H

/*
 * This folder has what the two sides of a session share: which agent has which session, the message
 * in hand and the unanswered requests (hop.h), and the functions that send, edit, answer, count,
 * trace and ask. It knows ACP's envelope, agents and sandboxes. It does not know what methods mean
 * or what policy decides; for that it calls struct relay_ops. All higher folders of the broker use
 * it.
 */

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "broker/session/choices.h"
#include "broker/session/usage.h"

/*
 * Which agent has which session. The agent chooses a session's id. The session stays in the table
 * after its agent has ended, so that the broker can tell the editor what became of it.
 */
enum { SESSION_BUCKETS = 64 };

struct memory;
struct mode_guard;
struct peer;

struct session {
	struct list link;  // session_table.buckets
	char *id;          // owned, decoded; as the editor knows it
	char *agent_id;    // owned; its agent's id; differs only if two agents made the same id
	struct peer *peer; // NULL once its agent has ended
	int prompts;       // in flight
	char **roots;      // owned, NULL-terminated; cwd and additionalDirectories; may be NULL
	char *reference;   // owned; sandbox_reference of its current or last sandbox; may be NULL
	char *instance;    // owned; sandbox_instance of that sandbox; may be NULL
	int agent_number;  // peer.number of its present or last agent
	char *words;       // owned; the beginning of its last prompt; may be NULL
	bool knows_copy;   // its agent was told where the copy of the workspace is
	bool is_deleted;   // the agent no longer knows it
	bool hides_replay; // the broker has loaded it again, and no prompt has begun since
	char *opening; // owned; the params it was opened with (JSON), for opening it again; may be
	               // NULL
	double restarts_since;  // ev_now at the first restart that counts for restart-limit
	int restarts;           // of its agent, since then
	bool was_link_lost;     // it lost its agent because the link broke, not by an exit
	struct memory *memory;  // owned; what the user has answered with "always"
	struct choices choices; // what the editor has chosen, for the next agent
	struct usage_counts usage;
	struct mode_guard *guard; // owned; only if policy guards the agent's modes; may be NULL
};

struct session_table {
	struct list buckets[SESSION_BUCKETS]; // of struct session
	int count;
	int aliases;        // sessions whose two ids differ
	unsigned forgotten; // sessions forgotten since the start
	int max;
	void (*destroy_guard)(struct mode_guard *guard); // NULL: no session has one
	/* Called before a session is forgotten. May be NULL. */
	void (*on_forget)(void *data, const struct session *session);
	void *data;
};

void session_table_init(struct session_table *table, int max);
void session_table_finish(struct session_table *table); // frees the sessions

struct session *session_find(struct session_table *table, const char *id); // or NULL

/*
 * Whether one more session fits (max-sessions). If the table is full, this forgets the sessions of
 * agents that have ended, because the editor was told of their end.
 */
bool session_table_has_room(struct session_table *table);

/*
 * Returns the session with that id; creates it if missing. From now on it belongs to peer.
 * ERROR_LIMIT (max-sessions); ERROR_DENIED with SESSION_CONFLICT if another running agent has it.
 */
struct session *session_bind(struct session_table *table, const char *id, struct peer *peer,
	struct error *err) ATTR_NODISCARD;

/*
 * Like session_bind, for a session that an agent has just created. If another running agent has
 * minted the same id, the editor gets the alias "ID~NUMBER" for this one. If the id belongs to an
 * agent that has ended, forgets that session and everything that was remembered in it.
 */
struct session *session_bind_new(struct session_table *table, const char *agent_id,
	struct peer *peer, int number, struct error *err) ATTR_NODISCARD;

/* Returns the session that an agent knows by this id; NULL if it has none. */
struct session *session_find_agent(
	struct session_table *table, const struct peer *peer, const char *agent_id);

bool session_has_alias(const struct session *session);

/* Takes the roots (NULL-terminated, malloc'ed). */
void session_set_roots(struct session *session, char **roots);

/* Copies both texts; they may be NULL. */
void session_set_sandbox(struct session *session, const char *reference, const char *instance);

void session_forget(struct session_table *table, struct session *session);

/* The agent has ended: its sessions have no agent, and no prompt is in flight. */
void session_table_orphan(struct session_table *table, const struct peer *peer);

/* A session of the peer, if possible one with a prompt in flight; NULL if it has none. */
struct session *session_choose(struct session_table *table, const struct peer *peer);

/* Calls visit for each session of a peer (NULL: of all peers). visit must not change the table. */
void session_table_visit(struct session_table *table, const struct peer *peer,
	void (*visit)(void *data, struct session *session), void *data);

#endif
