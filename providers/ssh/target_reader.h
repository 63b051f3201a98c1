/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_READER_H
#define PROVIDERS_SSH_TARGET_READER_H

#include "providers/ssh/target.h"
#include "providers/ssh/target_tokens.h"

/*
 * Reads what ssh(1) 9.2 prints with -G: one keyword with its value per line; booleans are yes, no,
 * true or false; values are not quoted. File names are expanded, except identities; commands are
 * not. Lists of files are joined with spaces, even if a name contains one.
 */
struct ssh_target_reader {
	struct ssh_target target;
	struct ssh_tokens tokens;
	char *jumps;
	/* As printed; NULL: not printed. */
	char **identities;
	char **certificates;
	char *revoked_keys;
	char *proxy_command;
	char *agent;
	char *user_files;
	char *global_files;
	int alive_count; // 0: not given
};

/* After the last line: sets our defaults, and expands the rest. */
bool ssh_target_complete(struct ssh_target_reader *reader, struct error *err) ATTR_NODISCARD;

/*
 * The socket of an IdentityAgent, which the caller frees: a path, SSH_AUTH_SOCK, or another
 * variable with its "$". A NULL text means SSH_AUTH_SOCK. *out_socket is NULL for "none", or if the
 * variable is not set.
 */
bool ssh_agent_socket(const struct ssh_tokens *tokens, const char *text, char **out_socket,
	struct error *err) ATTR_NODISCARD;

/* Our defaults; the table of the profile's keys (target.c) has the same values. */
enum {
	SSH_PORT = 22,
	SSH_CONNECT_TIMEOUT_MS = 30 * 1000,
	SSH_AUTH_TIMEOUT_MS = 60 * 1000,
	SSH_ALIVE_INTERVAL_MS = 15 * 1000,
	SSH_ALIVE_COUNT = 4,
};

#endif
