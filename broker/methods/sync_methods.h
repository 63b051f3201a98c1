/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_SYNC_METHODS_H
#define BROKER_METHODS_SYNC_METHODS_H

#include <stdbool.h>

struct call;
struct peer;
struct relay;

/*
 * The broker's own methods for the workspace of a session. params.sessionId names the session; the
 * workspace is its cwd. docs/schemas/ describes their params and results.
 */
void sync_methods_status(struct relay *relay, const struct call *call);
void sync_methods_sync(struct relay *relay, const struct call *call);
void sync_methods_create(struct relay *relay, const struct call *call);
void sync_methods_list(struct relay *relay, const struct call *call);
void sync_methods_diff(struct relay *relay, const struct call *call);
void sync_methods_rollback(struct relay *relay, const struct call *call);

/* Whether a rollback runs; prompts are refused meanwhile. */
bool sync_methods_is_rolling_back(const struct peer *peer);

#endif
