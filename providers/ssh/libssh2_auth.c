/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/text.h"
#include "providers/ssh/libssh2_auth.h"

/* Authentication: none, keys of the agent, keys in files, a password, questions. */

void auth_note(struct buf *notes, const char *format, ...)
{
	char text[AUTH_TEXT_MAX / 2];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	/* A note that no longer fits is dropped: there are many reasons by then. */
	(void)!buf_append_format(notes, NULL, "%s%s", notes->len ? "; " : "", text);
}

static bool is_avoided(const struct ssh_target *target, struct span method)
{
	return (target->avoids_keys && span_is(method, "publickey")) ||
	       (target->avoids_password && span_is(method, "password")) ||
	       (target->avoids_questions && span_is(method, "keyboard-interactive"));
}

bool auth_may_try(const struct login_work *work, const char *method)
{
	const struct ssh_target *target = &work->target;
	struct span name = span_of(method);
	return ssh_names_have(work->auth.methods, name) &&
	       (!target->preferred_methods || ssh_names_have(target->preferred_methods, name)) &&
	       !is_avoided(target, name);
}

/* If no answer comes, the library reports a key that was not accepted. */
static bool has_server_gone(const struct login_work *work)
{
	char byte;
	ssize_t count = recv(work->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return count == 0 || (count < 0 && !io_is_transient(errno));
}

static enum auth_result note_gone(struct login_work *work, const char *what)
{
	/* After several refusals the server may have closed the connection for that reason. */
	work->auth.is_lost = work->auth.attempts == 1;
	auth_note(&work->auth.tried, "%s: the server has closed the connection", what);
	return AUTH_BROKEN;
}

/*
 * One proof was not enough. The library does not distinguish a proof that was accepted, but needs
 * another one beside it (RFC 4252, 5.1), from one that was refused. But after a partial success,
 * the server lists other methods.
 */
static enum auth_result look_for_more(struct login_work *work, const char *what)
{
	struct auth *auth = &work->auth;
	login_bound_call(work);
	const char *methods =
		work->ssh2->userauth_list(work->session, work->target.user, auth_user_len(work));
	if (work->ssh2->userauth_authenticated(work->session)) {
		return AUTH_IN;
	}
	if (!methods) {
		return note_gone(work, what);
	}
	if (strcmp(methods, auth->methods) == 0) {
		auth_note(&auth->tried, "%s: refused", what);
		return AUTH_NEXT;
	}
	auth_note(&auth->tried, "%s: accepted, but the server wants another proof", what);
	mem_set_text(&auth->methods, methods);
	auth->attempts = 0;
	return AUTH_MORE;
}

static enum auth_result auth_refusal(struct login_work *work, bool is_proof, const char *what)
{
	if (has_server_gone(work)) {
		return note_gone(work, what);
	}
	if (is_proof) {
		return look_for_more(work, what);
	}
	auth_note(&work->auth.tried, "%s: refused", what);
	return AUTH_NEXT;
}

enum auth_result auth_outcome(struct login_work *work, int outcome, const char *what)
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
		return auth_refusal(work, false, what);
	case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED: // the server knows the key
		return auth_refusal(work, true, what);
	default:
		auth_note(&work->auth.tried, "%s: %s", what,
			ssh2_last_text(work->ssh2, work->session));
		return AUTH_NEXT;
	}
}

enum auth_result auth_proof_outcome(struct login_work *work, int outcome, const char *what)
{
	if (outcome != LIBSSH2_ERROR_AUTHENTICATION_FAILED) {
		return auth_outcome(work, outcome, what);
	}
	work->auth.attempts++;
	return auth_refusal(work, true, what);
}

unsigned int auth_user_len(const struct login_work *work)
{
	return (unsigned int)strlen(work->target.user);
}

static enum auth_result try_none(struct login_work *work, enum login_need *out_need)
{
	login_bound_call(work);
	const char *methods =
		work->ssh2->userauth_list(work->session, work->target.user, auth_user_len(work));
	if (work->ssh2->userauth_authenticated(work->session)) {
		return AUTH_IN;
	}
	if (!methods) {
		return auth_outcome(
			work, work->ssh2->session_last_errno(work->session), "the user's name");
	}
	work->auth.methods = mem_strdup(methods);
	if (work->target.allows_none) {
		auth_note(&work->auth.tried, "the user's name alone: refused");
	}
	return AUTH_NEXT;
}

/* ---- a password ---- */

static enum auth_result try_password(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	if (!auth_may_try(work, "password")) {
		return AUTH_NEXT;
	}
	if (!work->target.password_command) {
		if (work->target.has_user) {
			auth_note(&auth->unsupported, "you cannot be asked for the password");
		}
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
		auth_user_len(work), auth->password, (unsigned int)strlen(auth->password), NULL);
	mem_wipe_free(auth->password);
	auth->password = NULL;
	return auth_proof_outcome(work, outcome, "the password");
}

