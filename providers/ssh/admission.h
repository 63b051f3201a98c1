/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_ADMISSION_H
#define PROVIDERS_SSH_ADMISSION_H

#include "base/error.h"

/*
 * Whoever has to be asked before each connection, because the user's name is a token that is
 * made for it: a gateway that takes the name for the whole of the authentication.
 *
 * For each connection `ask` is called once, with a turn of its own, and answered by a grant or a
 * refusal. A turn has one of three ends, after which it is not used any more: the refusal;
 * `cancel`, where nobody waits for the answer any more; `settled`, once for each grant. `ask`
 * may answer before it returns. None of these functions may close the sandbox that asks.
 *
 * A connection that is dropped right after the authentication, before anything could be run, or is
 * refused by the server, is made once more, with a new turn: another one may have made the token
 * invalid meanwhile. The wait for an answer is bounded by the target's auth_timeout_ms.
 *
 * Loop thread.
 */
struct ssh_admission_turn; /* one connection that asks */

struct ssh_admission {
	void (*ask)(void *data, struct ssh_admission_turn *turn);
	/* The asker is gone, or waits no more: the turn is neither granted nor refused any more. */
	void (*cancel)(void *data, struct ssh_admission_turn *turn);
	/* The connection stands or has failed: what was held for it can be let go. */
	void (*settled)(void *data, struct ssh_admission_turn *turn);
};

/* `user` is copied, is a secret from then on, and wiped once the connection stands or is closed.
 * Raises nothing before it returns. */
void ssh_admission_grant(struct ssh_admission_turn *turn, const char *user);

/* The error is copied; it becomes that of the sandbox. Raises nothing before it returns. */
void ssh_admission_refuse(struct ssh_admission_turn *turn, const struct error *err);

#endif
