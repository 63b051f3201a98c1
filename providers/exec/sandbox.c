/* SPDX-License-Identifier: MIT */
#include "providers/exec/sandbox_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/path_quote.h"
#include "base/random.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/exec/before.h"
#include "providers/exec/carrier.h"
#include "providers/exec/copy_in.h"
#include "providers/exec/facts.h"
#include "providers/exec/image.h"
#include "providers/exec/instance.h"
#include "providers/exec/last_word.h"
#include "providers/exec/recipe.h"
#include "providers/exec/runner_file.h"
#include "providers/exec/shown.h"
#include "providers/remote/remote.h"
#include "providers/script_line.h"
#include "providers/ssh/roots.h"
#include "providers/suspension.h"

enum { BEFORE_MAX = 256 * 1024 };

static void progress(void *data, const char *text)
{
	struct exec_sandbox *self = data;
	if (self->listener->on_progress && !self->is_over) {
		self->listener->on_progress(self->data, text);
	}
}

/* The caller must return at once: the listener may have freed the sandbox. */
static void fail(struct exec_sandbox *self, const struct error *err)
{
	struct error copy = *err;
	if (!self->is_over) {
		self->is_over = true;
		forward_listeners_close(&self->forwards); // the next sandbox may need the ports
		self->listener->on_failed(self->data, &copy);
	}
}

/* ---- the runner ---- */

/* Makes the next connection end the processes that this one may have left. */
static void leave_run(struct exec_sandbox *self, bool was_lost)
{
	struct ssh_run_note note;
	if (!self->facts.run_name) {
		return;
	}
	bool has_ended = (self->instance && exec_instance_has_ended(self->instance)) ||
	                 (!was_lost && (!self->remote || remote_has_ended_all(self->remote)));
	ssh_noting_end(self->noting, has_ended, &note);
	self->noting = NULL;
	if (was_lost || note.lock_fd < 0) {
		ssh_runs_add(&self->shared->runs,
			&(struct ssh_run_end){.place = self->place,
				.folder = self->facts.run_name,
				.node = self->facts.node ? self->facts.node : "",
				.grace_ms = self->profile.grace_ms,
				.was_lost = was_lost,
				.was_idle = self->remote && !remote_is_busy(self->remote),
				.note = &note});
	}
	ssh_run_note_keep(&note); // unless ssh_runs_add has taken it
	free(self->facts.run_name);
	self->facts.run_name = NULL;
}

/* It was started anew, or has ended: no process of an earlier run is left there. */
static void forget_runs(struct exec_sandbox *self)
{
	ssh_runs_forget(&self->shared->runs, self->place, self->shared->runs.added);
}

/* A run of a killed broker could not be ended. */
static void take_kept(struct exec_sandbox *self, const char *told)
{
	char text[2 * ERROR_TEXT_MAX];
	if (ssh_runs_keep(&self->shared->runs, self->place, told, text, sizeof(text))) {
		sandbox_remark(&self->sandbox, text);
		progress(self, text);
	}
}

static void on_fact(void *data, const char *line)
{
	struct exec_sandbox *self = data;
	const char *rest;
	if (script_take_word(line, "kept", &rest)) {
		take_kept(self, rest);
	} else {
		exec_facts_take(&self->facts, line, self->run);
	}
}

static void tell_ended(struct exec_sandbox *self)
{
	char text[ERROR_TEXT_MAX];
	if (exec_facts_say_ended(&self->facts, exec_sandbox_name(self), text, sizeof(text))) {
		sandbox_remark(&self->sandbox, text);
		progress(self, text);
	}
}

