/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_LOGIN_NOTE_H
#define BROKER_AGENT_LOGIN_NOTE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What an agent wants its login in a terminal to be run with: its args and env (ACP,
 * "Authentication", methods of type terminal). The editor never sees them, as it would put them on
 * the broker's own command line and in its environment. It gets a random token, and the note lies
 * under that name in STATE/logins, mode 0600, until the login has succeeded, or for a day - also
 * when the broker that wrote it has ended. Blocks, for about a millisecond.
 */
enum {
	LOGIN_TOKEN_SIZE = 33, // 32 hexadecimal digits
	LOGIN_WORDS_MAX = 1000,
	LOGIN_NOTE_MAX = 64 * 1024, // bytes
	LOGIN_NOTES_MAX = 1000,     // files; the oldest makes room
	LOGIN_NOTE_AGE_S = 24 * 3600,
};

/*
 * Writes a note; args and env ("NAME=value") are NULL-terminated or NULL. Notes that are too old
 * are removed. ERROR_LIMIT where they are longer than LOGIN_NOTE_MAX.
 */
bool login_note_write(const char *state_folder, char *const *args, char *const *env,
	char out_token[LOGIN_TOKEN_SIZE], struct error *err) ATTR_NODISCARD;

struct login_note {
	char **args; // owned, NULL-terminated
	char **env;  // owned, NULL-terminated NAME=value
	char *path;  // owned
	int fd;      // locked, so that one login at a time runs with it
};

/*
 * The note of a token. ERROR_CONFIG where it is no token at all, ERROR_NOT_FOUND where the note is
 * gone or too old, ERROR_DENIED where another login runs with it.
 */
struct login_note *login_note_open(
	const char *state_folder, const char *token, struct error *err) ATTR_NODISCARD;

/* The login has succeeded: its token is of no use any more. */
void login_note_remove(const struct login_note *note);

void login_note_close(struct login_note *note); // NULL is fine

#endif
