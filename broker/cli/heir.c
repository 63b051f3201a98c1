/* SPDX-License-Identifier: MIT */
#include "broker/cli/heir.h"

#include "base/words.h"

static const double due_s = 60.;

struct heir {
	struct ev_loop *loop;
	bool is_ready;
	struct error err; // why not
};

char **heir_command(const char *const *arguments)
{
	const char *const begin[] = {"/proc/self/exe", HEIR_WORD, NULL};
	char **command = NULL;
	words_append_all(&command, begin);
	words_append_all(&command, arguments);
	return command;
}

static void on_ready(void *data)
{
	struct heir *heir = data;
	heir->is_ready = true;
	ev_break(heir->loop, EVBREAK_ALL);
}

static void on_failed(void *data, const struct error *err)
{
	struct heir *heir = data;
	heir->is_ready = false;
	heir->err = *err;
	ev_break(heir->loop, EVBREAK_ALL);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

bool heir_run(struct ev_loop *loop, struct provider *provider, const struct profile *profile,
	struct error *err)
{
	static const struct sandbox_listener listener = {
		.on_ready = on_ready, .on_failed = on_failed};
	struct heir heir = {.loop = loop};
	const struct sandbox_request request = {.profile = profile->name,
		.settings = &profile->settings,
		.ends_with_connection = true};
	ev_timer due;
	error_set(&heir.err, ERROR_TIMEOUT, "ending what a killed broker left: no answer in time");
	struct sandbox *sandbox = sandbox_prepare(provider, &request, &listener, &heir, err);
	if (!sandbox) {
		return false;
	}
	ev_timer_init(&due, on_due, due_s, 0.);
	ev_timer_start(loop, &due);
	ev_run(loop, 0);
	ev_timer_stop(loop, &due);
	sandbox_close(sandbox);
	if (!heir.is_ready) {
		*err = heir.err;
	}
	return heir.is_ready;
}
