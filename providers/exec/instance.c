/* SPDX-License-Identifier: MIT */
#include "providers/exec/instance.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "base/path_quote.h"
#include "base/real_path.h"
#include "base/soon.h"
#include "base/text.h"
#include "providers/exec/ask.h"
#include "providers/exec/command.h"

enum { PROGRESS_MAX = 256, INSPECTED_MAX = 200 };

struct exec_instance {
	const struct provider_context *context;
	const struct exec_profile *profile;
	void (*on_progress)(void *data, const char *text);
	void *data;
	struct exec_claim *claim;
	struct exec_command *command; // the one that runs, or NULL
	struct exec_ask *ask;         // or NULL
	struct soon soon;             // raises the outcome
	char *born;                   // owned; the wanted exec_note.born, or NULL
	bool has_reference;
	bool is_making;   // start makes the instance; until it has ended, its name is not known
	bool has_started; // we have run start
	bool is_removing;
	bool has_ended; // we have stopped or destroyed it
	bool is_withdrawn, is_used;
	bool end_waits; // the withdrawal waits for an order of the claim
	bool has_failed;
	struct error err;
	exec_instance_done *done;
};

/* ---- outcomes ---- */

static void on_soon(struct soon *soon)
{
	struct exec_instance *self = CONTAINER_OF(soon, struct exec_instance, soon);
	exec_instance_done *done = self->done;
	struct error err = self->err;
	self->done = NULL;
	done(self->data, self->has_failed ? &err : NULL);
}

static void end(struct exec_instance *self, const struct error *err)
{
	self->has_failed = err != NULL;
	if (err && err != &self->err) {
		self->err = *err;
	}
	soon_start(&self->soon);
}

static void on_end(void *data, const struct error *err)
{
	end(data, err);
}

static const char *name_for_platform(const struct exec_instance *self)
{
	const char *name = exec_claim_note(self->claim)->instance;
	return name ? name : exec_claim_name(self->claim);
}

static struct exec_values values_of(const struct exec_instance *self)
{
	return (struct exec_values){
		.instance = name_for_platform(self), .proposed = exec_claim_name(self->claim)};
}

static bool run(struct exec_instance *self, enum exec_verb verb, exec_command_done *done)
{
	struct error err;
	const struct exec_values values = values_of(self);
	self->command =
		exec_command_start(self->context, self->profile, verb, &values, done, self, &err);
	if (!self->command) {
		end(self, &err);
	}
	return self->command != NULL;
}

/* Called when an order of the claim has ended. False: a withdrawal waited for it and goes on. */
static void go_on_with_withdrawal(struct exec_instance *self);
static bool claim_is_over(struct exec_instance *self)
{
	if (self->end_waits) {
		self->end_waits = false;
		go_on_with_withdrawal(self);
		return false;
	}
	return true;
}

static void progress(const struct exec_instance *self, const char *text)
{
	if (self->on_progress && !self->is_withdrawn) {
		self->on_progress(self->data, text);
	}
}

/* ---- state ---- */

static void on_waiting(void *data, const char *words)
{
	const struct exec_instance *self = data;
	char text[PROGRESS_MAX];
	text_format(text, sizeof(text), "Waiting for %s: %s", name_for_platform(self), words);
	progress(self, text);
}

static void ask_state(struct exec_instance *self, long long wait_ms, exec_command_done *done)
{
	struct error err;
	self->ask = exec_ask_start(&(struct exec_ask_config){.context = self->context,
					   .profile = self->profile,
					   .values = values_of(self),
					   .wait_ms = wait_ms,
					   .on_waiting = on_waiting},
		done, self, &err);
	if (!self->ask) {
		end(self, &err);
	}
}

static void on_state(
	void *data, int status, struct span out, const char *words, const struct error *failure);

/* ---- start ---- */

static void on_shared(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	if (claim_is_over(self)) {
		end(self, err);
	}
}

