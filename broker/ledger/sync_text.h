/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_SYNC_TEXT_H
#define BROKER_LEDGER_SYNC_TEXT_H

#include "sync/workspace.h"

enum { SYNC_TEXT_MAX = 2048, SYNC_TEXT_NAMED = 5 };

/*
 * Writes what a sync did as a sentence for people: "/w: synced (turn): 3 files from the agent (1
 * deleted), 1 to it, 812 bytes received, 96 sent, 1 conflict, 12 ms; changed on both sides, so that
 * yours stays and the agent's is beside: src/a.c". Returns whether the user must know it: a
 * conflict, an error, held changes, deletions that were not applied, a note.
 */
bool sync_text_write(char text[SYNC_TEXT_MAX], const char *local_root,
	const struct sync_result *result, const struct error *err);

#endif
