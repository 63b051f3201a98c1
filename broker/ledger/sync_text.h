/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_SYNC_TEXT_H
#define BROKER_LEDGER_SYNC_TEXT_H

#include "sync/workspace.h"

enum { SYNC_TEXT_MAX = 2048, SYNC_TEXT_NAMED = 5 };

/*
 * What a sync did, in a sentence for people: "/w: synced (turn): 3 files from the agent (1
 * deleted), 1 to it, 812 bytes received, 96 sent, 1 conflict, 12 ms; changed on both sides, so
 * that yours stays and the agent's is beside: src/a.c". Returns whether the user has to know: a
 * conflict, an error, what is held, deletions that were not followed, a note.
 */
bool sync_text_write(char text[SYNC_TEXT_MAX], const char *local_root,
	const struct sync_result *result, const struct error *err);

#endif
