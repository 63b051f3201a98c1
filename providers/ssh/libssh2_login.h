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
 * From a connected socket to a logged-in session: handshake, host key and authentication. Runs on a
 * worker thread with libssh2's blocking calls. When it needs the loop (a passphrase, a password),
 * the job ends and is submitted again.
 */
struct login;

struct login_listener {
	void (*on_progress)(void *data, const char *text);
	/* The callee takes over session and socket. The session is still blocking. */
	void (*on_done)(void *data, LIBSSH2_SESSION *session, int fd);
	void (*on_failed)(void *data, const struct error *err);
};

/*
 * Takes over the socket, even if it fails. Target and context are borrowed until an outcome or
 * login_abandon. connect_timeout_ms bounds the handshake, auth_timeout_ms the rest. Raises nothing
 * before it returns.
 */
struct login *login_start(const struct provider_context *context, const struct ssh2 *ssh2,
	const struct ssh_target *target, int fd, const struct login_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Gives up: raises nothing more, and shuts the socket down, so that the worker soon ends and frees
 * everything. Only before an outcome; NULL is fine.
 */
void login_abandon(struct login *login);

/* ---- shared by the two halves: libssh2_login.c and libssh2_auth.c ---- */

enum login_need { LOGIN_NEEDS_NOTHING, LOGIN_NEEDS_PASSPHRASE, LOGIN_NEEDS_PASSWORD };

enum { AUTH_TEXT_MAX = 480, AUTH_OFFERED_MAX = 256 * 1024, AUTH_PROOFS_MAX = 4 };

/* The progress of the authentication; only the worker uses it while it runs. */
struct auth {
	size_t step;
	size_t key; // index in identity_files
	char *methods;
	char *passphrase; // freed with mem_wipe_free
	char *password;
	bool has_asked_passphrase;
	bool has_asked_password;
	bool has_open_question; // the server has asked something in a dialogue that nobody here can
	                        // answer
	int attempts;           // attempts that the server answered
	bool is_lost;           // the server closed the connection without a refusal before
	int proofs;             // proofs that were accepted, if the server wants several
	struct buf offered;     // public keys, each a string as SSH sends it (RFC 4251, 5)
	struct buf tried;       // what was tried, and why it failed
	struct buf
		locked; // files of keys whose passphrase nobody can be asked for, separated by ", "
	bool has_locked;        // a key was not tried because its passphrase was missing or wrong
	struct buf unsupported; // methods that this library lacks, or tried in vain
};

struct login_work {
	const struct ssh2 *ssh2;
	LIBSSH2_SESSION *session;
	int fd;                   // borrowed
	struct ssh_target target; // a copy, because the worker may outlive the caller's
	atomic_bool is_aborted;   // the loop sets it, and shuts the socket down
	long long deadline_ms;    // on the clock of clock_now_ms
	struct auth auth;
};

/*
 * Continues where it stopped. True: logged in, or *out_need says what is needed first. Fails with
 * AUTH_FAILED, SSH_UNSUPPORTED, or LINK_LOST if the server closed the connection. Worker thread.
 */
bool auth_run(struct login_work *work, enum login_need *out_need, struct error *err) ATTR_NODISCARD;
void auth_finish(struct auth *auth);

/* Finds the login from the data that the library passes to a callback during auth_run. */
struct login_work *login_work_of(void **abstract);

/* Sets the deadline of the library's next call. */
void login_bound_call(struct login_work *work);

#endif