static void become_ready(struct exec_sandbox *self)
{
	struct sandbox *sandbox = &self->sandbox;
	static const char path[] =
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	/* Where no agent will work, only files are collected. */
	bool has_apart = self->is_for_session && !self->profile.trusts_workspace;
	const char *apart = has_apart ? self->profile.recipe_folder : NULL;
	exec_facts_add_variable(&self->facts, path);
	if (self->shown || self->profile.has_unknown_user) {
		exec_facts_choose_home(&self->facts);
	}
	sandbox->home = exec_facts_path(&self->facts, "HOME", "/");
	sandbox->environment = (const char *const *)self->facts.environment;
	sandbox->capabilities = (struct sandbox_capabilities){
		.isolated = !self->shown,
		.confined = true,
		.many_roots = !self->shown,
		.maps_paths = !self->shown,
		.other_programs = true,
		.can_suspend = true,
	};
	sandbox->no_terminals = "the login would get another sandbox than the agent";
	sandbox->reference = self->instance ? exec_instance_reference(self->instance) : self->token;
	sandbox->instance = self->instance ? exec_instance_born(self->instance) : NULL;
	ssh_roots_init(&self->roots, &(struct ssh_roots_config){.sandbox = sandbox,
					     .pool = self->context->pool,
					     .setting = self->profile.runtime_root,
					     .home = sandbox->home,
					     .profile = self->profile.name,
					     .state_folder = self->context->state_folder,
					     .token = self->token,
					     .program = self->program,
					     .apart = apart,
					     .is_there = self->is_wanted,
					     .remote = self->remote});
	self->is_up = true;
	remote_forward_all(self->remote, &self->forwards);
	sandbox->was_ready = true;
	tell_ended(self);
	self->listener->on_ready(self->data);
}

static void on_noted(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err,
			"%s: %s; if this broker is killed, the next one cannot end what runs there",
			exec_sandbox_name(self), err->text);
	}
	if (!self->is_over) {
		become_ready(self);
	}
}

/* Nothing runs there before the note of the run is on the disk. */
static void note_run(struct exec_sandbox *self)
{
	const struct ssh_runs *runs = &self->shared->runs;
	struct error err;
	if (!runs->state_folder || !self->facts.run_name) {
		become_ready(self);
		return;
	}
	struct ssh_run_note note = {.place = mem_strdup(self->place),
		.folder = mem_strdup(self->facts.run_name),
		.node = mem_strdup(self->facts.node ? self->facts.node : ""),
		.grace_ms = self->profile.grace_ms,
		.lock_fd = -1};
	memcpy(note.token, self->run, sizeof(note.token));
	self->noting = ssh_noting_start(self->context->pool, runs, &note, on_noted, self, &err);
	if (!self->noting) {
		on_noted(self, &err);
	}
}

static void on_checked(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	struct error failure;
	if (err) {
		failure = *err;
		error_prefix(&failure, "%s", exec_sandbox_name(self));
		fail(self, &failure);
	} else if (!self->is_over) {
		note_run(self);
	}
}

/* Nothing of the user's runs there before we know that it has the right files. */
static void on_remote_ready(void *data)
{
	struct exec_sandbox *self = data;
	ssh_runs_forget(&self->shared->runs, self->place, self->told_runs);
	if (self->is_over) {
		return;
	}
	remote_set_sandbox(self->remote, &self->sandbox);
	if (self->shown) {
		exec_shown_check(self->shown, self->remote, on_checked, self);
	} else {
		note_run(self);
	}
}

static void on_unfit(void *data, const char *why)
{
	struct exec_sandbox *self = data;
	struct error err;
	const struct exec_unfit unfit = {.place = exec_sandbox_name(self),
		.why = why,
		.grace_ms = self->profile.grace_ms,
		.has_ended = self->carrier.has_ended,
		.before = self->copy_failure.text};
	exec_facts_explain(&self->facts, &unfit, &err);
	remote_close(self->remote);
	self->remote = NULL;
	fail(self, &err);
}

static void on_brought(void *data, const struct error *err);

static void on_lost(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	leave_run(self, true);
	self->lost = *err;
	error_prefix(&self->lost, "%s", exec_sandbox_name(self));
	if (self->done || self->is_over) {
		return; // rest, destroy or withdraw goes on without the connection
	}
	if (self->instance) {
		exec_instance_explain(self->instance, &self->lost, on_brought); // an error
	} else {
		fail(self, &self->lost);
	}
}

