/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/capture.h"
#include "base/soon.h"
#include "base/words.h"
#include "providers/provider.h"
#include "providers/ssh/openssh_askpass.h"
#include "providers/ssh/target_name.h"
#include "providers/ssh/target_profile.h"
#include "providers/ssh/target_reader.h"

enum {
	ANSWER_MAX = 256 * 1024,
	COMPLAINT_MAX = 8 * 1024,
	COMPLAINT_SHOWN = 600,
	HOPS_MAX = 8,
};

static const char resolve_timeout[] = "resolve-timeout";

struct ssh_resolving {
	const struct provider_context *context;
	const struct settings *settings;
	ssh_resolve_done *done;
	void *data;
	char *program;     // ssh; NULL: not found
	char *config_file; // for its option -F
	struct ssh_target target;
	struct ssh_target *last; // the host that is being resolved: the target, then its jump hosts
	struct ssh_target_name name; // of that host
	int hops;
	struct capture *capture;
	struct soon later; // for results that are known at once
};

void ssh_resolving_cancel(struct ssh_resolving *resolving)
{
	if (!resolving) {
		return;
	}
	capture_cancel(resolving->capture);
	soon_stop(&resolving->later);
	ssh_target_finish(&resolving->target);
	ssh_target_name_finish(&resolving->name);
	free(resolving->program);
	free(resolving->config_file);
	free(resolving);
}

static void fail(struct ssh_resolving *self, const struct error *err)
{
	struct error copy = *err;
	ssh_resolve_done *done = self->done;
	void *data = self->data;
	error_prefix(&copy, "host \"%s\"", settings_get(self->settings, "host"));
	ssh_resolving_cancel(self);
	done(data, NULL, &copy);
}

static void succeed(struct ssh_resolving *self)
{
	struct ssh_target target = self->target;
	ssh_resolve_done *done = self->done;
	void *data = self->data;
	self->target = (struct ssh_target){0};
	ssh_resolving_cancel(self);
	done(data, &target, NULL);
}

/* ---- asking ssh ---- */

/* Searches the program in PATH; the caller frees the path. NULL: not found. */
static char *find_program(const char *const *environment)
{
	const char *path = ssh_tokens_environment(environment, SPAN_LITERAL("PATH"));
	for (const char *at = path ? path : ""; *at; at += at[0] == ':') {
		size_t len = strcspn(at, ":");
		struct stat status;
		char candidate[PATH_MAX];
		int written = snprintf(candidate, sizeof(candidate), "%.*s/ssh", (int)len, at);
		if (at[0] == '/' && written < (int)sizeof(candidate) &&
			stat(candidate, &status) == 0 && S_ISREG(status.st_mode) &&
			access(candidate, X_OK) == 0) {
			return mem_strdup(candidate);
		}
		at += len;
	}
	return NULL;
}

static void on_answer(void *data, const struct capture_result *result, const struct error *failure);

static void append_option(const char **argv, size_t *count, const char *option, const char *value)
{
	if (value) {
		argv[(*count)++] = option;
		argv[(*count)++] = value;
	}
}

/*
 * ssh -G itself is quick, but a Match exec in the user's configuration, or a busy machine, may be
 * slow.
 */
static long long resolve_timeout_ms(const struct ssh_resolving *self)
{
	const struct setting_key *key =
		setting_key_find(ssh_target_keys, ssh_target_key_count, resolve_timeout);
	return settings_number(self->settings, key);
}

/* Asks about `last`; `before` are the jump hosts before it in a list. */
static bool ask(struct ssh_resolving *self, const char *before, struct error *err)
{
	const char *argv[20] = {self->program, "-G", "-T"};
	size_t count = 3;
	char port[16];
	snprintf(port, sizeof(port), "%d", self->name.port);
	append_option(argv, &count, "-F", self->config_file);
	append_option(argv, &count, "-l", self->name.user);
	append_option(argv, &count, "-p", self->name.port > 0 ? port : NULL);
	append_option(argv, &count, "-J", before);
	append_option(argv, &count, "-o", "ControlPath=" SSH_TOKENS_QUESTION);
	append_option(argv, &count, "--", self->name.host);
	char folder[PATH_MAX];
	struct capture_spec spec = {.argv = argv,
		.env = self->context->environment,
		.cwd = ssh_folder(folder),
		.out_max = ANSWER_MAX,
		.err_max = COMPLAINT_MAX,
		.timeout_ms = resolve_timeout_ms(self)};
	self->capture = capture_start(
		self->context->loop, self->context->spawner, &spec, on_answer, self, err);
	return self->capture != NULL;
}

/* ---- ssh's answer ---- */

/* ssh's messages on one line. */
static bool refuse(const struct capture_result *result, struct error *err)
{
	char words[COMPLAINT_SHOWN];
	char status[64];
	size_t len = 0;
	for (size_t i = 0; i < result->err.len && len < sizeof(words) - 2; i++) {
		char byte = result->err.data[i];
		if (byte == '\n' && i + 1 < result->err.len) {
			words[len++] = ';';
			words[len++] = ' ';
		} else if ((unsigned char)byte >= ' ' && byte != 0x7f) {
			words[len++] = byte;
		}
	}
	words[len] = '\0';
	return error_set(err, ERROR_CONFIG, "ssh -G %s: %s",
		process_status_text(result->status, status, sizeof(status)),
		len > 0 ? words : "it gives no reason");
}

