/* SPDX-License-Identifier: MIT */
#include "providers/ssh/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/parting.h"
#include "providers/remote/remote.h"
#include "providers/ssh/files.h"
#include "providers/ssh/roots.h"
#include "providers/suspension.h"

/*
 * Channels of each connection if max-channels is not set, channels that are kept for kills, and the
 * number of next processes for which channels stay open.
 */
enum { CHANNELS_EACH = 10, CHANNELS_KEPT = 1, WARM_CHANNELS = 2 };

struct ssh_sandbox {
	struct sandbox sandbox;
	const struct provider_context *context; // borrowed
	struct ssh_sandbox_settings settings;
	char *runtime_root;  // owned
	char *profile;       // owned
	char *place;         // owned; NULL until the target is known
	char **login_env;    // owned; the key's values
	char *reference;     // owned; token of its folders; NULL: none
	bool is_wanted;      // the folders with this token must exist
	bool only_ends_left; // sandbox_request
	const struct sandbox_listener *listener;
	void *data;

	struct ssh_resolving *resolving; // owned; NULL once the target is known
	struct ssh_runs_look *look;      // owned; for runs of killed brokers; then NULL
	struct ssh_target target;
	bool has_target;
	struct ssh_host *host; // owned; NULL until the target is known
	struct ssh_files files;
	struct ssh_roots roots;
	struct suspension suspension;
	bool is_up;                        // files and roots can be used
	struct forward_listeners forwards; // until the runner has them
	char outlives[ERROR_TEXT_MAX];
	char no_terminals[ERROR_TEXT_MAX];
	struct parting parting; // once it is closed
};

static struct ssh_sandbox *from_sandbox(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct ssh_sandbox, sandbox);
}

static const struct sandbox_impl sandbox_impl;
static const struct sandbox_impl runner_impl;

/* ---- the host ---- */

static void on_progress(void *data, const char *text)
{
	struct ssh_sandbox *self = data;
	if (self->listener->on_progress) {
		self->listener->on_progress(self->data, text);
	}
}

/* A process needs one more channel if its stderr has its own. */
static size_t channels_of_process(const struct ssh_sandbox *self)
{
	return self->settings.stderr_apart ? 2 : 1;
}

static size_t max_processes(const struct ssh_sandbox *self)
{
	size_t max = self->settings.max_channels;
	size_t each = max > 0 ? max : CHANNELS_EACH;
	size_t all = self->settings.max_connections * each - CHANNELS_KEPT;
	return all / channels_of_process(self);
}

static const char *host_name(const struct ssh_sandbox *self)
{
	return self->target.alias ? self->target.alias : self->target.host;
}

static void tell_ended(struct ssh_sandbox *self, unsigned count)
{
	char text[ERROR_TEXT_MAX];
	if (count > 0) {
		text_format(text, sizeof(text),
			"The connection to %s was lost, or its broker was killed, and %u process%s "
			"from it still ran there: the broker ended them before it started anything "
			"else",
			host_name(self), count, count == 1 ? "" : "es");
		sandbox_remark(&self->sandbox, text);
		on_progress(self, text);
	}
}

static void tell_kept(struct ssh_sandbox *self, const char *const *kept)
{
	for (; kept && *kept; kept++) {
		sandbox_remark(&self->sandbox, *kept);
		on_progress(self, *kept);
	}
}

/* Warns about names that the user or a host chose; they contain only letters, digits and _. */
static void warn_of_names(struct ssh_sandbox *self, const char *const *names, const char *why)
{
	struct buf text;
	buf_init(&text, ERROR_TEXT_MAX);
	bool fits = true;
	for (size_t i = 0; names && names[i] && fits; i++) {
		fits = buf_append_format(&text, NULL, "%s%s", i > 0 ? ", " : "", names[i]);
	}
	if (names && names[0]) {
		char sentence[2 * ERROR_TEXT_MAX];
		struct span list = buf_span(&text);
		text_format(sentence, sizeof(sentence), "login-env: %.*s%s: %s", (int)list.len,
			list.data, fits ? "" : ", …", why);
		sandbox_warn(&self->sandbox, sentence);
	}
	buf_finish(&text);
}

