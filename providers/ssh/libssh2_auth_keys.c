/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/ssh/libssh2_agent.h"
#include "providers/ssh/libssh2_algorithms.h"
#include "providers/ssh/libssh2_auth.h"
#include "providers/ssh/libssh2_key_file.h"
#include "providers/ssh/libssh2_session.h"

/* Authentication by keys: those of the agent, then those in files that the agent does not have. */

/* ssh-rsa means SHA-1, which servers refuse today; libssh2 signs with SHA-2 from 1.11 on. */
static bool has_sha2(const struct login_work *work)
{
	return ssh2_supports(work->ssh2, work->session, LIBSSH2_METHOD_HOSTKEY, "rsa-sha2-256");
}

static void note_special(struct login_work *work, const char *type, const char *what)
{
	if (strncmp(type, "sk-", 3) == 0) {
		auth_note(&work->auth.unsupported, "%s is a FIDO key", what);
	} else if (strstr(type, "-cert-v0")) {
		auth_note(&work->auth.unsupported, "%s is a certificate", what);
	} else if (strcmp(type, "ssh-rsa") == 0 && !has_sha2(work)) {
		auth_note(&work->auth.unsupported,
			"%s is an RSA key, and this libssh2 has no rsa-sha2", what);
	}
}

/*
 * Each key is offered once, whether it comes from the agent or a file, because servers count
 * attempts.
 */
static bool was_offered(const struct auth *auth, struct span blob)
{
	struct span rest = buf_span(&auth->offered);
	struct span other;
	while (wire_take_string(&rest, &other)) {
		if (span_equals(other, blob)) {
			return true;
		}
	}
	return false;
}

static void note_offered(struct auth *auth, struct span blob)
{
	/* A key that does not fit may be offered again. */
	if (blob.len > 0 && auth->offered.len + WIRE_U32_SIZE + blob.len <= AUTH_OFFERED_MAX) {
		(void)!wire_put_string(&auth->offered, blob, NULL);
	}
}

/* ---- the agent ---- */

struct signing {
	const struct ssh2 *ssh2;
	struct agent *agent;
	const struct agent_key *key;
	bool has_failed;
	struct error err;
};

/* The library frees the signature. */
static int sign_by_agent(LIBSSH2_SESSION *session, unsigned char **out_signature, size_t *out_len,
	const unsigned char *data, size_t len, void **abstract)
{
	struct signing *signing = *abstract;
	struct span bytes = {(const char *)data, len};
	unsigned char *signature;
	size_t size;
	signing->has_failed =
		!agent_sign(signing->agent, signing->key, bytes, &signature, &size, &signing->err);
	if (signing->has_failed) {
		return -1;
	}
	*out_signature = ssh2_session_alloc(signing->ssh2, session, size);
	if (*out_signature) {
		memcpy(*out_signature, signature, size);
		*out_len = size;
	}
	free(signature);
	return *out_signature ? 0 : -1;
}

