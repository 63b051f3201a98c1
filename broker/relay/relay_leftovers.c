/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "broker/relay/relay_recover.h"
#include "broker/relay/relay_state.h"

enum { HELD_LOOK_MS = 50 };

/* A root whose sandbox was not ended properly. */
struct leftover {
	struct list link; // leftovers.all
	char *local_root; // owned; "": a sandbox without roots
	char *reference;  // owned; the sandbox's, or NULL
	char record[RECORD_ID_SIZE];
	bool is_lost; // the sandbox was lost, and nobody has tried to reach it since
	bool is_here; // a later end in the same place has collected it; its record is still open
	struct error err;
};

struct leftovers {
	struct relay *relay;
	struct list all;         // of struct leftover, the first failure first
	struct collect *collect; // owned; of the first lost sandbox, while it runs; or NULL
	ev_timer again;          // checks whether its record is still locked
	long long deadline_ms;   // of clock_now_ms, for that; 0: nobody has it locked
	bool is_over;            // no further one is begun
	bool is_hurried;         // stop what was started; a second time do not even wait for that
};

static const struct part_type type = {.size = sizeof(struct leftovers)};

struct leftovers *leftovers_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

static void leftover_destroy(struct leftover *leftover)
{
	list_remove(&leftover->link);
	free(leftover->local_root);
	free(leftover->reference);
	free(leftover);
}

static void describe(struct leftover *leftover, const struct error *err)
{
	error_set(&leftover->err, err->code, "%s; %s", err->text,
		*leftover->local_root ? "the next start tries again, or acp-broker sessions collect"
				      : "see acp-broker sandboxes list");
}

/* ---- the ends of sandboxes ---- */

/*
 * A later end for the workspace in the same place replaces the earlier one: it collects that too,
 * or fails as well.
 */
static void supersede(
	struct leftovers *leftovers, const char *local_root, const char *reference, bool is_here)
{
	LIST_FOR_EACH(leftover, &leftovers->all, struct leftover, link) {
		if (strcmp(leftover->local_root, local_root) != 0 ||
			!sandbox_is_reference(leftover->reference, reference)) {
			continue;
		}
		if (leftover->is_lost) {
			leftover->is_here |= is_here;
		} else {
			leftover_destroy(leftover);
		}
	}
}

static struct leftover *add(struct leftovers *leftovers, const char *local_root,
	const char *reference, const struct error *err)
{
	struct leftover *leftover = mem_alloc_zero(sizeof(*leftover));
	leftover->local_root = mem_strdup(local_root);
	leftover->reference = mem_strdup_or_null(reference);
	describe(leftover, err);
	list_append(&leftovers->all, &leftover->link);
	return leftover;
}

void leftovers_note_unused(struct leftovers *leftovers, const struct error *err)
{
	if (err) {
		add(leftovers, "", NULL, err);
	}
}

static struct leftover *note(struct peer *peer, const char *local_root, const struct error *err)
{
	struct leftovers *leftovers = leftovers_of(peer->relay);
	const char *reference = sandbox_reference(agent_sandbox(peer->agent));
	supersede(leftovers, local_root, reference, !err);
	return err ? add(leftovers, local_root, reference, err) : NULL;
}

void leftovers_note(struct peer *peer, const struct error *err)
{
	struct kept kept;
	size_t count = 0;
	while (keeper_at(peer->keeper, count, &kept)) {
		struct leftover *leftover = note(peer, kept.local_root, err);
		if (leftover) {
			memcpy(leftover->record, kept.id, sizeof(leftover->record));
			leftover->is_lost = !agent_can_restart(peer->agent);
		}
		count++;
	}
	if (count == 0) {
		note(peer, "", err);
	}
}

const struct error *leftovers_error(const struct leftovers *leftovers)
{
	LIST_FOR_EACH(leftover, &leftovers->all, struct leftover, link) {
		if (!leftover->is_here) {
			return &leftover->err;
		}
	}
	return NULL;
}

/* ---- lost sandboxes ---- */

