/* SPDX-License-Identifier: MIT */
#include "broker/cli/policy_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "base/text.h"
#include "broker/cli/command.h"
#include "broker/cli/stderr_line.h"
#include "broker/ledger/state_folder.h"
#include "broker/policy/kept_hosts.h"
#include "providers/address.h"
#include "providers/network.h"

enum { TARGET_SIZE = NETWORK_NAME_SIZE + 16, HTTPS_PORT = 443, RULE_SIZE = NETWORK_NAME_SIZE + 32 };

/* ---- one host ---- */

/* "example.com:443", "192.0.2.1" or "[2001:db8::1]:22", from the command line. */
struct target {
	char host[NETWORK_NAME_SIZE]; // in lower case, without brackets
	uint16_t port;                // 0: none given
	bool is_address;
	struct address address;
};

static bool read_port(const char *text, uint16_t *out_port)
{
	size_t len = strlen(text);
	long port = len > 0 && len <= 5 && strspn(text, "0123456789") == len
	                    ? strtol(text, NULL, 10)
	                    : 0;
	*out_port = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX;
}

/* Whether a program could ask for this name (providers/provider.h, struct sandbox_wish). */
static bool is_name(const char *host)
{
	return host[0] && !host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.")];
}

static bool split(struct target *target, const char *word)
{
	bool is_six = word[0] == '[';
	const char *host = word + is_six;
	size_t len = strcspn(host, is_six ? "]" : ":");
	const char *rest = host + len + (is_six && host[len] == ']');
	return (!is_six || host[len] == ']') &&
	       text_whole(target->host, sizeof(target->host), "%.*s", (int)len, host) &&
	       (!rest[0] || (rest[0] == ':' && read_port(rest + 1, &target->port)));
}

static bool read_target(struct target *target, const char *word, struct error *err)
{
	char quoted[96];
	*target = (struct target){.port = 0};
	bool is_good = split(target, word);
	for (char *at = target->host; *at; at++) {
		*at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
	}
	target->is_address = is_good && address_parse(&target->address, target->host);
	return (is_good && (target->is_address || is_name(target->host))) ||
	       error_set(err, ERROR_CONFIG,
		       "expected a host, like example.com or example.com:443, got %s",
		       setting_quote(quoted, sizeof(quoted), word));
}

static bool find_state_folder(const char *const *environment, char **out_folder, struct error *err)
{
	*out_folder = state_folder_name(environment);
	return *out_folder || error_set(err, ERROR_CONFIG,
				      "there is no folder for the list of allowed hosts: set HOME "
				      "or XDG_STATE_HOME");
}

/* ---- policy list ---- */

struct listing {
	const struct kept_hosts *hosts;
	const char *profile; // NULL: every profile
};

static bool is_listed(const struct listing *listing, const struct kept_host *host)
{
	return !listing->profile || strcmp(listing->profile, host->profile) == 0;
}

static void write_list(struct json_writer *writer, const void *data)
{
	const struct listing *listing = data;
	json_write_key(writer, "hosts");
	json_write_array(writer);
	for (size_t i = 0; i < listing->hosts->count; i++) {
		const struct kept_host *host = &listing->hosts->items[i];
		if (is_listed(listing, host)) {
			json_write_object(writer);
			json_write_member(writer, "profile", host->profile);
			json_write_member(writer, "host", host->host);
			json_write_member_int(writer, "port", host->port);
			json_write_member(writer, "since", host->since);
			json_write_object_end(writer);
		}
	}
	json_write_array_end(writer);
}

static void print_host(const struct kept_host *host)
{
	char target[TARGET_SIZE];
	text_host_port(target, sizeof(target), host->host, host->port);
	char *profile = mask_line(span_of(host->profile));
	char *shown = mask_line(span_of(target));
	printf("%-20s %-40s %s\n", profile, shown, host->since);
	free(profile);
	free(shown);
}

static void print_list(const struct listing *listing)
{
	size_t count = 0;
	for (size_t i = 0; i < listing->hosts->count; i++) {
		if (is_listed(listing, &listing->hosts->items[i])) {
			if (count++ == 0) {
				printf("%-20s %-40s %s\n", "PROFILE", "HOST", "SINCE");
			}
			print_host(&listing->hosts->items[i]);
		}
	}
	if (count == 0) {
		stderr_note("no host is always allowed");
	}
}

bool policy_list_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err)
{
	char *folder;
	struct kept_hosts hosts = {.count = 0};
	const struct listing listing = {.hosts = &hosts, .profile = options->profile};
	if (!find_state_folder(environment, &folder, err)) {
		return false;
	}
	bool ok = kept_hosts_read(&hosts, folder, err);
	if (ok && (options->flags & OPTION_JSON)) {
		ok = command_print_json(write_list, &listing, err);
	} else if (ok) {
		print_list(&listing);
	}
	kept_hosts_finish(&hosts);
	free(folder);
	return ok;
}

/* ---- policy forget ---- */

bool policy_forget_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err)
{
	char *folder;
	struct target target;
	size_t count;
	if (!read_target(&target, options->words[0], err)) {
		return error_prefix(err, "policy forget");
	}
	if (!find_state_folder(environment, &folder, err)) {
		return false;
	}
	bool ok =
		kept_hosts_forget(folder, options->profile, target.host, target.port, &count, err);
	free(folder);
	if (ok && count == 0) {
		return error_set(err, ERROR_NOT_FOUND,
			"policy forget %s: there is no such answer; acp-broker policy list shows "
			"all of them",
			options->words[0]);
	}
	if (ok) {
		printf("forgot %zu\n", count);
	}
	return ok;
}

