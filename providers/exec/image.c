/* SPDX-License-Identifier: MIT */
#include "providers/exec/image.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "providers/exec/command.h"

struct exec_image {
	const struct provider_context *context;
	const struct exec_profile *profile;
	struct exec_command *command; // that looks for the image, then the one that builds it
	void (*on_progress)(void *data, const char *text);
	sandbox_done *done;
	void *data;
};

static void end(struct exec_image *self, const struct error *err)
{
	sandbox_done *done = self->done;
	void *data = self->data;
	free(self);
	done(data, err);
}

static void on_built(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_image *self = data;
	struct error err;
	if (!failure && status != 0) {
		(void)exec_command_refuse(self->profile, EXEC_BUILD, status, words, &err);
		failure = &err;
	}
	end(self, failure);
}

static void on_step(void *data, const char *line)
{
	struct exec_image *self = data;
	char text[ERROR_TEXT_MAX];
	text_format(text, sizeof(text), "Building the image: %s", line);
	self->on_progress(self->data, text);
}

static void on_looked(
	void *data, int status, struct span out, const char *words, const struct error *failure)
{
	struct exec_image *self = data;
	const struct exec_values values = {0};
	struct error err;
	self->command = NULL;
	if (failure || status == 0) {
		end(self, failure);
		return;
	}
	self->on_progress(self->data, "Building the image");
	self->command = exec_command_start(
		self->context, self->profile, EXEC_BUILD, &values, on_built, self, &err);
	if (self->command) {
		exec_command_tell_steps(self->command, on_step);
	} else {
		end(self, &err);
	}
}

struct exec_image *exec_image_start(const struct provider_context *context,
	const struct exec_profile *profile, void (*on_progress)(void *data, const char *text),
	sandbox_done *done, void *data, struct error *err)
{
	const struct exec_values values = {0};
	struct exec_image *self = mem_alloc_zero(sizeof(*self));
	*self = (struct exec_image){.context = context,
		.profile = profile,
		.on_progress = on_progress,
		.done = done,
		.data = data};
	self->command =
		exec_command_start(context, profile, EXEC_HAS_BUILT, &values, on_looked, self, err);
	if (!self->command) {
		free(self);
		return NULL;
	}
	return self;
}

void exec_image_cancel(struct exec_image *image)
{
	if (image) {
		exec_command_cancel(image->command);
		free(image);
	}
}
