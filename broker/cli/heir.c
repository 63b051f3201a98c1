/* SPDX-License-Identifier: MIT */
#include "broker/cli/heir.h"

#include <string.h>

#include "base/log.h"
#include "providers/heir.h"

static const double due_s = 60.;

struct ending {
	struct ev_loop *loop;
	const char *profile; // for the log
	struct error err;    // ERROR_NONE: nothing is left
};

int heir_count(int argc, char *const *argv)
{
	int count = 0;
	for (int i = 1; i + 1 < argc && strcmp(argv[i], HEIR_WORD) == 0; i += HEIR_WORDS) {
		count++;
	}
	return count;
}

static void on_progress(void *data, const char *text)
{
	const struct ending *ending = data;
	log_info("heir: profile \"%s\": %s", ending->profile, text);
}

static void on_ready(void *data)
{
	struct ending *ending = data;
	ending->err = (struct error){.code = ERROR_NONE};
	ev_break(ending->loop, EVBREAK_ALL);
}

static void on_failed(void *data, const struct error *err)
{
	struct ending *ending = data;
	ending->err = *err;
	ev_break(ending->loop, EVBREAK_ALL);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

static const struct profile *find_profile(const struct config *config, const char *name)
{
	const struct profile *found = NULL;
	if (strcmp(config->profile.name, name) == 0) {
		found = &config->profile;
	}
	for (size_t i = 0; i < config->other_count && !found; i++) {
		if (strcmp(config->others[i].name, name) == 0) {
			found = &config->others[i];
		}
	}
	return found;
}

/* Getting the sandbox ready ends what is left in its place. */
static bool end_left(struct ev_loop *loop, struct provider *provider, const struct profile *profile,
	struct error *err)
{
	static const struct sandbox_listener listener = {
		.on_progress = on_progress, .on_ready = on_ready, .on_failed = on_failed};
	struct ending ending = {.loop = loop, .profile = profile->name};
	const struct sandbox_request request = {
		.profile = profile->name, .settings = &profile->settings, .only_ends_left = true};
	ev_timer due;
	error_set(
		&ending.err, ERROR_TIMEOUT, "ending what a killed broker left: no answer in time");
	struct sandbox *sandbox = sandbox_prepare(provider, &request, &listener, &ending, err);
	if (!sandbox) {
		return err->code == ERROR_NOT_FOUND;
	}
	ev_timer_init(&due, on_due, due_s, 0.);
	ev_timer_start(loop, &due);
	ev_run(loop, 0);
	ev_timer_stop(loop, &due);
	sandbox_close(sandbox);
	if (ending.err.code == ERROR_NONE || ending.err.code == ERROR_NOT_FOUND) {
		return true;
	}
	*err = ending.err;
	return false;
}

bool heir_run(struct ev_loop *loop, const struct registry *registry, const struct config *config,
	char *const *argv, int count)
{
	bool ok = true;
	log_info("heir: a broker was killed; looking for what it has left running elsewhere");
	for (int i = 0; i < count; i++) {
		/* Without its profile, or with another backend in it, nobody knows where it was. */
		struct error err;
		const struct profile *profile = find_profile(config, argv[(i + 1) * HEIR_WORDS]);
		struct provider *provider =
			profile ? registry_get(registry, profile->backend, &err) : NULL;
		bool has_runs = provider && provider_keeps_runs(provider);
		if (has_runs && !end_left(loop, provider, profile, &err)) {
			log_failure(LOG_LEVEL_ERROR, &err, "heir: profile \"%s\": %s",
				profile->name, err.text);
			ok = false;
		}
	}
	return ok;
}