static void on_failure_forgotten(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	self->has_started = false; // a withdrawal has nothing to undo
	if (claim_is_over(self)) {
		end(self, &self->err);
	}
}

static void on_failure_destroyed(
	void *data, int status, struct span out, const char *words, const struct error *err)
{
	struct exec_instance *self = data;
	bool may_start = self->profile->wait_ms > 0 && (err || status != 0);
	self->command = NULL;
	if (may_start) { // so its note stays, and the next broker ends it
		text_append(self->err.text, sizeof(self->err.text),
			"; what was started could not be ended either, and may begin to run: %s",
			err ? err->text : words);
		end(self, &self->err);
		return;
	}
	exec_claim_forget(self->claim, on_failure_forgotten);
}

static void on_failure_stopped(
	void *data, int status, struct span out, const char *words, const struct error *err)
{
	struct exec_instance *self = data;
	self->command = NULL;
	end(self, &self->err);
}

/* An instance that waits would begin to run later, when nobody wants it any more. */
static void stop_failure(struct exec_instance *self)
{
	struct error ignored;
	const struct exec_values values = values_of(self);
	if (self->profile->wait_ms > 0 && self->has_started) {
		self->command = exec_command_start(self->context, self->profile, EXEC_STOP, &values,
			on_failure_stopped, self, &ignored);
	}
	if (!self->command) {
		end(self, &self->err);
	}
}

/*
 * Removes what a failed start may have made. If start was given the proposed name (%i), the
 * instance has that name. `err` is the error of start.
 */
static void clean_up(struct exec_instance *self, const struct error *err)
{
	struct error ignored;
	const struct exec_profile *profile = self->profile;
	const char *name = exec_claim_name(self->claim);
	const struct exec_values values = {.instance = name, .proposed = name};
	self->err = *err;
	if (!self->is_making) {
		stop_failure(self);
		return;
	}
	if (profile->words[EXEC_DESTROY] && exec_profile_uses_name(profile, EXEC_START)) {
		self->command = exec_command_start(self->context, profile, EXEC_DESTROY, &values,
			on_failure_destroyed, self, &ignored);
	}
	if (!self->command) {
		exec_claim_forget(self->claim, on_failure_forgotten);
	}
}

static struct span first_line(struct span text)
{
	const char *newline = text.len > 0 ? memchr(text.data, '\n', text.len) : NULL;
	return (struct span){text.data, newline ? (size_t)(newline - text.data) : text.len};
}

static bool is_as_wanted(const struct exec_profile *profile, struct span out, struct error *err)
{
	char said[INSPECTED_MAX + 1] = "";
	struct span line = first_line(out);
	if (span_is(line, profile->made)) {
		return true;
	}
	io_keep_words(said, INSPECTED_MAX, line);
	return error_set_reason(err, ERROR_CONFIG, "EXEC_MADE_OTHERWISE",
		"%s has started an instance with other settings than the profile's: expected %s, "
		"got %s",
		profile->words[EXEC_START][0], profile->made, said);
}

/* start may have made an instance without the settings that the profile asks for. */
static void on_inspected(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	const struct exec_profile *profile = self->profile;
	struct error err;
	self->command = NULL;
	if (failure) {
		clean_up(self, failure);
	} else if (status != 0) {
		(void)exec_command_refuse(profile, EXEC_INSPECT, status, words, &err);
		clean_up(self, &err);
	} else if (!is_as_wanted(profile, out, &err)) {
		clean_up(self, &err);
	} else {
		exec_claim_share(self->claim, on_shared);
	}
}

static void on_noted(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	if (!claim_is_over(self)) {
		return;
	}
	if (err) {
		end(self, err);
	} else if (self->is_making && self->profile->words[EXEC_INSPECT]) {
		(void)run(self, EXEC_INSPECT, on_inspected);
	} else if (self->profile->wait_ms > 0) {
		ask_state(self, self->profile->wait_ms, on_state);
	} else {
		exec_claim_share(self->claim, on_shared);
	}
}

