/* SPDX-License-Identifier: MIT */
#include "providers/network.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/address.h"

enum {
	HOST_NAME_MAX_BYTES = 253, // RFC 1035, section 2.3.4, without the trailing dot
	HOST_LABEL_MAX_BYTES = 63,
	CIDR_TEXT_MAX = ADDRESS_TEXT_SIZE + 4,
	QUOTED_MAX = 96,
	SENTENCE_MAX = 256,
};

const char *const network_modes[] = {"open", "blocked", "allow", "ask", NULL};

static const struct setting_key ingress_key = {.name = "public-ingress", .type = SETTING_BOOL};
static const struct setting_key required_key = {
	.name = "required", .type = SETTING_BOOL, .fallback = "false"};

/* ---- host names ---- */

/*
 * RFC 1123, section 2.1: letters, digits and hyphens; a label neither begins nor ends with a
 * hyphen. Some hosts also have underscores in their names.
 */
static bool label_is_valid(const char *label, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	if (len == 0 || len > HOST_LABEL_MAX_BYTES || label[0] == '-' || label[len - 1] == '-') {
		return false;
	}
	return strspn(label, allowed) >= len;
}

/* The last label of a name is never all digits, because that would be an address. */
static bool name_is_valid(const char *at)
{
	if (strlen(at) > HOST_NAME_MAX_BYTES) {
		return false;
	}
	for (;;) {
		size_t len = strcspn(at, ".");
		if (!label_is_valid(at, len)) {
			return false;
		}
		if (!at[len]) {
			return strspn(at, "0123456789") < len;
		}
		at += len + 1;
	}
}

/* "443", without leading zeros. */
static bool port_is_valid(const char *text, uint16_t *out_port)
{
	size_t len = strlen(text);
	if (len == 0 || len > 5 || text[0] == '0' || strspn(text, "0123456789") != len) {
		return false;
	}
	long port = strtol(text, NULL, 10);
	*out_port = (uint16_t)port;
	return port <= UINT16_MAX;
}

bool network_host_read(struct network_host *out, const char *entry)
{
	*out = (struct network_host){.is_below = strncmp(entry, "*.", 2) == 0};
	const char *name = entry + (out->is_below ? 2 : 0);
	size_t len = strcspn(name, ":");
	if (!text_whole(out->name, sizeof(out->name), "%.*s", (int)len, name) ||
		!name_is_valid(out->name) ||
		(name[len] && !port_is_valid(name + len + 1, &out->port))) {
		return false;
	}
	out->is_service = !out->is_below && strcmp(out->name, "localhost") == 0;
	return !out->is_service || out->port != 0;
}

bool network_host_has(const struct network_host *host, const char *name, uint16_t port)
{
	size_t len = strlen(name);
	size_t end = strlen(host->name);
	if (host->is_service || (host->port != 0 && host->port != port)) {
		return false;
	}
	if (!host->is_below) {
		return strcmp(host->name, name) == 0;
	}
	return len > end + 1 && name[len - end - 1] == '.' &&
	       strcmp(name + len - end, host->name) == 0;
}

static bool read_host(const char *value, char ***words, struct error *err)
{
	char quoted[QUOTED_MAX];
	struct network_host read;
	char *host = mem_strdup(value);
	for (char *at = host; *at; at++) {
		if (*at >= 'A' && *at <= 'Z') {
			*at = (char)(*at - 'A' + 'a');
		}
	}
	bool is_valid = network_host_read(&read, host);
	if (is_valid) {
		words_append(words, host);
	}
	free(host);
	return is_valid || error_set(err, ERROR_CONFIG,
				   "expected the name of a host, like example.com, *.example.com, "
				   "example.com:443 for one port, or localhost:5432 for a service "
				   "of this machine, without scheme or path (an address goes into "
				   "allow-cidr), got %s",
				   setting_quote(quoted, sizeof(quoted), value));
}

/* ---- networks ---- */

static unsigned family_bits(const struct address_network *network)
{
	return network->address.family == AF_INET ? 32 : 128;
}

/* Clears the bits of the host; returns whether any of them was set. */
static bool clear_host_bits(struct address_network *network)
{
	bool was_set = false;
	uint8_t *bytes = network->address.bytes;
	for (unsigned bit = network->bits; bit < family_bits(network); bit++) {
		unsigned char mask = (unsigned char)(0x80U >> (bit % 8));
		was_set |= (bytes[bit / 8] & mask) != 0;
		bytes[bit / 8] &= (unsigned char)~mask;
	}
	return was_set;
}

static bool read_cidr(const char *value, char ***words, struct error *err)
{
	char quoted[QUOTED_MAX];
	char address[ADDRESS_TEXT_SIZE];
	char text[CIDR_TEXT_MAX];
	struct address_network network;
	setting_quote(quoted, sizeof(quoted), value);
	if (!address_parse_network(&network, value)) {
		return error_set(err, ERROR_CONFIG,
			"expected a network, like 10.0.0.0/8, 2001:db8::/32 or, for one address, "
			"192.0.2.7/32, got %s",
			quoted);
	}
	bool has_host_bits = clear_host_bits(&network);
	address_print(&network.address, address);
	text_whole(text, sizeof(text), "%s/%u", address, network.bits);
	if (has_host_bits) {
		return error_set(err, ERROR_CONFIG,
			"expected the network %s, or /%u for the one address, got %s", text,
			family_bits(&network), quoted);
	}
	words_append(words, text);
	return true;
}

