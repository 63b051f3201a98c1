/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_TURN_WORDS_H
#define BROKER_RELAY_TURN_WORDS_H

#include "broker/session/hop.h"

/*
 * Remembers in the session how the text of a prompt begins. The checkpoint of the turn is named
 * after it. A prompt without text clears it.
 */
enum { TURN_WORDS_SIZE = 48 };
void turn_words_note(struct session *session, const struct call *call);

#endif
