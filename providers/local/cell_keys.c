/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_keys.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/agent_env.h"
#include "providers/impl.h"
#include "providers/local/helper.h"
#include "providers/local/keys/holder.h"
#include "providers/local/keys/wire.h"
#include "providers/local/said_lines.h"

enum {
	PLACEHOLDER_DIGITS = 32,
	FAILURES_TOLD_MAX = 4,
	NOTICE_SIZE = HELPER_TEXT_SIZE + KEY_URL_SIZE + 256,
	TARGET_SIZE = NAME_SIZE + 8,
	RULE_SIZE = KEY_NAME_SIZE + 8,
};

static const struct helper_kind kind = {.argument = HOLDER_ARGUMENT,
	.name = "the process that holds the keys",
	.packet_size = sizeof(struct keys_message)};

struct cell_keys {
	struct profile_key keys[KEYS_MAX];
	size_t count;
	char *values[KEYS_MAX]; // owned, wiped; NULL once the other process has them
	char placeholders[KEYS_MAX][KEY_PLACEHOLDER_SIZE];
	uint16_t ports[KEYS_MAX]; // of each key, in the cell
	char **names;             // owned; for cell_keys_names
	char *authorities;        // owned; a file; NULL: libcurl's default
	struct upstream upstream; // this machine's proxy
	void (*on_ready)(void *data);
	void *data;
	const struct sandbox_listener *listener;
	void *listener_data;
	struct helper *helper;
	bool is_ready;
	struct said_lines lines;
	char **told; // owned; failures that the user has seen
};

/* ---- the profile ---- */

/* Accepts no blanks, not even around the value, because the first character must be printable. */
static bool check_value(const struct profile_key *key, const char *value, struct error *err)
{
	if (!value || value[0] == '\0') {
		return error_set(err, ERROR_CONFIG,
			"key = %s: the variable is not set in the broker's environment", key->name);
	}
	size_t len = strlen(value);
	for (size_t i = 0; i < len; i++) {
		if (value[i] <= ' ' || value[i] > '~') {
			return error_set(err, ERROR_CONFIG,
				"key = %s: the variable's value contains a blank or another "
				"character that no key has",
				key->name);
		}
	}
	return (len >= KEY_SECRET_MIN && len <= KEY_SECRET_MAX) ||
	       error_set(err, ERROR_CONFIG,
		       "key = %s: the variable's value has %zu characters; expected %d to %d",
		       key->name, len, (int)KEY_SECRET_MIN, (int)KEY_SECRET_MAX);
}

static bool read_values(struct cell_keys *self, const char *const *environment, struct error *err)
{
	for (size_t i = 0; i < self->count; i++) {
		const struct profile_key *key = &self->keys[i];
		char digits[PLACEHOLDER_DIGITS + 1];
		char text[KEY_NAME_SIZE + KEY_URL_SIZE + 8];
		const char *value = environment_get(environment, key->name);
		if (!check_value(key, value, err)) {
			return false;
		}
		self->values[i] = mem_strdup(value);
		random_fill_hex(digits, PLACEHOLDER_DIGITS);
		text_whole(self->placeholders[i], sizeof(self->placeholders[i]),
			"acp-broker-placeholder-%s", digits);
		text_whole(text, sizeof(text), "%s for %s", key->name, key->url);
		words_append(&self->names, text);
	}
	return true;
}

/* The profile's own variables are added after cell_keys_drop. */
static bool check_copies(const struct cell_keys *self, const struct settings *settings,
	const char *const *environment, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		bool is_name = strcmp(setting->key, "secret-env") == 0;
		bool is_value = strcmp(setting->key, "env") == 0 ||
		                strcmp(setting->key, SETTING_AGENT_ENV) == 0;
		const char *name;
		const char *value = setting->value;
		if (is_name && value) {
			value = environment_get(environment, value);
		}
		if (value && (is_name || is_value) &&
			cell_keys_are_in(self, span_of(value), &name)) {
			return error_set(err, ERROR_CONFIG,
				"key = %s: %s gives the agent %.*s, whose value contains the key; "
				"remove that line",
				name, is_name ? "secret-env" : "env",
				(int)strcspn(setting->value, "="), setting->value);
		}
	}
	return true;
}

bool cell_keys_create(const struct provider_context *context, const struct settings *settings,
	struct cell_keys **out, struct error *err)
{
	*out = NULL;
	if (!profile_keys_are_wanted(settings)) {
		return true;
	}
	struct cell_keys *self = mem_alloc_zero(sizeof(*self));
	said_lines_init(&self->lines);
	if (!profile_keys_read(settings, context->environment, self->keys, &self->count, err) ||
		!upstream_read(&self->upstream, context->environment, err) ||
		!read_values(self, context->environment, err) ||
		!check_copies(self, settings, context->environment, err)) {
		cell_keys_destroy(self);
		return false;
	}
	const char *authorities = environment_get(context->environment, "CURL_CA_BUNDLE");
	if (!authorities || !authorities[0]) {
		authorities = environment_get(context->environment, "SSL_CERT_FILE");
	}
	self->authorities = mem_strdup_or_null(authorities);
	*out = self;
	return true;
}

