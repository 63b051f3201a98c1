/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/shell_quote.h"
#include "base/text.h"
#include "base/base64.h"
#include "providers/ssh/crypto.h"
#include "providers/ssh/known_hosts.h"

enum { COMMAND_MAX = 768 }; // nobody would read a longer one

static const char pin_prefix[] = "SHA256:";

const char *const *host_key_types(size_t turn)
{
	static const char *const types[][4] = {
		{"ssh-ed25519"},
		{"ecdsa-sha2-nistp256"},
		[HOST_KEY_TURN_RSA] = {"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"},
		{"ecdsa-sha2-nistp384"},
		{"ecdsa-sha2-nistp521"},
	};
	return turn < ARRAY_LENGTH(types) ? types[turn] : NULL;
}

const char *host_key_fingerprint(struct span blob, char text[HOST_KEY_FINGERPRINT_MAX])
{
	uint8_t digest[CRYPTO_SHA256_SIZE];
	struct error err;
	if (!crypto_sha256(blob, digest, &err)) {
		snprintf(text, HOST_KEY_FINGERPRINT_MAX, "SHA256:?");
		return text;
	}
	char *encoded = base64_encode((struct span){(const char *)digest, sizeof(digest)});
	size_t len = strcspn(encoded, "=");
	text_whole(text, HOST_KEY_FINGERPRINT_MAX, "%s%.*s", pin_prefix, (int)len, encoded);
	free(encoded);
	return text;
}

