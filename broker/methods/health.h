/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_HEALTH_H
#define BROKER_METHODS_HEALTH_H

struct call;
struct peer;
struct relay;

/*
 * _broker/health: asks the sandboxes of all agents at the same time whether they respond, and
 * reports the state of each. Answered within health-timeout. docs/schemas/health.json describes the
 * result.
 */
void health_call(struct relay *relay, const struct call *call);

/* The number of unanswered requests. */
int health_count(struct relay *relay);

/* The broker ends: does not wait for the sizes of the stores, and reports them as unknown. */
void health_end(struct relay *relay);

/* The agent is about to be forgotten: stops waiting for its sandbox. */
void health_drop_peer(struct peer *peer);

/* The relay ends: open requests are not answered. */
void health_drop_all(struct relay *relay);

#endif
