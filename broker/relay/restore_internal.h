/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RESTORE_INTERNAL_H
#define BROKER_RELAY_RESTORE_INTERNAL_H

#include "broker/relay/restore.h"

/* What restore.c (its beginning) and restore_answer.c (its end) share; nobody else includes this.
 */

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
	char *old_root;     // owned; where the session's directory was; may be NULL
	char *old_instance; // owned; of the sandbox that was in; may be NULL
	bool is_load;
	ev_timer quiet;   // once it was loaded: until the replay has ended
	double loaded_at; // ev_now
};

void restore_on_quiet(struct ev_loop *loop, ev_timer *timer, int events);

struct desk_pick restore_pick(const struct restore *restore); // what waits for it
void restore_destroy(struct restore *restore);                // what waits is not answered

/* Answers what waits, and frees. */
void restore_fail(struct restore *restore, const struct error *failure);

/* Sets and returns err: the agent has no memory of the session (NULL: it is forgotten), and why. */
const struct error *restore_describe_loss(
	const struct session *session, const char *why, struct error *err);

#endif
