/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_AGENT_H
#define PROVIDERS_SSH_LIBSSH2_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * The user's ssh-agent (draft-miller-ssh-agent). libssh2 has a client for it, whose calls
 * cannot be bounded: a key in hardware may take as long as its owner does. Blocks; worker threads.
 */
enum { AGENT_MESSAGE_MAX = 256 * 1024, AGENT_KEYS_MAX = 64 };

struct agent_key {
	struct span blob;    // in the agent's answer
	struct span comment; // likewise
};

struct agent {
	int fd;
	long long deadline_ms;         // of clock_now_ms
	const atomic_bool *is_aborted; // set by another thread: give up within 100 ms
	struct buf answer;             // the identities
	struct agent_key keys[AGENT_KEYS_MAX];
	size_t key_count;
};

/* Connects and asks for the keys; those beyond AGENT_KEYS_MAX are left out. */
bool agent_open(struct agent *agent, const char *path, long long deadline_ms,
	const atomic_bool *is_aborted, struct error *err) ATTR_NODISCARD;

/* Closes it; zeroed with fd -1 is fine. */
void agent_close(struct agent *agent);

/*
 * The signature of `data`, without the name of its format, in memory from malloc. Where the
 * data is a request to log in (RFC 4252, 7) an RSA key signs with the algorithm that it names.
 */
bool agent_sign(struct agent *agent, const struct agent_key *key, struct span data,
	unsigned char **out_signature, size_t *out_len, struct error *err) ATTR_NODISCARD;

#endif