/* Reports variables in login-env that the agent does not get. */
static void tell_login_env(struct ssh_sandbox *self, const struct ssh_host_facts *facts)
{
	char why[ERROR_TEXT_MAX];
	if (!self->login_env[0]) {
		return;
	}
	if (facts->login_is_unknown) {
		text_format(why, sizeof(why),
			"login-env: the login shell of %s did not report its environment "
			"in time (login-timeout), so the agent gets none of it",
			host_name(self));
		sandbox_warn(&self->sandbox, why);
		return;
	}
	text_format(why, sizeof(why),
		"the login shell of %s (%s) does not export it, so the agent does not get it; a "
		"shell that runs a command only reads its login files",
		host_name(self), facts->shell);
	warn_of_names(self, facts->login_missing, why);
	warn_of_names(self, facts->login_too_big,
		"too long (64 KiB each, 256 KiB and 1024 variables together), so the agent does "
		"not get it");
}

static void tell_no_runner(struct ssh_sandbox *self)
{
	char text[ERROR_TEXT_MAX];
	const char *why = ssh_host_no_runner(self->host);
	if (why) {
		text_format(text, sizeof(text),
			"%s: shell scripts are used instead of the runner, because %s",
			host_name(self), why);
		sandbox_remark(&self->sandbox, text);
		on_progress(self, text);
	}
}

static void tell_outlives(struct ssh_sandbox *self)
{
	const struct ssh_sandbox_settings *settings = &self->settings;
	const struct remote *remote = ssh_host_remote(self->host);
	const char *why = ssh_host_no_runner(self->host);
	const char *tied = remote ? remote_tied(remote) : NULL;
	char text[ERROR_TEXT_MAX];
	if (remote_outlives(remote)) {
		text_format(self->outlives, sizeof(self->outlives), "link-grace = %llds",
			settings->grace_ms / 1000);
		return;
	}
	if (!settings->outlives) {
		text_format(self->outlives, sizeof(self->outlives), "no, because outlives = never");
		return;
	}
	text_format(self->outlives, sizeof(self->outlives), "no, because %s%s",
		tied ? "" : "only the runner can go on without the connection, and ",
		tied                      ? tied
		: !settings->wants_runner ? "runner = never"
		: why                     ? why
					  : "this host cannot run it");
	if (!settings->names_outlives) {
		return;
	}
	text_format(text, sizeof(text), "outlives: what runs on %s ends with its connection: %s",
		host_name(self), self->outlives);
	sandbox_warn(&self->sandbox, text);
}

static void tell_terminals(struct ssh_sandbox *self)
{
	const char *why = ssh_host_no_runner(self->host);
	if (!ssh_host_remote(self->host)) {
		text_format(self->no_terminals, sizeof(self->no_terminals),
			"only the runner can open a terminal there, and %s",
			!self->settings.wants_runner ? "runner = never"
			: why                        ? why
						     : "this host cannot run it");
		self->sandbox.no_terminals = self->no_terminals;
	}
}

static void tell_omitted(struct ssh_sandbox *self)
{
	char text[ERROR_TEXT_MAX];
	const struct ssh_target *target = &self->target;
	if (ssh_target_has_forwards(target) && target->client == SSH_CLIENT_LIBSSH2) {
		text_format(text, sizeof(text),
			"%s: ssh_config sets %s%s, which the libssh2 client does not do: set "
			"ssh-client = auto or openssh, or remove it there",
			host_name(self), target->forwards[0],
			target->forwards[1] ? " (and more forwards)" : "");
		sandbox_warn(&self->sandbox, text);
	}
}

/* Otherwise the ports are closed, so that nobody waits for an answer. */
static void give_forwards(struct ssh_sandbox *self)
{
	char text[ERROR_TEXT_MAX];
	const char *why = ssh_host_no_runner(self->host);
	if (ssh_host_remote(self->host)) {
		remote_forward_all(ssh_host_remote(self->host), &self->forwards);
	} else if (self->forwards.count > 0) {
		text_format(text, sizeof(text),
			"forward: no port of this machine leads to %s, because only the runner can "
			"do that, and %s",
			host_name(self), why ? why : "this host cannot run it");
		sandbox_warn(&self->sandbox, text);
		forward_listeners_close(&self->forwards);
	}
}