static void on_notice(void *data, const char *text)
{
	const struct exec_sandbox *self = data;
	if (self->listener->on_notice && !self->is_over) {
		self->listener->on_notice(self->data, text);
	}
}

static const struct remote_listener remote_listener = {
	.on_fact = on_fact,
	.on_progress = progress,
	.on_notice = on_notice,
	.on_ready = on_remote_ready,
	.on_unfit = on_unfit,
	.on_lost = on_lost,
};

static void connect_by(struct exec_sandbox *self, const char *copy)
{
	struct error err;
	struct buf before;
	const char *instance = self->instance ? exec_instance_name(self->instance) : NULL;
	buf_init(&before, BEFORE_MAX);
	exec_carrier_init(&self->carrier, self->context, &self->profile, instance);
	random_fill_hex(self->run, TOKEN_SIZE - 1);
	progress(self, "Connecting to the runner");
	self->told_runs = self->shared->runs.added;
	const struct exec_before earlier = {
		&self->shared->runs, self->place, self->program, copy, self->profile.answer_ms};
	if (!self->is_over && exec_before_append(&earlier, &before, &err)) {
		self->remote = remote_open(&(struct remote_request){.loop = self->context->loop,
						   .carrier = &self->carrier.carrier,
						   .name = exec_sandbox_name(self),
						   .program = self->program,
						   .sh = "/bin/sh",
						   .token = self->run,
						   .before = buf_span(&before).data,
						   .grace_ms = self->profile.grace_ms,
						   .timeout_ms = self->profile.answer_ms},
			&remote_listener, self, &err);
	}
	buf_finish(&before);
	if (!self->remote && !self->is_over) {
		bool has_none = err.code == ERROR_UNAVAILABLE; // this build has no runner at all
		error_set_reason(&err, err.code,
			has_none ? "EXEC_NO_RUNNER" : "EXEC_COMMAND_FAILED", "%s: %s",
			exec_sandbox_name(self), err.text);
		fail(self, &err);
	}
}

/* An engine may be unable to copy, for example into a container whose root is read-only. */
static void on_copied(void *data, const char *target, const struct error *err)
{
	struct exec_sandbox *self = data;
	bool is_optional = self->profile.runner_there != NULL;
	self->copying = NULL;
	if (err && !is_optional) {
		fail(self, err);
		return;
	}
	if (err) {
		self->copy_failure = *err;
	} else {
		self->program = self->profile.runner_there;
	}
	connect_by(self, is_optional ? "" : target);
}

static void bring_and_connect(struct exec_sandbox *self)
{
	struct error err;
	const char *instance = self->instance ? exec_instance_name(self->instance) : NULL;
	if (!self->profile.words[EXEC_COPY_IN]) {
		self->program = self->profile.runner_there;
		connect_by(self, "");
		return;
	}
	progress(self, "Copying the runner");
	self->copying =
		exec_copy_in_start(self->context, &self->profile, instance, on_copied, self, &err);
	if (!self->copying) {
		fail(self, &err);
	}
}

static void on_looked(void *data)
{
	struct exec_sandbox *self = data;
	self->look = NULL;
	if (self->instance && exec_instance_was_started(self->instance)) {
		forget_runs(self);
	}
	bring_and_connect(self);
}

/* What killed brokers have left there must be known before anything is started. */
static void connect(struct exec_sandbox *self)
{
	struct ssh_runs *runs = &self->shared->runs;
	struct error err;
	const char *name = self->instance ? exec_instance_name(self->instance) : NULL;
	if (name && self->profile.platform->keeps_files) {
		name = exec_instance_reference(self->instance);
		free(self->token);
		self->token = mem_strdup(name);
	}
	self->place = exec_profile_place(&self->profile, name);
	if (!runs->state_folder) {
		on_looked(self);
		return;
	}
	self->look =
		ssh_runs_look_start(self->context->pool, runs, self->place, on_looked, self, &err);
	if (!self->look) {
		fail(self, &err);
	}
}

