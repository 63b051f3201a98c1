/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_READER_H
#define PROVIDERS_SSH_TARGET_READER_H

#include "providers/ssh/target.h"
#include "providers/ssh/target_tokens.h"

/*
 * What ssh(1) prints with -G, of 9.2: a keyword and its value a line; booleans as yes, no,
 * true or false; no value is quoted. Names of files are expanded but those of identities, as
 * commands are not; lists of files are joined with spaces, also where a name has one.
 */
struct ssh_target_reader {
	struct ssh_target target;
	struct ssh_tokens tokens;
	char *jumps;
	/* As they were printed; NULL where they were not. */
	char **identities;
	char **certificates;
	char *revoked_keys;
	char *proxy_command;
	char *agent;
	char *user_files;
	char *global_files;
	int alive_count; // 0: not said
};

/* After the last line: our defaults, and everything that is still to expand. */
bool ssh_target_complete(struct ssh_target_reader *reader, struct error *err) ATTR_NODISCARD;

/*
 * The socket that an IdentityAgent means, to be freed: a path, SSH_AUTH_SOCK or another
 * variable with its "$"; NULL text is the former. *out_socket is NULL for "none", and where the
 * variable is not set.
 */
bool ssh_agent_socket(const struct ssh_tokens *tokens, const char *text, char **out_socket,
	struct error *err) ATTR_NODISCARD;

/* Our defaults, as the profile's keys have them (target.c). */
enum {
	SSH_PORT = 22,
	SSH_CONNECT_TIMEOUT_MS = 30 * 1000,
	SSH_AUTH_TIMEOUT_MS = 60 * 1000,
	SSH_ALIVE_INTERVAL_MS = 15 * 1000,
	SSH_ALIVE_COUNT = 4,
};

#endif
