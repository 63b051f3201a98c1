/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_login.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/secret.h"
#include "providers/ssh/known_hosts.h"
#include "providers/ssh/libssh2_algorithms.h"
#include "providers/ssh/libssh2_key_file.h"
#include "providers/ssh/libssh2_session.h"

enum {
	HANDSHAKE_KEPT_MAX = 8 * 1024, // of the server's first bytes
	HOST_KEY_TYPES_MAX = 16,
	DEFAULT_TIMEOUT_MS = 30 * 1000,
	NOTE_MAX = 512,
	/*
	 * Usually the loop's timer ends a login; the library's own timeout, in seconds, only
	 * matters if the loop is stuck.
	 */
	LIBRARY_LATER_MS = 2000,
};

enum login_stage { LOGIN_HANDSHAKE, LOGIN_AUTH };

struct login {
	struct pool_job job;
	struct login_work work;
	int fd;
	enum login_stage stage;
	/* The worker's results: */
	bool has_failed;
	enum login_need need;
	struct error err;
	char note[NOTE_MAX]; // about the host key; usually ""
	struct ssh2_offer offer;
	struct buf received; // the server's first bytes
	/* Used by the loop: */
	const struct provider_context *context;
	const struct login_listener *listener;
	void *data;
	struct ev_timer deadline;
	struct secret_query *query;
	bool is_late;
};

/* ---- used by the worker ---- */

struct login_work *login_work_of(void **abstract)
{
	struct login *login = ssh2_session_owner(abstract);
	return &login->work;
}

void login_bound_call(struct login_work *work)
{
	long long left_ms = work->deadline_ms - clock_now_ms() + LIBRARY_LATER_MS;
	work->ssh2->session_set_timeout(work->session, left_ms > 1 ? (long)left_ms : 1);
}

/* Receives like libssh2's own function, but keeps the first bytes. */
static ssize_t keep_received(
	libssh2_socket_t fd, void *buffer, size_t size, int flags, void **abstract)
{
	struct login *login = ssh2_session_owner(abstract);
	ssize_t count = recv(fd, buffer, size, flags);
	if (count < 0) {
		return -errno;
	}
	size_t room = HANDSHAKE_KEPT_MAX - login->received.len;
	size_t kept = (size_t)count < room ? (size_t)count : room;
	(void)!buf_append(&login->received, (struct span){buffer, kept}, NULL);
	return count;
}

static bool handshake_failed(struct login *login, struct error *err)
{
	const struct ssh2 *ssh2 = login->work.ssh2;
	char text[ERROR_TEXT_MAX / 2];
	if (ssh2_nothing_in_common(&login->offer, buf_span(&login->received), text, sizeof(text))) {
		return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"libssh2 cannot talk to this server: %s%s", text,
			ssh_target_other_client(&login->work.target));
	}
	int failure = ssh2->session_last_errno(login->work.session);
	/* Perhaps sending our first line has failed. */
	if (login->received.len == 0 && failure != LIBSSH2_ERROR_TIMEOUT &&
		failure != LIBSSH2_ERROR_SOCKET_TIMEOUT) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
			"the connection was closed before the server sent anything");
	}
	return error_set_reason(err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"the SSH handshake failed: %s", ssh2_last_text(ssh2, login->work.session));
}

/* As in ssh, this only applies to direct connections: behind a proxy, the host is another one. */
static bool is_loopback(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} peer = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(peer);
	if (getpeername(fd, &peer.any, &len) != 0) {
		return false;
	}
	return (peer.any.sa_family == AF_INET &&
		       ntohl(peer.v4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET) ||
	       (peer.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr));
}

static bool check_host_key(struct login *login, struct error *err)
{
	struct login_work *work = &login->work;
	char type[64];
	size_t len = 0;
	int kind;
	const char *blob = work->ssh2->session_hostkey(work->session, &len, &kind);
	if (!blob) {
		return error_set_reason(
			err, ERROR_PROTOCOL, "HOST_UNREACHABLE", "the server sent no host key");
	}
	struct host_key key = {.blob = {blob, len}};
	key.type = key_blob_type(key.blob, type, sizeof(type));
	work->target.trusts_loopback = work->target.trusts_loopback && is_loopback(login->fd);
	return host_key_decide(&work->target, &key, login->note, sizeof(login->note), err);
}

/*
 * Whether the known keys may be of types that this library cannot check. The server would then show
 * a key of an unknown type, which would look like a changed key.
 */
static bool knows_too_little(const struct login_work *work, const char *const *types)
{
	for (; *types; types++) {
		if (!ssh2_supports(work->ssh2, work->session, LIBSSH2_METHOD_HOSTKEY, *types)) {
			return true;
		}
	}
	return false;
}