/* Adds the next jump host, which becomes `last`. */
static bool begin_hop(struct ssh_resolving *self, const char *jumps, struct error *err)
{
	char *before = NULL;
	if (++self->hops > HOPS_MAX) {
		return error_set(err, ERROR_CONFIG,
			"more than %d jump hosts (ProxyJump %s): does one go through itself?",
			HOPS_MAX, jumps);
	}
	ssh_target_name_finish(&self->name);
	if (!ssh_target_name_read_jump(jumps, &self->name, &before, err)) {
		return false;
	}
	self->last->via = mem_alloc_zero(sizeof(*self->last->via));
	self->last = self->last->via;
	bool ok = ask(self, before, err);
	free(before);
	return ok;
}

/* Reads the answer into `last`; `*out_jumps` are the jump hosts before it. */
static bool take(
	struct ssh_resolving *self, struct span answer, char **out_jumps, struct error *err)
{
	struct buf text;
	bool is_hop = self->last != &self->target;
	const char *alias = is_hop ? self->name.host : settings_get(self->settings, "host");
	buf_init(&text, ANSWER_MAX + PATH_MAX);
	/* An older ssh does not print the host's name. */
	bool ok = buf_append_format(&text, err, "host %s\n", self->name.host) &&
	          buf_append(&text, answer, err) &&
	          ssh_target_read(
			  buf_span(&text), self->context->environment, self->last, out_jumps, err);
	buf_finish(&text);
	if (!ok) {
		return false;
	}
	mem_set_text(&self->last->alias, alias);
	self->last->ssh_program = mem_strdup_or_null(self->program);
	self->last->config_file = mem_strdup_or_null(self->config_file);
	self->last->has_user = openssh_has_user(self->context->environment);
	return ssh_target_apply(
		self->last, self->settings, is_hop, self->context->environment, err);
}

static void on_answer(void *data, const struct capture_result *result, const struct error *failure)
{
	struct ssh_resolving *self = data;
	struct error err;
	char *jumps = NULL;
	self->capture = NULL;
	if (failure) {
		err = *failure;
		if (err.code == ERROR_TIMEOUT) {
			error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
				"ssh -G did not end within %lld s (%s); does a Match exec in its "
				"configuration wait for something?",
				resolve_timeout_ms(self) / 1000, resolve_timeout);
		}
		error_prefix(&err, "asking ssh for the settings of %s", self->name.host);
		fail(self, &err);
		return;
	}
	bool is_fine = result->status.code == 0 && result->status.signal == 0;
	bool ok = (is_fine || refuse(result, &err)) && take(self, result->out, &jumps, &err) &&
	          (!jumps || begin_hop(self, jumps, &err));
	if (!ok) {
		if (self->hops > 0) {
			error_prefix(
				&err, "jump host %s", self->name.host ? self->name.host : jumps);
		}
		fail(self, &err);
	} else if (!jumps) {
		succeed(self);
	}
	free(jumps);
}

/* ---- without ssh ---- */

/* The values that ssh has without configuration files. */
static void on_later(struct soon *soon)
{
	static const char defaults[] =
		"identityfile ~/.ssh/id_ed25519\n"
		"identityfile ~/.ssh/id_ecdsa\n"
		"identityfile ~/.ssh/id_rsa\n"
		"userknownhostsfile ~/.ssh/known_hosts ~/.ssh/known_hosts2\n"
		"globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n";
	struct ssh_resolving *self = CONTAINER_OF(soon, struct ssh_resolving, later);
	struct buf text;
	struct error err;
	char *jumps = NULL;
	buf_init(&text, ANSWER_MAX);
	bool ok = buf_append_format(&text, &err, "hostname %s\n%s", self->name.host, defaults);
	if (ok && self->name.user) {
		ok = buf_append_format(&text, &err, "user %s\n", self->name.user);
	}
	if (ok && self->name.port > 0) {
		ok = buf_append_format(&text, &err, "port %d\n", self->name.port);
	}
	ok = ok && take(self, buf_span(&text), &jumps, &err);
	buf_finish(&text);
	free(jumps);
	if (ok) {
		succeed(self);
	} else {
		fail(self, &err);
	}
}

/* ---- start ---- */

/* The profile's own user and port come before those in its host, and ssh gets them as options. */
static bool read_name(struct ssh_resolving *self, struct error *err)
{
	const char *host = settings_get(self->settings, "host");
	const char *user = settings_get(self->settings, "user");
	const char *port = settings_get(self->settings, "port");
	if (!host) {
		return error_set(err, ERROR_CONFIG,
			"the profile has no host: write host = NAME, as in ~/.ssh/config, or "
			"USER@NAME");
	}
	if (!ssh_target_name_read(host, &self->name, err)) {
		return error_prefix(err, "host");
	}
	if (user) {
		mem_set_text(&self->name.user, user);
	}
	if (port) {
		const struct setting_key *key =
			setting_key_find(ssh_target_keys, ssh_target_key_count, "port");
		self->name.port = (int)settings_number(self->settings, key);
	}
	return true;
}

static bool start(struct ssh_resolving *self, struct error *err)
{
	if (!read_name(self, err) || !ssh_profile_path(self->settings, "ssh-config",
					     self->context->environment, &self->config_file, err)) {
		return false;
	}
	if (!self->program) {
		soon_start(&self->later);
		return true;
	}
	return ask(self, NULL, err);
}

struct ssh_resolving *ssh_target_resolve(const struct provider_context *context,
	const struct settings *settings, ssh_resolve_done *done, void *data, struct error *err)
{
	struct ssh_resolving *self = mem_alloc_zero(sizeof(*self));
	self->context = context;
	self->settings = settings;
	self->done = done;
	self->data = data;
	self->last = &self->target;
	self->program = find_program(context->environment);
	soon_init(&self->later, self->context->loop, on_later);
	if (!start(self, err)) {
		ssh_resolving_cancel(self);
		return NULL;
	}
	return self;
}
