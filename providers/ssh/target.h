/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_H
#define PROVIDERS_SSH_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/span.h"

/*
 * Where to connect and how: what `ssh -G HOST` says (ssh_config(5)), the profile's own
 * keys above it, our defaults where ssh prints 0 or none. All tokens and `~` are
 * expanded. Plain data; made by target_resolve or by a provider that knows better.
 */
enum ssh_client_choice { SSH_CLIENT_LIBSSH2, SSH_CLIENT_OPENSSH, SSH_CLIENT_AUTO };

/* What is done with a host whose key is not known (StrictHostKeyChecking). */
enum ssh_host_checking {
	SSH_HOST_CHECKING_STRICT,     // yes, ask: refused
	SSH_HOST_CHECKING_ACCEPT_NEW, // written down
	SSH_HOST_CHECKING_OFF, // no, off: written down; a changed key is refused all the same
};

/*
 * What may be negotiated, as ssh_config(5) has it: names with commas. Their order is the
 * client's own affair.
 */
enum ssh_algorithms {
	SSH_KEX_ALGORITHMS,
	SSH_HOST_KEY_ALGORITHMS,
	SSH_CIPHERS,
	SSH_MACS,
	SSH_PUBKEY_ALGORITHMS, // PubkeyAcceptedAlgorithms
	SSH_ALGORITHMS_COUNT,
};

struct ssh_target {
	char *alias; // as the user wrote it
	char *host;  // HostName; an address or a name; IPv6 without brackets
	int port;
	int address_family;  // AddressFamily: AF_UNSPEC, AF_INET, AF_INET6
	bool user_is_secret; // a token: in no text, no log and on no command line
	char *user;
	char *host_key_alias;  // the name looked up in the known hosts; NULL: host
	char **identity_files; // NULL-terminated; may be missing on disk
	bool identities_only;
	char *identity_agent;            // socket; NULL: no agent is asked
	char **user_known_hosts_files;   // NULL-terminated
	char **global_known_hosts_files; // NULL-terminated
	char *revoked_host_keys;         // RevokedHostKeys; NULL: none
	char **certificate_files;        // NULL-terminated: CertificateFile; NULL: none
	enum ssh_host_checking host_checking;
	bool hash_known_hosts;
	bool has_known_hosts_command; // KnownHostsCommand is set
	bool verifies_by_dns;         // VerifyHostKeyDNS is yes
	char *host_key_pin;      // "SHA256:…" that the key must have, of the profile; NULL: none
	size_t host_key_turn;    // with a pin: the types that are asked for first (host_key_types)
	struct ssh_target *via;  // ProxyJump: the last hop, owned, with its own via; NULL: none
	char *proxy_command;     // a shell line; NULL: none
	char *unknown_setting;   // that libssh2's client does not know: "BindAddress 192.0.2.1"
	char *preferred_methods; // PreferredAuthentications, with commas; NULL: all
	bool avoids_keys;        // PubkeyAuthentication is no
	bool avoids_password;    // PasswordAuthentication is no
	bool avoids_questions;   // KbdInteractiveAuthentication is no
	bool trusts_loopback;    // NoHostAuthenticationForLocalhost is yes
	char *algorithms[SSH_ALGORITHMS_COUNT]; // NULL: what the client has
	bool has_kerberos;   // GSSAPIAuthentication, HostbasedAuthentication, PKCS11Provider:
	bool has_host_login; // for the ssh program alone
	bool has_smart_card;
	bool has_user;      // to be asked by the ssh program, for a passphrase say
	bool names_tickets; // KRB5CCNAME is set: there may be a ticket of Kerberos
	char **set_env;     // NULL-terminated NAME=value; for the remote environment
	long long connect_timeout_ms;
	long long auth_timeout_ms;
	long long alive_interval_ms; // between keepalives; 0: none
	int alive_count_max;
	enum ssh_client_choice client;
	char *passphrase_command; // a shell line that prints it; NULL: none
	char *password_command;
	bool allows_none;  // authentication by no more than the user's name (gateways)
	char *ssh_program; // found on PATH; NULL: there is none
	char *config_file; // ssh -F; NULL: ssh's own
};

void ssh_target_finish(struct ssh_target *target); // zeroed, or filled in by half, is fine

/*
 * Where ssh and what it names in its configuration run, and what relative names of files in there
 * are below: the broker's folder, or / where that is gone.
 */
const char *ssh_folder(char buffer[PATH_MAX]);

/* The user's name for people: a secret one is not shown. */
const char *ssh_target_user_shown(const struct ssh_target *target);
/*
 * What to do about keys in these files (", " between), whose passphrase nobody can be asked for:
 * a sentence. Returns text.
 */
const char *ssh_target_tell_locked(const char *files, char *text, size_t size);
/* For what libssh2 cannot do: ": set ssh-client = openssh", or "" where that is no way. */
const char *ssh_target_other_client(const struct ssh_target *target);

/* Of enum ssh_algorithms, as ssh_config(5) spells them. */
extern const char *const ssh_algorithms_names[SSH_ALGORITHMS_COUNT];

/* Whether a list of names with commas (RFC 4251, 5: name-list) has this one. NULL is empty. */
bool ssh_names_have(const char *names, struct span name);

/* Whether the ssh program does what libssh2 cannot: ssh-client is auto, and it is no secret's. */
bool ssh_target_may_use_program(const struct ssh_target *target);

/*
 * Reads what `ssh -G` prints for one host. Unknown keywords are skipped; a value that
 * cannot be read is ERROR_CONFIG, naming the keyword. The environment has what names of
 * files refer to. On failure there is nothing to finish. `out_jumps` is the text of
 * ProxyJump, the caller's to free, or NULL; the hops are for ssh_target_resolve.
 */
bool ssh_target_read(struct span text, const char *const *environment,
	struct ssh_target *out_target, char **out_jumps, struct error *err) ATTR_NODISCARD;

/*
 * Resolves the `host` of a profile (docs/ssh.md), its hops included: runs `ssh -G`, each
 * time for resolve-timeout at most, on the loop. Without an ssh program: the profile's keys
 * alone. Raises done once, not before it returns; the target is the callee's to copy and
 * finish, and the resolving is gone by then. Context and settings are borrowed until then.
 * ERROR_CONFIG at once where `host` is missing or no name of one.
 */
struct provider_context;
struct ssh_resolving;
typedef void ssh_resolve_done(void *data, struct ssh_target *target, const struct error *err);
struct ssh_resolving *ssh_target_resolve(const struct provider_context *context,
	const struct settings *settings, ssh_resolve_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void ssh_resolving_cancel(struct ssh_resolving *resolving); // before done; NULL is fine

/* The keys of a profile that say where and how to connect. */
extern const struct setting_key ssh_target_keys[];
extern const size_t ssh_target_key_count;

#endif
