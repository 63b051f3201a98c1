/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_ADMISSION_H
#define PROVIDERS_SSH_ADMISSION_H

#include "base/error.h"

/*
 * An admission supplies the user's name for each connection to a gateway where this name is a token
 * for a single connection, and the whole authentication.
 *
 * The sandbox calls `ask` once for each connection, with a turn of its own. The answer is a grant
 * or a refusal, and `ask` may give it before it returns. A turn ends with a refusal, with `cancel`
 * when nobody waits for the answer any more, or with `settled`, which the sandbox calls once for
 * each grant. Do not use the turn after its end. None of these functions may close the sandbox that
 * asks.
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
	/* The connection stands, or has failed: release everything that was reserved for it. */
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
