/* SPDX-License-Identifier: MIT */
#include "providers/exec/command.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/capture.h"
#include "base/io.h"
#include "base/text.h"
#include "base/words.h"

enum { WORDS_MAX = 600, COMPLAINT_MAX = 8192, LINE_MAX_BYTES = 200 };

struct exec_command {
	struct capture *capture;
	const struct exec_profile *profile; // borrowed
	enum exec_verb verb;
	long long timeout_ms;
	void (*on_step)(void *data, const char *line); // may be NULL
	char line[LINE_MAX_BYTES + 1];                 // of a build, so far
	size_t line_len;
	char tail[WORDS_MAX + 1]; // of a build's output
	exec_command_done *done;
	void *data;
};

void exec_command_cancel(struct exec_command *command)
{
	if (command) {
		capture_cancel(command->capture);
		free(command);
	}
}

/* Removes the blanks at both ends. */
static const char *trim(char *words)
{
	size_t len = strlen(words);
	while (len > 0 && words[len - 1] == ' ') {
		words[--len] = '\0';
	}
	return words + strspn(words, " ");
}

/* The time that a command may take, and the key for it. */
static long long timeout_of(
	const struct exec_profile *profile, enum exec_verb verb, const char **out_key)
{
	switch (verb) {
	case EXEC_START:
	case EXEC_RESTART:
		*out_key = "create-timeout";
		return profile->start_ms;
	case EXEC_BUILD:
		*out_key = "build-timeout";
		return profile->build_ms;
	default:
		*out_key = "command-timeout";
		return profile->command_ms;
	}
}

/* ---- the output of a build ---- */

/* podman and an old docker print "STEP 2/5: RUN …", a new docker "#7 [2/5] RUN …". */
static bool is_step(const char *line)
{
	size_t digits = line[0] == '#' ? strspn(line + 1, "0123456789") : 0;
	return strncasecmp(line, "step ", 5) == 0 ||
	       (digits > 0 && strncmp(line + 1 + digits, " [", 2) == 0);
}

static void end_line(struct exec_command *self)
{
	char shown[LINE_MAX_BYTES + 1] = "";
	io_keep_words(shown, LINE_MAX_BYTES, (struct span){self->line, self->line_len});
	self->line_len = 0;
	if (self->on_step && is_step(shown)) {
		self->on_step(self->data, trim(shown));
	}
}

static void on_part(void *data, struct span part)
{
	struct exec_command *self = data;
	io_keep_words(self->tail, WORDS_MAX, part);
	for (size_t i = 0; i < part.len; i++) {
		if (part.data[i] == '\n') {
			end_line(self);
		} else if (self->line_len < LINE_MAX_BYTES) {
			self->line[self->line_len++] = part.data[i];
		}
	}
}

void exec_command_tell_steps(
	struct exec_command *command, void (*on_step)(void *data, const char *line))
{
	command->on_step = on_step;
}

/* ---- the end ---- */

static void describe(
	const struct exec_command *self, const struct error *failure, struct error *err)
{
	const char *verb = exec_verb_name(self->verb);
	const char *key;
	(void)timeout_of(self->profile, self->verb, &key);
	if (failure->code == ERROR_TIMEOUT) {
		error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s (%s) had not ended after %lld ms (%s)", verb,
			self->profile->words[self->verb][0], self->timeout_ms, key);
		if (self->tail[0]) {
			text_append(err->text, sizeof(err->text), "; it said: %s", self->tail);
		}
	} else {
		error_set_reason(
			err, failure->code, "EXEC_COMMAND_FAILED", "%s: %s", verb, failure->text);
	}
}

static bool prints_state(const struct exec_command *self, const struct capture_result *result)
{
	return self->verb == EXEC_STATE && result->status.code == 0 &&
	       self->profile->platform->read_state;
}

/* If `state` exits with 0, the platform may read the state from the output. */
static bool read_state(const struct exec_command *self, const struct capture_result *result,
	int *status, char says[EXEC_SAYS_SIZE], struct error *err)
{
	const struct exec_platform *platform = self->profile->platform;
	enum exec_state state;
	if (!prints_state(self, result)) {
		return true;
	}
	if (platform->read_state(result->out, &state, says)) {
		*status = (int)state;
		return true;
	}
	char said[WORDS_MAX + 1] = "";
	io_keep_words(said, WORDS_MAX, result->out);
	return error_set_reason(err, ERROR_UNAVAILABLE, "EXEC_COMMAND_FAILED",
		"state (%s) says neither that it runs nor that it has stopped, but: %s",
		self->profile->words[self->verb][0], trim(said));
}

static void on_done(void *data, const struct capture_result *result, const struct error *failure)
{
	struct exec_command *self = data;
	exec_command_done *done = self->done;
	void *done_data = self->data;
	struct error err;
	char words[WORDS_MAX + 1] = "";
	char says[EXEC_SAYS_SIZE] = "";
	char killed[64];
	self->capture = NULL;
	if (failure) {
		describe(self, failure, &err);
	} else if (result->status.signal != 0) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "EXEC_COMMAND_FAILED", "%s (%s) %s",
			exec_verb_name(self->verb), self->profile->words[self->verb][0],
			process_status_text(result->status, killed, sizeof(killed)));
	} else {
		int status = result->status.code;
		if (read_state(self, result, &status, says, &err)) {
			io_keep_words(words, WORDS_MAX,
				self->verb == EXEC_BUILD     ? span_of(self->tail)
				: prints_state(self, result) ? span_of(says)
							     : result->err);
			exec_command_cancel(self);
			done(done_data, status, result->out, trim(words), NULL);
			return;
		}
	}
	exec_command_cancel(self);
	done(done_data, 0, (struct span){"", 0}, "", &err);
}

bool exec_command_refuse(const struct exec_profile *profile, enum exec_verb verb, int status,
	const char *words, struct error *err)
{
	return error_set_reason(err, ERROR_UNAVAILABLE, "EXEC_COMMAND_FAILED",
		"%s (%s) exited with status %d%s%s", exec_verb_name(verb), profile->words[verb][0],
		status, *words ? "; it said: " : "", words);
}

struct exec_command *exec_command_start(const struct provider_context *context,
	const struct exec_profile *profile, enum exec_verb verb, const struct exec_values *values,
	exec_command_done *done, void *data, struct error *err)
{
	struct exec_command *self = mem_alloc_zero(sizeof(*self));
	const char *key;
	char **argv = exec_profile_argv(profile, verb, values, NULL);
	char *input = exec_profile_input(profile, verb, values);
	self->profile = profile;
	self->verb = verb;
	self->timeout_ms = timeout_of(profile, verb, &key);
	self->done = done;
	self->data = data;
	struct capture_spec spec = {.argv = (const char *const *)argv,
		.env = (const char *const *)profile->env,
		.cwd = profile->home,
		.in = input,
		.out_max = EXEC_OUTPUT_MAX,
		.err_max = COMPLAINT_MAX,
		.leaves_daemons = true,
		.on_part = verb == EXEC_BUILD ? on_part : NULL,
		.timeout_ms = self->timeout_ms};
	self->capture = capture_start(context->loop, NULL, &spec, on_done, self, err);
	words_free(argv);
	free(input);
	if (!self->capture) {
		error_prefix(err, "%s", exec_verb_name(verb));
		free(self);
		return NULL;
	}
	return self;
}
