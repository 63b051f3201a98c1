/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_recover.h"

#include "broker/ledger/recovery.h"
#include "broker/ledger/sweep.h"

/* Waits until the editor has its answer and has opened its session, which must not be delayed. */
enum { RECOVERY_DELAY_MS = 1000 };

/* A part of the relay. */
struct recovering {
	struct sweep *sweep;       // owned; NULL before and after the sweep
	struct recovery *recovery; // owned; exists once an agent was initialized
};

static const struct part_type type = {.size = sizeof(struct recovering)};

static struct recovering *recovering_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

struct collect_config relay_collect_config(const struct relay *relay)
{
	const struct relay_config *config = &relay->config;
	return (struct collect_config){.loop = config->loop,
		.pool = config->pool,
		.provider = config->provider,
		.profile = config->profile,
		.state_folder = config->state_folder,
		.home = config->home,
		.tools = config->tools};
}

void relay_recover(struct peer *peer)
{
	struct relay *relay = peer->relay;
	const struct relay_config *config = &relay->config;
	struct recovering *recovering = recovering_of(relay);
	if (config->is_trial || recovering->recovery || relay->is_ending || !config->state_folder ||
		!config->pool || peer->is_down || !peer->was_greeted) {
		return;
	}
	struct recovery_config recovery = {
		.collect = relay_collect_config(relay),
		.others = config->others,
		.other_count = config->other_count,
		.registry = config->registry,
		.delay_ms = RECOVERY_DELAY_MS,
		.timeout_ms = config->profile->recovery_timeout_ms,
	};
	recovering->recovery = recovery_start(&recovery);
	recovering->sweep = sweep_start(&recovery.collect, RECOVERY_DELAY_MS);
}

void relay_recover_wake(struct relay *relay)
{
	recovery_wake(recovering_of(relay)->recovery);
}

void relay_recover_finish(struct relay *relay)
{
	struct recovering *recovering = recovering_of(relay);
	recovery_destroy(recovering->recovery);
	recovering->recovery = NULL;
	sweep_destroy(recovering->sweep);
	recovering->sweep = NULL;
}

static void on_ended(void *data)
{
	struct relay *relay = data;
	relay_recover_finish(relay);
	relay->ops->finish_if_empty(relay);
}

void relay_recover_end(struct relay *relay)
{
	struct recovering *recovering = recovering_of(relay);
	if (!recovery_end(recovering->recovery, on_ended, relay)) {
		relay_recover_finish(relay);
	}
}

bool relay_recover_is_under_way(struct relay *relay)
{
	return recovering_of(relay)->recovery != NULL;
}