static void forget_values(struct cell_keys *self)
{
	explicit_bzero(&self->upstream, sizeof(self->upstream));
	for (size_t i = 0; i < self->count; i++) {
		mem_wipe_free(self->values[i]);
		self->values[i] = NULL;
	}
}

void cell_keys_destroy(struct cell_keys *self)
{
	if (!self) {
		return;
	}
	forget_values(self);
	helper_destroy(self->helper);
	words_free(self->names);
	words_free(self->told);
	free(self->authorities);
	free(self);
}

const char *const *cell_keys_names(const struct cell_keys *self)
{
	return self ? (const char *const *)self->names : NULL;
}

void cell_keys_plan(const struct cell_keys *self, struct cell_plan *plan)
{
	plan->key_count = self ? self->count : 0;
}

/* ---- where the values must not be ---- */

bool cell_keys_are_in(const struct cell_keys *self, struct span text, const char **out_name)
{
	for (size_t i = 0; self && i < self->count; i++) {
		const char *value = self->values[i];
		if (value && memmem(text.data, text.len, value, strlen(value))) {
			*out_name = self->keys[i].name;
			return true;
		}
	}
	return false;
}

static bool is_of_key(const struct cell_keys *self, struct span name)
{
	for (size_t i = 0; i < self->count; i++) {
		if (span_is(name, self->keys[i].name) || span_is(name, self->keys[i].url_name)) {
			return true;
		}
	}
	return false;
}

void cell_keys_drop(const struct cell_keys *self, char ***environment, struct sandbox *sandbox)
{
	char text[NOTICE_SIZE];
	size_t kept = 0;
	for (size_t i = 0; self && (*environment)[i]; i++) {
		char *entry = (*environment)[i];
		const char *key;
		struct span name = {entry, strcspn(entry, "=")};
		bool is_ours = is_of_key(self, name);
		bool is_other = !is_ours && cell_keys_are_in(self, span_of(entry), &key);
		if (is_other) {
			text_format(text, sizeof(text),
				"%.*s is not set in the cell, because its value contains the key "
				"of %s",
				(int)name.len, name.data, key);
			sandbox_warn(sandbox, text);
		}
		if (is_ours || is_other) {
			mem_wipe_free(entry);
		} else {
			(*environment)[kept++] = entry;
		}
	}
	if (self) {
		(*environment)[kept] = NULL;
	}
}

/* ---- what the programs get instead ---- */

/* Otherwise programs that use a proxy would ask it for 127.0.0.1. */
static void keep_off_proxies(char ***environment)
{
	static const char own[] = "127.0.0.1";
	static const char *const names[] = {"NO_PROXY", "no_proxy"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		struct buf text;
		const char *const *now = (const char *const *)*environment;
		const char *set = environment_get(now, names[i]);
		/* Programs that read both take the small one, which must not have less then. */
		const char *old = set ? set : environment_get(now, names[1 - i]);
		bool has_own = old && strstr(old, own);
		buf_init(&text, SIZE_MAX);
		bool fits = buf_append_format(&text, NULL, "%s=%s%s%s%c", names[i], old ? old : "",
			old && old[0] && !has_own ? "," : "", has_own ? "" : own, '\0');
		if (fits && (!set || !has_own)) {
			environment_drop(*environment, names[i]);
			words_append(environment, text.data);
		}
		buf_finish(&text);
	}
}

void cell_keys_set_variables(const struct cell_keys *self, char ***environment)
{
	char text[KEY_NAME_SIZE + KEY_PATH_SIZE + 64];
	for (size_t i = 0; self && i < self->count; i++) {
		const struct profile_key *key = &self->keys[i];
		text_whole(text, sizeof(text), "%s=%s", key->name, self->placeholders[i]);
		words_append(environment, text);
		text_whole(text, sizeof(text), "%s=http://127.0.0.1:%u%s", key->url_name,
			self->ports[i], key->path);
		words_append(environment, text);
	}
	if (self) {
		keep_off_proxies(environment);
	}
}

/* ---- messages of the process ---- */

static void tell(const struct cell_keys *self, const char *text)
{
	if (self->listener->on_notice) {
		self->listener->on_notice(self->listener_data, text);
	}
}

