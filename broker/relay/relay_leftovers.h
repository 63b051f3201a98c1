/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_LEFTOVERS_H
#define BROKER_RELAY_RELAY_LEFTOVERS_H

#include "broker/session/hop.h"

/*
 * Roots whose sandbox did not come to its end, for the last words of the broker. A sandbox that was
 * lost - its link was, and its agent with it - may still be there: when the broker ends, it is
 * reached for once more, and what is in it is collected as the next start would
 * (broker/ledger/collect.h).
 */
struct leftovers;

void leftovers_init(struct relay *relay);
void leftovers_finish(struct relay *relay);
struct leftovers *leftovers_of(struct relay *relay); // a part of it

/* How the end of the agent's sandbox went (NULL: well), for each of its roots. */
void leftovers_note(struct peer *peer, const struct error *err);

/*
 * No agent is left: begins to collect what is in a sandbox that was lost, with prepare-timeout for
 * that to be ready again. True: that is under way, and relay_ops.finish_if_empty follows. False:
 * there is nothing to collect, or this broker does not any more.
 */
bool leftovers_collect(struct leftovers *leftovers);

/*
 * What is in no sync yet is not waited for, and left for the next start. What was started for it is
 * stopped again; a second call does not wait for that either.
 */
void leftovers_hurry(struct leftovers *leftovers);

/* While ending a sandbox was waited for in vain: the time for that is not taken twice. */
void leftovers_give_up(struct leftovers *leftovers);

/* A sandbox that was never ready goes on, for this reason; NULL: none does. */
void leftovers_note_unused(struct leftovers *leftovers, const struct error *err);

/*
 * Why the end of a sandbox failed, where no later one in the same place has succeeded: the
 * first such; NULL where there is none.
 */
const struct error *leftovers_error(const struct leftovers *leftovers);

#endif
