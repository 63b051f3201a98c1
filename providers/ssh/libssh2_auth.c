/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/ssh/libssh2_agent.h"
#include "providers/ssh/libssh2_algorithms.h"
#include "providers/ssh/libssh2_key_file.h"
#include "providers/ssh/libssh2_login.h"
#include "providers/ssh/libssh2_secret.h"

/* Authentication in the order of ssh(1): none, the agent's keys, those in files, a password. */

enum auth_result {
	AUTH_NEXT,   // the step has not helped
	AUTH_IN,     // logged in
	AUTH_ASK,    // *out_need is to be had first; the step comes again
	AUTH_BROKEN, // the connection is of no use any more
};

typedef enum auth_result auth_step(struct login_work *work, enum login_need *out_need);

static void note(struct buf *notes, const char *format, ...) ATTR_PRINTF(2, 3);

static void note(struct buf *notes, const char *format, ...)
{
	char text[AUTH_TEXT_MAX / 2];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* What does not fit any more is one reason more of many. */
	(void)!buf_append_format(notes, NULL, "%s%s", notes->len ? "; " : "", text);
}

static bool server_takes(const struct auth *auth, const char *method)
{
	size_t len = strlen(method);
	for (const char *at = auth->methods; at && *at; at += strcspn(at, ","), at += *at == ',') {
		if (strncmp(at, method, len) == 0 && (at[len] == ',' || at[len] == '\0')) {
			return true;
		}
	}
	return false;
}

