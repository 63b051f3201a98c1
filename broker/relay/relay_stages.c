/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_stages.h"

#include "broker/gate/grant_ask.h"
#include "broker/gate/grant_resolve.h"
#include "broker/relay/listing_records.h"
#include "broker/relay/relay_claim.h"
#include "broker/relay/relay_roots.h"
#include "broker/relay/relay_turn.h"
#include "broker/session/answer.h"

static const struct stage_row rows[STAGES] = {
	[STAGE_ORDER] = {"session", "requests",
		"a session/load, session/resume or session/prompt of their session",
		.is_turn = false},
	[STAGE_CLAIM] = {"session", "requests", "sessions that other brokers have",
		.on_left = relay_claim_on_left, .on_gone = relay_claim_on_gone},
	[STAGE_LIST] = {"relay", "requests", "the sessions that the records know",
		.most = RELAY_WAITING_MAX, .on_left = listing_records_on_left,
		.on_gone = listing_records_on_gone},
	[STAGE_RESTORE] = {"session", "requests", "the session to be restored", .is_turn = true},
	[STAGE_READY] = {"prepare", "messages", "the sandbox", .outlasts = true},
	[STAGE_MODE] = {"session", "prompts", "the agent to change its mode", .is_turn = false},
	[STAGE_SYNC] = {"sync", "prompts", "the workspace to be synced", .is_turn = true,
		.on_left = relay_turn_on_left, .on_gone = relay_turn_on_gone},
	[STAGE_ROOTS] = {"session", "requests", "their directories", .outlasts = true,
		.on_left = relay_roots_on_left, .on_gone = relay_roots_on_gone},
	[STAGE_ANSWER] = {"sync", "answers", "the workspace to be synced", .outlasts = true,
		.on_left = relay_turn_on_left, .on_gone = relay_turn_on_gone},
	[STAGE_BEHIND] = {"sync", "messages", "an answer of their session", .outlasts = true,
		.on_left = relay_turn_on_follower_left, .on_gone = relay_turn_on_follower_gone},
	[STAGE_LINKS] = {"session", "requests", "the links in their paths",
		.most = RELAY_WAITING_MAX, .outlasts = true, .on_left = grant_resolve_on_left,
		.on_cancelled = grant_resolve_next},
	[STAGE_USER] = {"session", "requests", "a person's answer", .most = RELAY_WAITING_MAX,
		.outlasts = true, .takes_cancel = grant_ask_takes_cancel},
};

static void fail(void *data, const struct asker *asker, const struct error *failure)
{
	if (asker->sender) {
		grant_fail(asker, failure);
	} else {
		relay_fail(data, asker->id, failure);
	}
}

static void answer(void *data, struct span id, struct span result)
{
	relay_answer(data, id, result);
}

/*
 * Answers a request of the editor as cancelled, and releases what was begun for it, as after a
 * failure.
 */
static void answer_cancelled(void *data, const struct asker *asker)
{
	if (asker->sender) {
		grant_fail(asker, &grant_taken_back);
		return;
	}
	relay_claim_drop(data, asker->id);
	listing_records_drop(data, asker->id);
	relay_answer_cancelled(data, asker->id);
}

static bool is_prompt(const struct call *call)
{
	return call->method && call->method->means == MEANS_PROMPT;
}

static const struct desk_ops ops = {fail, answer, answer_cancelled, is_prompt};

void relay_stages_init(struct relay *relay)
{
	desk_init(&relay->desk, rows, relay->places, &ops, relay);
}
