/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_AUTH_H
#define PROVIDERS_SSH_LIBSSH2_AUTH_H

#include "providers/ssh/libssh2_login.h"

/* Between libssh2_auth.c, which has the order, and those with its steps. Worker threads. */

enum auth_result {
	AUTH_NEXT,   // the step has not helped
	AUTH_IN,     // logged in
	AUTH_MORE,   // it was taken, and the server wants another proof beside it
	AUTH_ASK,    // *out_need is to be had first; the step comes again
	AUTH_BROKEN, // the connection is of no use any more
};

typedef enum auth_result auth_step(struct login_work *work, enum login_need *out_need);

auth_step auth_try_agent;    // the keys of the agent
auth_step auth_try_keys;     // those in files
auth_step auth_try_dialogue; // keyboard-interactive

void auth_note(struct buf *notes, const char *format, ...) ATTR_PRINTF(2, 3);
/* Whether the server takes it, and ssh_config lets it be tried. */
bool auth_may_try(const struct login_work *work, const char *method);
/* What a call of the library says; `what` was tried. */
enum auth_result auth_outcome(struct login_work *work, int outcome, const char *what);
/* The same of what the server may have taken, and want more beside it. */
enum auth_result auth_proof_outcome(struct login_work *work, int outcome, const char *what);
unsigned int auth_user_len(const struct login_work *work);

#endif
