/* SPDX-License-Identifier: MIT */
#include "providers/local/cell_ways.h"

#include "providers/forward_ports.h"

bool cell_ways_init(struct cell_ways *ways, const struct provider_context *context,
	const struct settings *settings, struct error *err)
{
	ways->settings = settings;
	return cell_keys_create(context, settings, &ways->keys, err);
}

void cell_ways_finish(struct cell_ways *ways)
{
	cell_forward_stop(ways->forward);
	cell_network_stop(ways->network);
	cell_keys_destroy(ways->keys);
	ways->forward = NULL;
	ways->network = NULL;
	ways->keys = NULL;
}

void cell_ways_plan(const struct cell_ways *ways, struct cell_plan *plan)
{
	cell_network_plan(ways->settings, plan);
	cell_keys_plan(ways->keys, plan);
	cell_forward_plan(ways->settings, plan);
}

void cell_ways_set_variables(
	const struct cell_ways *ways, char ***environment, struct sandbox *sandbox)
{
	cell_keys_drop(ways->keys, environment, sandbox);
	cell_network_set_variables(ways->settings, environment);
}

/* ---- the start ---- */

static void fail(struct cell_ways *ways, const struct error *err)
{
	ways->config.listener->on_failed(ways->config.listener_data, err);
}

static void on_forward_ready(void *data)
{
	struct cell_ways *ways = data;
	ways->config.on_ready(ways->config.data);
}

static void on_keys_ready(void *data)
{
	struct cell_ways *ways = data;
	struct cell_network_config config = ways->config;
	struct error err;
	config.on_ready = on_forward_ready;
	config.data = ways;
	if (!forward_ports_are_wanted(ways->settings)) {
		on_forward_ready(ways);
		return;
	}
	ways->forward = cell_forward_start(&config, &err);
	if (!ways->forward) {
		fail(ways, &err);
	}
}

static void on_network_ready(void *data)
{
	struct cell_ways *ways = data;
	struct cell_network_config config = ways->config;
	struct error err;
	config.on_ready = on_keys_ready;
	config.data = ways;
	if (!ways->keys) {
		on_keys_ready(ways);
	} else if (!cell_keys_start(ways->keys, &config, &err)) {
		fail(ways, &err);
	}
}

bool cell_ways_prepare(
	struct cell_ways *ways, const struct cell_network_config *config, struct error *err)
{
	struct cell_network_config of_network = *config;
	ways->config = *config;
	of_network.on_ready = on_network_ready;
	of_network.data = ways;
	if (!cell_network_is_wanted(ways->settings)) {
		return true;
	}
	ways->network = cell_network_create(&of_network, err);
	return ways->network != NULL;
}

void cell_ways_start(struct cell_ways *ways, struct cell *cell)
{
	struct error err;
	ways->config.cell = cell;
	if (!ways->network) {
		on_network_ready(ways);
	} else if (!cell_network_serve(ways->network, cell, &err)) {
		fail(ways, &err);
	}
}
