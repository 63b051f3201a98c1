/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_ADMISSION_H
#define PROVIDERS_SSH_ADMISSION_H

#include "base/error.h"

/*
 * An admission supplies the user's name for each connection to a gateway where this name is a token
 * for a single connection, and the whole authentication.
 *
 * `ask` is called once for each connection, with a turn of its own; a grant or a refusal answers
 * it. A turn ends by the refusal, by `cancel` when nobody waits for the answer any more, or by
 * `settled`, which is called once for each grant. It must not be used afterwards. `ask` may answer
 * before it returns. None of these functions may close the sandbox that asks.
 *
 * If the server refuses the connection, or drops it right after the authentication before anything
 * could run, the asker connects once more with a new turn, because another turn may have made the
 * token invalid. The target's auth_timeout_ms bounds the wait for an answer.
 *
 * Loop thread.
 */
struct ssh_admission_turn; /* one connection that asks */

struct ssh_admission {
	void (*ask)(void *data, struct ssh_admission_turn *turn);
	/* The asker is gone or no longer waits: the turn is neither granted nor refused. */
	void (*cancel)(void *data, struct ssh_admission_turn *turn);
	/* The connection stands, or has failed: what was reserved for it can be released. */
	void (*settled)(void *data, struct ssh_admission_turn *turn);
};

/*
 * `user` is copied and is a secret; it is wiped when the connection stands or is closed. Raises
 * nothing before it returns.
 */
void ssh_admission_grant(struct ssh_admission_turn *turn, const char *user);

/* The error is copied and becomes the sandbox's error. Raises nothing before it returns. */
void ssh_admission_refuse(struct ssh_admission_turn *turn, const struct error *err);

#endif
