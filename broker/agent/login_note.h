/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_LOGIN_NOTE_H
#define BROKER_AGENT_LOGIN_NOTE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The args and env that an agent wants for its login in a terminal (ACP, "Authentication", methods
 * of type terminal). The editor never sees them, because it would put them on the broker's own
 * command line and into its environment. The editor gets a random token instead. The note is a file
 * with that name in STATE/logins, mode 0600. It stays until the login has succeeded, or for a day,
 * even if the broker that wrote it has ended. Blocks for about a millisecond.
 */
enum {
	LOGIN_TOKEN_SIZE = 33, // 32 hexadecimal digits
	LOGIN_WORDS_MAX = 1000,
	LOGIN_NOTE_MAX = 64 * 1024, // bytes
	LOGIN_NOTES_MAX = 1000,     // files; the oldest is removed to make room
	LOGIN_NOTE_AGE_S = 24 * 3600,
};

/*
 * Writes a note; args and env ("NAME=value") are NULL-terminated or NULL. Removes expired notes.
 * ERROR_LIMIT if args and env exceed LOGIN_NOTE_MAX. `profile`: the agent works elsewhere, and so
 * must the login, by this profile; NULL for an agent on this machine.
 */
bool login_note_write(const char *state_folder, const char *profile, char *const *args,
	char *const *env, char out_token[LOGIN_TOKEN_SIZE], struct error *err) ATTR_NODISCARD;

struct login_note {
	char *profile; // owned; may be NULL
	char **args;   // owned, NULL-terminated
	char **env;    // owned, NULL-terminated NAME=value
	char *path;    // owned
	int fd;        // locked, so that only one login at a time uses the note
};

/*
 * Opens the note of a token. ERROR_CONFIG if it is not a token, ERROR_NOT_FOUND if the note is
 * missing or expired, ERROR_DENIED if another login is using it.
 */
struct login_note *login_note_open(
	const char *state_folder, const char *token, struct error *err) ATTR_NODISCARD;

/* The login has succeeded: removes the note, so its token is no longer valid. */
void login_note_remove(const struct login_note *note);

void login_note_close(struct login_note *note); // NULL is fine

#endif