static void on_host_ready(void *data)
{
	struct ssh_sandbox *self = data;
	bool has_runner = ssh_host_remote(self->host) != NULL;
	const struct ssh_host_facts *facts = ssh_host_facts(self->host);
	struct sandbox *sandbox = &self->sandbox;
	sandbox->impl = has_runner ? &runner_impl : &sandbox_impl;
	if (has_runner) {
		remote_set_sandbox(ssh_host_remote(self->host), sandbox);
	}
	sandbox->home = facts->directory;
	sandbox->environment = facts->environment;
	sandbox->agent_environment = facts->agent_environment;
	sandbox->capabilities = (struct sandbox_capabilities){
		.isolated = true,
		.confined = true,
		.many_roots = true,
		.maps_paths = true,
		.can_suspend = true,
		.outlives = remote_outlives(ssh_host_remote(self->host)),
		.has_terminals = has_runner,
		.max_processes = has_runner ? 0 : max_processes(self),
	};
	ssh_files_init(&self->files, sandbox, sandbox);
	ssh_roots_init(&self->roots, &(struct ssh_roots_config){
					     .sandbox = sandbox,
					     .pool = self->context->pool,
					     .setting = self->runtime_root,
					     .home = facts->home,
					     .profile = self->profile,
					     .state_folder = self->context->state_folder,
					     .token = self->reference,
					     .is_there = self->is_wanted,
					     .remote = ssh_host_remote(self->host),
				     });
	self->is_up = true;
	sandbox->was_ready = true;
	tell_ended(self, facts->ended);
	tell_kept(self, facts->kept);
	tell_login_env(self, facts);
	tell_no_runner(self);
	tell_outlives(self);
	tell_terminals(self);
	give_forwards(self);
	tell_omitted(self);
	sandbox->outlives = self->outlives;
	self->listener->on_ready(self->data);
}

static void on_host_notice(void *data, const char *text)
{
	struct ssh_sandbox *self = data;
	if (self->is_up && self->listener->on_notice) {
		self->listener->on_notice(self->data, text);
	}
}

static void on_host_link_lost(void *data, const struct error *why)
{
	struct ssh_sandbox *self = data;
	sandbox_note_link(&self->sandbox, false);
	if (self->is_up && self->listener->on_link_lost) {
		self->listener->on_link_lost(self->data, host_name(self), why);
	}
}

static void on_host_link_back(void *data)
{
	struct ssh_sandbox *self = data;
	sandbox_note_link(&self->sandbox, true);
	if (self->is_up && self->listener->on_link_back) {
		self->listener->on_link_back(self->data);
	}
}

static void on_host_failed(void *data, const struct error *err)
{
	struct ssh_sandbox *self = data;
	forward_listeners_close(&self->forwards); // the next sandbox may need the ports
	sandbox_quote(&self->sandbox, ssh_host_said(self->host));
	self->listener->on_failed(self->data, err);
}

static const struct ssh_host_listener host_listener = {
	.on_progress = on_progress,
	.on_notice = on_host_notice,
	.on_ready = on_host_ready,
	.on_link_lost = on_host_link_lost,
	.on_link_back = on_host_link_back,
	.on_failed = on_host_failed,
};

static bool open_host(struct ssh_sandbox *self, struct error *err)
{
	struct ssh_host_request request = {
		.context = self->context,
		.target = &self->target,
		.wants_runner = self->settings.wants_runner,
		.outlives = self->settings.outlives,
		.orphan_ms = self->settings.orphan_ms,
		.turn_grace_ms = self->settings.turn_grace_ms,
		.link_buffer = self->settings.link_buffer,
		.connect = self->settings.connect,
		.grace_ms = self->settings.grace_ms,
		.channel_timeout_ms = self->settings.channel_timeout_ms,
		.login_timeout_ms = self->settings.login_timeout_ms,
		.first_timeout_ms = self->settings.first_timeout_ms,
		.max_connections = self->settings.max_connections,
		.warm_channels = WARM_CHANNELS * channels_of_process(self),
		.admission = self->settings.admission,
		.admission_data = self->settings.admission_data,
		.stderr_apart = self->settings.stderr_apart,
		.max_channels = self->settings.max_channels,
		.runs = self->settings.runs,
		.place = self->place,
		.profile = self->profile,
		.login_env = (const char *const *)self->login_env,
	};
	self->host = ssh_host_open(&request, &host_listener, self, err);
	return self->host != NULL;
}

static bool fail_none_left(const struct ssh_sandbox *self, struct error *err)
{
	return error_set(
		err, ERROR_NOT_FOUND, "no killed broker has left anything on %s", host_name(self));
}

static void on_looked(void *data)
{
	struct ssh_sandbox *self = data;
	struct error err;
	self->look = NULL;
	bool is_needless = self->only_ends_left && !ssh_runs_has(self->settings.runs, self->place);
	if (is_needless ? !fail_none_left(self, &err) : !open_host(self, &err)) {
		self->listener->on_failed(self->data, &err);
	}
}

