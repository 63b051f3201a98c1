/* SPDX-License-Identifier: MIT */
#include "providers/mux/flow.h"

#include "providers/mux/mux.h"

enum {
	PERIOD_US = 2000000,
	SECOND_US = 1000000,
	ROUND_TRIP_MAX_US = 60 * SECOND_US,
	ROOM_MIN = 4096, // we send no frame for less than that
};

/* How many bytes under way keep the connection busy. */
static uint64_t most_under_way(const struct mux_flow *flow)
{
	uint64_t span_us = flow->round_trip_us + MUX_BULK_SLACK_US;
	uint64_t most =
		flow->rate / SECOND_US * span_us + flow->rate % SECOND_US * span_us / SECOND_US;
	return most > MUX_BULK_MIN ? most : MUX_BULK_MIN;
}

size_t mux_flow_room(const struct mux_flow *flow)
{
	uint64_t most = most_under_way(flow);
	return flow->under_way + ROOM_MIN <= most ? (size_t)(most - flow->under_way) : 0;
}

void mux_flow_note_sent(struct mux_flow *flow, size_t bulk_bytes, uint64_t now_us)
{
	if (flow->sample_us == 0) {
		flow->sample_us = now_us;
		flow->arrived = 0;
	}
	flow->under_way += bulk_bytes;
}

static void take_sample(struct mux_flow *flow, uint64_t now_us)
{
	uint64_t took_us = now_us - flow->sample_us;
	uint64_t rate = flow->arrived * SECOND_US / took_us; // took_us >= MUX_BULK_SLACK_US
	if (now_us - flow->period_us >= PERIOD_US) {
		flow->rates[0] = flow->rates[1];
		flow->rates[1] = 0;
		flow->period_us = now_us;
	}
	flow->rates[1] = rate > flow->rates[1] ? rate : flow->rates[1];
	flow->rate = flow->rates[0] > flow->rates[1] ? flow->rates[0] : flow->rates[1];
	flow->sample_us = now_us;
	flow->arrived = 0;
}

static void lower(struct mux_flow *flow, uint64_t bulk_bytes)
{
	flow->under_way -= bulk_bytes < flow->under_way ? bulk_bytes : flow->under_way;
	if (flow->under_way == 0) {
		flow->sample_us = 0; // an idle connection does not show how fast it is
	}
}

/*
 * A sample takes at least as long as the bytes that may be under way need at this rate. So
 * acknowledgements that come in a burst cannot make the connection look faster than it is.
 */
void mux_flow_note_arrived(struct mux_flow *flow, size_t bytes, bool is_bulk, uint64_t now_us)
{
	flow->arrived += bytes;
	if (flow->sample_us != 0 &&
		now_us >= flow->sample_us + flow->round_trip_us + MUX_BULK_SLACK_US) {
		take_sample(flow, now_us);
	}
	if (is_bulk) {
		lower(flow, bytes);
	}
}

void mux_flow_forget(struct mux_flow *flow, uint64_t bulk_bytes)
{
	lower(flow, bulk_bytes);
}

void mux_flow_note_round_trip(struct mux_flow *flow, uint64_t sent_us, uint64_t now_us)
{
	/* The peer sent sent_us back, so it may be wrong. */
	uint64_t took_us = now_us > sent_us ? now_us - sent_us : 1;
	bool is_lower = flow->round_trip_us == 0 || took_us < flow->round_trip_us;
	if (is_lower && took_us <= ROUND_TRIP_MAX_US) {
		flow->round_trip_us = took_us;
	}
}
