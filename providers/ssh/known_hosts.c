/* SPDX-License-Identifier: MIT */
#include "providers/ssh/known_hosts.h"

#include <assert.h>

#include "base/text.h"
#include "providers/ssh/known_hosts_file.h"

static struct span blob_of(const struct known_hosts_line *line)
{
	return (struct span){(const char *)line->blob, line->blob_len};
}

/* ---- one key ---- */

/* The place of the first line of some kind. */
struct place {
	bool is_found;
	char file[512];
	size_t line;
	char fingerprint[HOST_KEY_FINGERPRINT_MAX];
};

struct check {
	const struct host_key *key;
	struct place revoked;
	struct place same;       // the key, for the exact name
	struct place same_bare;  // the key, for the name without its port
	struct place other_type; // a different key for the exact name
	struct place other;      // like other_type, but of the key's own type
	bool has_authority;
};

static void note_place(struct place *place, const struct known_hosts_match *match)
{
	if (place->is_found) {
		return;
	}
	place->is_found = true;
	text_format(place->file, sizeof(place->file), "%s", match->file);
	place->line = match->number;
	host_key_fingerprint(blob_of(match->line), place->fingerprint);
}

static void on_line(void *data, const struct known_hosts_match *match)
{
	struct check *check = data;
	const struct known_hosts_line *line = match->line;
	bool is_same = span_equals(blob_of(line), check->key->blob);
	if (line->marker == KNOWN_HOSTS_MARK_AUTHORITY) {
		check->has_authority = true;
	} else if (line->marker == KNOWN_HOSTS_MARK_REVOKED) {
		if (is_same) {
			note_place(&check->revoked, match);
		}
	} else if (is_same) {
		note_place(match->is_bare ? &check->same_bare : &check->same, match);
	} else if (!match->is_bare) {
		note_place(
			span_is(line->type, check->key->type) ? &check->other : &check->other_type,
			match);
	}
}

static void decide(const struct check *check, struct known_hosts_finding *out_finding)
{
	const struct {
		enum known_hosts_verdict verdict;
		const struct place *place;
	} rules[] = {
		{KNOWN_HOSTS_REVOKED, &check->revoked},
		{KNOWN_HOSTS_MATCH, &check->same},
		{KNOWN_HOSTS_MISMATCH, &check->other},
		{KNOWN_HOSTS_MISMATCH, &check->other_type},
		{KNOWN_HOSTS_MATCH, &check->same_bare},
	};
	*out_finding = (struct known_hosts_finding){
		.verdict = KNOWN_HOSTS_UNKNOWN, .has_authority = check->has_authority};
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
		const struct place *place = rules[i].place;
		if (place->is_found) {
			out_finding->verdict = rules[i].verdict;
			out_finding->line = place->line;
			memcpy(out_finding->file, place->file, sizeof(place->file));
			memcpy(out_finding->fingerprint, place->fingerprint,
				sizeof(place->fingerprint));
			return;
		}
	}
}

bool known_hosts_check(const struct ssh_target *target, const struct host_key *key,
	struct known_hosts_finding *out_finding, struct error *err)
{
	struct check check = {.key = key};
	if (!known_hosts_each(target, on_line, &check, err)) {
		return false;
	}
	decide(&check, out_finding);
	return true;
}

/* ---- types of keys ---- */

static const char *const type_names[] = {
	"ssh-ed25519",
	"ecdsa-sha2-nistp256",
	"ecdsa-sha2-nistp384",
	"ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com",
	"sk-ecdsa-sha2-nistp256@openssh.com",
	"ssh-rsa", // and its other signatures, below
	"ssh-dss",
};

/* The signatures of an RSA key in the negotiation (RFC 8332, 3). */
static const char *const rsa_names[] = {"rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"};

struct types {
	bool is_known[ARRAY_LENGTH(type_names)];
	bool is_known_bare[ARRAY_LENGTH(type_names)];
	bool has_any;
};

static void on_typed_line(void *data, const struct known_hosts_match *match)
{
	struct types *types = data;
	if (match->line->marker != KNOWN_HOSTS_PLAIN) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(type_names); i++) {
		if (span_is(match->line->type, type_names[i])) {
			bool *known = match->is_bare ? types->is_known_bare : types->is_known;
			known[i] = true;
			types->has_any = types->has_any || !match->is_bare;
		}
	}
}

bool known_hosts_types(
	const struct ssh_target *target, const char **out_types, size_t max, struct error *err)
{
	assert(max > 0);
	struct types types = {0};
	if (!known_hosts_each(target, on_typed_line, &types, err)) {
		return false;
	}
	const bool *known = types.has_any ? types.is_known : types.is_known_bare;
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(type_names); i++) {
		bool is_rsa = strcmp(type_names[i], "ssh-rsa") == 0;
		const char *const *names = is_rsa ? rsa_names : &type_names[i];
		size_t names_count = is_rsa ? ARRAY_LENGTH(rsa_names) : 1;
		for (size_t j = 0; known[i] && j < names_count && count + 1 < max; j++) {
			out_types[count++] = names[j];
		}
	}
	out_types[count] = NULL;
	return true;
}
