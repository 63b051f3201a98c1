/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LIBSSH2_LOGIN_H
#define PROVIDERS_SSH_LIBSSH2_LOGIN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "providers/provider.h"
#include "providers/ssh/libssh2_library.h"
#include "providers/ssh/target.h"

/*
 * From a connected socket to a session that is logged in: handshake, host key and
 * authentication, on a worker thread with libssh2's blocking calls. What of it needs the loop -
 * a passphrase, a password - makes the job end and be submitted again.
 */
struct login;

struct login_listener {
	void (*on_progress)(void *data, const char *text);
	/* Session and socket are the callee's. The session is still a blocking one. */
	void (*on_done)(void *data, LIBSSH2_SESSION *session, int fd);
	void (*on_failed)(void *data, const struct error *err);
};

/*
 * Takes the socket over, also where it fails. Target and context are borrowed until an
 * outcome was raised or login_abandon. The handshake is bounded by connect_timeout_ms, the rest
 * by auth_timeout_ms. Raises nothing before it returns.
 */
struct login *login_start(const struct provider_context *context, const struct ssh2 *ssh2,
	const struct ssh_target *target, int fd, const struct login_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Gives it up: nothing is raised any more, and the socket is shut down, so that the worker
 * ends soon and frees everything. Before an outcome; NULL is fine.
 */
void login_abandon(struct login *login);

/* ---- between the two halves: libssh2_login.c and libssh2_auth.c ---- */

enum login_need { LOGIN_NEEDS_NOTHING, LOGIN_NEEDS_PASSPHRASE, LOGIN_NEEDS_PASSWORD };

enum { AUTH_TEXT_MAX = 480, AUTH_OFFERED_MAX = 256 * 1024, AUTH_PROOFS_MAX = 4 };

/* How far the authentication has come; the worker's while it runs. */
struct auth {
	size_t step;
	size_t key; // of identity_files
	char *methods;
	char *passphrase; // wiped with mem_wipe_free
	char *password;
	bool has_asked_passphrase;
	bool has_asked_password;
	bool has_open_question; // of the server's, in a dialogue: nobody here has the answer
	int attempts;           // answered by the server
	bool is_lost;           // the server has gone, and had refused nothing before
	int proofs;             // taken, where the server wants more than one
	struct buf offered;     // public keys, each a string of the wire (RFC 4251, 5)
	struct buf tried;       // what was, and why it failed
	struct buf locked;      // files of keys whose passphrase nobody can be asked for; ", "
	bool has_locked;        // a key was not tried, as its passphrase was missing or wrong
	struct buf unsupported; // what could not be tried, or only in vain, with this library
};

struct login_work {
	const struct ssh2 *ssh2;
	LIBSSH2_SESSION *session;
	int fd;                   // borrowed
	struct ssh_target target; // a copy: the worker may outlive the caller's
	atomic_bool is_aborted;   // set by the loop, with the socket shut down
	long long deadline_ms;    // of clock_now_ms
	struct auth auth;
};

/*
 * Goes on where it stopped. True: logged in, or *out_need says what is to be had first. Worker
 * thread. AUTH_FAILED, SSH_UNSUPPORTED, or LINK_LOST where the server has gone.
 */
bool auth_run(struct login_work *work, enum login_need *out_need, struct error *err) ATTR_NODISCARD;
void auth_finish(struct auth *auth);

/* Of what a callback of the library is given during auth_run. */
struct login_work *login_work_of(void **abstract);

/* The next call of the library ends at the deadline. */
void login_bound_call(struct login_work *work);

#endif
