/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_HEALTH_H
#define BROKER_METHODS_HEALTH_H

struct call;
struct peer;
struct relay;

/*
 * _broker/health: asks the sandbox of every agent, all at once, whether it answers, and says what
 * is known of each. Answered within health-timeout. docs/schemas/health.json has the result.
 */
void health_call(struct relay *relay, const struct call *call);

/* How many are not answered yet. */
int health_count(struct relay *relay);

/* The broker ends: nobody waits for how large the stores are, and their size is told as unknown. */
void health_end(struct relay *relay);

/* The agent is about to be forgotten: nobody waits for its sandbox any more. */
void health_drop_peer(struct peer *peer);

/* The relay ends: what was asked is not answered. */
void health_drop_all(struct relay *relay);

#endif