const char *host_key_file(struct span type)
{
	static const struct {
		const char *begins;
		const char *file;
	} files[] = {
		{"ssh-ed25519", "/etc/ssh/ssh_host_ed25519_key.pub"},
		{"ecdsa-", "/etc/ssh/ssh_host_ecdsa_key.pub"},
		{"ssh-rsa", "/etc/ssh/ssh_host_rsa_key.pub"},
		{"rsa-", "/etc/ssh/ssh_host_rsa_key.pub"},
		{"ssh-dss", "/etc/ssh/ssh_host_dsa_key.pub"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		if (span_starts_with(type, span_of(files[i].begins))) {
			return files[i].file;
		}
	}
	return "/etc/ssh/ssh_host_*_key.pub";
}

struct decision {
	const struct ssh_target *target;
	const struct host_key *key;
	struct known_hosts_finding finding;
	char fingerprint[HOST_KEY_FINGERPRINT_MAX];
	char *name; // as in the files
};

/* ---- refusals ---- */

static bool refuse_pin(const struct decision *decision, struct error *err)
{
	return error_set_reason(err, ERROR_DENIED, "HOST_KEY_MISMATCH",
		"the key of %s is not the host-key of the profile: it is %s %s "
		"instead of %s. Nothing was sent to the host. Find out why the key "
		"has changed before you change host-key",
		decision->name, decision->key->type, decision->fingerprint,
		decision->target->host_key_pin);
}

static bool refuse_revoked(const struct decision *decision, struct error *err)
{
	return error_set_reason(err, ERROR_DENIED, "HOST_KEY_MISMATCH",
		"the key of %s was revoked: %s:%zu marks %s %s. Nothing was sent "
		"to the host",
		decision->name, decision->finding.file, decision->finding.line, decision->key->type,
		decision->fingerprint);
}

static bool refuse_changed(const struct decision *decision, struct error *err)
{
	char *file = shell_quote(decision->finding.file);
	char *name = shell_quote(decision->name);
	bool has_authority = decision->finding.has_authority;
	error_set_reason(err, ERROR_DENIED, "HOST_KEY_MISMATCH",
		"the key of %s is not the known one: it is %s %s, and %s:%zu has %s. Somebody may "
		"be intercepting the connection, or the host has been reinstalled; nothing was "
		"sent to it%s%s. If its key was changed on purpose: ssh-keygen -f %s -R %s",
		decision->name, decision->key->type, decision->fingerprint, decision->finding.file,
		decision->finding.line, decision->finding.fingerprint,
		has_authority ? "; a @cert-authority is known for it, too, but only the ssh "
				"program understands that"
			      : "",
		has_authority ? ssh_target_other_client(decision->target) : "", file, name);
	free(file);
	free(name);
	return false;
}

/* The setting by which something else may vouch for a key that is in no file; NULL: none. */
static const char *other_voucher(const struct decision *decision)
{
	if (decision->finding.has_authority) {
		return "the @cert-authority for it in known_hosts";
	}
	if (decision->target->has_known_hosts_command) {
		return "KnownHostsCommand";
	}
	return decision->target->verifies_by_dns ? "DNS (VerifyHostKeyDNS)" : NULL;
}

static bool refuse_to_ask(const struct decision *decision, const char *voucher, struct error *err)
{
	return error_set_reason(err, ERROR_CONFIG, "SSH_UNSUPPORTED",
		"no file has the key that %s shows (%s %s); %s may vouch for it, "
		"but only the ssh program understands that%s",
		decision->name, decision->key->type, decision->fingerprint, voucher,
		ssh_target_other_client(decision->target));
}

/* Leaves out the line if a huge key makes it too long. */
static bool refuse_unknown(const struct decision *decision, struct error *err)
{
	const struct ssh_target *target = decision->target;
	const char *path =
		target->user_known_hosts_files ? target->user_known_hosts_files[0] : NULL;
	char *line = known_hosts_line(target, decision->key);
	char *quoted_line = shell_quote(line);
	char *file = shell_quote(path ? path : "known_hosts");
	char command[COMMAND_MAX];
	int len = snprintf(command, sizeof(command), "echo %s >> %s", quoted_line, file);
	if (len >= (int)sizeof(command) || len < 0) {
		text_format(command, sizeof(command), "ssh-keyscan -p %d %s >> %s", target->port,
			target->host, file);
	}
	error_set_reason(err, ERROR_DENIED, "HOST_KEY_UNKNOWN",
		"no key of %s is known; it is %s %s. If the host's own key (there: ssh-keygen -lf "
		"%s) is the same: connect once with \"ssh %s\", which asks, or %s",
		decision->name, decision->key->type, decision->fingerprint,
		host_key_file(span_of(decision->key->type)),
		target->alias ? target->alias : target->host, command);
	free(line);
	free(quoted_line);
	free(file);
	return false;
}

/* ---- the decision ---- */

/*
 * If another key is known, only an authority could vouch for this one: a host with a certificate
 * may change its plain keys. But ssh itself refuses a changed key without a certificate.
 */
static bool is_changed(const struct decision *decision)
{
	return decision->finding.verdict == KNOWN_HOSTS_MISMATCH &&
	       !(decision->finding.has_authority && ssh_target_may_use_program(decision->target));
}

/* Compares fingerprints as users copy them: with or without "SHA256:" and padding. */
static bool is_pinned(const char *pin, const char *fingerprint)
{
	size_t prefix = sizeof(pin_prefix) - 1;
	pin += strncmp(pin, pin_prefix, prefix) == 0 ? prefix : 0;
	fingerprint += prefix;
	size_t len = strcspn(pin, "=");
	return len > 1 && len == strlen(fingerprint) && strncmp(pin, fingerprint, len) == 0;
}

/*
 * A key that cannot be recorded would be unknown again next time. So it is refused, unless every
 * key is accepted.
 */
static bool accept_new(
	const struct decision *decision, char *out_note, size_t note_size, struct error *err)
{
	const struct ssh_target *target = decision->target;
	struct error failure;
	if (!known_hosts_add(target, decision->key, &failure)) {
		text_format(out_note, note_size, "the key of %s is not known: %s %s; %s",
			decision->name, decision->key->type, decision->fingerprint, failure.text);
		return target->host_checking == SSH_HOST_CHECKING_OFF ||
		       error_set(err, failure.code, "%s", failure.text);
	}
	text_format(out_note, note_size,
		"the key of %s was not known and is now recorded: %s %s, in %s", decision->name,
		decision->key->type, decision->fingerprint, target->user_known_hosts_files[0]);
	return true;
}

static bool decide(struct decision *decision, char *out_note, size_t note_size, struct error *err)
{
	const struct ssh_target *target = decision->target;
	if (!revoked_keys_check(target, decision->key, &decision->finding, err)) {
		return false;
	}
	if (decision->finding.verdict == KNOWN_HOSTS_REVOKED) {
		return refuse_revoked(decision, err);
	}
	if (target->host_key_pin && !is_pinned(target->host_key_pin, decision->fingerprint)) {
		return refuse_pin(decision, err);
	}
	if (!known_hosts_check(target, decision->key, &decision->finding, err)) {
		return false;
	}
	if (decision->finding.verdict == KNOWN_HOSTS_REVOKED) {
		return refuse_revoked(decision, err);
	}
	bool needs_no_proof = target->trusts_loopback && !target->host_key_alias;
	if (target->host_key_pin || needs_no_proof ||
		decision->finding.verdict == KNOWN_HOSTS_MATCH) {
		return true;
	}
	if (is_changed(decision)) {
		return refuse_changed(decision, err);
	}
	const char *voucher = other_voucher(decision);
	if (voucher) {
		return refuse_to_ask(decision, voucher, err);
	}
	return target->host_checking == SSH_HOST_CHECKING_STRICT
	               ? refuse_unknown(decision, err)
	               : accept_new(decision, out_note, note_size, err);
}

bool host_key_decide(const struct ssh_target *target, const struct host_key *key, char *out_note,
	size_t note_size, struct error *err)
{
	struct decision decision = {.target = target, .key = key, .name = known_hosts_name(target)};
	if (note_size > 0) {
		out_note[0] = '\0';
	}
	host_key_fingerprint(key->blob, decision.fingerprint);
	bool ok = decide(&decision, out_note, note_size, err);
	free(decision.name);
	return ok;
}