static bool take_name(struct span out, char **out_name, struct error *err)
{
	enum { SHOWN_MAX = 80 };
	struct span line = first_line(out);
	if (exec_instance_is_valid(line)) {
		*out_name = mem_strndup(line);
		return true;
	}
	struct span shown = {line.data, line.len < SHOWN_MAX ? line.len : SHOWN_MAX};
	char *quoted = path_quote(shown);
	error_set_reason(err, ERROR_PROTOCOL, "EXEC_NAME_INVALID",
		"start printed no instance's name as its first line, but %zu bytes: %s%s", line.len,
		quoted, shown.len < line.len ? "…" : "");
	free(quoted);
	return false;
}

static void on_start_ended(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	struct error err;
	char *name = NULL;
	self->command = NULL;
	if (failure) {
		clean_up(self, failure);
	} else if (status != 0) {
		(void)exec_command_refuse(self->profile, EXEC_START, status, words, &err);
		clean_up(self, &err);
	} else if (!take_name(out, &name, &err)) {
		clean_up(self, &err);
	} else {
		exec_claim_write(self->claim, name, on_noted);
	}
	free(name);
}

static void start(struct exec_instance *self)
{
	char text[PROGRESS_MAX];
	text_format(text, sizeof(text), "%s with %s",
		self->is_making ? "Making an instance" : "Starting the instance",
		path_last_part(self->profile->words[EXEC_START][0]));
	progress(self, text);
	self->has_started = true;
	bool is_again = !self->is_making && self->profile->words[EXEC_RESTART];
	(void)run(self, is_again ? EXEC_RESTART : EXEC_START, on_start_ended);
}

/* We write the note before start: if this broker is killed now, a later one finds the note. */
static void on_proposed(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	if (!claim_is_over(self)) {
		return;
	}
	if (err) {
		end(self, err);
	} else {
		start(self);
	}
}

static void make(struct exec_instance *self)
{
	self->is_making = true;
	exec_claim_write(self->claim, NULL, on_proposed);
}

static void on_left_destroyed(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	self->command = NULL;
	make(self); // whether destroy failed does not matter: start reports what is wrong
}

/* A broker that was killed during start may have left an instance with the proposed name. */
static void make_anew(struct exec_instance *self)
{
	const struct exec_profile *profile = self->profile;
	bool was_begun = exec_claim_note(self->claim)->born[0] != '\0';
	if (was_begun && profile->words[EXEC_DESTROY] &&
		exec_profile_uses_name(profile, EXEC_START)) {
		(void)run(self, EXEC_DESTROY, on_left_destroyed);
	} else {
		make(self);
	}
}

/* ---- bring ---- */

static bool set_gone(const struct exec_instance *self, struct error *err)
{
	return error_set_reason(err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
		"sandbox %s no longer exists: state says that %s is gone",
		exec_claim_name(self->claim), name_for_platform(self));
}

static void on_gone_forgotten(void *data, const struct error *ignored)
{
	struct exec_instance *self = data;
	struct error err;
	if (claim_is_over(self)) {
		(void)set_gone(self, &err);
		end(self, &err);
	}
}

static void on_rest_destroyed(
	void *data, int status, struct span out, const char *words, const struct error *err)
{
	struct exec_instance *self = data;
	self->command = NULL;
	exec_claim_forget(self->claim, on_gone_forgotten);
}

/* Some platforms keep a record of an ended instance until somebody removes it. */
static void on_gone_alone(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	if (!claim_is_over(self)) {
		return;
	}
	if (err) {
		on_gone_forgotten(self, NULL); // the broker that has the lock finds this, too
	} else if (self->profile->platform->keeps_files && self->profile->words[EXEC_DESTROY]) {
		(void)run(self, EXEC_DESTROY, on_rest_destroyed);
	} else {
		exec_claim_forget(self->claim, on_gone_forgotten);
	}
}

