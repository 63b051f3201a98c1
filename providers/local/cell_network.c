/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_network.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/local/net/network.h"
#include "providers/local/net/rules.h"

enum {
	TARGET_SIZE = NAME_SIZE + 8, // "NAME:PORT"
	RULE_SIZE = NETWORK_NAME_SIZE + 32,
	ADVICE_SIZE = TARGET_SIZE + 128,
	NOTICE_SIZE = TARGET_SIZE + ADVICE_SIZE + 128,
	REFUSALS_TOLD_MAX = 8,
	/* Whoever connects in a loop shall not push older lines out of the audit log. */
	LINES_AT_ONCE = 256,
	LINES_A_SECOND = 10,
};

/* A connection whose TLS server name may follow. */
struct connected {
	uint32_t id;
	char target[TARGET_SIZE];
	char rule[RULE_SIZE];
	enum network_way way;
};

struct cell_network {
	const struct cell_network_listener *listener;
	void *data;
	struct network *network;
	struct network_policy policy;
	char **refused; // owned: "NAME:PORT" of which the user was told
	bool is_ready;
	long long lines; // that may be raised now
	long long lines_since_ms;
	size_t left_out;                                     // since the last that was
	struct connected connected[NETWORK_CONNECTIONS_MAX]; // by id
};

static const char *const way_names[] = {[NETWORK_BY_SOCKET] = "socket",
	[NETWORK_BY_CONNECT] = "connect",
	[NETWORK_BY_SOCKS] = "socks"};

static const char *const result_names[] = {
	[NETWORK_CONNECTED] = "connected",
	[NETWORK_NOT_FOUND] = "not-found",
	[NETWORK_FORBIDDEN] = "forbidden",
	[NETWORK_UNREACHABLE] = "unreachable",
};

/* ---- the profile ---- */

bool cell_network_is_wanted(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	return value && strcmp(value, network_modes[NETWORK_ALLOW]) == 0;
}

static bool read_policy(
	struct network_policy *policy, const struct settings *settings, struct error *err)
{
	const char *key;
	return network_policy_read(policy, settings, &key, err) || error_prefix(err, "%s", key);
}

void cell_network_plan(const struct settings *settings, struct cell_plan *plan)
{
	struct network_policy policy;
	struct error err;
	if (!cell_network_is_wanted(settings)) {
		return;
	}
	plan->has_ports = true;
	if (read_policy(&policy, settings, &err)) { // it was checked
		plan->service_count = rules_services(&policy, plan->services);
		network_policy_finish(&policy);
	}
}

