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
#include "providers/local/net/program.h"
#include "providers/local/net/rules.h"
#include "providers/local/net/upstream.h"
#include "providers/local/said_lines.h"

enum {
	TARGET_SIZE = NAME_SIZE + 8, // "NAME:PORT"
	RULE_SIZE = NETWORK_NAME_SIZE + 32,
	ADVICE_SIZE = TARGET_SIZE + 128,
	NOTICE_SIZE = TARGET_SIZE + ADVICE_SIZE + 128,
	REFUSALS_TOLD_MAX = 8,
};

/* A connection that may still report the name in its TLS handshake. */
struct connected {
	uint32_t id;
	char target[TARGET_SIZE];
	char rule[RULE_SIZE];
	enum network_way way;
	bool is_by_user; // allowed by the user's answer, not by a rule
};

/* A connection that waits for the listener's decision. */
struct wish {
	struct list link; // cell_network.wishes
	struct cell_network *network;
	struct network_connection connection; // its name is `name`
	char name[NAME_SIZE];
	struct program_search *search; // NULL: none
};

struct cell_network {
	void (*on_ready)(void *data);
	void *data;
	const struct sandbox_listener *listener;
	void *listener_data;
	struct network *network;
	struct network_policy policy;
	struct pool *pool;
	ino_t network_namespace; // the cell's
	struct list wishes;      // of struct wish
	size_t wish_count;
	char **refused;           // owned: "NAME:PORT" of refusals that the user has seen
	struct upstream upstream; // this machine's proxy; without its password once it was sent
	bool was_proxy_told;      // that the proxy cannot be reached
	bool is_ready;
	bool is_asked;      // cell_network_serve was called
	struct error early; // why the process ended before; ERROR_NONE: it has not
	struct said_lines lines;
	struct connected connected[NETWORK_CONNECTIONS_MAX]; // by id
};

static const char *const way_names[] = {[NETWORK_BY_SOCKET] = "socket",
	[NETWORK_BY_CONNECT] = "connect",
	[NETWORK_BY_SOCKS] = "socks",
	[NETWORK_BY_REQUEST] = "request"};

static const char *const result_names[] = {
	[NETWORK_CONNECTED] = "connected",
	[NETWORK_NOT_FOUND] = "not-found",
	[NETWORK_FORBIDDEN] = "forbidden",
	[NETWORK_UNREACHABLE] = "unreachable",
	[NETWORK_PROXY_REFUSED] = "proxy-refused",
	[NETWORK_PROXY_UNREACHABLE] = "proxy-unreachable",
};

/* ---- the profile ---- */

bool cell_network_is_wanted(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	return value && (strcmp(value, network_modes[NETWORK_ALLOW]) == 0 ||
				strcmp(value, network_modes[NETWORK_ASK]) == 0);
}

static bool is_blocked(const struct settings *settings)
{
	const char *value = settings_get(settings, "network");
	return value && strcmp(value, network_modes[NETWORK_BLOCKED]) == 0;
}

/* The mode by its name in the profile. */
static const char *mode_name(const struct cell_network *self)
{
	return self->policy.mode == NETWORK_ASK ? "network = ask" : "network = allow";
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
	if (read_policy(&policy, settings, &err)) { // the settings were checked before
		plan->service_count = rules_services(&policy, plan->services);
		network_policy_finish(&policy);
	}
}

void cell_network_set_variables(const struct settings *settings, char ***environment)
{
	/* HTTP_PROXY is not among those that we set: docs/decisions/confinement.md. */
	static const char *const dropped[] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
		"https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"};
	static const char *const names[] = {"HTTPS_PROXY", "https_proxy"};
	char text[64];
	if (!cell_network_is_wanted(settings) && !is_blocked(settings)) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(dropped); i++) {
		environment_drop(*environment, dropped[i]);
	}
	if (is_blocked(settings)) {
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		text_whole(text, sizeof(text), "%s=http://%s:%d", names[i], PORTS_GATE,
			PORTS_GATE_PORT);
		words_append(environment, text);
	}
	words_append(environment, "NO_PROXY=localhost,127.0.0.1,::1");
	words_append(environment, "no_proxy=localhost,127.0.0.1,::1");
}

/* ---- descriptions of a connection ---- */

/* "NAME:PORT", or "[ADDRESS]:PORT" for IPv6. */
static void print_target(const struct network_connection *connection, char out[TARGET_SIZE])
{
	text_host_port(out, TARGET_SIZE, connection->name, connection->port);
}