/* What has become of an instance that should run. */
static void fail_start(struct exec_instance *self, int status, const char *words)
{
	struct error err;
	const struct exec_profile *profile = self->profile;
	const char *name = name_for_platform(self);
	if (status == EXEC_STATE_WAITING) {
		error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s did not run after %lld ms (%s): %s", name, profile->wait_ms,
			profile->wait_key, words);
	} else {
		error_set_reason(&err, ERROR_UNAVAILABLE, "EXEC_NOT_STARTED",
			"%s ended before anything ran in it: %s", name, words);
	}
	clean_up(self, &err);
}

/*
 * Another broker was perhaps killed after it had started the instance again, and before it had
 * written down the new name. We write it down now, and ask again.
 */
static bool take_running_name(struct exec_instance *self, struct span out)
{
	struct span (*read_name)(struct span) = self->profile->platform->read_name;
	struct span name = read_name ? read_name(out) : (struct span){"", 0};
	if (!exec_instance_is_valid(name) || span_is(name, name_for_platform(self))) {
		return false;
	}
	char *text = mem_strndup(name);
	exec_claim_write(self->claim, text, on_noted);
	free(text);
	return true;
}

static void on_state(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	struct error err;
	bool is_over = status == EXEC_STATE_STOPPED || status == EXEC_STATE_GONE;
	self->ask = NULL;
	if (failure && self->has_started) {
		clean_up(self, failure);
	} else if (failure) {
		end(self, failure);
	} else if (status == EXEC_STATE_RUNNING) {
		if (!take_running_name(self, out)) {
			exec_claim_share(self->claim, on_shared);
		}
	} else if (status == EXEC_STATE_WAITING || (self->has_started && is_over)) {
		fail_start(self, status, words);
	} else if (status == EXEC_STATE_STOPPED) {
		start(self);
	} else if (status == EXEC_STATE_GONE && self->has_reference) {
		exec_claim_take_alone(self->claim, on_gone_alone);
	} else if (status == EXEC_STATE_GONE) {
		make(self);
	} else {
		(void)exec_command_refuse(self->profile, EXEC_STATE, status, words, &err);
		on_state(self, 0, out, "", &err);
	}
}

static void on_taken(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	struct error lost;
	if (!claim_is_over(self)) {
		return;
	}
	if (err) {
		end(self, err);
		return;
	}
	const struct exec_note *note = exec_claim_note(self->claim);
	if (self->born && strcmp(self->born, note->born) != 0) {
		error_set_reason(&lost, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"sandbox %s no longer exists: there is another one of its name",
			exec_claim_name(self->claim));
		end(self, &lost);
	} else if (!note->instance && self->has_reference) {
		error_set_reason(&lost, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"sandbox %s was never made", exec_claim_name(self->claim));
		end(self, &lost);
	} else if (!note->instance) {
		make_anew(self);
	} else if (self->profile->words[EXEC_STATE]) {
		ask_state(self, self->profile->wait_ms, on_state);
	} else {
		exec_claim_share(self->claim, on_shared);
	}
}

void exec_instance_bring(struct exec_instance *instance, exec_instance_done *done)
{
	instance->done = done;
	exec_claim_take(instance->claim, on_taken);
}

void exec_instance_open(struct exec_instance *instance, exec_instance_done *done)
{
	instance->done = done;
	exec_claim_take(instance->claim, on_end);
}

/* ---- the end ---- */

static void on_state_after_end(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	self->command = NULL;
	bool is_stopped = status == EXEC_STATE_STOPPED || status == EXEC_STATE_GONE;
	self->has_ended = !failure && is_stopped;
	if (!failure && self->is_removing && status == EXEC_STATE_GONE) {
		exec_claim_forget(self->claim, on_end);
	} else {
		end(self, !failure && is_stopped && !self->is_removing ? NULL : &self->err);
	}
}

/*
 * A platform may stop an instance and report a failure nevertheless: podman 4.3 does so when it has
 * lost the record of an earlier exec. It may also fail to remove an instance that somebody else has
 * already removed. So we ask for the state of the instance, and that decides.
 */