void cell_network_set_variables(const struct settings *settings, char ***environment)
{
	/* HTTP_PROXY is none of ours: docs/decisions/confinement.md. */
	static const char *const dropped[] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
		"https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"};
	static const char *const names[] = {"HTTPS_PROXY", "https_proxy"};
	char text[64];
	if (!cell_network_is_wanted(settings)) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(dropped); i++) {
		environment_drop(*environment, dropped[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		text_whole(text, sizeof(text), "%s=http://%s:%d", names[i], PORTS_GATE,
			PORTS_GATE_PORT);
		words_append(environment, text);
	}
	words_append(environment, "NO_PROXY=localhost,127.0.0.1,::1");
}

/* ---- what is said of a connection ---- */

/* "NAME:PORT", "[ADDRESS]:PORT" of IPv6. */
static void print_target(const struct network_connection *connection, char out[TARGET_SIZE])
{
	bool is_six = strchr(connection->name, ':') != NULL;
	text_whole(out, TARGET_SIZE, "%s%s%s:%u", is_six ? "[" : "", connection->name,
		is_six ? "]" : "", connection->port);
}

/* The line of the profile that allows it; false: none does. */
static bool find_rule(const struct cell_network *self, const struct network_connection *connection,
	char out[RULE_SIZE])
{
	const char *entry = NULL;
	switch (connection->target) {
	case NETWORK_TO_NAME:
		entry = rules_find_name(&self->policy, connection->name, connection->port);
		break;
	case NETWORK_TO_ADDRESS:
		entry = rules_find_address(&self->policy, &connection->address);
		break;
	case NETWORK_TO_SERVICE:
		entry = rules_find_service(&self->policy, connection->port);
		break;
	}
	text_whole(out, RULE_SIZE, "%s%s",
		entry ? (connection->target == NETWORK_TO_ADDRESS ? "allow-cidr = "
								  : "allow-host = ")
		      : "network = allow",
		entry ? entry : "");
	return entry != NULL;
}

static bool may_raise(struct cell_network *self)
{
	long long now_ms = clock_now_ms();
	long long more = (now_ms - self->lines_since_ms) * LINES_A_SECOND / 1000;
	if (more > 0) {
		self->lines =
			self->lines + more < LINES_AT_ONCE ? self->lines + more : LINES_AT_ONCE;
		self->lines_since_ms = now_ms;
	}
	if (self->lines == 0) {
		self->left_out++;
		return false;
	}
	self->lines--;
	return true;
}

static void say(struct cell_network *self, struct sandbox_connection *said)
{
	if (self->listener->on_connection && may_raise(self)) {
		said->left_out = self->left_out;
		self->left_out = 0;
		self->listener->on_connection(self->data, said);
	}
}

/* ---- what the user is told ---- */

/* What the user can do about a refusal. */
static void print_advice(
	const struct network_connection *connection, const char *target, char out[ADVICE_SIZE])
{
	struct network_host host;
	const struct address *address = &connection->address;
	if (connection->target != NETWORK_TO_ADDRESS) {
		bool is_entry = network_host_read(&host, target);
		text_format(out, ADVICE_SIZE, "%s%s%s", is_entry ? "allow-host = " : "",
			is_entry ? target : "No line", " in the profile allows it");
	} else if (address_reach(address) == ADDRESS_NEVER) {
		text_format(out, ADVICE_SIZE,
			"No line allows this address; allow-host = localhost:PORT allows a service "
			"of this machine");
	} else {
		text_format(out, ADVICE_SIZE, "allow-cidr = %s/%d in the profile allows it",
			connection->name, address->family == AF_INET ? 32 : 128);
	}
}

/* Each once, and only so many: an agent can have any number refused. */
static bool is_to_be_told(struct cell_network *self, const char *target)
{
	size_t count = words_count(self->refused);
	if (count > REFUSALS_TOLD_MAX ||
		words_contain((const char *const *)self->refused, target)) {
		return false;
	}
	words_append(&self->refused, target);
	if (count == REFUSALS_TOLD_MAX) {
		self->listener->on_notice(self->data,
			"network = allow: it refuses further hosts; audit = FILE names each of "
			"them");
	}
	return count < REFUSALS_TOLD_MAX;
}

static void tell_refused(
	struct cell_network *self, const struct network_connection *connection, const char *target)
{
	char advice[ADVICE_SIZE];
	char text[NOTICE_SIZE];
	if (is_to_be_told(self, target)) {
		print_advice(connection, target, advice);
		text_format(text, sizeof(text), "network = allow refuses a connection to %s. %s",
			target, advice);
		self->listener->on_notice(self->data, text);
	}
}

static void tell_forbidden(struct cell_network *self, const char *target)
{
	char text[NOTICE_SIZE];
	if (is_to_be_told(self, target)) {
		text_format(text, sizeof(text),
			"network = allow refuses a connection to %s: the name leads only to "
			"addresses of private networks or of this machine. allow-cidr = NETWORK in "
			"the profile allows a private network",
			target);
		self->listener->on_notice(self->data, text);
	}
}

/* ---- the process ---- */

static void on_ready(void *data)
{
	struct cell_network *self = data;
	self->is_ready = true;
	self->listener->on_ready(self->data);
}

static void on_ask(void *data, const struct network_connection *connection)
{
	struct cell_network *self = data;
	char target[TARGET_SIZE], rule[RULE_SIZE];
	bool is_allowed = find_rule(self, connection, rule);
	network_decide(self->network, connection->id, is_allowed);
	if (is_allowed) {
		return;
	}
	print_target(connection, target);
	say(self, &(struct sandbox_connection){
			  .target = target, .way = way_names[connection->way], .rule = rule});
	tell_refused(self, connection, target);
}

static void on_gone(void *data, uint32_t id)
{
}

static void on_tell(
	void *data, const struct network_connection *connection, enum network_result result)
{
	struct cell_network *self = data;
	struct connected *kept = &self->connected[connection->id % NETWORK_CONNECTIONS_MAX];
	kept->id = connection->id;
	kept->way = connection->way;
	print_target(connection, kept->target);
	find_rule(self, connection, kept->rule);
	say(self, &(struct sandbox_connection){.target = kept->target,
			  .way = way_names[connection->way],
			  .rule = kept->rule,
			  .is_allowed = true,
			  .result = result_names[result]});
	if (result == NETWORK_FORBIDDEN) {
		tell_forbidden(self, kept->target);
	}
}

static void on_server_name(void *data, uint32_t id, const char *name)
{
	struct cell_network *self = data;
	const struct connected *kept = &self->connected[id % NETWORK_CONNECTIONS_MAX];
	size_t len = strlen(name);
	bool is_same = strncmp(kept->target, name, len) == 0 && kept->target[len] == ':';
	if (kept->id == id && !is_same) {
		say(self, &(struct sandbox_connection){.target = kept->target,
				  .way = way_names[kept->way],
				  .rule = kept->rule,
				  .is_allowed = true,
				  .result = result_names[NETWORK_CONNECTED],
				  .server_name = name});
	}
}

static void on_limit(void *data, enum network_limit limit)
{
	struct cell_network *self = data;
	char text[NOTICE_SIZE];
	if (limit == NETWORK_LIMIT_CONNECTIONS) {
		text_format(text, sizeof(text),
			"network = allow: the sandbox has %d connections; more are refused until "
			"some of them end",
			NETWORK_CONNECTIONS_MAX);
	} else {
		text_format(text, sizeof(text),
			"network = allow: the sandbox has asked for %d names; no further name is "
			"found until the broker makes a new sandbox",
			NAMES_MAX);
	}
	self->listener->on_notice(self->data, text);
}

static void on_end(void *data, const struct error *err)
{
	struct cell_network *self = data;
	char text[ERROR_TEXT_MAX + 256];
	if (!self->is_ready) {
		struct error why = *err;
		error_prefix(&why, "network = allow");
		self->listener->on_failed(self->data, &why);
		return;
	}
	text_format(text, sizeof(text),
		"network = allow: the process that connects the sandbox has ended (%s). Every "
		"connection of the sandbox is refused from now on. Start the agent anew in the "
		"editor to have a network again",
		err->text);
	self->listener->on_notice(self->data, text);
}

static const struct network_listener network_listener = {
	.on_ready = on_ready,
	.on_ask = on_ask,
	.on_gone = on_gone,
	.on_tell = on_tell,
	.on_server_name = on_server_name,
	.on_limit = on_limit,
	.on_end = on_end,
};

struct cell_network *cell_network_start(const struct provider_context *context,
	const struct settings *settings, struct cell *cell,
	const struct cell_network_listener *listener, void *data, struct error *err)
{
	int fds[PORTS_MAX];
	uint16_t services[PORTS_SERVICES_MAX];
	struct network_policy policy;
	if (!read_policy(&policy, settings, err)) {
		return NULL;
	}
	struct cell_network *self = mem_alloc_zero(sizeof(*self));
	struct address_network *networks = mem_alloc_zero(NETWORK_ENTRIES_MAX * sizeof(*networks));
	self->policy = policy;
	self->listener = listener;
	self->data = data;
	self->lines = LINES_AT_ONCE;
	self->lines_since_ms = clock_now_ms();
	cell_take_ports(cell, fds);
	struct network_options options = {.fds = fds,
		.services = services,
		.service_count = rules_services(&policy, services),
		.networks = networks,
		.network_count = rules_networks(&policy, networks)};
	cell_user(cell, &options.uid, &options.gid);
	self->network = network_start(
		context->loop, context->spawner, &options, &network_listener, self, err);
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&fds[i]);
	}
	free(networks);
	if (!self->network) {
		cell_network_stop(self);
		return NULL;
	}
	return self;
}

void cell_network_stop(struct cell_network *self)
{
	if (self) {
		network_stop(self->network);
		network_policy_finish(&self->policy);
		words_free(self->refused);
		free(self);
	}
}