static bool shake_hands(struct login *login, struct error *err)
{
	struct login_work *work = &login->work;
	const struct ssh2 *ssh2 = work->ssh2;
	const char *known[HOST_KEY_TYPES_MAX] = {NULL};
	const char *const *types = known;
	bool only_these = false;
	work->session = ssh2_session_create(ssh2, login);
	if (!work->session) {
		return error_set(err, ERROR_SYSTEM, "making an SSH session: no memory");
	}
	if (work->target.host_key_pin) {
		types = host_key_types(work->target.host_key_turn);
	} else if (known_hosts_types(&work->target, known, HOST_KEY_TYPES_MAX, err)) {
		only_these = knows_too_little(work, known);
	} else {
		return false;
	}
	if (!ssh2_prefer(
		    ssh2, work->session, &work->target, types, only_these, &login->offer, err)) {
		return false;
	}
	ssh2->session_set_blocking(work->session, 1);
	ssh2->session_callback_set(
		work->session, LIBSSH2_CALLBACK_RECV, (void *)(intptr_t)keep_received);
	login_bound_call(work);
	if (ssh2->session_handshake(work->session, login->fd) != 0) {
		return handshake_failed(login, err);
	}
	return check_host_key(login, err);
}

static void run_job(struct pool_job *job)
{
	struct login *login = CONTAINER_OF(job, struct login, job);
	login->need = LOGIN_NEEDS_NOTHING;
	login->has_failed = login->stage == LOGIN_HANDSHAKE
	                            ? !shake_hands(login, &login->err)
	                            : !auth_run(&login->work, &login->need, &login->err);
}

/* ---- used by the loop ---- */

static void login_drop(struct pool_job *job)
{
	struct login *login = CONTAINER_OF(job, struct login, job);
	ssh2_session_destroy(login->work.ssh2, login->work.session);
	auth_finish(&login->work.auth);
	buf_finish(&login->received);
	ssh2_offer_finish(&login->offer);
	ssh_target_finish(&login->work.target);
	fd_close(&login->fd);
	free(login);
}

static void login_stop(struct login *login)
{
	ev_timer_stop(login->context->loop, &login->deadline);
	secret_query_cancel(login->query);
	login->query = NULL;
}

static void login_free(struct login *login)
{
	login_stop(login);
	login_drop(&login->job);
}

/* Shuts down the connection for which the worker waits. */
static void login_abort(struct login *login)
{
	atomic_store(&login->work.is_aborted, true);
	(void)shutdown(login->fd, SHUT_RDWR);
}

void login_abandon(struct login *login)
{
	if (!login) {
		return;
	}
	login_stop(login);
	login_abort(login);
	pool_leave(&login->job); // the context may be freed before the worker ends
}

static void login_fail(struct login *login, struct error *err)
{
	const struct login_listener *listener = login->listener;
	void *data = login->data;
	const struct ssh_target *target = &login->work.target;
	if (login->is_late) {
		bool is_auth = login->stage == LOGIN_AUTH;
		error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s did not finish within %g s (%s)",
			is_auth ? "the authentication" : "the SSH handshake",
			login->deadline.repeat, is_auth ? "auth-timeout" : "connect-timeout");
	}
	error_prefix(err, "connecting to %s port %d", target->host, target->port);
	struct error copy = *err;
	login_free(login);
	listener->on_failed(data, &copy);
}

/* False: the login has failed and is freed. */
static bool login_submit(struct login *login)
{
	struct error err;
	if (!pool_submit(login->context->pool, &login->job, &err)) {
		login_fail(login, &err);
		return false;
	}
	return true;
}

static void begin_stage(struct login *login, enum login_stage stage, long long timeout_ms)
{
	timeout_ms = timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS;
	login->stage = stage;
	login->work.deadline_ms = clock_now_ms() + timeout_ms;
	login->deadline.repeat = (double)timeout_ms / 1000;
	ev_timer_again(login->context->loop, &login->deadline);
}

static void have_secret(void *data, char *secret, const struct error *err)
{
	struct login *login = data;
	struct auth *auth = &login->work.auth;
	bool is_passphrase = login->need == LOGIN_NEEDS_PASSPHRASE;
	login->query = NULL;
	*(is_passphrase ? &auth->passphrase : &auth->password) = secret;
	if (!secret) {
		(void)!buf_append_format(
			&auth->tried, NULL, "%s%s", auth->tried.len ? "; " : "", err->text);
	}
	login_submit(login);
}

static void get_secret(struct login *login)
{
	bool is_passphrase = login->need == LOGIN_NEEDS_PASSPHRASE;
	const struct ssh_target *target = &login->work.target;
	char folder[PATH_MAX];
	struct error err;
	struct secret_spec spec = {
		.what = is_passphrase ? "passphrase-command" : "password-command",
		.line = is_passphrase ? target->passphrase_command : target->password_command,
		.cwd = ssh_folder(folder),
		.timeout_ms = target->auth_timeout_ms, // the stage's own deadline comes earlier
	};
	login->query = secret_query_start(login->context, &spec, have_secret, login, &err);
	if (!login->query) {
		login_fail(login, &err);
	}
}

