/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_KEYS_H
#define BROKER_CHAT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/*
 * What a terminal sends, one key at a time: a character, an escape sequence as a whole, or
 * everything that was pasted (bracketed paste, xterm's mode 2004). libedit reads a sequence
 * to its end wherever it begins, so that it must not see half of one.
 */
enum {
	KEYS_HELD_MAX = 64 * 1024,   // bytes typed ahead
	KEYS_READ_MAX = 4 * 1024,    // bytes that are added at a time
	KEYS_PASTE_MAX = 512 * 1024, // of one paste; more are dropped
	KEYS_SEQUENCE_MAX = 32,
};

enum key_kind {
	KEY_CHARACTER, // whole, as UTF-8; or one byte that is none
	KEY_SEQUENCE,  // begins with ESC
	KEY_PASTE,     // lines end with "\n"
};

struct key {
	enum key_kind kind;
	struct span text; // valid until the next call
	bool is_cut;      // the paste was longer
};

struct keys {
	struct buf held;
	struct buf paste;
	struct buf out; // what the last key borrows
	bool is_pasting;
	bool is_cut;
};

void keys_init(struct keys *keys);
void keys_finish(struct keys *keys);

/* Adds up to KEYS_READ_MAX bytes, where there is room for as many. */
bool keys_has_room(const struct keys *keys);
void keys_add(struct keys *keys, struct span bytes);
bool keys_next(struct keys *keys, struct key *out_key);

/* Forgets what was typed so far. The rest of a paste is still one, and no keys. */
void keys_forget(struct keys *keys);

#endif