/* Finds the line of the profile that allows the connection. False: there is none. */
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
		      : mode_name(self),
		entry ? entry : "");
	return entry != NULL;
}

static void say(struct cell_network *self, struct sandbox_connection *said)
{
	if (self->listener->on_connection && said_lines_take(&self->lines, said)) {
		self->listener->on_connection(self->listener_data, said);
	}
}

/* ---- notices to the user ---- */

static void notify(const struct cell_network *self, const char *text)
{
	if (self->listener->on_notice) {
		self->listener->on_notice(self->listener_data, text);
	}
}

/* Says how the user can allow the connection. */
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
			"No line can allow this address; allow-host = localhost:PORT allows a "
			"service of this machine");
	} else {
		text_format(out, ADVICE_SIZE, "allow-cidr = %s/%d in the profile allows it",
			connection->name, address->family == AF_INET ? 32 : 128);
	}
}

/*
 * Reports each target once, and only a limited number, because an agent can cause any number of
 * refusals.
 */
static bool is_to_be_told(struct cell_network *self, const char *target)
{
	size_t count = words_count(self->refused);
	if (count > REFUSALS_TOLD_MAX ||
		words_contain((const char *const *)self->refused, target)) {
		return false;
	}
	words_append(&self->refused, target);
	if (count == REFUSALS_TOLD_MAX) {
		char text[NOTICE_SIZE];
		text_format(text, sizeof(text),
			"%s: more hosts are refused; audit = FILE lists each of them",
			mode_name(self));
		notify(self, text);
	}
	return count < REFUSALS_TOLD_MAX;
}

/* `why` may be NULL if the mode is the reason. */
static void tell_refused(struct cell_network *self, const struct network_connection *connection,
	const char *target, const char *why)
{
	char advice[ADVICE_SIZE];
	char text[NOTICE_SIZE];
	if (is_to_be_told(self, target)) {
		print_advice(connection, target, advice);
		text_format(text, sizeof(text), "%s refuses a connection to %s%s%s. %s",
			mode_name(self), target, why ? ": " : "", why ? why : "", advice);
		notify(self, text);
	}
}

static void tell_forbidden(struct cell_network *self, const char *target)
{
	char text[NOTICE_SIZE];
	if (is_to_be_told(self, target)) {
		text_format(text, sizeof(text),
			"%s refuses a connection to %s: the name has only addresses of private "
			"networks or of this machine%s. allow-cidr = NETWORK in the profile allows "
			"a private network",
			mode_name(self), target,
			upstream_is_set(&self->upstream) || self->upstream.other_count > 0
				? ", or leads to a proxy of this machine"
				: "");
		notify(self, text);
	}
}

static void tell_refused_by_proxy(struct cell_network *self, const char *target, unsigned status)
{
	enum { LOGIN_REQUIRED = 407 };
	char text[NOTICE_SIZE], why[128];
	if (!is_to_be_told(self, target)) {
		return;
	}
	if (status == 0) {
		text_format(why, sizeof(why), "it did not answer as an HTTP proxy");
	} else {
		text_format(why, sizeof(why), "HTTP status %u%s%s%s", status,
			status == LOGIN_REQUIRED ? ". It expects a user and a password in " : "",
			status == LOGIN_REQUIRED ? self->upstream.variable : "",
			status == LOGIN_REQUIRED ? " of the broker's environment" : "");
	}
	text_format(text, sizeof(text),
		"%s: the proxy of this machine (%s) refused a connection to %s: %s",
		mode_name(self), self->upstream.variable, target, why);
	notify(self, text);
}

static void tell_lost_proxy(struct cell_network *self)
{
	char text[NOTICE_SIZE];
	if (!self->was_proxy_told) {
		self->was_proxy_told = true;
		text_format(text, sizeof(text),
			"%s: the proxy of this machine (%s) does not answer. The sandbox reaches "
			"only hosts that no_proxy names. If this machine needs no proxy, unset %s "
			"in the broker's environment",
			mode_name(self), self->upstream.variable, self->upstream.variable);
		notify(self, text);
	}
}

/* ---- wishes ---- */

static struct wish *find_wish(struct cell_network *self, uint32_t id)
{
	LIST_FOR_EACH(wish, &self->wishes, struct wish, link) {
		if (wish->connection.id == id) {
			return wish;
		}
	}
	return NULL;
}