void policy_hosts_visit(
	const char *const *environment, void (*visit)(void *data, const char *target), void *data)
{
	struct error ignored;
	struct kept_hosts hosts = {.count = 0};
	char *folder = state_folder_name(environment);
	if (folder && kept_hosts_read(&hosts, folder, &ignored)) {
		for (size_t i = 0; i < hosts.count; i++) {
			char target[TARGET_SIZE];
			text_host_port(
				target, sizeof(target), hosts.items[i].host, hosts.items[i].port);
			visit(data, target);
		}
	}
	kept_hosts_finish(&hosts);
	free(folder);
}

/* ---- policy explain connect ---- */

struct verdict {
	enum policy_decision decision;
	char rule[RULE_SIZE];
	const char *source;
};

static void set(struct verdict *verdict, enum policy_decision decision, const char *source,
	const char *rule)
{
	verdict->decision = decision;
	verdict->source = source;
	text_format(verdict->rule, sizeof(verdict->rule), "%s", rule);
}

static void set_rule(struct verdict *verdict, const char *key, const char *entry)
{
	verdict->decision = POLICY_ALLOW_ONCE;
	verdict->source = "rule";
	text_format(verdict->rule, sizeof(verdict->rule), "%s = %s", key, entry);
}

/* The line that decides about the target. False: there is none. */
static bool find_line(
	const struct network_policy *policy, const struct target *target, struct verdict *verdict)
{
	for (char *const *entry = policy->hosts; !target->is_address && *entry; entry++) {
		struct network_host host;
		bool is_read = network_host_read(&host, *entry);
		bool is_service = is_read && host.is_service && host.port == target->port &&
		                  strcmp(target->host, host.name) == 0;
		if (is_service ||
			(is_read && network_host_has(&host, target->host, target->port))) {
			set_rule(verdict, "allow-host", *entry);
			return true;
		}
	}
	for (char *const *entry = policy->cidrs; target->is_address && *entry; entry++) {
		struct address_network network;
		if (address_reach(&target->address) != ADDRESS_NEVER &&
			address_parse_network(&network, *entry) &&
			address_is_in(&target->address, &network)) {
			set_rule(verdict, "allow-cidr", *entry);
			return true;
		}
	}
	return false;
}

/*
 * Whether the user can be asked; other targets are refused at once
 * (providers/local/cell_network.c).
 */
static bool may_be_asked(const struct target *target)
{
	return target->is_address ? address_reach(&target->address) == ADDRESS_PUBLIC
	                          : strcmp(target->host, "localhost") != 0;
}

static void decide_asking(const struct config *config, const struct kept_hosts *kept,
	const struct target *target, struct verdict *verdict)
{
	const struct policy_verdict unknown = policy_decide_unknown(config->profile.policy);
	if (!may_be_asked(target)) {
		set(verdict, POLICY_REJECT_ONCE, "mode", "network = ask");
	} else if (unknown.decision == POLICY_REJECT_ONCE) {
		set(verdict, POLICY_REJECT_ONCE, "mode", unknown.rule);
	} else if (kept_hosts_have(kept, config->profile.name, target->host, target->port)) {
		set(verdict, POLICY_ALLOW_ALWAYS, "remembered", "remembered: always allow");
	} else {
		set(verdict, POLICY_PENDING, "mode", "network = ask");
	}
}

static void decide(const struct config *config, const struct network_policy *policy,
	const struct kept_hosts *kept, const struct target *target, struct verdict *verdict)
{
	char mode[RULE_SIZE];
	text_format(mode, sizeof(mode), "network = %s", network_modes[policy->mode]);
	if (find_line(policy, target, verdict)) {
		return;
	}
	if (policy->mode == NETWORK_ASK) {
		decide_asking(config, kept, target, verdict);
	} else {
		set(verdict, policy->mode == NETWORK_OPEN ? POLICY_ALLOW_ONCE : POLICY_REJECT_ONCE,
			"mode", mode);
	}
}

static void write_verdict(struct json_writer *writer, const void *data)
{
	const struct verdict *verdict = data;
	json_write_member(writer, "operation", "network/connect");
	json_write_member(writer, "decision", policy_decision_name(verdict->decision));
	json_write_member(writer, "rule", verdict->rule);
	json_write_member(writer, "source", verdict->source);
	json_write_member_bool(writer, "guarded", false);
}

static bool print_verdict(
	const struct verdict *verdict, const struct options *options, struct error *err)
{
	const char *word = verdict->decision == POLICY_PENDING        ? "ask"
	                   : verdict->decision <= POLICY_ALLOW_ALWAYS ? "allow"
	                                                              : "deny";
	if (options->flags & OPTION_JSON) {
		return command_print_json(write_verdict, verdict, err);
	}
	printf("%-20s%s\n%-20s%s\n", "decision", word, "because of", verdict->rule);
	return true;
}

bool policy_hosts_explain(const struct config *config, const struct options *options,
	const char *const *environment, struct error *err)
{
	struct target target;
	struct network_policy policy;
	struct verdict verdict;
	struct kept_hosts kept = {.count = 0};
	const char *key;
	if (options->word_count > 2) {
		return error_set(err, ERROR_CONFIG, "policy explain connect: expected one host");
	}
	if (!read_target(&target, options->words[1], err)) {
		return error_prefix(err, "policy explain connect");
	}
	target.port = target.port ? target.port : HTTPS_PORT;
	if (!network_policy_read(&policy, &config->profile.settings, &key, err)) {
		return error_prefix(err, "%s", key);
	}
	char *folder = state_folder_name(environment);
	bool ok = !folder || kept_hosts_read(&kept, folder, err);
	if (ok) {
		decide(config, &policy, &kept, &target, &verdict);
		ok = print_verdict(&verdict, options, err);
	}
	kept_hosts_finish(&kept);
	network_policy_finish(&policy);
	free(folder);
	return ok;
}
