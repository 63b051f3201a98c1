/* SPDX-License-Identifier: MIT */
#include "broker/methods/exec_methods.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/methods/run.h"
#include "broker/methods/sandbox_call.h"
#include "broker/session/answer.h"

enum { WORDS_MAX = 4096, NAME_SIZE = 24 };

/* A command that runs, or has ended and is kept. */
struct exec_call {
	struct sandbox_call call;
	char name[NAME_SIZE]; // "" if the request is answered at the end of the command
	struct run *run;      // owned
};

/* The params, while the command is being started. */
struct wanted {
	char **words, **additions; // owned
	char **env;                // owned
	char *cwd;                 // owned
	struct buf input;
	long long timeout_ms, output_max;
};

static struct exec_call *from_call(struct sandbox_call *call)
{
	return CONTAINER_OF(call, struct exec_call, call);
}

static void destroy(struct sandbox_call *call)
{
	struct exec_call *self = from_call(call);
	run_destroy(self->run);
	sandbox_call_finish(call);
	free(self);
}

/* ---- the answer ---- */

static void write_usage(struct json_writer *writer, const struct process_usage *usage)
{
	json_write_key(writer, "usage");
	if (!usage->is_known) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_member_int(writer, "cpuMs", (long long)usage->cpu_ms);
	json_write_member_int(writer, "peakMemoryBytes", (long long)usage->peak_bytes);
	json_write_object_end(writer);
}

static void write_number(struct json_writer *writer, const char *key, bool is_known, int number)
{
	json_write_key(writer, key);
	if (is_known) {
		json_write_int(writer, number);
	} else {
		json_write_null(writer);
	}
}

static void write_error(struct json_writer *writer, const struct run_result *result)
{
	json_write_key(writer, "error");
	if (!result->has_failed) {
		json_write_null(writer);
		return;
	}
	json_write_object(writer);
	json_write_member(writer, "code", failure_code_of(&result->err));
	json_write_member(writer, "message", result->err.text);
	json_write_object_end(writer);
}

static void write_members(struct exec_call *self, struct json_writer *writer)
{
	const struct run_result result = run_result(self->run);
	bool has_ended = result.is_over && !result.has_failed;
	json_write_member(writer, "state",
		!result.is_over     ? "running"
		: result.has_failed ? "failed"
				    : "exited");
	sandbox_call_write(&self->call, writer, "stdout", result.out);
	sandbox_call_write(&self->call, writer, "stderr", result.errors);
	json_write_member_bool(writer, "stdoutCut", result.out_total > result.out.len);
	json_write_member_bool(writer, "stderrCut", result.err_total > result.errors.len);
	write_number(
		writer, "exitCode", has_ended && result.status.signal == 0, result.status.code);
	write_number(
		writer, "signal", has_ended && result.status.signal != 0, result.status.signal);
	json_write_member_bool(writer, "timedOut", result.timed_out);
	json_write_member_int(writer, "durationMs", result.duration_ms);
	write_usage(writer, &result.status.usage);
	write_error(writer, &result);
}

/* Answers the request of `asker`, which may be another call, with the state of `self`. */
static void answer(struct exec_call *self, struct sandbox_call *asker)
{
	struct json_writer writer;
	struct buf out;
	struct error err;
	buf_init(&out, SIZE_MAX / 2);
	self->call.is_base64 = asker->is_base64;
	json_write_begin(&writer, &out);
	json_write_object(&writer);
	write_members(self, &writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, &err)) {
		sandbox_call_answer(asker, &out);
	} else {
		sandbox_call_fail(asker, &err);
	}
	buf_finish(&out);
}

/* A command that does not exist is an error of the request. */
static void on_done(void *data)
{
	struct exec_call *self = data;
	const struct run_result result = run_result(self->run);
	if (!self->call.id) {
		return; // it stays until its status is requested
	}
	bool is_missing = result.has_failed && !result.err.reason &&
	                  (result.err.code == ERROR_NOT_FOUND || result.err.code == ERROR_DENIED);
	if (is_missing) {
		struct error err = result.err;
		sandbox_call_refuse(&self->call, "COMMAND_NOT_FOUND", "%s", err.text);
	} else if (result.has_failed) {
		struct error err = result.err;
		sandbox_call_fail(&self->call, &err);
	} else {
		answer(self, &self->call);
	}
}

