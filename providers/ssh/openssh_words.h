/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_WORDS_H
#define PROVIDERS_SSH_OPENSSH_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/ssh/target.h"

/*
 * What ssh says on its stderr (LogLevel DEBUG1, LC_ALL=C): how far it has come, and why it
 * failed. Nothing but its own words tells these apart: its status is 255 for all of them.
 */
enum {
	OPENSSH_SAID_MAX = 640,
	OPENSSH_CAUSE_MAX = 256,
	OPENSSH_OFFERED_MAX = 256,
	OPENSSH_KEY_MAX = 128,
	OPENSSH_FILE_MAX = 256,
};

struct openssh_words {
	const struct ssh_target *target; // borrowed
	struct buf line;                 // not yet ended
	bool is_too_long;                // the line is; what follows of it is dropped
	bool is_authenticating;          // the host's key was accepted
	bool has_progress;               // `progress` is new
	char progress[256];
	int addresses;                     // of the host that were tried
	char said[OPENSSH_SAID_MAX];       // complaints, the last ones, "; " between
	char because[OPENSSH_CAUSE_MAX];   // the one that has the cause
	char offered[OPENSSH_OFFERED_MAX]; // the keys that were offered
	char taken[OPENSSH_FILE_MAX];      // the key that the server would take, until it is used
	char locked[OPENSSH_OFFERED_MAX];  // such keys that were not used: nobody unlocked them
	char host_key[OPENSSH_KEY_MAX];    // "ssh-ed25519 SHA256:…" of the host
	char known_at[OPENSSH_FILE_MAX];   // "FILE:LINE" that has another one of it
	size_t cause;                      // of the table of causes; 0: none yet
};

void openssh_words_init(struct openssh_words *words, const struct ssh_target *target);
void openssh_words_finish(struct openssh_words *words);

void openssh_words_read(struct openssh_words *words, struct span bytes);

/* Forgets complaints: what ssh said while it connected is not why it ended later. */
void openssh_words_clear(struct openssh_words *words);

/* Why it could not connect, with the reason (client.h); `ended` is how the program did. */
void openssh_words_explain(const struct openssh_words *words, const char *ended, struct error *err);

#endif