/* Whether the configuration names this key. */
static bool is_key_named(struct login_work *work, struct span blob)
{
	bool is_named = false;
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

/* An RSA key has several signatures. Older libraries support only SHA-1, newer ones all. */
static bool allows_rsa(const struct login_work *work)
{
	const struct ssh_target *target = &work->target;
	return ssh2_allows(target, SSH_PUBKEY_ALGORITHMS, "rsa-sha2-512") ||
	       ssh2_allows(target, SSH_PUBKEY_ALGORITHMS, "rsa-sha2-256");
}

/*
 * Whether the user's configuration allows this key; if not, notes that. If the file does not show
 * its type, it counts as allowed.
 */
static bool is_allowed(struct login_work *work, const char *type, const char *what)
{
	if (!type[0] || ssh2_allows(&work->target, SSH_PUBKEY_ALGORITHMS, type)) {
		return true;
	}
	if (strcmp(type, "ssh-rsa") == 0 && allows_rsa(work)) {
		note_special(work, type, what);
		return has_sha2(work);
	}
	auth_note(&work->auth.tried, "%s: PubkeyAcceptedAlgorithms does not allow %s", what, type);
	return false;
}

static enum auth_result try_agent_key(
	struct login_work *work, struct agent *agent, const struct agent_key *key)
{
	char type[64];
	char what[160];
	key_blob_type(key->blob, type, sizeof(type));
	text_format(what, sizeof(what), "the agent's %s key %.*s", type, (int)key->comment.len,
		key->comment.data);
	if (key_type_is_special(type)) {
		note_special(work, type, what);
		return AUTH_NEXT;
	}
	if (!is_allowed(work, type, what)) {
		return AUTH_NEXT;
	}
	struct signing signing = {.ssh2 = work->ssh2, .agent = agent, .key = key};
	void *abstract = &signing;
	login_bound_call(work);
	int outcome = work->ssh2->userauth_publickey(work->session, work->target.user,
		(const unsigned char *)key->blob.data, key->blob.len, sign_by_agent, &abstract);
	if (signing.has_failed) {
		/* The key's file may work. */
		auth_note(&work->auth.tried, "%s: the agent refuses to sign: %s", what,
			signing.err.text);
		return AUTH_NEXT;
	}
	note_offered(&work->auth, key->blob);
	enum auth_result result = auth_outcome(work, outcome, what);
	if (result == AUTH_NEXT) {
		note_special(work, type, what);
	}
	return result;
}

/* Tries the keys that the configuration names, or the others. */
static enum auth_result try_agent_keys(struct login_work *work, struct agent *agent, bool named)
{
	enum auth_result result = AUTH_NEXT;
	for (size_t i = 0; i < agent->key_count && result == AUTH_NEXT; i++) {
		struct span blob = agent->keys[i].blob;
		if (!was_offered(&work->auth, blob) && is_key_named(work, blob) == named) {
			result = try_agent_key(work, agent, &agent->keys[i]);
		}
	}
	return result;
}

enum auth_result auth_try_agent(struct login_work *work, enum login_need *out_need)
{
	const char *path = work->target.identity_agent;
	if (!path || !auth_may_try(work, "publickey")) {
		return AUTH_NEXT;
	}
	struct error err;
	struct agent *agent = mem_alloc(sizeof(*agent));
	if (!agent_open(agent, path, work->deadline_ms, &work->is_aborted, &err)) {
		auth_note(&work->auth.tried, "the agent at %s: %s", path, err.text);
		free(agent);
		return AUTH_NEXT;
	}
	if (agent->key_count == 0) {
		auth_note(&work->auth.tried, "the agent at %s has no keys", path);
	}
	enum auth_result result = try_agent_keys(work, agent, true);
	if (result == AUTH_NEXT && !work->target.identities_only) {
		result = try_agent_keys(work, agent, false);
	}
	agent_close(agent);
	free(agent);
	return result;
}

/* ---- keys in files ---- */

static void note_certificate(struct login_work *work, const char *path)
{
	char certificate[PATH_MAX];
	text_whole(certificate, sizeof(certificate), "%s-cert.pub", path);
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
		work->session, work->target.user, auth_user_len(work), NULL, path, passphrase);
	enum auth_result result;
	if (outcome == LIBSSH2_ERROR_FILE && key->is_encrypted) {
		auth_note(&work->auth.tried, "%s: the passphrase does not open it", path);
		work->auth.has_locked = true;
		result = AUTH_NEXT;
	} else {
		note_offered(&work->auth, buf_span(&key->blob));
		result = auth_outcome(work, outcome, path);
	}
	if (result == AUTH_NEXT) {
		note_special(work, key->type, path);
		note_certificate(work, path);
	}
	return result;
}

/*
 * When libssh2 1.11 with OpenSSL 3 derives the public half of an ECDSA key in a file, it passes
 * memory of the session's allocator to free(), which ends the program. A file that does not show
 * its type may contain such a key.
 */
static bool is_unsafe(const struct login_work *work, const struct key_file *key)
{
	return (strncmp(key->type, "ecdsa-", 6) == 0 || !key->type[0]) && has_sha2(work);
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
			auth_note(&auth->tried, "%s", err.text);
		}
		return AUTH_NEXT;
	}
	if (was_offered(auth, buf_span(&key.blob))) {
		/* The agent has the key, too. */
	} else if (!key.is_private) {
		auth_note(&auth->tried, "%s: the private half is missing", path);
	} else if (key_type_is_special(key.type)) {
		note_special(work, key.type, path);
	} else if (!is_allowed(work, key.type, path)) {
		/* This was noted. */
	} else if (is_unsafe(work, &key)) {
		auth_note(&auth->unsupported, "%s is an ECDSA key%s, which this libssh2 cannot use",
			path, key.type[0] ? "" : ", or may be one");
	} else if (!key.is_encrypted || auth->passphrase) {
		result = sign_by_file(work, path, &key);
	} else if (!work->target.passphrase_command && work->target.has_user) {
		auth_note(&auth->unsupported, "%s has a passphrase, and you must be asked for it",
			path);
	} else if (!work->target.passphrase_command) {
		(void)!buf_append_format(&auth->locked, NULL, "%s%s",
			auth->locked.len > 0 ? ", " : "", path); // the first few are enough
		auth->has_locked = true;
	} else if (!auth->has_asked_passphrase) {
		auth->has_asked_passphrase = true;
		*out_need = LOGIN_NEEDS_PASSPHRASE;
		result = AUTH_ASK;
	} else {
		auth_note(&auth->tried, "%s: it has a passphrase", path);
	}
	key_file_finish(&key);
	return result;
}

/* Notes the certificates in the user's configuration: they belong to a key that was refused. */
static void note_certificates(struct login_work *work)
{
	char *const *files = work->target.certificate_files;
	for (; files && *files; files++) {
		if (access(*files, R_OK) == 0) {
			note_special(work, "-cert-v0", *files);
		}
	}
}

enum auth_result auth_try_keys(struct login_work *work, enum login_need *out_need)
{
	struct auth *auth = &work->auth;
	enum auth_result result = AUTH_NEXT;
	if (!auth_may_try(work, "publickey")) {
		return AUTH_NEXT;
	}
	for (; work->target.identity_files[auth->key]; auth->key++) {
		result = try_key(work, work->target.identity_files[auth->key], out_need);
		if (result != AUTH_NEXT) {
			return result;
		}
	}
	note_certificates(work);
	return AUTH_NEXT;
}