static void on_brought(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	if (err) {
		fail(self, err);
	} else {
		connect(self);
	}
}

/* ---- the image ---- */

static void on_built(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	self->building = NULL;
	if (err) {
		fail(self, err);
	} else {
		exec_instance_bring(self->instance, on_brought);
	}
}

/*
 * An instance that exists has its image already, and its note knows its name. So its work is not
 * lost with the file from which the image was built.
 */
static bool needs_recipe(const struct exec_sandbox *self)
{
	return (self->profile.recipe || self->profile.find_recipe) && !self->is_wanted;
}

static void on_written(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	struct error failure;
	self->writing = NULL;
	if (err) {
		fail(self, err);
	} else if (!needs_recipe(self) || !self->profile.recipe_file) {
		exec_instance_bring(self->instance, on_brought);
	} else {
		self->building = exec_image_start(
			self->context, &self->profile, progress, on_built, self, &failure);
		if (!self->building) {
			fail(self, &failure);
		}
	}
}

/* ---- the end ---- */

static void on_ended(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	if (self->place && exec_instance_has_ended(self->instance)) {
		forget_runs(self);
	}
	self->done(self->done_data, err);
}

static void begin_end(struct exec_sandbox *self, sandbox_done *done, void *data)
{
	self->is_over = true;
	self->done = done;
	self->done_data = data;
}

static void rest(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	begin_end(self, done, data);
	exec_instance_rest(self->instance, on_ended);
}

static void on_folders_removed(void *data, const struct error *err)
{
	struct exec_sandbox *self = data;
	if (err) {
		log_failure(LOG_LEVEL_WARNING, err, "%s: the folders of the sandbox stay there: %s",
			exec_sandbox_name(self), err->text);
	}
	exec_instance_remove(self->instance, on_ended);
}

static void destroy(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	begin_end(self, done, data);
	if (self->instance && self->token && self->is_up) {
		ssh_roots_remove(&self->roots, on_folders_removed, self);
		return;
	} else if (self->instance) {
		exec_instance_remove(self->instance, on_ended);
		return;
	}
	if (self->token && strcmp(self->shared->token, self->token) == 0) {
		self->shared->token[0] = '\0'; // a new sandbox must not use what we remove
	}
	ssh_roots_remove(&self->roots, done, data);
}

/* Cancels what goes on before the connection. */
static void cancel(struct exec_sandbox *self)
{
	exec_recipe_cancel(self->recipe);
	self->recipe = NULL;
	exec_image_cancel(self->building);
	self->building = NULL;
	exec_runner_file_cancel(self->writing);
	self->writing = NULL;
	exec_copy_in_cancel(self->copying);
	self->copying = NULL;
	ssh_runs_look_cancel(self->look);
	self->look = NULL;
}

static void withdraw(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	bool is_used = sandbox->root_count > 0 || !list_is_empty(&sandbox->adding);
	begin_end(self, done, data);
	cancel(self);
	forward_listeners_close(&self->forwards); // the next sandbox may need the ports
	if (!self->instance) {
		sandbox_raise_later(sandbox, on_ended, self, NULL); // its recipe was not read yet
		return;
	}
	exec_instance_withdraw(self->instance, is_used, on_ended);
}

static void close_sandbox(struct sandbox *sandbox)
{
	struct exec_sandbox *self = exec_sandbox_of(sandbox);
	suspension_finish(&self->suspension);
	if (self->is_up) {
		ssh_roots_finish(&self->roots);
	}
	leave_run(self, false);
	cancel(self);
	forward_listeners_close(&self->forwards);
	exec_shown_destroy(self->shown);
	remote_close(self->remote);
	exec_instance_destroy(self->instance);
	exec_profile_finish(&self->profile);
	exec_facts_finish(&self->facts);
	exec_found_finish(&self->found);
	free(self->place);
	free(self->token);
	free(self->wish.directory);
	free(self->wish.reference);
	free(self->wish.born);
	free(self);
}