static void on_end_failed(struct exec_instance *self, int status, const char *words)
{
	(void)exec_command_refuse(self->profile, self->is_removing ? EXEC_DESTROY : EXEC_STOP,
		status, words, &self->err);
	if (self->profile->words[EXEC_STATE]) {
		(void)run(self, EXEC_STATE, on_state_after_end);
	} else {
		end(self, &self->err);
	}
}

static void on_command_ended(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	self->command = NULL;
	if (failure) {
		end(self, failure);
	} else if (status != 0 && !(self->is_removing && status == EXEC_STATE_GONE)) {
		on_end_failed(self, status, words);
	} else if (self->is_removing) {
		self->has_ended = true;
		exec_claim_forget(self->claim, on_end);
	} else {
		self->has_ended = true;
		end(self, NULL);
	}
}

static void on_alone(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	struct error denied;
	const char *name = exec_claim_name(self->claim);
	if (err && err->code == ERROR_UNAVAILABLE && (!self->is_removing || self->is_withdrawn)) {
		log_info("sandbox %s keeps running: another broker uses it", name);
		end(self, NULL);
	} else if (err && err->code == ERROR_UNAVAILABLE) {
		error_set_reason(&denied, ERROR_DENIED, "SANDBOX_IN_USE",
			"sandbox %s is not destroyed: another broker uses it", name);
		end(self, &denied);
	} else if (err) {
		end(self, err);
	} else if (self->is_removing && !exec_claim_note(self->claim)->instance &&
		   !exec_profile_uses_name(self->profile, EXEC_START)) {
		log_warning("sandbox %s: its broker ended before start had named an instance, "
			    "which may exist",
			name);
		exec_claim_forget(self->claim, on_end);
	} else {
		(void)run(self, self->is_removing ? EXEC_DESTROY : EXEC_STOP, on_command_ended);
	}
}

bool exec_instance_has_ended(const struct exec_instance *instance)
{
	return instance->has_ended;
}

static void stop_asking(struct exec_instance *self)
{
	exec_ask_cancel(self->ask);
	self->ask = NULL;
}

void exec_instance_rest(struct exec_instance *instance, exec_instance_done *done)
{
	stop_asking(instance);
	instance->done = done;
	instance->is_removing = false;
	if (instance->profile->words[EXEC_STOP]) {
		exec_claim_take_alone(instance->claim, on_alone);
	} else {
		end(instance, NULL);
	}
}

void exec_instance_remove(struct exec_instance *instance, exec_instance_done *done)
{
	struct error err;
	stop_asking(instance);
	instance->done = done;
	instance->is_removing = true;
	if (instance->profile->words[EXEC_DESTROY]) {
		exec_claim_take_alone(instance->claim, on_alone);
		return;
	}
	error_set(&err, ERROR_CONFIG,
		"profile \"%s\" has no key destroy: sandbox %s stays; remove it there, or forget "
		"it here with --discard",
		instance->profile->name, exec_claim_name(instance->claim));
	end(instance, &err);
}

static void on_forget_alone(void *data, const struct error *err)
{
	struct exec_instance *self = data;
	if (err) {
		end(self, err);
	} else {
		exec_claim_forget(self->claim, on_end);
	}
}

void exec_instance_forget(struct exec_instance *instance, exec_instance_done *done)
{
	instance->done = done;
	exec_claim_take_alone(instance->claim, on_forget_alone);
}

/* ---- withdrawal ---- */

static void go_on_with_withdrawal(struct exec_instance *self)
{
	bool can_destroy = self->profile->words[EXEC_DESTROY] != NULL;
	soon_stop(&self->soon);
	if (!self->has_started) {
		end(self, NULL);
	} else if (self->is_making && !self->is_used && can_destroy) {
		exec_instance_remove(self, self->done);
	} else {
		exec_instance_rest(self, self->done);
	}
}

