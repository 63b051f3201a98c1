/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RESTORE_INTERNAL_H
#define BROKER_RELAY_RESTORE_INTERNAL_H

#include "broker/relay/restore.h"

/* Shared by restore.c (the beginning) and restore_answer.c (the end); nobody else includes this. */

/* A part of the relay. */
struct restores {
	struct list all; // of struct restore
	unsigned begun;
};

struct restores *restores_of(struct relay *relay);

struct restore {
	struct list link; // restores.all
	struct relay *relay;
	unsigned number;
	char *session_id;   // owned; as the editor knows it
	char *old_root;     // owned; the earlier root of its directory; may be NULL
	char *old_instance; // owned; the instance of its earlier sandbox; may be NULL
	bool is_load;
	ev_timer quiet;   // after session/load: until the replay has ended
	double loaded_at; // ev_now
};

void restore_on_quiet(struct ev_loop *loop, ev_timer *timer, int events);

struct desk_pick restore_pick(const struct restore *restore); // the messages that wait for it
void restore_destroy(struct restore *restore); // does not answer the waiting messages

/* Answers the waiting messages and frees the restore. */
void restore_fail(struct restore *restore, const struct error *failure);

/*
 * Sets and returns err: the agent no longer knows the session, and why. `session` is NULL if the
 * broker has forgotten the session.
 */
const struct error *restore_describe_loss(
	const struct session *session, const char *why, struct error *err);

#endif
