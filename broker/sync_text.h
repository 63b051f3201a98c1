/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SYNC_TEXT_H
#define BROKER_SYNC_TEXT_H

#include "sync/workspace.h"

enum { SYNC_TEXT_MAX = 2048, SYNC_TEXT_NAMED = 5 };

/*
 * What a sync did, in a sentence for people: "/w: 3 files came from the agent, 1
 * went to it; 1 file was changed on both sides: src/a.c stays as it is here, the
 * agent's version is beside it". Returns whether the person has to know: a conflict, an
 * error, deletions that were not followed, a note.
 */
bool sync_text_write(char text[SYNC_TEXT_MAX], const char *local_root,
	const struct sync_result *result, const struct error *err);

#endif