/* What killed brokers have left in this place must be known before anything is started there. */
static bool look_and_open(struct ssh_sandbox *self, struct error *err)
{
	struct ssh_runs *runs = self->settings.runs;
	if (!runs || !runs->state_folder) {
		return self->only_ends_left ? fail_none_left(self, err) : open_host(self, err);
	}
	self->look =
		ssh_runs_look_start(self->context->pool, runs, self->place, on_looked, self, err);
	return self->look != NULL;
}

/* A profile may name another host one day. */
static void name_place(struct ssh_sandbox *self)
{
	const struct ssh_target *target = &self->target;
	size_t size = strlen(self->profile) + ERROR_TEXT_MAX;
	if (!self->place) {
		self->place = mem_alloc(size);
		text_format(self->place, size, "%s %s@%s:%d", self->profile,
			target->user ? target->user : "", target->host, target->port);
	}
}

static void on_resolved(void *data, struct ssh_target *target, const struct error *err)
{
	struct ssh_sandbox *self = data;
	struct error failure;
	self->resolving = NULL;
	if (err) {
		self->listener->on_failed(self->data, err);
		return;
	}
	self->target = *target;
	self->has_target = true;
	name_place(self);
	if (!look_and_open(self, &failure)) {
		self->listener->on_failed(self->data, &failure);
	}
}

/* ---- the sandbox ---- */

static void add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	ssh_roots_add(&from_sandbox(sandbox)->roots, local_root, done, data);
}

static struct exec *start_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err)
{
	struct ssh_sandbox *self = from_sandbox(sandbox);
	struct exec *exec = ssh_host_exec(self->host, spec, listener, data, err);
	if (exec && spec->suspends && ssh_host_remote(self->host)) {
		remote_exec_join(exec, &self->suspension);
	} else if (exec && spec->suspends) {
		ssh_exec_join(exec, &self->suspension);
	}
	return exec;
}

static void suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_suspend(&from_sandbox(sandbox)->suspension, done, data);
}

static void resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	suspension_resume(&from_sandbox(sandbox)->suspension, done, data);
}

static const char *by_signals(const struct sandbox *sandbox)
{
	return suspension_by_signals(
		&CONTAINER_OF(sandbox, struct ssh_sandbox, sandbox)->suspension);
}

static struct file_op *read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	return ssh_files_read(&from_sandbox(sandbox)->files, path, links, max_bytes, done, data);
}

static struct file_op *write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct shared *content, sandbox_done *done, void *data)
{
	return ssh_files_write(&from_sandbox(sandbox)->files, path, links, content, done, data);
}

static struct file_op *stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return ssh_files_stat(&from_sandbox(sandbox)->files, path, done, data);
}

static struct file_op *resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return ssh_files_resolve(&from_sandbox(sandbox)->files, path, done, data);
}

static void destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct ssh_sandbox *self = from_sandbox(sandbox);
	char *token = self->settings.token;
	if (token && strcmp(token, self->reference) == 0) {
		/* If the link is lost, the scripts may go on removing the folders. */
		*token = '\0';
	}
	ssh_roots_remove(&self->roots, done, data);
}

static void sandbox_free(struct ssh_sandbox *self)
{
	ssh_host_close(self->host);
	if (self->has_target) {
		ssh_target_finish(&self->target);
	}
	free(self->runtime_root);
	free(self->profile);
	free(self->place);
	words_free(self->login_env);
	free(self->reference);
	free(self);
}

static void on_parting_end(struct parting *parting)
{
	sandbox_free(CONTAINER_OF(parting, struct ssh_sandbox, parting));
}

/*
 * The admission of a gateway is only borrowed. Ports that ssh listens on may be wanted by the next
 * sandbox.
 */
static bool can_part(const struct ssh_sandbox *self)
{
	bool has_ports = self->has_target && ssh_target_has_forwards(&self->target);
	return self->context->partings && !self->settings.admission && !has_ports;
}

static void close_sandbox(struct sandbox *sandbox)
{
	struct ssh_sandbox *self = from_sandbox(sandbox);
	ssh_resolving_cancel(self->resolving);
	ssh_runs_look_cancel(self->look);
	suspension_finish(&self->suspension);
	if (self->is_up) {
		ssh_files_finish(&self->files);
		ssh_roots_finish(&self->roots);
	}
	forward_listeners_close(&self->forwards);
	if (can_part(self) && ssh_host_part(self->host, parting_is_over, &self->parting)) {
		parting_begin(self->context->partings, &self->parting, on_parting_end);
	} else {
		sandbox_free(self);
	}
}