static void wish_destroy(struct wish *wish)
{
	program_search_leave(wish->search);
	list_remove(&wish->link);
	wish->network->wish_count--;
	free(wish);
}

/*
 * No wish is raised for a connection that no answer could allow: to a service of this machine, to
 * an address that only allow-cidr can allow, or to one that is always refused.
 */
static bool may_be_allowed(const struct network_connection *connection)
{
	return connection->target == NETWORK_TO_NAME ||
	       (connection->target == NETWORK_TO_ADDRESS &&
		       address_reach(&connection->address) == ADDRESS_PUBLIC);
}

/* Whether the listener decides about the connection, now or later. */
static bool wishes_for(struct cell_network *self, const struct network_connection *connection)
{
	if (self->policy.mode != NETWORK_ASK || !self->listener->on_wish ||
		!may_be_allowed(connection) || self->wish_count >= NETWORK_CONNECTIONS_MAX) {
		return false;
	}
	struct wish *wish = mem_alloc_zero(sizeof(*wish));
	const struct sandbox_wish raised = {
		.id = connection->id, .host = wish->name, .port = connection->port};
	wish->network = self;
	wish->connection = *connection;
	wish->connection.name = wish->name;
	text_whole(wish->name, sizeof(wish->name), "%s", connection->name);
	list_append(&self->wishes, &wish->link);
	self->wish_count++;
	self->listener->on_wish(self->listener_data, &raised);
	return true;
}

static void keep_rule(
	struct cell_network *self, const struct wish *wish, const struct sandbox_verdict *verdict)
{
	struct connected *kept = &self->connected[wish->connection.id % NETWORK_CONNECTIONS_MAX];
	kept->id = wish->connection.id;
	kept->is_by_user = true;
	text_whole(kept->rule, sizeof(kept->rule), "%s", verdict->rule);
}

void cell_network_decide(
	struct cell_network *self, uint32_t id, const struct sandbox_verdict *verdict)
{
	char target[TARGET_SIZE];
	struct wish *wish = self ? find_wish(self, id) : NULL;
	if (!wish) {
		return;
	}
	network_decide(self->network, id, verdict->is_allowed);
	if (verdict->is_allowed) {
		keep_rule(self, wish, verdict);
	} else {
		print_target(&wish->connection, target);
		say(self, &(struct sandbox_connection){.target = target,
				  .way = way_names[wish->connection.way],
				  .rule = verdict->rule,
				  .is_by_user = !verdict->why});
	}
	if (!verdict->is_allowed && verdict->why) {
		tell_refused(self, &wish->connection, target, verdict->why);
	}
	wish_destroy(wish);
}

static void on_program(void *data, const char *program)
{
	struct wish *wish = data;
	wish->search = NULL;
	wish->network->listener->on_program(
		wish->network->listener_data, wish->connection.id, program);
}

void cell_network_look_for_program(struct cell_network *self, uint32_t id)
{
	struct wish *wish = self ? find_wish(self, id) : NULL;
	if (!wish || wish->search) {
		return;
	}
	wish->search = program_search_start(self->pool, self->network_namespace,
		wish->connection.client_port, on_program, wish);
	if (!wish->search) {
		on_program(wish, "");
	}
}

/* ---- the process ---- */

static void on_ready(void *data)
{
	struct cell_network *self = data;
	self->is_ready = true;
	self->on_ready(self->data);
}

static void on_ask(void *data, const struct network_connection *connection)
{
	struct cell_network *self = data;
	char target[TARGET_SIZE], rule[RULE_SIZE];
	bool is_allowed = find_rule(self, connection, rule);
	if (!is_allowed && wishes_for(self, connection)) {
		return;
	}
	network_decide(self->network, connection->id, is_allowed);
	if (is_allowed) {
		return;
	}
	print_target(connection, target);
	say(self, &(struct sandbox_connection){
			  .target = target, .way = way_names[connection->way], .rule = rule});
	tell_refused(self, connection, target, NULL);
}

static void on_gone(void *data, uint32_t id)
{
	struct cell_network *self = data;
	struct wish *wish = find_wish(self, id);
	if (wish) {
		wish_destroy(wish);
		self->listener->on_wish_gone(self->listener_data, id);
	}
}

