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
 * What a profile says about the network of its sandbox: keys that every backend has, whether or not
 * it can do anything about them. What it cannot do is told, or is an error.
 */
enum network_mode { NETWORK_OPEN, NETWORK_BLOCKED, NETWORK_ALLOW };

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
	/* NULL-terminated, never NULL, each once; empty unless the mode is NETWORK_ALLOW. */
	char **hosts; // as network_host_read reads them, in lower case
	char **cidrs; // "10.0.0.0/8", "2001:db8::/32": networks, as inet_ntop(3) writes them
	enum network_ingress ingress;
	bool is_required; // what cannot be enforced is an error
};

/*
 * One of `hosts`: "example.com", "*.example.com" for every name below it, either with ":443" for
 * this port alone; or "localhost:5432", a service of the machine on which the broker runs.
 */
struct network_host {
	char name[NETWORK_NAME_SIZE]; // without "*."
	bool is_below;                // it is for every name below that one
	bool is_service;              // of this machine; the name is "localhost"
	uint16_t port;                // 0: every port
};
bool network_host_read(struct network_host *out, const char *entry) ATTR_NODISCARD;

/* Whether an entry is for a name and a port. No service is: names never lead to one. */
bool network_host_has(const struct network_host *host, const char *name, uint16_t port);

extern const char *const network_modes[]; // in the order of the enumeration, NULL-terminated

/*
 * Reads checked settings. ERROR_CONFIG with what was expected; *out_key is then the key that is
 * wrong, and nothing is to be finished.
 */
bool network_policy_read(struct network_policy *policy, const struct settings *settings,
	const char **out_key, struct error *err) ATTR_NODISCARD;
void network_policy_finish(struct network_policy *policy);

/* What a backend can enforce; nothing, where all are false. */
struct network_abilities {
	bool blocks;         // network = blocked
	bool allows_hosts;   // allow-host
	bool allows_cidrs;   // allow-cidr
	bool opens_ingress;  // public-ingress = true
	bool closes_ingress; // public-ingress = false
	/* What it takes of the lists, where it enforces them. */
	size_t entries_max;  // of each; 0: NETWORK_ENTRIES_MAX
	bool needs_domains;  // hosts of two labels or more, the last one of letters alone
	bool needs_ipv4;     // networks
	bool takes_ports;    // hosts with a port
	size_t services_max; // hosts that are services of this machine; 0: it takes none
	/* What the profile may say so that `network` is enforced, as words; or NULL. */
	const char *remedy;
};

/*
 * A sentence for each thing that the policy asks for and a backend of these abilities does not
 * enforce. NULL-terminated, never NULL; the caller's, words_free.
 */
char **network_policy_unenforced(const struct network_policy *policy,
	const struct network_abilities *abilities, const char *backend) ATTR_NODISCARD;

/*
 * Both in one: the sentences for what the settings ask for, or an error where they say
 * `required` and there are such (NETWORK_NOT_ENFORCED), or cannot be read, or the backend does not
 * take their lists. ERROR_CONFIG.
 */
bool network_policy_check(const struct settings *settings,
	const struct network_abilities *abilities, const char *backend, char ***out_warnings,
	struct error *err) ATTR_NODISCARD;

#endif
