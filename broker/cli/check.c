/* SPDX-License-Identifier: MIT */
#include "broker/cli/check.h"

#include <stdio.h>

#include "base/words.h"

struct check {
	struct ev_loop *loop;
	struct error *err;
	bool has_failed;
};

static void on_fact(void *data, const char *name, const char *value)
{
	config_print_fact(name, value);
}

static void on_done(void *data, const struct error *err)
{
	struct check *check = data;
	if (err) {
		*check->err = *err;
		check->has_failed = true;
	}
	ev_break(check->loop, EVBREAK_ALL);
}

static const struct provider_describe_listener listener = {.on_fact = on_fact, .on_done = on_done};

/* What the provider cannot enforce, or the error that it is where that is required. */
static bool print_warnings(
	struct provider *provider, const struct settings *settings, struct error *err)
{
	char **warnings = provider_warnings(provider, settings, err);
	for (char **warning = warnings; warning && *warning; warning++) {
		printf("%-20s%s\n", warning == warnings ? "warning" : "", *warning);
	}
	words_free(warnings);
	return warnings != NULL;
}

bool check_run(struct ev_loop *loop, struct provider *provider, const struct config *config,
	const char *const *environment, bool *out_found, struct error *err)
{
	struct check check = {.loop = loop, .err = err};
	*out_found = config_print(config, environment);
	if (!provider) {
		return true;
	}
	if (!print_warnings(provider, &config->profile.settings, err)) {
		return false;
	}
	if (!provider_can_describe(provider)) {
		return true;
	}
	puts("resolved");
	if (!provider_describe(provider, &config->profile.settings, &listener, &check, err)) {
		return false;
	}
	ev_run(loop, 0);
	return !check.has_failed;
}
