/* SPDX-License-Identifier: MIT */
#include "providers/exec/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"

static const double first_pause_s = 1., longest_pause_s = 15.;

struct exec_ask {
	struct exec_ask_config config;
	struct exec_command *command; // or NULL, between two
	ev_timer pause;
	double pause_s;
	long long deadline_ms;
	bool has_waited;
	char told[EXEC_SAYS_SIZE];
	exec_command_done *done;
	void *data;
};

void exec_ask_cancel(struct exec_ask *ask)
{
	if (ask) {
		ev_timer_stop(ask->config.context->loop, &ask->pause);
		exec_command_cancel(ask->command);
		free(ask);
	}
}

static void end(struct exec_ask *self, int status, struct span out, const char *words,
	const struct error *err)
{
	exec_command_done *done = self->done;
	void *data = self->data;
	exec_ask_cancel(self);
	done(data, status, out, words, err);
}

/* False: the time is up. */
static bool pause_asking(struct exec_ask *self, const char *words)
{
	ev_timer *pause = &self->pause;
	double left_s = (double)(self->deadline_ms - clock_now_ms()) / 1000.;
	if (left_s <= 0.) {
		return false;
	}
	if (self->config.on_waiting && strcmp(self->told, words) != 0) {
		text_format(self->told, sizeof(self->told), "%s", words);
		self->config.on_waiting(self->data, words);
	}
	ev_timer_set(pause, left_s < self->pause_s ? left_s : self->pause_s, 0.);
	ev_timer_start(self->config.context->loop, pause);
	self->pause_s = self->pause_s * 2. < longest_pause_s ? self->pause_s * 2. : longest_pause_s;
	return true;
}

static bool is_state(int status)
{
	return status == EXEC_STATE_RUNNING || status == EXEC_STATE_STOPPED ||
	       status == EXEC_STATE_GONE;
}

static void on_state(
	void *data, int status, struct span out, const char *words, const struct error *err)
{
	struct exec_ask *self = data;
	self->command = NULL;
	bool waits = !err && status == EXEC_STATE_WAITING;
	bool has_failed = err || !(waits || is_state(status));
	self->has_waited = self->has_waited || waits;
	if ((waits || (has_failed && self->has_waited)) &&
		pause_asking(self, err ? err->text : words)) {
		return;
	}
	end(self, status, out, words, err);
}

static bool ask(struct exec_ask *self, struct error *err)
{
	const struct exec_ask_config *config = &self->config;
	self->command = exec_command_start(
		config->context, config->profile, EXEC_STATE, &config->values, on_state, self, err);
	return self->command != NULL;
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct exec_ask *self = CONTAINER_OF(timer, struct exec_ask, pause);
	struct error err;
	if (!ask(self, &err)) {
		end(self, 0, (struct span){"", 0}, "", &err);
	}
}

struct exec_ask *exec_ask_start(const struct exec_ask_config *config, exec_command_done *done,
	void *data, struct error *err)
{
	struct exec_ask *self = mem_alloc_zero(sizeof(*self));
	self->config = *config;
	self->pause_s = first_pause_s;
	self->deadline_ms = clock_now_ms() + config->wait_ms;
	self->done = done;
	self->data = data;
	ev_init(&self->pause, on_pause_over);
	if (!ask(self, err)) {
		exec_ask_cancel(self);
		return NULL;
	}
	return self;
}
