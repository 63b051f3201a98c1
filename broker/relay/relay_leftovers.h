/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_LEFTOVERS_H
#define BROKER_RELAY_RELAY_LEFTOVERS_H

#include "broker/session/hop.h"

/*
 * Roots whose sandbox did not end properly; the broker reports them at its end. A sandbox that was
 * lost, because its link broke and its agent with it, may still exist. When the broker ends, it
 * tries to reach that sandbox once more and collects its changes, as the next start would
 * (broker/ledger/collect.h).
 */
struct leftovers;

void leftovers_init(struct relay *relay);
void leftovers_finish(struct relay *relay);
struct leftovers *leftovers_of(struct relay *relay); // a part of the relay

/* Notes for each root how the end of the agent's sandbox went (NULL: well). */
void leftovers_note(struct peer *peer, const struct error *err);

/*
 * Call it when no agent is left: begins to collect from a lost sandbox, which must become ready
 * within prepare-timeout. True: collecting has begun, and relay_ops.finish_if_empty follows. False:
 * there is nothing to collect, or this broker has given up.
 */
bool leftovers_collect(struct leftovers *leftovers);

/*
 * Stops waiting for changes that no sync has begun to collect; they are left for the next start.
 * Stops sandboxes that were started in order to collect them; a second call does not wait for that
 * either.
 */
void leftovers_hurry(struct leftovers *leftovers);

/*
 * Call it when the ending broker has waited for a sandbox in vain: it then does not wait a second
 * time.
 */
void leftovers_give_up(struct leftovers *leftovers);

/* A sandbox that was never used stays, for this reason; NULL: none stays. */
void leftovers_note_unused(struct leftovers *leftovers, const struct error *err);

/*
 * The first failure to end a sandbox, unless a later sandbox in the same place has ended well; or
 * NULL.
 */
const struct error *leftovers_error(const struct leftovers *leftovers);

#endif