/* ---- a profile's keys ---- */

static bool words_contain_last(char **words, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		if (strcmp(words[i], words[count - 1]) == 0) {
			return true;
		}
	}
	return false;
}

static bool read_list(const struct settings *settings, const char *key,
	bool (*read)(const char *value, char ***words, struct error *err), char ***words,
	struct error *err)
{
	*words = mem_alloc_zero(sizeof(**words));
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		if (strcmp(setting->key, key) != 0) {
			continue;
		}
		if (!read(setting->value, words, err)) {
			return false;
		}
		size_t count = words_count(*words);
		if (words_contain_last(*words, count)) {
			free((*words)[count - 1]);
			(*words)[count - 1] = NULL;
		} else if (count > NETWORK_ENTRIES_MAX) {
			return error_set(err, ERROR_CONFIG, "expected at most %d of them",
				NETWORK_ENTRIES_MAX);
		}
	}
	return true;
}

static enum network_mode read_mode(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	int mode = NETWORK_OPEN;
	while (value && network_modes[mode] && strcmp(network_modes[mode], value) != 0) {
		mode++;
	}
	assert(network_modes[mode]); // the settings were checked before
	return (enum network_mode)mode;
}

/* Lists without a mode that uses them are an error, and so is the reverse. */
static bool check_together(
	const struct network_policy *policy, const char **out_key, struct error *err)
{
	bool has_entries = policy->hosts[0] || policy->cidrs[0];
	if (policy->mode == NETWORK_ALLOW && !has_entries) {
		*out_key = "network";
		return error_set(err, ERROR_CONFIG,
			"expected allow-host or allow-cidr as well, or network = blocked or ask");
	}
	if (policy->mode != NETWORK_ALLOW && policy->mode != NETWORK_ASK && has_entries) {
		*out_key = policy->hosts[0] ? "allow-host" : "allow-cidr";
		return error_set(err, ERROR_CONFIG,
			"expected network = allow or ask beside it: it has no effect with network "
			"= %s",
			network_modes[policy->mode]);
	}
	return true;
}

static bool read_all(struct network_policy *policy, const struct settings *settings,
	const char **out_key, struct error *err)
{
	policy->mode = read_mode(settings);
	*out_key = "allow-host";
	if (!read_list(settings, *out_key, read_host, &policy->hosts, err)) {
		return false;
	}
	*out_key = "allow-cidr";
	if (!read_list(settings, *out_key, read_cidr, &policy->cidrs, err)) {
		return false;
	}
	if (settings_find(settings, ingress_key.name)) {
		policy->ingress = settings_bool(settings, &ingress_key) ? NETWORK_INGRESS_PUBLIC
		                                                        : NETWORK_INGRESS_CLOSED;
	}
	policy->is_required = settings_bool(settings, &required_key);
	return check_together(policy, out_key, err);
}

bool network_policy_read(struct network_policy *policy, const struct settings *settings,
	const char **out_key, struct error *err)
{
	*policy = (struct network_policy){.mode = NETWORK_OPEN};
	if (read_all(policy, settings, out_key, err)) {
		return true;
	}
	network_policy_finish(policy);
	return false;
}

void network_policy_finish(struct network_policy *policy)
{
	words_free(policy->hosts);
	words_free(policy->cidrs);
	*policy = (struct network_policy){.mode = NETWORK_OPEN};
}

/* ---- what is not enforced ---- */

char **network_policy_unenforced(const struct network_policy *policy,
	const struct network_abilities *abilities, const char *backend)
{
	const struct {
		bool is_asked;
		bool is_enforced;
		const char *asked;
		const char *instead;
		const char *remedy;
	} rules[] = {
		{policy->mode == NETWORK_BLOCKED, abilities->blocks, "network = blocked",
			"programs there reach whatever that machine reaches", abilities->remedy},
		{policy->hosts[0] != NULL, abilities->allows_hosts, "allow-host",
			"programs there also reach other hosts", abilities->remedy},
		{policy->cidrs[0] != NULL, abilities->allows_cidrs, "allow-cidr",
			"programs there also reach other networks", abilities->remedy},
		{policy->ingress == NETWORK_INGRESS_PUBLIC, abilities->opens_ingress,
			"public-ingress = true", "its ports are not made public", NULL},
		{policy->ingress == NETWORK_INGRESS_CLOSED, abilities->closes_ingress,
			"public-ingress = false",
			"every host that reaches that machine reaches its ports", NULL},
	};
	char **sentences = mem_alloc_zero(sizeof(*sentences));
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
		char sentence[SENTENCE_MAX];
		if (rules[i].is_asked && !rules[i].is_enforced) {
			const char *remedy = rules[i].remedy;
			text_format(sentence, sizeof(sentence),
				"%s is not enforced by backend = %s: %s%s%s", rules[i].asked,
				backend, rules[i].instead, remedy ? "; " : "",
				remedy ? remedy : "");
			words_append(&sentences, sentence);
		}
	}
	return sentences;
}