/* ---- the params ---- */

static void wanted_finish(struct wanted *wanted)
{
	words_free(wanted->words);
	words_free(wanted->additions);
	words_free(wanted->env);
	free(wanted->cwd);
	buf_finish(&wanted->input);
}

/* A list of words, never a line for a shell. */
static bool read_words(struct sandbox_call *call, struct wanted *wanted)
{
	json_node list = json_get(call->params, 0, "command");
	size_t count = json_is(call->params, list, JSON_ARRAY) ? json_count(call->params, list) : 0;
	bool is_fine = count > 0 && count <= WORDS_MAX;
	wanted->words = mem_alloc_zero(sizeof(*wanted->words));
	for (json_node node = json_first(call->params, list); is_fine && node != JSON_NODE_NONE;
		node = json_next(call->params, node)) {
		char *word = json_string(call->params, node);
		is_fine = word != NULL && (words_count(wanted->words) > 0 || *word);
		if (is_fine) {
			words_append(&wanted->words, word);
		}
		free(word);
	}
	if (!is_fine) {
		sandbox_call_refuse(call, "INVALID_PARAMS",
			"command: expected a list of 1 to %d words, the first of which names a "
			"program",
			WORDS_MAX);
	}
	return is_fine;
}

static bool read_variable(struct sandbox_call *call, json_node node, struct wanted *wanted)
{
	char *name = json_string(call->params, json_get(call->params, node, "name"));
	char *value = json_string(call->params, json_get(call->params, node, "value"));
	bool is_fine = name && value && *name && !strchr(name, '=');
	if (is_fine) {
		size_t size = strlen(name) + strlen(value) + 2;
		char *both = mem_alloc(size);
		text_whole(both, size, "%s=%s", name, value);
		words_append(&wanted->additions, both);
		free(both);
	}
	free(name);
	free(value);
	return is_fine;
}

static bool read_env(struct sandbox_call *call, struct wanted *wanted)
{
	json_node list = json_get(call->params, 0, "env");
	bool is_fine = list == JSON_NODE_NONE || json_is(call->params, list, JSON_ARRAY);
	wanted->additions = mem_alloc_zero(sizeof(*wanted->additions));
	for (json_node node = json_first(call->params, list); is_fine && node != JSON_NODE_NONE;
		node = json_next(call->params, node)) {
		is_fine = read_variable(call, node, wanted);
	}
	if (!is_fine) {
		sandbox_call_refuse(call, "INVALID_PARAMS",
			"env: expected a list of {name, value}, with names without =");
		return false;
	}
	wanted->env = environment_merge(
		sandbox_environment(call->sandbox), (const char *const *)wanted->additions);
	return true;
}

static bool read_limits(struct sandbox_call *call, struct wanted *wanted)
{
	static const long long times[2] = {0, INT_MAX}, sizes[2] = {0, SANDBOX_BYTES_MAX};
	const struct profile *profile = call->relay->config.profile;
	long long size = profile->toolhost_limits.output_limit < SANDBOX_BYTES_MAX
	                         ? (long long)profile->toolhost_limits.output_limit
	                         : SANDBOX_BYTES_MAX;
	return sandbox_call_number(call, "timeoutMs", times,
		       profile->toolhost_limits.terminal_timeout_ms, &wanted->timeout_ms) &&
	       sandbox_call_number(call, "outputLimit", sizes, size, &wanted->output_max);
}

/* False if the call was refused and freed. */
static bool read_command(struct sandbox_call *call, struct wanted *wanted)
{
	return read_words(call, wanted) && read_env(call, wanted) && read_limits(call, wanted) &&
	       sandbox_call_bytes(call, "stdin", &wanted->input) &&
	       (wanted->cwd = sandbox_call_path(call, "cwd", true)) != NULL;
}

static void audit(struct exec_call *self, char *const *words)
{
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	for (size_t i = 0; words[i]; i++) {
		buf_add(&text, span_of(i > 0 ? " " : ""));
		buf_add(&text, span_of(words[i]));
	}
	buf_add(&text, (struct span){"", 1});
	sandbox_call_audit(&self->call, "_broker/exec", buf_span(&text).data);
	buf_finish(&text);
}

