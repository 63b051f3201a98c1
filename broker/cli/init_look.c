/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "broker/cli/end_signals.h"
#include "broker/cli/init_parts.h"
#include "broker/cli/scratch.h"
#include "broker/config/config_shown.h"

/* ---- agents ---- */

static void add_agent(struct init *init, const char *name, char **argv, char **env)
{
	struct init_agent *agent = mem_alloc_zero(sizeof(*agent));
	agent->name = name;
	agent->known = known_agent_of_argv((const char *const *)argv);
	agent->program = config_find_program(argv[0], env, init->means->environment);
	list_append(&init->agents, &agent->link);
	words_free(argv);
	words_free(env);
}

void init_find_agents(struct init *init)
{
	const struct known_agent *known;
	LIST_FOR_EACH(section, &init->file.sections, struct config_section, link) {
		const char *command = settings_get(&section->settings, "command");
		if (section->kind == SECTION_AGENT && command) {
			char **env = words_copy((const char *const[]){NULL});
			words_append_settings(&env, &section->settings, "env");
			add_agent(init, section->name,
				words_copy((const char *const[]){command, NULL}), env);
		}
	}
	for (size_t i = 0; (known = known_agent_at(i)) != NULL; i++) {
		if (!config_file_find(&init->file, SECTION_AGENT, known->name)) {
			add_agent(init, known->name, words_copy(known->argv),
				words_copy((const char *const[]){NULL}));
		}
	}
}

/* ---- places ---- */

/* Looks whether the place can be used. If only a sandbox can show that, tries one. */
static void look_at(struct init *init, struct init_place *place)
{
	struct settings settings;
	place->is_there =
		provider_look_at_place(place->provider, place->place, &place->choices, &place->why);
	if (!place->is_there || !place->place->is_confined) {
		return;
	}
	settings_init(&settings);
	settings_add(&settings, place->place->key, place->place->value, "init");
	if (place->place->more_key) {
		settings_add(&settings, place->place->more_key, place->place->more_value, "init");
	}
	place->is_there = init_try(init, place->provider, &settings, &place->warning, &place->why);
	place->is_strict = place->is_there && !place->warning;
	settings_finish(&settings);
}

bool init_find_places(struct init *init, const char *name, struct error *err)
{
	struct provider *provider;
	for (size_t i = 0; (provider = registry_at(init->means->registry, i)) != NULL; i++) {
		size_t count;
		const struct provider_place *places = provider_places(provider, &count);
		for (size_t j = 0; j < count; j++) {
			struct init_place *place = mem_alloc_zero(sizeof(*place));
			place->provider = provider;
			place->place = &places[j];
			list_append(&init->places, &place->link);
			if (name && strcmp(name, places[j].name) != 0) {
				continue;
			}
			look_at(init, place);
			if (init->is_interrupted) {
				*err = place->why;
				return false;
			}
		}
	}
	return true;
}

void init_forget(struct init *init)
{
	LIST_FOR_EACH(agent, &init->agents, struct init_agent, link) {
		list_remove(&agent->link);
		free(agent->program);
		free(agent);
	}
	LIST_FOR_EACH(place, &init->places, struct init_place, link) {
		list_remove(&place->link);
		words_free(place->choices);
		free(place->warning);
		free(place);
	}
}

/* ---- a sandbox that is tried ---- */

enum { TRY_MS = 30000 };

struct trying {
	struct init *init;
	struct sandbox *sandbox;
	bool is_ready;
	struct error why; // why not, unless is_ready
};

static void on_ready(void *data)
{
	struct trying *trying = data;
	trying->is_ready = true;
	ev_break(trying->init->means->loop, EVBREAK_ALL);
}

static void on_failed(void *data, const struct error *err)
{
	struct trying *trying = data;
	trying->why = *err;
	ev_break(trying->init->means->loop, EVBREAK_ALL);
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct trying *trying = timer->data;
	error_set(&trying->why, ERROR_TIMEOUT, "trying it: a sandbox was not ready after %d s",
		TRY_MS / 1000);
	ev_break(loop, EVBREAK_ALL);
}

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher, int events)
{
	struct trying *trying = watcher->data;
	trying->init->is_interrupted = true;
	error_set(&trying->why, ERROR_UNAVAILABLE,
		"init: interrupted by a signal; nothing was written");
	ev_break(loop, EVBREAK_ALL);
}

static bool judge(const struct trying *trying, char **out_warning, struct error *err)
{
	if (!trying->is_ready) {
		*err = trying->why;
		return false;
	}
	const char *warning = sandbox_warnings(trying->sandbox)[0];
	if (!sandbox_capabilities(trying->sandbox)->confined) {
		return error_set(err, ERROR_UNAVAILABLE, "%s",
			warning ? warning : "the agent would not be confined");
	}
	*out_warning = mem_strdup_or_null(warning);
	return true;
}

static bool wait_for_it(struct trying *trying, struct provider *provider,
	const struct settings *settings, char **out_warning, struct error *err)
{
	struct end_signals signals;
	struct ev_timer timer;
	struct sandbox_request request = {
		.profile = "init", .settings = settings, .prepare_timeout_ms = TRY_MS};
	trying->sandbox = sandbox_prepare(provider, &request, &sandbox_listener, trying, err);
	if (!trying->sandbox) {
		return false;
	}
	end_signals_start(&signals, trying->init->means->loop, on_signal, trying);
	ev_timer_init(&timer, on_due, TRY_MS / 1000.0, 0);
	timer.data = trying;
	ev_timer_start(trying->init->means->loop, &timer);
	ev_run(trying->init->means->loop, 0);
	ev_timer_stop(trying->init->means->loop, &timer);
	end_signals_stop(&signals);
	bool ok = judge(trying, out_warning, err);
	sandbox_close(trying->sandbox);
	return ok;
}

/* Uses its own state folder, and removes that, so that the sandbox leaves nothing behind. */
bool init_try(struct init *init, struct provider *provider, const struct settings *settings,
	char **out_warning, struct error *err)
{
	const struct init_means *means = init->means;
	struct scratch scratch;
	struct trying trying = {.init = init};
	if (!scratch_make(&scratch, means->environment, "init", err)) {
		return false;
	}
	struct registry *registry = registry_create();
	struct provider_context context = {
		.loop = means->loop,
		.spawner = means->spawner,
		.pool = means->pool,
		.environment = means->environment,
		.state_folder = scratch.folder,
		.registry = registry,
	};
	bool ok = means->add_providers(registry, &context, err);
	struct provider *own = ok ? registry_get(registry, provider_name(provider), err) : NULL;
	ok = own && wait_for_it(&trying, own, settings, out_warning, err);
	registry_destroy(registry);
	scratch_remove(&scratch);
	return ok;
}
