/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_KEYS_H
#define BROKER_CHAT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * Splits the bytes from a terminal into keys. A key is a character, a whole escape sequence, or a
 * whole paste (bracketed paste, xterm's mode 2004). libedit must not get half a sequence, because
 * it would wait for the rest.
 */
enum {
	KEYS_HELD_MAX = 64 * 1024,   // bytes typed ahead
	KEYS_READ_MAX = 4 * 1024,    // bytes of one keys_add
	KEYS_PASTE_MAX = 512 * 1024, // bytes of one paste; the rest is dropped
	KEYS_SEQUENCE_MAX = 32,
};

enum key_kind {
	KEY_CHARACTER, // one UTF-8 character, or one byte that is not UTF-8
	KEY_SEQUENCE,  // begins with ESC
	KEY_PASTE,     // lines end with "\n"
};

struct key {
	enum key_kind kind;
	struct span text; // valid until the next call
	bool is_cut;      // the paste was longer than KEYS_PASTE_MAX
};

struct keys {
	struct buf held;
	struct buf paste;
	struct buf out; // the text of the last key
	bool is_pasting;
	bool is_cut;
};

void keys_init(struct keys *keys);
void keys_finish(struct keys *keys);

/* keys_add takes at most KEYS_READ_MAX bytes, and only while keys_has_room is true. */
bool keys_has_room(const struct keys *keys);
void keys_add(struct keys *keys, struct span bytes);
bool keys_next(struct keys *keys, struct key *out_key);

/* Drops all keys that were typed so far. A paste that has begun stays a paste until its end. */
void keys_forget(struct keys *keys);

#endif
