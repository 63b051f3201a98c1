/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LINK_SHOW_H
#define BROKER_RELAY_LINK_SHOW_H

struct error;
struct peer;

/*
 * Shows the user that the connection to an agent's sandbox is lost while the agent goes on: as one
 * tool call of the broker's own in every session of the agent with an open turn. The tool call is
 * updated while the connection is lost, and ends when it is back, or when the agent is lost. The
 * log gets a line for the loss and one for the end.
 */

/*
 * The first update comes after LINK_SHOW_MIN_MS. Each further pause is twice as long, up to
 * LINK_SHOW_MAX_MS.
 */
enum { LINK_SHOW_MIN_MS = 1000, LINK_SHOW_MAX_MS = 60000 };

void link_show_lost(struct peer *peer, const char *place, const struct error *why);
void link_show_back(struct peer *peer);

/* The agent no longer responds. Call it while its sessions are still its own. */
void link_show_failed(struct peer *peer, const struct error *failure);

#endif