static struct leftover *first_lost(struct leftovers *leftovers)
{
	LIST_FOR_EACH(leftover, &leftovers->all, struct leftover, link) {
		if (leftover->is_lost) {
			return leftover;
		}
	}
	return NULL;
}

/*
 * The record may be locked by the keeper of the lost agent, which is still saving that this is the
 * end, or by another broker, which is collecting.
 */
static bool waits_for_holder(struct leftovers *leftovers)
{
	const struct relay_config *config = &leftovers->relay->config;
	if (leftovers->deadline_ms == 0) {
		leftovers->deadline_ms = clock_now_ms() + config->profile->prepare_timeout_ms;
	}
	if (leftovers->is_over || clock_now_ms() >= leftovers->deadline_ms) {
		return false;
	}
	ev_timer_again(config->loop, &leftovers->again);
	return true;
}

static void end_collect(struct leftovers *leftovers)
{
	collect_destroy(leftovers->collect);
	leftovers->collect = NULL;
}

static void on_collected(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err)
{
	struct leftovers *leftovers = data;
	struct leftover *leftover = first_lost(leftovers);
	if (outcome == COLLECT_HELD && waits_for_holder(leftovers)) {
		end_collect(leftovers);
		return;
	}
	leftovers->deadline_ms = 0;
	if (outcome == COLLECT_DONE) {
		log_info("%s: the changes in the lost sandbox are collected", leftover->local_root);
		leftover_destroy(leftover);
	} else {
		leftover->is_lost = false;
		describe(leftover, err);
		leftovers->is_over |= !collect_has_reached(leftovers->collect);
	}
	end_collect(leftovers);
	leftovers->relay->ops->finish_if_empty(leftovers->relay);
}

static void on_state(void *data, const struct keeper_state *state)
{
	struct leftovers *leftovers = data;
	relay_state_tell(leftovers->relay, NULL, state);
}

static void begin_collect(struct leftovers *leftovers)
{
	struct collect_config config = relay_collect_config(leftovers->relay);
	config.on_state = on_state;
	config.done = on_collected;
	config.data = leftovers;
	leftovers->collect = collect_start(&config, first_lost(leftovers)->record);
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	ev_timer_stop(loop, timer);
	begin_collect(CONTAINER_OF(timer, struct leftovers, again));
}

bool leftovers_collect(struct leftovers *leftovers)
{
	const struct leftover *lost = first_lost(leftovers);
	if (leftovers->collect || ev_is_active(&leftovers->again)) {
		return true;
	}
	if (!lost || leftovers->is_over || !leftovers->relay->config.state_folder) {
		return false;
	}
	if (!lost->is_here) {
		log_info(
			"%s: its sandbox was lost; trying once more to reach it", lost->local_root);
	}
	begin_collect(leftovers);
	return true;
}

void leftovers_hurry(struct leftovers *leftovers)
{
	leftovers->is_over = true;
	ev_timer_stop(leftovers->relay->config.loop, &leftovers->again);
	bool was_hurried = leftovers->is_hurried;
	leftovers->is_hurried = true;
	if (!leftovers->collect || collect_hurry(leftovers->collect)) {
		return;
	}
	if (was_hurried || !collect_stop(leftovers->collect)) {
		end_collect(leftovers);
	}
}

void leftovers_give_up(struct leftovers *leftovers)
{
	leftovers->is_over = true;
}

/* ---- life ---- */

void leftovers_init(struct relay *relay)
{
	struct leftovers *leftovers = leftovers_of(relay);
	leftovers->relay = relay;
	list_init(&leftovers->all);
	ev_init(&leftovers->again, on_again);
	leftovers->again.repeat = HELD_LOOK_MS / 1000.;
}

void leftovers_finish(struct relay *relay)
{
	struct leftovers *leftovers = leftovers_of(relay);
	ev_timer_stop(relay->config.loop, &leftovers->again);
	end_collect(leftovers);
	LIST_FOR_EACH(leftover, &leftovers->all, struct leftover, link) {
		leftover_destroy(leftover);
	}
}
