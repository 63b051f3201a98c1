/* SPDX-License-Identifier: MIT */
#include "providers/exec/copy_in.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/exec/command.h"
#include "providers/exec/runner_file.h"

struct exec_copy_in {
	const struct provider_context *context;
	const struct exec_profile *profile;
	char *instance; // owned; or NULL
	char *path;     // owned; or NULL
	struct exec_runner_file *writing;
	struct exec_command *command;
	char target[EXEC_TARGET_SIZE];
	exec_copy_in_done *done;
	void *data;
};

void exec_copy_in_cancel(struct exec_copy_in *copying)
{
	if (copying) {
		exec_command_cancel(copying->command);
		exec_runner_file_cancel(copying->writing);
		free(copying->path);
		free(copying->instance);
		free(copying);
	}
}

static void end(struct exec_copy_in *self, const struct error *err)
{
	exec_copy_in_done *done = self->done;
	void *data = self->data;
	char target[EXEC_TARGET_SIZE];
	struct error copy = err ? *err : (struct error){0};
	text_whole(target, sizeof(target), "%s", self->target);
	exec_copy_in_cancel(self);
	done(data, target, err ? &copy : NULL);
}

static void on_command_ended(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_copy_in *self = data;
	struct error err;
	self->command = NULL;
	if (!failure && status != 0) {
		(void)exec_command_refuse(self->profile, EXEC_COPY_IN, status, words, &err);
		failure = &err;
	}
	end(self, failure);
}

static void on_written(void *data, const struct error *failure)
{
	struct exec_copy_in *self = data;
	struct error err;
	self->writing = NULL;
	if (failure) {
		end(self, failure);
		return;
	}
	const struct exec_values values = {
		.instance = self->instance, .file = self->path, .target = self->target};
	self->command = exec_command_start(
		self->context, self->profile, EXEC_COPY_IN, &values, on_command_ended, self, &err);
	if (!self->command) {
		end(self, &err);
	}
}

struct exec_copy_in *exec_copy_in_start(const struct provider_context *context,
	const struct exec_profile *profile, const char *instance, exec_copy_in_done *done,
	void *data, struct error *err)
{
	struct exec_copy_in *self = mem_alloc_zero(sizeof(*self));
	char build[41] = "";
	self->context = context;
	self->profile = profile;
	self->instance = mem_strdup_or_null(instance);
	self->path = exec_runner_file_path(context, profile->platform->name);
	self->done = done;
	self->data = data;
	(void)!exec_runner_file_build(build);
	text_whole(self->target, sizeof(self->target), "/tmp/acp-runner.%s", build);
	self->writing = exec_runner_file_write(context, self->path, on_written, self, err);
	if (!self->writing) {
		exec_copy_in_cancel(self);
		return NULL;
	}
	return self;
}
