/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_KNOWN_HOSTS_H
#define PROVIDERS_SSH_KNOWN_HOSTS_H

#include "base/span.h"
#include "providers/ssh/target.h"

/*
 * The keys of hosts that are known: files as sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT",
 * describes them, read by ourselves. Blocks; for a worker thread.
 */
enum { KNOWN_HOSTS_FILE_MAX = 8 * 1024 * 1024, HOST_KEY_FINGERPRINT_MAX = 64 };

struct host_key {
	const char *type; // "ssh-ed25519", as in its blob
	struct span blob; // as on the wire (RFC 4253, 6.6)
};

enum known_hosts_verdict {
	KNOWN_HOSTS_MATCH,    // this key is known for the host
	KNOWN_HOSTS_UNKNOWN,  // no key of the host is known
	KNOWN_HOSTS_MISMATCH, // others are, and not this one
	KNOWN_HOSTS_REVOKED,
};

struct known_hosts_finding {
	enum known_hosts_verdict verdict;
	char file[512]; // the line that decided; "" where there is none
	size_t line;
	char fingerprint[HOST_KEY_FINGERPRINT_MAX]; // of the key of that line
	/*
	 * A @cert-authority line names the host, with its port or without: a client that can read
	 * certificates may accept it, whatever plain keys are known.
	 */
	bool has_authority;
};

/*
 * The name that the host's keys are looked up by, as ssh(1) does: HostKeyAlias alone, whatever
 * the port; otherwise HostName, and "[HostName]:port" where that is not 22; in lower case. The
 * caller frees it.
 */
char *known_hosts_name(const struct ssh_target *target);

/*
 * Looks the key of the target's host up in all its files. Where nothing is known of
 * "[host]:port", a key that is known of the host without a port is taken, as ssh does; a
 * different one there says nothing. A revoked key is one under either name. Lines that cannot be
 * read are skipped, as ssh does. A file that is missing is empty; one that cannot be read is an
 * error.
 */
bool known_hosts_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err) ATTR_NODISCARD;

/*
 * Whether the key is in the target's RevokedHostKeys (ssh_config(5)): KNOWN_HOSTS_REVOKED, or
 * KNOWN_HOSTS_UNKNOWN where it is not. As with ssh a file that cannot be read is an error; so is
 * one in the binary format (SSH_UNSUPPORTED).
 */
bool revoked_keys_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err) ATTR_NODISCARD;

/*
 * The types of the keys that are known for the host, best first, NULL-terminated, static texts:
 * what is to be preferred in the negotiation; of an RSA key its signatures. At most `max` with the
 * NULL.
 */
bool known_hosts_types(const struct ssh_target *target, const char **out_types, size_t max,
	struct error *err) ATTR_NODISCARD;

/* Appends the host's key to the first user file, which is made (0600, its folder 0700). */
bool known_hosts_add(const struct ssh_target *target, const struct host_key *key,
	struct error *err) ATTR_NODISCARD;

/* The line that known_hosts_add would write, unhashed: for people. The caller frees it. */
char *known_hosts_line(const struct ssh_target *target, const struct host_key *key);

/*
 * A pin does not say of which type its key is, and a server shows one key of several: the types
 * of key that a connection asks for first, in this turn; NULL after the last turn. Names of
 * signatures are among them. NULL-terminated, static.
 */
enum { HOST_KEY_TURN_RSA = 2 };
const char *const *host_key_types(size_t turn);

/*
 * Where a host mostly has the key of a type ("ssh-rsa", also as a signature is called): the file
 * that its fingerprint is compared with, there.
 */
const char *host_key_file(struct span type);

/* "SHA256:…" as ssh-keygen -l prints it; returns text. */
const char *host_key_fingerprint(struct span blob, char text[HOST_KEY_FINGERPRINT_MAX]);

/*
 * What is done about a key at connect: pin first, then the files, then host_checking;
 * writes it down where that is asked for, and says so in `out_note` (may stay empty).
 * HOST_KEY_MISMATCH and HOST_KEY_UNKNOWN with the fingerprint and, for the latter, the line
 * to add and the command that adds it. SSH_UNSUPPORTED where something may vouch for a key
 * of a host that no file knows, and the ssh program alone can ask it. Where another key is
 * known, only a @cert-authority may, and only where that program is asked then.
 */
bool host_key_decide(const struct ssh_target *target, const struct host_key *key, char *out_note,
	size_t note_size, struct error *err) ATTR_NODISCARD;

#endif