/* ---- what a backend does not take ---- */

/*
 * "example.com" or "*.example.com", but not "host.x1" or "a_b.com". Services are checked elsewhere.
 */
static bool is_domain(const char *entry)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	struct network_host host;
	if (!network_host_read(&host, entry) || host.is_service) {
		return host.is_service;
	}
	const char *last = strrchr(host.name, '.');
	return last && strlen(last + 1) >= 2 && strspn(last + 1, letters) == strlen(last + 1) &&
	       !strchr(host.name, '_');
}

static bool is_service(const char *entry)
{
	struct network_host host;
	return network_host_read(&host, entry) && host.is_service;
}

static bool is_without_port(const char *entry)
{
	return !strchr(entry, ':') || is_service(entry);
}

static bool is_no_service(const char *entry)
{
	return !is_service(entry);
}

static bool is_ipv4(const char *cidr)
{
	return !strchr(cidr, ':');
}

static bool check_entries(char *const *entries, size_t max, bool (*is_taken)(const char *entry),
	const char *expected, struct error *err)
{
	size_t count = words_count((char **)entries);
	if (max > 0 && count > max) {
		return error_set(
			err, ERROR_CONFIG, "expected at most %zu of them, got %zu", max, count);
	}
	for (size_t i = 0; is_taken && i < count; i++) {
		if (!is_taken(entries[i])) {
			return error_set(
				err, ERROR_CONFIG, "expected %s, got %s", expected, entries[i]);
		}
	}
	return true;
}

static bool check_services(const struct network_policy *policy,
	const struct network_abilities *abilities, struct error *err)
{
	size_t count = 0;
	for (char *const *entry = policy->hosts; *entry; entry++) {
		count += is_service(*entry);
	}
	return abilities->services_max == 0 || count <= abilities->services_max ||
	       error_set(err, ERROR_CONFIG,
		       "allow-host: expected at most %zu services of this machine, got %zu",
		       abilities->services_max, count);
}

/* Lists that the backend does not enforce are not checked; a warning names them. */
static bool check_lists(const struct network_policy *policy,
	const struct network_abilities *abilities, const char *backend, struct error *err)
{
	const struct {
		const char *key;
		char *const *entries;
		bool is_enforced;
		bool (*is_taken)(const char *entry);
		const char *expected;
	} lists[] = {
		{"allow-host", policy->hosts, abilities->allows_hosts,
			abilities->services_max == 0 ? is_no_service : NULL,
			"a host that is not this machine"},
		{"allow-host", policy->hosts, abilities->allows_hosts,
			abilities->needs_domains ? is_domain : NULL,
			"a domain without underscores, whose last label has only letters"},
		{"allow-host", policy->hosts, abilities->allows_hosts,
			abilities->takes_ports ? NULL : is_without_port,
			"a host without a port: every port is allowed"},
		{"allow-cidr", policy->cidrs, abilities->allows_cidrs,
			abilities->needs_ipv4 ? is_ipv4 : NULL, "an IPv4 network"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		if (lists[i].is_enforced && !check_entries(lists[i].entries, abilities->entries_max,
						    lists[i].is_taken, lists[i].expected, err)) {
			return error_prefix(err, "%s with backend = %s", lists[i].key, backend);
		}
	}
	return check_services(policy, abilities, err);
}

/* A warning would not suffice: a user who wants to be asked does not want an open network. */
static bool check_asking(const struct network_policy *policy,
	const struct network_abilities *abilities, const char *backend, struct error *err)
{
	return policy->mode != NETWORK_ASK || abilities->asks ||
	       error_set_reason(err, ERROR_CONFIG, "NETWORK_NOT_ENFORCED",
		       "backend = %s cannot ask about connections (network = ask): %s", backend,
		       abilities->allows_hosts ? "use network = allow with allow-host there"
		       : abilities->remedy
			       ? abilities->remedy
			       : "only backend = local with confine = yes or required can");
}

bool network_policy_check(const struct settings *settings,
	const struct network_abilities *abilities, const char *backend, char ***out_warnings,
	struct error *err)
{
	struct network_policy policy;
	const char *key;
	if (!network_policy_read(&policy, settings, &key, err)) {
		return error_prefix(err, "%s", key);
	}
	if (!check_asking(&policy, abilities, backend, err) ||
		!check_lists(&policy, abilities, backend, err)) {
		network_policy_finish(&policy);
		return false;
	}
	char **warnings = network_policy_unenforced(&policy, abilities, backend);
	bool is_refused = policy.is_required && warnings[0];
	network_policy_finish(&policy);
	if (!is_refused) {
		*out_warnings = warnings;
		return true;
	}
	error_set_reason(err, ERROR_CONFIG, "NETWORK_NOT_ENFORCED",
		"%s, and the profile says required = true: use another backend, or remove the "
		"requirement",
		warnings[0]);
	words_free(warnings);
	return false;
}