#define COMMON_CALLS                                                                               \
	.add_root = exec_use_add_root, .exec = exec_use_exec, .read_file = exec_use_read_file,     \
	.write_file = exec_use_write_file, .stat_file = exec_use_stat_file,                        \
	.resolve_path = exec_use_resolve_path, .file_op_cancel = remote_file_cancel,               \
	.close = close_sandbox, .destroy = destroy, .suspend = exec_use_suspend,                   \
	.resume = exec_use_resume, .by_signals = exec_use_by_signals, .forward = exec_use_forward, \
	.unforward = exec_use_unforward, .look = exec_use_look, .is_pinned = exec_use_is_pinned

/* The profile has no start: the broker has made nothing that it could end. */
static const struct sandbox_impl place_impl = {COMMON_CALLS};

static const struct sandbox_impl instance_impl = {COMMON_CALLS, .withdraw = withdraw};

/* The profile has stop: we stop the instance when no session uses it. */
static const struct sandbox_impl resting_impl = {COMMON_CALLS, .withdraw = withdraw, .rest = rest};

/* ---- its beginning ---- */

/* Names the folders as for a host (providers/ssh/sandbox.h). */
static void choose_folders(struct exec_sandbox *self, const char *reference)
{
	char *token = self->shared->token;
	if (!reference && self->profile.is_transient && !*token) {
		random_fill_hex(token, TOKEN_SIZE - 1);
	}
	const char *chosen = self->profile.is_transient ? token : NULL;
	self->token = mem_strdup_or_null(reference ? reference : chosen);
}

static bool make_instance(struct exec_sandbox *self, struct error *err)
{
	const struct exec_wish *wish = &self->wish;
	self->instance = exec_instance_create(&(struct exec_instance_config){
		.context = self->context,
		.profile = &self->profile,
		.directory = wish->directory,
		.reference = wish->reference,
		.born = wish->born,
		.is_new = self->profile.is_transient,
		.on_progress = progress,
		.data = self,
	});
	if (self->profile.runner_there) {
		self->writing = exec_runner_file_write(
			self->context, self->profile.runner_file, on_written, self, err);
	}
	return !self->profile.runner_there || self->writing;
}

static void warn_of_ignored(struct exec_sandbox *self, const struct exec_found *found)
{
	char text[ERROR_TEXT_MAX];
	if (!found->ignored || !found->ignored[0]) {
		return;
	}
	text_format(
		text, sizeof(text), "%s: the broker does not do what this says:", found->source);
	for (size_t i = 0; found->ignored[i]; i++) {
		text_append(text, sizeof(text), "%s %s", i > 0 ? "," : "", found->ignored[i]);
	}
	sandbox_warn(&self->sandbox, text);
}

static bool take_found(struct exec_sandbox *self, const struct exec_found *found, struct error *err)
{
	exec_profile_add_words(&self->profile, EXEC_BUILD, (const char *const *)found->build);
	exec_profile_add_words(&self->profile, EXEC_START, (const char *const *)found->start);
	warn_of_ignored(self, found);
	self->found = (struct exec_found){.source = mem_strdup(found->source),
		.lines = words_copy((const char *const *)found->lines),
		.line_names = words_copy((const char *const *)found->line_names)};
	self->sandbox.setup = (struct sandbox_setup){.source = self->found.source,
		.directory = self->wish.directory,
		.names = (const char *const *)self->found.line_names,
		.lines = (const char *const *)self->found.lines};
	for (size_t i = 0; self->is_for_session && i < found->port_count; i++) {
		if (!forward_listeners_add(&self->forwards, found->ports[i], err)) {
			return error_prefix(err, "%s", found->source);
		}
	}
	return true;
}

