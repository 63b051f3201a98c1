/* SPDX-License-Identifier: MIT */
#ifndef BROKER_IN_FLIGHT_H
#define BROKER_IN_FLIGHT_H

#include <stdbool.h>

enum { IN_FLIGHT_TEXT_MAX = 1024 };

struct peer;

/*
 * Lists what may be changing files of an agent's workspaces: sessions with a prompt that was
 * not answered yet, and commands that run in terminals of the ToolHost's. False, and
 * "": nothing does. A list that is too long is cut and ends with "…".
 */
bool in_flight_describe(struct peer *peer, char text[IN_FLIGHT_TEXT_MAX]);

#endif