/* NULL if the request was answered. */
static struct exec_call *start(struct relay *relay, const struct call *request)
{
	struct exec_call *self = sandbox_call_begin(relay, request, sizeof(*self), destroy);
	struct wanted wanted = {0};
	struct error err;
	buf_init(&wanted.input, SIZE_MAX / 2);
	if (!self || !sandbox_call_has_room(&self->call) || !read_command(&self->call, &wanted)) {
		wanted_finish(&wanted);
		return NULL;
	}
	audit(self, wanted.words);
	const struct run_config config = {.loop = relay->config.loop,
		.sandbox = self->call.sandbox,
		.argv = (const char *const *)wanted.words,
		.env = (const char *const *)wanted.env,
		.cwd = wanted.cwd,
		.input = buf_span(&wanted.input),
		.output_max = (size_t)wanted.output_max,
		.timeout_ms = (int)wanted.timeout_ms,
		.done = on_done,
		.data = self};
	self->run = run_start(&config, &err);
	wanted_finish(&wanted);
	if (!self->run) {
		sandbox_call_fail(&self->call, &err);
		return NULL;
	}
	return self;
}

void exec_methods_exec(struct relay *relay, const struct call *call)
{
	(void)start(relay, call);
}

/* ---- commands that are kept ---- */

static const struct part_type names_type = {.size = sizeof(unsigned)};

void exec_methods_start(struct relay *relay, const struct call *call)
{
	struct exec_call *self = start(relay, call);
	if (!self) {
		return;
	}
	unsigned *last = parts_get(&relay->parts, &names_type);
	char result[NAME_SIZE + sizeof("{\"execId\":\"\"}")];
	text_format(self->name, sizeof(self->name), "exec-%u", ++*last);
	text_format(result, sizeof(result), "{\"execId\":\"%s\"}", self->name);
	relay_answer(relay, span_of(self->call.id), span_of(result));
	sandbox_call_keep(&self->call);
}

/* The command in the params of `asker`; NULL if that was refused. */
static struct exec_call *find(struct sandbox_call *asker)
{
	char *name = json_string(asker->params, json_get(asker->params, 0, "execId"));
	struct exec_call *found = NULL;
	LIST_FOR_EACH(call, sandbox_calls_of(asker->relay), struct sandbox_call, link) {
		bool is_exec = call->destroy == destroy && from_call(call)->name[0];
		if (is_exec && name && strcmp(from_call(call)->name, name) == 0 &&
			strcmp(call->session_id, asker->session_id) == 0) {
			found = from_call(call);
		}
	}
	free(name);
	if (!found) {
		sandbox_call_refuse(asker, "INVALID_PARAMS",
			"execId: the session has no such command: it has another name, was "
			"forgotten, or ended with the session's agent");
	}
	return found;
}

static void destroy_asker(struct sandbox_call *call)
{
	sandbox_call_finish(call);
	free(call);
}

void exec_methods_status(struct relay *relay, const struct call *call)
{
	struct sandbox_call *asker = sandbox_call_begin(relay, call, sizeof(*asker), destroy_asker);
	struct exec_call *found = asker ? find(asker) : NULL;
	if (!found) {
		return;
	}
	bool forgets = json_bool(asker->params, json_get(asker->params, 0, "forget"), false) &&
	               run_result(found->run).is_over;
	answer(found, asker);
	if (forgets) {
		destroy(&found->call);
	}
}

void exec_methods_kill(struct relay *relay, const struct call *call)
{
	static const long long signals[2] = {1, 31};
	long long number;
	struct sandbox_call *asker = sandbox_call_begin(relay, call, sizeof(*asker), destroy_asker);
	struct exec_call *found = asker ? find(asker) : NULL;
	if (found && sandbox_call_number(asker, "signal", signals, SIGKILL, &number)) {
		run_signal(found->run, (int)number);
		relay_answer(relay, span_of(asker->id), SPAN_LITERAL("{}"));
		destroy_asker(asker);
	}
}