void exec_instance_withdraw(struct exec_instance *instance, bool is_used, exec_instance_done *done)
{
	exec_command_cancel(instance->command);
	instance->command = NULL;
	stop_asking(instance);
	soon_stop(&instance->soon);
	instance->done = done;
	instance->is_withdrawn = true;
	instance->is_used = is_used;
	instance->end_waits = exec_claim_is_busy(instance->claim);
	if (!instance->end_waits) {
		go_on_with_withdrawal(instance);
	}
}

/* ---- what has happened to it ---- */

void exec_instance_add_state(
	const struct exec_instance *instance, int status, const char *words, struct error *err)
{
	const struct error was = *err;
	const char *name = name_for_platform(instance);
	const char *said = instance->profile->platform->read_state ? words : "";
	const char *colon = *said ? ": " : "";
	if (status == EXEC_STATE_GONE) {
		error_set_reason(err, ERROR_NOT_FOUND, "SANDBOX_NOT_FOUND",
			"%s; state says that %s is gone%s%s", was.text, name, colon, said);
	} else if (status == EXEC_STATE_STOPPED) {
		error_set_reason(err, was.code, was.reason,
			"%s; state says that %s has stopped%s%s", was.text, name, colon, said);
	} else if (status == EXEC_STATE_WAITING) {
		error_set_reason(err, was.code, was.reason, "%s; state says of %s: %s", was.text,
			name, said);
	}
}

struct exec_ask *exec_instance_ask(
	struct exec_instance *instance, exec_command_done *done, void *data, struct error *err)
{
	return exec_ask_start(&(struct exec_ask_config){.context = instance->context,
				      .profile = instance->profile,
				      .values = values_of(instance),
				      .wait_ms = instance->profile->command_ms},
		done, data, err);
}

static void on_lost_state(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_instance *self = data;
	self->ask = NULL;
	if (!failure) {
		exec_instance_add_state(self, status, words, &self->err);
	}
	end(self, &self->err);
}

void exec_instance_explain(
	struct exec_instance *instance, const struct error *lost, exec_instance_done *done)
{
	struct error ignored;
	instance->done = done;
	instance->err = *lost;
	if (instance->profile->words[EXEC_STATE]) {
		instance->ask = exec_instance_ask(instance, on_lost_state, instance, &ignored);
	}
	if (!instance->ask) {
		end(instance, &instance->err);
	}
}

/* ---- life ---- */

struct exec_instance *exec_instance_create(const struct exec_instance_config *config)
{
	struct exec_instance *self = mem_alloc_zero(sizeof(*self));
	const struct exec_profile *profile = config->profile;
	self->context = config->context;
	self->profile = profile;
	self->on_progress = config->on_progress;
	self->data = config->data;
	self->has_reference = config->reference != NULL;
	self->born = mem_strdup_or_null(config->born);
	soon_init(&self->soon, config->context->loop, on_soon);
	self->claim = exec_claim_create(&(struct exec_claim_config){
		.context = config->context,
		.profile = profile,
		.directory = config->directory,
		.reference = config->reference,
		.is_new = config->is_new,
		/* Without a sync the only copy of the files may be there, so a sweep keeps it. */
		.is_transient =
			profile->is_transient && (profile->is_synced || profile->shows_workspace),
		.timeout_ms = profile->start_ms + profile->wait_ms,
		.data = self,
	});
	return self;
}

void exec_instance_destroy(struct exec_instance *instance)
{
	if (instance) {
		exec_command_cancel(instance->command);
		exec_ask_cancel(instance->ask);
		exec_claim_destroy(instance->claim);
		soon_stop(&instance->soon);
		free(instance->born);
		free(instance);
	}
}

const char *exec_instance_reference(const struct exec_instance *instance)
{
	return exec_claim_name(instance->claim);
}

const char *exec_instance_born(const struct exec_instance *instance)
{
	return exec_claim_note(instance->claim)->born;
}

const char *exec_instance_name(const struct exec_instance *instance)
{
	return exec_claim_note(instance->claim)->instance;
}

bool exec_instance_was_started(const struct exec_instance *instance)
{
	return instance->has_started;
}