/* Shows each failure once, and only a limited number. */
static void tell_failure(struct cell_keys *self, const struct keys_message *message)
{
	char text[NOTICE_SIZE];
	size_t count = words_count(self->told);
	if (count >= FAILURES_TOLD_MAX ||
		words_contain((const char *const *)self->told, message->text)) {
		return;
	}
	words_append(&self->told, message->text);
	text_format(
		text, sizeof(text), "key = %s: %s", self->keys[message->index].name, message->text);
	tell(self, text);
}

static void take_answered(struct cell_keys *self, const struct keys_message *message)
{
	const struct profile_key *key = &self->keys[message->index];
	char target[TARGET_SIZE], rule[RULE_SIZE];
	text_whole(target, sizeof(target), "%s:%u", key->host, key->port);
	text_whole(rule, sizeof(rule), "key = %s", key->name);
	struct sandbox_connection said = {.target = target,
		.way = "key",
		.rule = rule,
		.is_allowed = true,
		.result = message->status != 0 ? "connected" : "unreachable"};
	if (self->listener->on_connection && said_lines_take(&self->lines, &said)) {
		self->listener->on_connection(self->listener_data, &said);
	}
	if (message->status == 0) {
		tell_failure(self, message);
	}
}

/* The owner may destroy everything in each callback. */
static bool on_packet(void *data, struct span packet)
{
	struct cell_keys *self = data;
	struct keys_message message;
	if (!keys_read(packet, self->count, &message)) {
		return false;
	}
	if (message.kind == KEYS_ANSWERED) {
		take_answered(self, &message);
	} else if (message.kind == KEYS_FAILED) {
		helper_fail(self->helper, message.text, message.is_unavailable);
	} else if (!self->is_ready) {
		self->is_ready = true;
		helper_is_ready(self->helper);
		self->on_ready(self->data);
	}
	return true;
}

static void on_end(void *data, const struct error *err)
{
	struct cell_keys *self = data;
	char text[ERROR_TEXT_MAX + 256];
	if (!self->is_ready) {
		self->listener->on_failed(self->listener_data, err);
		return;
	}
	text_format(text, sizeof(text),
		"key: the process that holds the keys has ended (%s). From now on no program in "
		"the sandbox can use them. Restart the agent in the editor",
		err->text);
	tell(self, text);
}

static const struct helper_listener helper_listener = {.on_packet = on_packet, .on_end = on_end};

/* ---- its process ---- */

static bool find_ports(struct cell_keys *self, const int *fds, struct error *err)
{
	for (size_t i = 0; i < self->count; i++) {
		struct sockaddr_in name;
		socklen_t size = sizeof(name);
		if (getsockname(fds[i], (struct sockaddr *)&name, &size) != 0) {
			int errnum = errno;
			return error_set_errno(err, errnum, "finding the port for a key");
		}
		self->ports[i] = ntohs(name.sin_port);
	}
	return true;
}

static bool send_start(struct cell_keys *self, const struct cell *cell, int control, const int *fds,
	struct error *err)
{
	struct keys_start *start = mem_alloc_zero(sizeof(*start));
	cell_user(cell, &start->uid, &start->gid);
	start->count = (uint32_t)self->count;
	start->upstream = self->upstream;
	bool fits = text_whole(start->authorities, sizeof(start->authorities), "%s",
		self->authorities ? self->authorities : "");
	for (size_t i = 0; i < self->count; i++) {
		const struct profile_key *key = &self->keys[i];
		struct keys_place *place = &start->places[i];
		text_whole(place->host, sizeof(place->host), "%s", key->host);
		text_whole(place->path, sizeof(place->path), "%s", key->path);
		text_whole(
			place->header, sizeof(place->header), "%s", key->header ? key->header : "");
		text_whole(place->secret, sizeof(place->secret), "%s", self->values[i]);
		text_whole(place->placeholder, sizeof(place->placeholder), "%s",
			self->placeholders[i]);
		place->port = key->port;
	}
	errno = ENAMETOOLONG;
	bool is_sent = fits && keys_send_start(control, start, fds);
	int errnum = errno;
	explicit_bzero(start, sizeof(*start));
	free(start);
	return is_sent || error_set_errno(err, errnum, "starting the process that holds the keys");
}

bool cell_keys_start(
	struct cell_keys *self, const struct cell_network_config *config, struct error *err)
{
	int fds[PORTS_KEYS_MAX];
	self->on_ready = config->on_ready;
	self->data = config->data;
	self->listener = config->listener;
	self->listener_data = config->listener_data;
	cell_take_keys(config->cell, fds);
	self->helper = helper_create(config->context->loop, &kind, &helper_listener, self, err);
	bool is_started = self->helper && find_ports(self, fds, err) &&
	                  send_start(self, config->cell, helper_channel(self->helper), fds, err) &&
	                  helper_start(self->helper, config->context->spawner, err);
	for (size_t i = 0; i < PORTS_KEYS_MAX; i++) {
		fd_close(&fds[i]);
	}
	forget_values(self);
	return is_started;
}