static const struct sandbox_impl sandbox_impl = {
	.add_root = add_root,
	.exec = start_exec,
	.read_file = read_file,
	.write_file = write_file,
	.stat_file = stat_file,
	.resolve_path = resolve_path,
	.file_op_cancel = ssh_files_cancel,
	.close = close_sandbox,
	.destroy = destroy,
	.suspend = suspend,
	.resume = resume,
	.by_signals = by_signals,
};

/* ---- the same with the runner ---- */

static struct remote *remote_of(struct sandbox *sandbox)
{
	return ssh_host_remote(from_sandbox(sandbox)->host);
}

static struct file_op *runner_read(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data)
{
	return remote_read(remote_of(sandbox), path, links, max_bytes, done, data);
}

static struct file_op *runner_write(struct sandbox *sandbox, const char *path,
	enum file_links links, struct shared *content, sandbox_done *done, void *data)
{
	return remote_write(remote_of(sandbox), path, links, content, done, data);
}

static struct file_op *runner_stat(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data)
{
	return remote_stat(remote_of(sandbox), path, done, data);
}

static struct file_op *runner_resolve(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data)
{
	return remote_resolve(remote_of(sandbox), path, done, data);
}

static void note_turn(struct sandbox *sandbox, bool is_open)
{
	ssh_host_note_turn(from_sandbox(sandbox)->host, is_open);
}

static void drop_link(struct sandbox *sandbox)
{
	ssh_host_drop_link(from_sandbox(sandbox)->host);
}

static bool forward(struct sandbox *sandbox, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err)
{
	return remote_forward(remote_of(sandbox), port, fds, visit, err);
}

static void unforward(struct sandbox *sandbox, uint16_t here, bool resets)
{
	remote_forward_remove(remote_of(sandbox), here, resets);
}

static const struct sandbox_impl runner_impl = {
	.forward = forward,
	.unforward = unforward,
	.note_turn = note_turn,
	.drop_link = drop_link,
	.add_root = add_root,
	.exec = start_exec,
	.read_file = runner_read,
	.write_file = runner_write,
	.stat_file = runner_stat,
	.resolve_path = runner_resolve,
	.file_op_cancel = remote_file_cancel,
	.close = close_sandbox,
	.destroy = destroy,
	.suspend = suspend,
	.resume = resume,
	.by_signals = by_signals,
};

static bool begin(struct ssh_sandbox *self, const struct sandbox_request *request,
	struct ssh_target *target, struct error *err)
{
	const struct settings *keys = request->settings;
	if (request->for_session && keys && !forward_listeners_open(&self->forwards, keys, err)) {
		return false;
	}
	if (target) {
		self->target = *target;
		self->has_target = true;
		name_place(self);
		return look_and_open(self, err);
	}
	self->resolving = ssh_target_resolve(self->context, keys, on_resolved, self, err);
	return self->resolving != NULL;
}

static void fill_token(char *token)
{
	random_fill_hex(token, SSH_FOLDERS_TOKEN_SIZE - 1);
}

static void choose_folders(struct ssh_sandbox *self, const char *reference)
{
	char *token = self->settings.token;
	if (!reference && token && !*token) {
		fill_token(token);
	}
	self->is_wanted = reference != NULL;
	self->reference = mem_strdup_or_null(reference ? reference : token);
	self->sandbox.reference = self->reference;
}

struct sandbox *ssh_sandbox_open(const struct provider_context *context,
	const struct sandbox_request *request, const struct ssh_sandbox_settings *settings,
	struct ssh_target *target, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	struct ssh_sandbox *self = mem_alloc_zero(sizeof(*self));
	sandbox_init(&self->sandbox, &sandbox_impl, context->loop);
	suspension_init(&self->suspension, &self->sandbox);
	self->context = context;
	self->settings = *settings;
	self->settings.runtime_root = NULL;
	self->runtime_root = mem_strdup(settings->runtime_root);
	self->profile = mem_strdup(request->profile);
	self->place = mem_strdup_or_null(settings->place);
	self->settings.place = NULL;
	self->login_env = mem_alloc_zero(sizeof(*self->login_env));
	words_append_all(&self->login_env, settings->login_env);
	self->settings.login_env = NULL;
	self->only_ends_left = request->only_ends_left;
	choose_folders(self, request->reference);
	self->listener = listener;
	self->data = data;
	if (!begin(self, request, target, err)) {
		sandbox_close(&self->sandbox);
		return NULL;
	}
	return &self->sandbox;
}