static void on_tell(
	void *data, const struct network_connection *connection, enum network_result result)
{
	struct cell_network *self = data;
	struct connected *kept = &self->connected[connection->id % NETWORK_CONNECTIONS_MAX];
	bool has_rule = kept->id == connection->id;
	kept->id = connection->id;
	kept->way = connection->way;
	print_target(connection, kept->target);
	if (!has_rule) {
		kept->is_by_user = false;
		find_rule(self, connection, kept->rule);
	}
	say(self, &(struct sandbox_connection){.target = kept->target,
			  .way = way_names[connection->way],
			  .rule = kept->rule,
			  .is_allowed = true,
			  .is_by_user = kept->is_by_user,
			  .result = result_names[result]});
	if (result == NETWORK_FORBIDDEN) {
		tell_forbidden(self, kept->target);
	} else if (result == NETWORK_PROXY_REFUSED) {
		tell_refused_by_proxy(self, kept->target, connection->proxy_status);
	} else if (result == NETWORK_PROXY_UNREACHABLE) {
		tell_lost_proxy(self);
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
				  .is_by_user = kept->is_by_user,
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
			"%s: the sandbox has %d connections; further ones are refused until some "
			"of them end",
			mode_name(self), NETWORK_CONNECTIONS_MAX);
	} else {
		text_format(text, sizeof(text),
			"%s: the sandbox has asked for %d names; no further name is resolved until "
			"the broker makes a new sandbox",
			mode_name(self), NAMES_MAX);
	}
	notify(self, text);
}

static void on_end(void *data, const struct error *err)
{
	struct cell_network *self = data;
	char text[ERROR_TEXT_MAX + 256];
	struct error why = *err;
	if (!self->is_asked) {
		self->early = why;
		return;
	}
	if (!self->is_ready) {
		error_prefix(&why, "%s", mode_name(self));
		self->listener->on_failed(self->listener_data, &why);
		return;
	}
	text_format(text, sizeof(text),
		"%s: the process that connects the sandbox to the network has ended (%s). Every "
		"connection of the sandbox is refused from now on. Restart the agent in the editor "
		"to get a network again",
		mode_name(self), err->text);
	notify(self, text);
	struct wish *wish;
	while ((wish = LIST_FIRST(&self->wishes, struct wish, link))) {
		on_gone(self, wish->connection.id);
	}
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

struct cell_network *cell_network_create(
	const struct cell_network_config *config, struct error *err)
{
	struct network_policy policy;
	if (!read_policy(&policy, config->settings, err)) {
		return NULL;
	}
	struct cell_network *self = mem_alloc_zero(sizeof(*self));
	self->policy = policy;
	list_init(&self->wishes);
	self->pool = config->context->pool;
	self->on_ready = config->on_ready;
	self->data = config->data;
	self->listener = config->listener;
	self->listener_data = config->listener_data;
	said_lines_init(&self->lines);
	const struct network_user user = {.uid = config->uid, .gid = config->gid};
	if (upstream_read(&self->upstream, config->context->environment, err)) {
		self->network = network_create(config->context->loop, config->context->spawner,
			user, &network_listener, self, err);
	}
	if (!self->network) {
		cell_network_stop(self);
		return NULL;
	}
	return self;
}

bool cell_network_serve(struct cell_network *self, struct cell *cell, struct error *err)
{
	int fds[PORTS_MAX];
	uint16_t services[PORTS_SERVICES_MAX];
	self->is_asked = true;
	if (self->early.code != ERROR_NONE) {
		*err = self->early;
		return error_prefix(err, "%s", mode_name(self));
	}
	struct address_network *networks = mem_alloc_zero(NETWORK_ENTRIES_MAX * sizeof(*networks));
	cell_take_ports(cell, fds);
	self->network_namespace = program_namespace(fds[PORTS_STREAMS]);
	const struct network_options options = {.fds = fds,
		.services = services,
		.service_count = rules_services(&self->policy, services),
		.networks = networks,
		.network_count = rules_networks(&self->policy, networks),
		.upstream = &self->upstream};
	bool is_asked = network_serve(self->network, &options, err);
	explicit_bzero(self->upstream.key, sizeof(self->upstream.key));
	for (size_t i = 0; i < PORTS_MAX; i++) {
		fd_close(&fds[i]);
	}
	free(networks);
	return is_asked;
}

void cell_network_stop(struct cell_network *self)
{
	if (self) {
		LIST_FOR_EACH(wish, &self->wishes, struct wish, link) {
			wish_destroy(wish);
		}
		network_stop(self->network);
		network_policy_finish(&self->policy);
		words_free(self->refused);
		explicit_bzero(self->upstream.key, sizeof(self->upstream.key));
		free(self);
	}
}
