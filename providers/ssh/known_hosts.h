/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_KNOWN_HOSTS_H
#define PROVIDERS_SSH_KNOWN_HOSTS_H

#include "base/span.h"
#include "providers/ssh/target.h"

/*
 * The keys of known hosts, from files as sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT", describes them. We
 * read the files ourselves. Blocks; for a worker thread.
 */
enum { KNOWN_HOSTS_FILE_MAX = 8 * 1024 * 1024, HOST_KEY_FINGERPRINT_MAX = 64 };

struct host_key {
	const char *type; // "ssh-ed25519", as in the blob
	struct span blob; // as on the wire (RFC 4253, 6.6)
};

enum known_hosts_verdict {
	KNOWN_HOSTS_MATCH,    // the host is known with this key
	KNOWN_HOSTS_UNKNOWN,  // no key of the host is known
	KNOWN_HOSTS_MISMATCH, // the host is known with other keys
	KNOWN_HOSTS_REVOKED,
};

struct known_hosts_finding {
	enum known_hosts_verdict verdict;
	char file[512]; // the file of the line that decided; "": none
	size_t line;
	char fingerprint[HOST_KEY_FINGERPRINT_MAX]; // of the key in that line
	/*
	 * A @cert-authority line names the host, with or without its port. A client that can read
	 * certificates may accept the host in spite of other plain keys.
	 */
	bool has_authority;
};

/*
 * The name under which we look up the host's keys, as ssh(1) does: HostKeyAlias without a port;
 * otherwise HostName, or "[HostName]:port" unless the port is 22; in lower case. The caller frees
 * it.
 */
char *known_hosts_name(const struct ssh_target *target);

/*
 * Looks for the key of the target's host in all its files. If "[host]:port" has no key, a matching
 * key of the host without a port counts, as in ssh; a key without a port that does not match is
 * ignored. A key is revoked if it is revoked under either name. Unreadable lines are skipped, as in
 * ssh. A missing file counts as empty; one that cannot be read is an error.
 */
bool known_hosts_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err) ATTR_NODISCARD;

/*
 * Whether the key is in the target's RevokedHostKeys (ssh_config(5)): KNOWN_HOSTS_REVOKED or
 * KNOWN_HOSTS_UNKNOWN. As in ssh, fails if a file cannot be read. Also fails if a file has the
 * binary format (SSH_UNSUPPORTED).
 */
bool revoked_keys_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err) ATTR_NODISCARD;

/*
 * The types of the host's known keys, best first, which the negotiation should prefer. For an RSA
 * key these are the names of its signatures. NULL-terminated, static texts, at most `max` with the
 * NULL.
 */
bool known_hosts_types(const struct ssh_target *target, const char **out_types, size_t max,
	struct error *err) ATTR_NODISCARD;

/*
 * Appends the host's key to the first user file, which it creates if necessary (mode 0600, its
 * folder 0700).
 */
bool known_hosts_add(const struct ssh_target *target, const struct host_key *key,
	struct error *err) ATTR_NODISCARD;

/* The line that known_hosts_add would write, not hashed, for people. The caller frees it. */
char *known_hosts_line(const struct ssh_target *target, const struct host_key *key);

/*
 * A pin does not say the type of its key, and a server shows only one of its keys. So we try the
 * types in turns, one connection for each turn. Returns the types of key, and names of signatures,
 * that the connection of this turn prefers; NULL after the last turn. NULL-terminated, static.
 */
enum { HOST_KEY_TURN_RSA = 2 };
const char *const *host_key_types(size_t turn);

/*
 * The file in which a host usually has its key of this type ("ssh-rsa", or the name of a
 * signature); people compare its fingerprint there.
 */
const char *host_key_file(struct span type);

/* Returns text: "SHA256:…" as ssh-keygen -l prints it. */
const char *host_key_fingerprint(struct span blob, char text[HOST_KEY_FINGERPRINT_MAX]);

/*
 * Decides about the key that a server shows: by the pin, then the files, then host_checking. If the
 * settings say so, adds the key to a file, and reports that in `out_note`, which is empty
 * otherwise. HOST_KEY_MISMATCH and HOST_KEY_UNKNOWN have the fingerprint; the latter also has the
 * line to add, and the command that adds it. SSH_UNSUPPORTED: no file knows the host, but something
 * else may vouch for its key, and only the ssh program can ask it. If another key is known, only a
 * @cert-authority may vouch, and only if the ssh program is asked.
 */
bool host_key_decide(const struct ssh_target *target, const struct host_key *key, char *out_note,
	size_t note_size, struct error *err) ATTR_NODISCARD;

#endif
