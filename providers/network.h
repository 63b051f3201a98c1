/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_NETWORK_H
#define PROVIDERS_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"

/*
 * What a profile says about its sandbox's network. Every backend has these keys. If a backend
 * cannot enforce one, it warns or fails.
 */
enum network_mode { NETWORK_OPEN, NETWORK_BLOCKED, NETWORK_ALLOW, NETWORK_ASK };

enum network_ingress {
	NETWORK_INGRESS_UNSAID,
	NETWORK_INGRESS_CLOSED,
	NETWORK_INGRESS_PUBLIC,
};

enum {
	NETWORK_ENTRIES_MAX = 256, // of each list
	NETWORK_NAME_SIZE = 256,
};

struct network_policy {
	enum network_mode mode;
	/*
	 * NULL-terminated, never NULL, without duplicates; empty unless the mode is NETWORK_ALLOW
	 * or NETWORK_ASK.
	 */
	char **hosts; // entries that network_host_read accepts, in lower case
	char **cidrs; // networks as inet_ntop(3) writes them: "10.0.0.0/8", "2001:db8::/32"
	enum network_ingress ingress;
	bool is_required; // fail if something cannot be enforced
};

/*
 * An entry of `hosts`: "example.com"; "*.example.com" for every name below it; either one with
 * ":443" for only that port; or "localhost:5432", a service on the broker's machine.
 */
struct network_host {
	char name[NETWORK_NAME_SIZE]; // without "*."
	bool is_below;                // the entry is for every name below that one
	bool is_service;              // a service on this machine; the name is "localhost"
	uint16_t port;                // 0: every port
};
bool network_host_read(struct network_host *out, const char *entry) ATTR_NODISCARD;

/*
 * Whether the entry covers a name and a port. A service covers none, because names never lead to
 * one.
 */
bool network_host_has(const struct network_host *host, const char *name, uint16_t port);

extern const char *const network_modes[]; // in the order of the enumeration, NULL-terminated

/*
 * Reads checked settings. Fails with ERROR_CONFIG, which says what was expected; then *out_key is
 * the wrong key, and there is nothing to finish.
 */
bool network_policy_read(struct network_policy *policy, const struct settings *settings,
	const char **out_key, struct error *err) ATTR_NODISCARD;
void network_policy_finish(struct network_policy *policy);

/* What a backend can enforce; all false: nothing. */
struct network_abilities {
	bool blocks;         // network = blocked
	bool allows_hosts;   // allow-host
	bool allows_cidrs;   // allow-cidr
	bool asks;           // enforces network = ask; if false, that mode is always an error
	bool opens_ingress;  // public-ingress = true
	bool closes_ingress; // public-ingress = false
	/* The limits of the lists that it enforces. */
	size_t entries_max;  // in each list; 0: NETWORK_ENTRIES_MAX
	bool needs_domains;  // host names need two labels or more, the last one of letters only
	bool needs_ipv4;     // only IPv4 networks
	bool takes_ports;    // hosts may have a port
	size_t services_max; // services of this machine among the hosts; 0: none
	/* The settings that would let it enforce `network`, in words; or NULL. */
	const char *remedy;
};

/*
 * One sentence for each part of the policy that a backend with these abilities does not enforce.
 * NULL-terminated, never NULL; the caller frees it with words_free.
 */
char **network_policy_unenforced(const struct network_policy *policy,
	const struct network_abilities *abilities, const char *backend) ATTR_NODISCARD;

/*
 * Reads the settings and returns the sentences of network_policy_unenforced. Fails with
 * ERROR_CONFIG if the settings cannot be read, or if the backend does not accept their lists. Fails
 * with the reason NETWORK_NOT_ENFORCED if there are sentences and the profile says `required`, or
 * if the profile says `network = ask` and the backend cannot ask.
 */
bool network_policy_check(const struct settings *settings,
	const struct network_abilities *abilities, const char *backend, char ***out_warnings,
	struct error *err) ATTR_NODISCARD;

#endif
