/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "broker/cli/trial.h"
#include "providers/network.h"

/*
 * Checks whether the network matches the profile. Uses the sandbox's warnings, which come from the
 * platform's own settings, and tries one address of each kind from inside, because a platform may
 * ignore its settings.
 */

enum { PLACE_MAX = 280, HTTPS_PORT = 443, TRY_REACHED = 10, TRY_FAILED = 11, TRY_NO_TOOL = 12 };

/*
 * "$1" is the host and "$2" the port. On port 443 it requests a page, because a host may be refused
 * only by the name in its TLS handshake. On another port a sandbox may accept a connection before
 * it decides about it, so a connection that ends within 2 s counts as refused.
 */
static const char script[] =
	"if [ \"$2\" = 443 ] && command -v curl >/dev/null 2>&1; then\n"
	"\tcurl -s -m 8 -o /dev/null \"https://$1/\" && exit 10; exit 11\n"
	"fi\n"
	"if command -v bash >/dev/null 2>&1 && command -v timeout >/dev/null 2>&1; then\n"
	"\ttimeout 8 bash -c 'exec 3<>\"/dev/tcp/$0/$1\" || exit 1; read -r -n 1 -t 2 -u 3; "
	"[ $? -ne 1 ]' \"$1\" \"$2\" 2>/dev/null && exit 10; exit 11\n"
	"fi\n"
	"if command -v python3 >/dev/null 2>&1; then\n"
	"\tpython3 -c 'import socket, sys\n"
	"s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 8); s.settimeout(2)\n"
	"try:\n"
	"\tsys.exit(0 if s.recv(1) else 1)\n"
	"except socket.timeout:\n"
	"\tpass' \"$1\" \"$2\" 2>/dev/null && exit 10; exit 11\n"
	"fi\n"
	"exit 12\n";

static bool try_place(struct trial *trial, const char *place, int *out_outcome, struct error *err)
{
	char host[PLACE_MAX];
	const char *colon = strrchr(place, ':');
	if (!colon || colon == place || !colon[1] || strlen(place) >= sizeof(host) ||
		strspn(colon + 1, "0123456789") != strlen(colon + 1) || place[0] == '-') {
		return error_set(err, ERROR_CONFIG, "%.200s: expected HOST:PORT", place);
	}
	(void)text_whole(host, sizeof(host), "%.*s", (int)(colon - place), place);
	const char *const argv[] = {"/bin/sh", "-c", script, "sh", host, colon + 1, NULL};
	struct conformance_spec spec = {.argv = argv};
	struct conformance_result result;
	if (!conformance_run(&trial->place, &spec, &result, err)) {
		return false;
	}
	*out_outcome = result.status.code;
	conformance_result_finish(&result);
	return true;
}

/* The first host that the profile allows without a wildcard. */
static const char *first_host(const struct network_policy *policy, char place[PLACE_MAX])
{
	for (char **entry = policy->hosts; *entry; entry++) {
		struct network_host host;
		if (network_host_read(&host, *entry) && !host.is_below && !host.is_service) {
			unsigned port = host.port ? host.port : HTTPS_PORT;
			(void)text_whole(place, PLACE_MAX, "%s:%u", host.name, port);
			return place;
		}
	}
	return NULL;
}

static bool probe(struct trial *trial, const char *allowed, const char *refused,
	char note[TRIAL_NOTE_MAX], struct error *err)
{
	int outcome;
	if (!try_place(trial, refused, &outcome, err)) {
		return error_prefix(err, "probe-refused");
	}
	if (outcome == TRY_NO_TOOL) {
		text_format(note, TRIAL_NOTE_MAX,
			"the sandbox has no curl, bash or python3 to test it with");
		return true;
	}
	if (outcome != TRY_FAILED) {
		return error_set_reason(err, ERROR_DENIED, "NETWORK_NOT_ENFORCED",
			"%s was reached from inside, but the profile does not allow it "
			"(probe-refused)",
			refused);
	}
	if (allowed && !try_place(trial, allowed, &outcome, err)) {
		return error_prefix(err, "probe-allowed");
	}
	if (allowed && outcome != TRY_REACHED) {
		return error_set(err, ERROR_UNAVAILABLE,
			"%s was not reached from inside, but the profile allows it (probe-allowed)",
			allowed);
	}
	text_format(note, TRIAL_NOTE_MAX, "%s is refused%s%s%s", refused, allowed ? ", " : "",
		allowed ? allowed : "", allowed ? " is reached" : "");
	return true;
}

static const char *refused_place(
	const struct network_policy *policy, const char *set, char place[PLACE_MAX])
{
	static const char *const names[] = {"example.com", "example.org"};
	const char *name = names[0];
	if (set) {
		return set;
	}
	for (size_t i = ARRAY_LENGTH(names); i-- > 0;) {
		bool is_allowed = false;
		for (char **entry = policy->hosts; *entry; entry++) {
			struct network_host host;
			is_allowed |= network_host_read(&host, *entry) &&
			              network_host_has(&host, names[i], HTTPS_PORT);
		}
		name = is_allowed ? name : names[i];
	}
	(void)text_whole(place, PLACE_MAX, "%s:%d", name, HTTPS_PORT);
	return place;
}

bool trial_check_network(struct trial *trial, char note[TRIAL_NOTE_MAX], struct error *err)
{
	const struct settings *settings = &trial->means->config->profile.settings;
	const char *const *warnings = sandbox_warnings(trial->sandbox);
	struct network_policy policy;
	const char *key;
	char place[PLACE_MAX];
	if (!network_policy_read(&policy, settings, &key, err)) {
		return error_prefix(err, "%s", key);
	}
	const char *allowed = settings_get(settings, "probe-allowed");
	allowed = allowed ? allowed : first_host(&policy, place);
	char other[PLACE_MAX];
	const char *refused =
		refused_place(&policy, settings_get(settings, "probe-refused"), other);
	bool is_by_host = policy.mode == NETWORK_ALLOW || policy.mode == NETWORK_ASK;
	bool ok = warnings[0] ? error_set_reason(err, ERROR_DENIED, "NETWORK_NOT_ENFORCED", "%s",
					warnings[0])
	                      : probe(trial, is_by_host ? allowed : NULL, refused, note, err);
	network_policy_finish(&policy);
	return ok;
}
