/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_WORDS_H
#define PROVIDERS_SSH_OPENSSH_WORDS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "providers/ssh/target.h"

/*
 * Reads from ssh's stderr (LogLevel DEBUG1, LC_ALL=C) how far it has come, and why it failed. Only
 * this text tells failures apart, because ssh's status is 255 for all of them.
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
	struct buf line;                 // a line without its end
	bool is_too_long;                // the rest of the line is dropped
	bool is_authenticating;          // the host's key was accepted
	bool has_progress;               // `progress` is new
	char progress[256];
	int addresses;                     // addresses of the host that were tried
	char refused[OPENSSH_SAID_MAX];    // ports that could not be forwarded; not reported yet
	char said[OPENSSH_SAID_MAX];       // the last complaints, separated by "; "
	char because[OPENSSH_CAUSE_MAX];   // the complaint that names the cause
	char offered[OPENSSH_OFFERED_MAX]; // keys that were offered
	char taken[OPENSSH_FILE_MAX];      // the key that the server would accept, until it is used
	char locked[OPENSSH_OFFERED_MAX];  // such keys that stayed locked: no passphrase
	char host_key[OPENSSH_KEY_MAX];    // the host's key, "ssh-ed25519 SHA256:…"
	char known_at[OPENSSH_FILE_MAX];   // "FILE:LINE" with another key of the host
	size_t cause;                      // in the table of causes; 0: none yet
};

void openssh_words_init(struct openssh_words *words, const struct ssh_target *target);
void openssh_words_finish(struct openssh_words *words);

void openssh_words_read(struct openssh_words *words, struct span bytes);

/* Forgets ssh's complaints while it connected, because they do not explain a later end. */
void openssh_words_clear(struct openssh_words *words);

/* Why it could not connect, with the reason (client.h); `ended` says how the program ended. */
void openssh_words_explain(const struct openssh_words *words, const char *ended, struct error *err);

#endif
