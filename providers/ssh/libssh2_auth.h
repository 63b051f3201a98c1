/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_AUTH_H
#define PROVIDERS_SSH_LIBSSH2_AUTH_H

#include "providers/ssh/libssh2_login.h"

/*
 * Shared by libssh2_auth.c, which has the order of the steps, and the files with the steps. For
 * worker threads.
 */

enum auth_result {
	AUTH_NEXT,   // the step did not help
	AUTH_IN,     // logged in
	AUTH_MORE,   // accepted; the server wants another proof in addition
	AUTH_ASK,    // *out_need is needed first; then the step runs again
	AUTH_BROKEN, // the connection cannot be used any more
};

typedef enum auth_result auth_step(struct login_work *work, enum login_need *out_need);

auth_step auth_try_agent;    // keys of the agent
auth_step auth_try_keys;     // keys in files
auth_step auth_try_dialogue; // keyboard-interactive

void auth_note(struct buf *notes, const char *format, ...) ATTR_PRINTF(2, 3);
/* Whether the server accepts the method, and ssh_config allows it. */
bool auth_may_try(const struct login_work *work, const char *method);
/* Judges the result of a library call; `what` names what was tried. */
enum auth_result auth_outcome(struct login_work *work, int outcome, const char *what);
/* The same for a proof that the server may have accepted while it wants another. */
enum auth_result auth_proof_outcome(struct login_work *work, int outcome, const char *what);
unsigned int auth_user_len(const struct login_work *work);

#endif