/* Where the answer does not come the library says that the key was not accepted. */
static bool has_server_gone(const struct login_work *work)
{
	char byte;
	ssize_t count = recv(work->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

static enum auth_result note_gone(struct login_work *work, const char *what)
{
	/* After several refusals it has had enough of them. */
	work->auth.is_lost = work->auth.attempts == 1;
	note(&work->auth.tried, "%s: the server has closed the connection", what);
	return AUTH_BROKEN;
}

/* What a call of the library says; `what` was tried. */
static enum auth_result auth_outcome(struct login_work *work, int outcome, const char *what)
{
	work->auth.attempts++;
	switch (outcome) {
	case LIBSSH2_ERROR_NONE:
		return AUTH_IN;
	case LIBSSH2_ERROR_SOCKET_SEND:
	case LIBSSH2_ERROR_SOCKET_RECV:
	case LIBSSH2_ERROR_SOCKET_DISCONNECT:
	case LIBSSH2_ERROR_SOCKET_TIMEOUT:
	case LIBSSH2_ERROR_TIMEOUT:
		return note_gone(work, what);
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
	case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
		if (has_server_gone(work)) {
			return note_gone(work, what);
		}
		note(&work->auth.tried, "%s: refused", what);
		return AUTH_NEXT;
	default:
		note(&work->auth.tried, "%s: %s", what, ssh2_last_text(work->ssh2, work->session));
		return AUTH_NEXT;
	}
}

static unsigned int user_len(const struct login_work *work)
{
	return (unsigned int)strlen(work->target.user);
}

static enum auth_result try_none(struct login_work *work, enum login_need *out_need)
{
	login_bound_call(work);
	const char *methods =
		work->ssh2->userauth_list(work->session, work->target.user, user_len(work));
	if (work->ssh2->userauth_authenticated(work->session)) {
		return AUTH_IN;
	}
	if (!methods) {
		return auth_outcome(
			work, work->ssh2->session_last_errno(work->session), "the user's name");
	}
	work->auth.methods = mem_strdup(methods);
	if (work->target.allows_none) {
		note(&work->auth.tried, "the user's name alone: refused");
	}
	return AUTH_NEXT;
}

/* ssh-rsa means SHA-1, which servers refuse today; newer libraries sign with SHA-2. */
static void note_special(struct login_work *work, const char *type, const char *what)
{
	if (strncmp(type, "sk-", 3) == 0) {
		note(&work->auth.unsupported, "%s is a FIDO key", what);
	} else if (strstr(type, "-cert-v0")) {
		note(&work->auth.unsupported, "%s is a certificate", what);
	} else if (strcmp(type, "ssh-rsa") == 0 &&
		   !ssh2_supports(
			   work->ssh2, work->session, LIBSSH2_METHOD_HOSTKEY, "rsa-sha2-256")) {
		note(&work->auth.unsupported, "%s is an RSA key, and this libssh2 has no rsa-sha2",
			what);
	}
}

/* ---- the agent ---- */

struct signing {
	struct agent *agent;
	const struct agent_key *key;
};

static int sign_by_agent(LIBSSH2_SESSION *session, unsigned char **out_signature, size_t *out_len,
	const unsigned char *data, size_t len, void **abstract)
{
	struct signing *signing = *abstract;
	struct error err;
	struct span bytes = {(const char *)data, len};
	return agent_sign(signing->agent, signing->key, bytes, out_signature, out_len, &err) ? 0
	                                                                                     : -1;
}

/* Whether the configuration names this key, where only such may be used. */
static bool may_use(struct login_work *work, struct span blob)
{
	bool is_named = !work->target.identities_only;
	for (char **path = work->target.identity_files; *path && !is_named; path++) {
		struct key_file key;
		struct error err;
		if (key_file_read(*path, &key, &err)) {
			is_named = span_equals(buf_span(&key.blob), blob);
			key_file_finish(&key);
		}
	}
	return is_named;
}

static enum auth_result try_agent_key(
	struct login_work *work, struct agent *agent, const struct agent_key *key)
{
	char type[64];
	char what[160];
	key_blob_type(key->blob, type, sizeof(type));
	snprintf(what, sizeof(what), "the agent's %s key %.*s", type,
		(int)(key->comment.len < 80 ? key->comment.len : 80), key->comment.data);
	if (key_type_is_special(type)) {
		note_special(work, type, what);
		return AUTH_NEXT;
	}
	struct signing signing = {agent, key};
	void *abstract = &signing;
	login_bound_call(work);
	int outcome = work->ssh2->userauth_publickey(work->session, work->target.user,
		(const unsigned char *)key->blob.data, key->blob.len, sign_by_agent, &abstract);
	enum auth_result result = auth_outcome(work, outcome, what);
	if (result == AUTH_NEXT) {
		note_special(work, type, what);
	}
	return result;
}

static enum auth_result try_agent(struct login_work *work, enum login_need *out_need)
{
	const char *path = work->target.identity_agent;
	if (!path || !server_takes(&work->auth, "publickey")) {
		return AUTH_NEXT;
	}
	struct error err;
	struct agent *agent = mem_alloc(sizeof(*agent));
	enum auth_result result = AUTH_NEXT;
	if (!agent_open(agent, path, work->deadline_ms, &work->is_aborted, &err)) {
		note(&work->auth.tried, "the agent at %s: %s", path, err.text);
		free(agent);
		return AUTH_NEXT;
	}
	if (agent->key_count == 0) {
		note(&work->auth.tried, "the agent at %s has no keys", path);
	}
	for (size_t i = 0; i < agent->key_count && result == AUTH_NEXT; i++) {
		if (may_use(work, agent->keys[i].blob)) {
			result = try_agent_key(work, agent, &agent->keys[i]);
		}
	}
	agent_close(agent);
	free(agent);
	return result;
}

/* ---- keys in files ---- */

static void note_certificate(struct login_work *work, const char *path)
{
	char certificate[PATH_MAX];
	snprintf(certificate, sizeof(certificate), "%s-cert.pub", path);
	if (access(certificate, R_OK) == 0) {
		note_special(work, "-cert-v0", certificate);
	}
}

static enum auth_result sign_by_file(
	struct login_work *work, const char *path, const struct key_file *key)
{
	const char *passphrase = key->is_encrypted ? work->auth.passphrase : NULL;
	login_bound_call(work);
	int outcome = work->ssh2->userauth_publickey_fromfile_ex(
		work->session, work->target.user, user_len(work), NULL, path, passphrase);
	enum auth_result result;
	if (outcome == LIBSSH2_ERROR_FILE && key->is_encrypted) {
		note(&work->auth.tried, "%s: the passphrase does not open it", path);
		result = AUTH_NEXT;
	} else {
		result = auth_outcome(work, outcome, path);
	}
	if (result == AUTH_NEXT) {
		note_special(work, key->type, path);
		note_certificate(work, path);
	}
	return result;
}

static enum auth_result try_key(
	struct login_work *work, const char *path, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	struct key_file key;
	struct error err;
	enum auth_result result = AUTH_NEXT;
	if (!key_file_read(path, &key, &err)) {
		if (err.code != ERROR_NOT_FOUND) {
			note(&auth->tried, "%s", err.text);
		}
		return AUTH_NEXT;
	}
	if (!key.is_private) {
		note(&auth->tried, "%s: only its public half is there", path);
	} else if (key_type_is_special(key.type)) {
		note_special(work, key.type, path);
	} else if (!key.is_encrypted || auth->passphrase) {
		result = sign_by_file(work, path, &key);
	} else if (!work->target.passphrase_command) {
		note(&auth->tried, "%s: it has a passphrase, and there is no passphrase-command",
			path);
	} else if (!auth->has_asked_passphrase) {
		auth->has_asked_passphrase = true;
		*out_need = LOGIN_NEEDS_PASSPHRASE;
		result = AUTH_ASK;
	} else {
		note(&auth->tried, "%s: it has a passphrase", path);
	}
	key_file_finish(&key);
	return result;
}

static enum auth_result try_keys(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	enum auth_result result = AUTH_NEXT;
	if (!server_takes(auth, "publickey")) {
		return AUTH_NEXT;
	}
	for (; work->target.identity_files[auth->key]; auth->key++) {
		result = try_key(work, work->target.identity_files[auth->key], out_need);
		if (result != AUTH_NEXT) {
			return result;
		}
	}
	return AUTH_NEXT;
}

/* ---- a password ---- */

static enum auth_result try_password(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	if (!work->target.password_command || !server_takes(auth, "password")) {
		return AUTH_NEXT;
	}
	if (!auth->password && !auth->has_asked_password) {
		auth->has_asked_password = true;
		*out_need = LOGIN_NEEDS_PASSWORD;
		return AUTH_ASK;
	}
	if (!auth->password) {
		return AUTH_NEXT;
	}
	login_bound_call(work);
	int outcome = work->ssh2->userauth_password_ex(work->session, work->target.user,
		user_len(work), auth->password, (unsigned int)strlen(auth->password), NULL);
	secret_free(auth->password);
	auth->password = NULL;
	return auth_outcome(work, outcome, "the password");
}

/*
 * A dialogue with a person, mostly a second factor: what the server still takes has changed where
 * it wants it after a key. Where a key or a password was refused, that is the news.
 */
static enum auth_result note_dialogue(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	login_bound_call(work);
	const char *methods =
		work->ssh2->userauth_list(work->session, work->target.user, user_len(work));
	if (methods && strcmp(methods, auth->methods) != 0) {
		note(&auth->unsupported, "the server wants more than one proof (now %s)", methods);
	} else if (auth->attempts == 0 && server_takes(auth, "keyboard-interactive")) {
		note(&auth->unsupported, "the server would ask questions (keyboard-interactive)");
	}
	return AUTH_NEXT;
}

static auth_step *const steps[] = {try_none, try_agent, try_keys, try_password, note_dialogue};

static bool auth_refused(struct login_work *work, struct error *err)
{
	const struct auth *auth = &work->auth;
	struct span tried = buf_span(&auth->tried);
	struct span unsupported = buf_span(&auth->unsupported);
	const char *methods = auth->methods ? auth->methods : "nothing";
	if (tried.len == 0) {
		tried = SPAN_LITERAL("no key, no agent and no password-command to try");
	}
	if (auth->is_lost) {
		return error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST",
			"logging in as %s: %.*s", work->target.user, (int)tried.len, tried.data);
	}
	if (unsupported.len > 0) {
		return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"logging in as %s by libssh2: %.*s: set ssh-client = openssh; tried: %.*s; "
			"the server takes %s",
			work->target.user, (int)unsupported.len, unsupported.data, (int)tried.len,
			tried.data, methods);
	}
	return error_set_reason(err, ERROR_DENIED, "AUTH_FAILED",
		"logging in as %s: %.*s; the server takes %s%s", work->target.user, (int)tried.len,
		tried.data, methods,
		server_takes(auth, "keyboard-interactive")
			? " (keyboard-interactive with ssh-client = openssh alone)"
			: "");
}

bool auth_run(struct login_work *work, enum login_need *out_need, struct error *err)
{
	struct auth *auth = &work->auth;
	for (; auth->step < ARRAY_LENGTH(steps); auth->step++) {
		switch (steps[auth->step](work, out_need)) {
		case AUTH_IN:
		case AUTH_ASK:
			return true;
		case AUTH_BROKEN:
			return auth_refused(work, err);
		case AUTH_NEXT:
			break;
		}
	}
	return auth_refused(work, err);
}

void auth_finish(struct auth *auth)
{
	free(auth->methods);
	secret_free(auth->passphrase);
	secret_free(auth->password);
	buf_finish(&auth->tried);
	buf_finish(&auth->unsupported);
}
