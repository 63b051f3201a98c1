/* SPDX-License-Identifier: MIT */
#include "providers/exec/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/capture.h"
#include "base/io.h"
#include "base/words.h"

enum { WORDS_MAX = 600, COMPLAINT_MAX = 8192 };

struct exec_command {
	struct capture *capture;
	const struct exec_profile *profile; // borrowed
	enum exec_verb verb;
	long long timeout_ms;
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

static bool is_start(enum exec_verb verb)
{
	return verb == EXEC_START || verb == EXEC_RESTART;
}

static void describe(
	const struct exec_command *self, const struct error *failure, struct error *err)
{
	const char *verb = exec_verb_name(self->verb);
	if (failure->code == ERROR_TIMEOUT) {
		error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s (%s) had not ended after %lld ms (%s)", verb,
			self->profile->words[self->verb][0], self->timeout_ms,
			is_start(self->verb) ? "create-timeout" : "command-timeout");
	} else {
		error_set_reason(
			err, failure->code, "EXEC_COMMAND_FAILED", "%s: %s", verb, failure->text);
	}
}

/* If `state` exits with 0, the platform may read the state from the output. */
static bool read_state(const struct exec_command *self, const struct capture_result *result,
	int *status, struct error *err)
{
	const struct exec_platform *platform = self->profile->platform;
	enum exec_state state;
	if (self->verb != EXEC_STATE || *status != 0 || !platform->read_state) {
		return true;
	}
	if (platform->read_state(result->out, &state)) {
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
		if (read_state(self, result, &status, &err)) {
			io_keep_words(words, WORDS_MAX, result->err);
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
	char **argv = exec_profile_argv(profile, verb, values, NULL);
	self->profile = profile;
	self->verb = verb;
	self->timeout_ms = is_start(verb) ? profile->start_ms : profile->command_ms;
	self->done = done;
	self->data = data;
	struct capture_spec spec = {.argv = (const char *const *)argv,
		.env = (const char *const *)profile->env,
		.cwd = profile->home,
		.out_max = EXEC_OUTPUT_MAX,
		.err_max = COMPLAINT_MAX,
		.leaves_daemons = true,
		.timeout_ms = self->timeout_ms};
	self->capture = capture_start(context->loop, NULL, &spec, on_done, self, err);
	words_free(argv);
	if (!self->capture) {
		error_prefix(err, "%s", exec_verb_name(verb));
		free(self);
		return NULL;
	}
	return self;
}
