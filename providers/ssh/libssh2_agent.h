/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_AGENT_H
#define PROVIDERS_SSH_LIBSSH2_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * The user's ssh-agent (draft-miller-ssh-agent). We do not use libssh2's client for it, because its
 * calls have no deadline: a hardware key may take as long as its owner. Blocks; for worker threads.
 */
enum { AGENT_MESSAGE_MAX = 256 * 1024, AGENT_KEYS_MAX = 64 };

struct agent_key {
	struct span blob;    // points into the agent's answer
	struct span comment; // points into the agent's answer
};

struct agent {
	int fd;
	long long deadline_ms;         // on the clock of clock_now_ms
	const atomic_bool *is_aborted; // when another thread sets it, we give up within 100 ms
	struct buf answer;             // the agent's list of keys
	struct agent_key keys[AGENT_KEYS_MAX];
	size_t key_count;
};

/* Connects and asks for the keys; keys beyond AGENT_KEYS_MAX are left out. */
bool agent_open(struct agent *agent, const char *path, long long deadline_ms,
	const atomic_bool *is_aborted, struct error *err) ATTR_NODISCARD;

/* Closes it. Zeroed with fd -1 is fine. */
void agent_close(struct agent *agent);

/*
 * Returns the signature of `data`, without the name of its format, in memory from malloc. If the
 * data is a login request (RFC 4252, 7), an RSA key signs with the algorithm named in it.
 */
bool agent_sign(struct agent *agent, const struct agent_key *key, struct span data,
	unsigned char **out_signature, size_t *out_len, struct error *err) ATTR_NODISCARD;

#endif
