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
 * Where and how to connect. The values are those of `ssh -G HOST` (ssh_config(5)); the profile's
 * own keys override them, and our defaults stand in for values that are 0 or "none". All tokens and
 * `~` are expanded. Plain data, made by target_resolve or by a provider that knows the target
 * itself.
 */
enum ssh_client_choice { SSH_CLIENT_LIBSSH2, SSH_CLIENT_OPENSSH, SSH_CLIENT_AUTO };

/* What we do if the key of a host is unknown (StrictHostKeyChecking). */
enum ssh_host_checking {
	SSH_HOST_CHECKING_STRICT,     // yes, ask: refused
	SSH_HOST_CHECKING_ACCEPT_NEW, // added to the known hosts
	SSH_HOST_CHECKING_OFF,        // no, off: added; a changed key is still refused
};

/*
 * The algorithms that may be negotiated, as in ssh_config(5): names with commas. The client chooses
 * their order.
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
	char *host;  // HostName: an address or a name; IPv6 without brackets
	int port;
	int address_family;  // AddressFamily: AF_UNSPEC, AF_INET, AF_INET6
	bool user_is_secret; // a token: never put it into a text, a log or a command line
	char *user;
	char *host_key_alias;  // the name to look up in the known hosts; NULL: host
	char **identity_files; // NULL-terminated; the files may be missing
	bool identities_only;
	char *identity_agent;            // a socket; NULL: no agent is asked
	char **user_known_hosts_files;   // NULL-terminated
	char **global_known_hosts_files; // NULL-terminated
	char *revoked_host_keys;         // RevokedHostKeys; NULL: none
	char **certificate_files;        // NULL-terminated: CertificateFile; NULL: none
	enum ssh_host_checking host_checking;
	bool hash_known_hosts;
	bool has_known_hosts_command; // KnownHostsCommand is set
	bool verifies_by_dns;         // VerifyHostKeyDNS is yes
	char *host_key_pin;     // "SHA256:…", from the profile; the key must match; NULL: none
	size_t host_key_turn;   // with a pin: which types to ask for first (host_key_types)
	struct ssh_target *via; // ProxyJump: the last jump host, owned, with its own via; or NULL
	char *proxy_command;    // a shell command; NULL: none
	char *unknown_setting;  // a setting that the libssh2 client lacks: "BindAddress 192.0.2.1"
	/*
	 * LocalForward, RemoteForward, DynamicForward and ForwardAgent, as "LocalForward 8080
	 * [localhost]:80"; NULL: none. Only the ssh program supports them.
	 */
	char **forwards;
	bool forwards_agent;
	bool omits_forwards;                    // another connection of the session has them
	char *preferred_methods;                // PreferredAuthentications, with commas; NULL: all
	bool avoids_keys;                       // PubkeyAuthentication is no
	bool avoids_password;                   // PasswordAuthentication is no
	bool avoids_questions;                  // KbdInteractiveAuthentication is no
	bool trusts_loopback;                   // NoHostAuthenticationForLocalhost is yes
	char *algorithms[SSH_ALGORITHMS_COUNT]; // NULL: all that the client supports
	bool has_kerberos;   // one of GSSAPIAuthentication, HostbasedAuthentication, PKCS11Provider
	                     // is set:
	bool has_host_login; // only the ssh program supports these
	bool has_smart_card;
	bool has_user;      // the ssh program can ask somebody, for a passphrase for example
	bool names_tickets; // KRB5CCNAME is set: there may be a Kerberos ticket
	char **set_env;     // NULL-terminated NAME=value, for the remote environment
	long long connect_timeout_ms;
	long long auth_timeout_ms;
	long long alive_interval_ms; // between keepalives; 0: none
	int alive_count_max;
	enum ssh_client_choice client;
	char *passphrase_command; // a shell command that prints it; NULL: none
	char *password_command;
	bool allows_none;  // try to log in with the user's name alone (gateways)
	char *ssh_program; // found on PATH; NULL: missing
	char *config_file; // for ssh -F; NULL: ssh's own
};

void ssh_target_finish(struct ssh_target *target); // zeroed or partly filled is fine

/*
 * The folder in which ssh, and the programs that its configuration names, run; relative file names
 * in the configuration start there. It is the broker's folder, or / if that is gone.
 */
const char *ssh_folder(char buffer[PATH_MAX]);

/* The user's name for people; hides a secret one. */
const char *ssh_target_user_shown(const struct ssh_target *target);
/*
 * Returns text: one sentence that says what the user can do about keys in these files (", " between
 * them), because there is nobody whom we could ask for their passphrase.
 */
const char *ssh_target_tell_locked(const char *files, char *text, size_t size);
/* Advice if libssh2 lacks something: ": set ssh-client = openssh", or "" if that does not help. */
const char *ssh_target_other_client(const struct ssh_target *target);

/* The keywords of ssh_config(5), by enum ssh_algorithms. */
extern const char *const ssh_algorithms_names[SSH_ALGORITHMS_COUNT];

/*
 * Whether a list of names with commas (RFC 4251, 5: name-list) contains this one. NULL is an empty
 * list.
 */
bool ssh_names_have(const char *names, struct span name);

/*
 * Whether the ssh program may be used if libssh2 cannot connect. It may if ssh-client is auto and
 * the user's name is not a secret.
 */
bool ssh_target_may_use_program(const struct ssh_target *target);

/* Whether a connection to the target has the forwards. */
bool ssh_target_has_forwards(const struct ssh_target *target);

/*
 * Reads what `ssh -G` prints for one host. Skips unknown keywords; an unreadable value is
 * ERROR_CONFIG, which names the keyword. The environment has the variables that file names refer
 * to. On failure there is nothing to finish. `out_jumps` is the text of ProxyJump, for
 * ssh_target_resolve, or NULL; the caller frees it.
 */
bool ssh_target_read(struct span text, const char *const *environment,
	struct ssh_target *out_target, char **out_jumps, struct error *err) ATTR_NODISCARD;

/*
 * Resolves the `host` of a profile (docs/ssh.md) and its jump hosts: runs `ssh -G` for each, for at
 * most resolve-timeout, on the loop. Without an ssh program only the profile's keys count. Raises
 * done once, not before it returns; the callee copies and finishes the target, and the resolving is
 * already freed. Context and settings are borrowed until then. Fails with ERROR_CONFIG at once if
 * `host` is missing or is not the name of a host.
 */
struct provider_context;
struct ssh_resolving;
typedef void ssh_resolve_done(void *data, struct ssh_target *target, const struct error *err);
struct ssh_resolving *ssh_target_resolve(const struct provider_context *context,
	const struct settings *settings, ssh_resolve_done *done, void *data,
	struct error *err) ATTR_NODISCARD;
void ssh_resolving_cancel(struct ssh_resolving *resolving); // only before done; NULL is fine

/* The keys of a profile that say where and how to connect. */
extern const struct setting_key ssh_target_keys[];
extern const size_t ssh_target_key_count;

#endif