/* The content of the recipe decides which instance it is. */
static void on_recipe(
	void *data, const struct exec_recipe_result *result, const struct error *failure)
{
	struct exec_sandbox *self = data;
	struct error err;
	self->recipe = NULL;
	if (!failure && result->content) {
		exec_profile_set_recipe(
			&self->profile, result->file, result->folder, result->content);
	} else if (!failure) {
		exec_profile_set_image(&self->profile, result->found->image);
	}
	bool is_taken = !failure && (!result->found || take_found(self, result->found, &err));
	if (failure || !is_taken || !make_instance(self, &err)) {
		fail(self, failure ? failure : &err);
	}
}

static bool make(struct exec_sandbox *self, struct error *err)
{
	if (!needs_recipe(self)) {
		return make_instance(self, err);
	}
	self->recipe = exec_recipe_look(self->context,
		&(struct exec_recipe_request){.file = self->profile.recipe,
			.find = self->profile.find_recipe,
			.workspace = self->wish.directory,
			.may_be_in_workspace = self->profile.trusts_workspace,
			.is_shown = self->profile.shows_workspace,
			.opens_ports = self->profile.opens_ports},
		on_recipe, self, err);
	return self->recipe != NULL;
}

/* The pins of the workspace decide which instance it is. */
static void on_shown(void *data, const struct error *failure)
{
	struct exec_sandbox *self = data;
	struct error err;
	if (failure || !make(self, &err)) {
		fail(self, failure ? failure : &err);
	}
}

static bool begin(
	struct exec_sandbox *self, const struct sandbox_request *request, struct error *err)
{
	if (!exec_profile_read(&self->profile, self->shared->platform, request->profile,
		    request->settings, self->context, err) ||
		(request->for_session &&
			!forward_listeners_open(&self->forwards, request->settings, err))) {
		return false;
	}
	self->is_wanted = request->reference != NULL;
	self->is_for_session = request->for_session;
	if (!exec_profile_has_instances(&self->profile)) {
		choose_folders(self, request->reference);
		return true;
	}
	self->sandbox.impl = self->profile.words[EXEC_STOP] ? &resting_impl : &instance_impl;
	self->wish = (struct exec_wish){.directory = mem_strdup_or_null(request->directory),
		.reference = mem_strdup_or_null(request->reference),
		.born = mem_strdup_or_null(request->instance)};
	if (!self->profile.shows_workspace) {
		return make(self, err);
	}
	self->shown = exec_shown_create(
		&(struct exec_shown_config){.context = self->context,
			.profile = &self->profile,
			.settings = request->settings,
			.sandbox = &self->sandbox,
			.directory = request->directory,
			.rules = {.is_guarded = request->is_guarded, .guard = request->guard},
			.tell = on_notice,
			.data = self},
		on_shown, err);
	return self->shown != NULL;
}

/* Connects after prepare has returned, because connecting may call the listener. */
static void on_begin(void *data, const struct error *err)
{
	connect(data);
}

struct sandbox *exec_sandbox_open(struct exec_shared *shared, const struct sandbox_request *request,
	const struct sandbox_listener *listener, void *data, struct error *err)
{
	struct exec_sandbox *self = mem_alloc_zero(sizeof(*self));
	sandbox_init(&self->sandbox, &place_impl, shared->context->loop);
	suspension_init(&self->suspension, &self->sandbox);
	exec_facts_init(&self->facts);
	self->shared = shared;
	self->context = shared->context;
	self->listener = listener;
	self->data = data;
	if (!begin(self, request, err)) {
		error_prefix(err, "profile \"%s\"", request->profile);
		sandbox_close(&self->sandbox);
		return NULL;
	}
	if (self->instance && !self->writing) {
		exec_instance_bring(self->instance, on_brought);
	} else if (!self->instance && !self->recipe && !self->shown) {
		sandbox_raise_later(&self->sandbox, on_begin, self, NULL);
	}
	return &self->sandbox;
}