static void login_succeed(struct login *login)
{
	const struct login_listener *listener = login->listener;
	void *data = login->data;
	LIBSSH2_SESSION *session = login->work.session;
	int fd = login->fd;
	login->work.session = NULL;
	login->fd = -1;
	login_free(login);
	listener->on_done(data, session, fd);
}

static void begin_auth(struct login *login)
{
	char text[NOTE_MAX];
	begin_stage(login, LOGIN_AUTH, login->work.target.auth_timeout_ms);
	text_format(text, sizeof(text), "%s%sAuthenticating as %s", login->note,
		login->note[0] ? ". " : "", ssh_target_user_shown(&login->work.target));
	if (login_submit(login)) {
		login->listener->on_progress(login->data, text);
	}
}

static void job_done(struct pool_job *job)
{
	struct login *login = CONTAINER_OF(job, struct login, job);
	if (login->has_failed || login->is_late) {
		login_fail(login, &login->err);
	} else if (login->need != LOGIN_NEEDS_NOTHING) {
		get_secret(login);
	} else if (login->stage == LOGIN_AUTH) {
		login_succeed(login);
	} else {
		begin_auth(login);
	}
}

static void on_deadline(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	struct login *login = CONTAINER_OF(watcher, struct login, deadline);
	ev_timer_stop(loop, watcher);
	login->is_late = true;
	login_abort(login);
	if (!pool_has(&login->job)) {
		login_fail(login, &login->err);
	}
}

/* Copies without the jump hosts, because the socket already leads through them. */
static void copy_target(struct ssh_target *to, const struct ssh_target *from)
{
	*to = *from;
	to->alias = mem_strdup_or_null(from->alias);
	to->host = mem_strdup_or_null(from->host);
	to->user = mem_strdup_or_null(from->user);
	to->host_key_alias = mem_strdup_or_null(from->host_key_alias);
	to->identity_files = words_copy((const char *const *)from->identity_files);
	to->identity_agent = mem_strdup_or_null(from->identity_agent);
	to->user_known_hosts_files = words_copy((const char *const *)from->user_known_hosts_files);
	to->global_known_hosts_files =
		words_copy((const char *const *)from->global_known_hosts_files);
	to->revoked_host_keys = mem_strdup_or_null(from->revoked_host_keys);
	to->certificate_files = words_copy((const char *const *)from->certificate_files);
	to->host_key_pin = mem_strdup_or_null(from->host_key_pin);
	to->preferred_methods = mem_strdup_or_null(from->preferred_methods);
	to->passphrase_command = mem_strdup_or_null(from->passphrase_command);
	to->password_command = mem_strdup_or_null(from->password_command);
	to->via = NULL;
	to->proxy_command = NULL;
	to->set_env = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(to->algorithms); i++) {
		to->algorithms[i] = mem_strdup_or_null(from->algorithms[i]);
	}
	to->ssh_program = mem_strdup_or_null(from->ssh_program);
	to->config_file = NULL;
	to->unknown_setting = NULL;
	to->forwards = NULL;
}

struct login *login_start(const struct provider_context *context, const struct ssh2 *ssh2,
	const struct ssh_target *target, int fd, const struct login_listener *listener, void *data,
	struct error *err)
{
	struct login *login = mem_alloc_zero(sizeof(*login));
	login->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run_job, .done = job_done, .drop = login_drop};
	login->work.ssh2 = ssh2;
	login->fd = login->work.fd = fd;
	login->context = context;
	login->listener = listener;
	login->data = data;
	atomic_init(&login->work.is_aborted, false);
	copy_target(&login->work.target, target);
	buf_init(&login->received, HANDSHAKE_KEPT_MAX);
	buf_init(&login->work.auth.offered, AUTH_OFFERED_MAX);
	buf_init(&login->work.auth.tried, AUTH_TEXT_MAX);
	buf_init(&login->work.auth.locked, AUTH_TEXT_MAX);
	buf_init(&login->work.auth.unsupported, AUTH_TEXT_MAX);
	error_set(&login->err, ERROR_UNAVAILABLE, "the program is ending");
	login->has_failed = true; // stays if the pool ends before the job runs
	ev_timer_init(&login->deadline, on_deadline, 0, 0);
	begin_stage(login, LOGIN_HANDSHAKE, target->connect_timeout_ms);
	if (!pool_submit(context->pool, &login->job, err)) {
		login_free(login);
		return NULL;
	}
	return login;
}