enum { STEP_NONE, STEP_AGENT };
static auth_step *const steps[] = {
	[STEP_NONE] = try_none,
	[STEP_AGENT] = auth_try_agent,
	auth_try_keys,
	try_password,
	auth_try_dialogue,
};

/*
 * On some systems GSSAPIAuthentication is set for every host, and many servers offer it. Without a
 * ticket it is useless, and the ssh program would try all keys and the password again.
 */
static bool may_have_ticket(struct login_work *work)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/krb5cc_%u", (unsigned int)getuid());
	if (work->target.names_tickets || access(path, F_OK) == 0) {
		return true;
	}
	if (work->target.has_kerberos && auth_may_try(work, "gssapi-with-mic")) {
		auth_note(&work->auth.tried,
			"Kerberos (GSSAPIAuthentication): there is no ticket (KRB5CCNAME is not "
			"set, and there is no %s)",
			path);
	}
	return false;
}

/* Notes the other proofs that the user's configuration would try and the server would accept. */
static void note_other_proofs(struct login_work *work)
{
	const struct ssh_target *target = &work->target;
	const struct {
		bool is_set;
		const char *method;
		const char *text;
	} proofs[] = {
		{target->has_kerberos && may_have_ticket(work), "gssapi-with-mic",
			"Kerberos (GSSAPIAuthentication)"},
		{target->has_host_login, "hostbased", "this host's key (HostbasedAuthentication)"},
		{target->has_smart_card, "publickey", "a smart card (PKCS11Provider)"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(proofs); i++) {
		if (proofs[i].is_set && auth_may_try(work, proofs[i].method)) {
			auth_note(&work->auth.unsupported, "%s is not tried", proofs[i].text);
		}
	}
}

static bool is_restricted(const struct ssh_target *target)
{
	return target->avoids_keys || target->avoids_password || target->avoids_questions ||
	       target->preferred_methods;
}

/* A key whose passphrase is missing is named before those that were refused. */
static void say_tried(const struct auth *auth, char *text, size_t size)
{
	size_t len = 0;
	text[0] = '\0';
	if (auth->locked.len > 0) {
		char *files = mem_strndup(buf_span(&auth->locked));
		len = strlen(ssh_target_tell_locked(files, text, size));
		free(files);
	}
	struct span tried = buf_span(&auth->tried);
	if (tried.len > 0) {
		text_append(text, size, "%s%.*s", len > 0 ? "; " : "", (int)tried.len, tried.data);
	}
}

static bool auth_refused(struct login_work *work, struct error *err)
{
	const struct auth *auth = &work->auth;
	if (auth->tried.len == 0 && auth->locked.len == 0) {
		auth_note(&work->auth.tried,
			is_restricted(&work->target)
				? "ssh_config allows nothing to try (PubkeyAuthentication, "
				  "PasswordAuthentication, KbdInteractiveAuthentication, "
				  "PreferredAuthentications)"
				: "no key, no agent and no password-command to try");
	}
	note_other_proofs(work);
	char tried[3 * AUTH_TEXT_MAX];
	struct span unsupported = buf_span(&auth->unsupported);
	say_tried(auth, tried, sizeof(tried));
	const char *methods = auth->methods ? auth->methods : "nothing";
	const char *user = ssh_target_user_shown(&work->target);
	if (auth->is_lost) {
		return error_set_reason(
			err, ERROR_UNAVAILABLE, "LINK_LOST", "logging in as %s: %s", user, tried);
	}
	if (unsupported.len > 0) {
		return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
			"logging in as %s by libssh2: %.*s%s; tried: %s; the server takes %s", user,
			(int)unsupported.len, unsupported.data,
			ssh_target_other_client(&work->target), tried, methods);
	}
	return error_set_reason(err, ERROR_DENIED, "AUTH_FAILED",
		"logging in as %s: %s; the server takes %s%s", user, tried, methods,
		auth_may_try(work, "keyboard-interactive") && !work->target.user_is_secret &&
				auth->locked.len == 0
			? " (only ssh-client = openssh answers questions of "
			  "keyboard-interactive other than for the password)"
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
		case AUTH_MORE:
			if (++auth->proofs == AUTH_PROOFS_MAX) {
				return auth_refused(work, err);
			}
			auth->step = STEP_NONE; // the next step follows
			auth->key = 0;
			break;
		case AUTH_NEXT:
			break;
		}
	}
	return auth_refused(work, err);
}

void auth_finish(struct auth *auth)
{
	free(auth->methods);
	mem_wipe_free(auth->passphrase);
	mem_wipe_free(auth->password);
	buf_finish(&auth->tried);
	buf_finish(&auth->locked);
	buf_finish(&auth->unsupported);
	buf_finish(&auth->offered);
}
