/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_MUX_FLOW_H
#define PROVIDERS_MUX_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Limits how many bytes of bulk streams may be under way at once. Bytes under way wait in queues on
 * the path, and a message behind them waits as long. "Rate × round trip" bytes are enough to keep a
 * connection busy. We allow MUX_BULK_SLACK_US more, which keeps it busy when the rate varies; so a
 * message waits at most that long. Zero-initialise.
 */
struct mux_flow {
	uint64_t round_trip_us; // the lowest; 0: not known
	uint64_t rate;      // bytes per second, the highest of the last two periods; 0: not known
	uint64_t rates[2];  // of the period before and of this one
	uint64_t period_us; // when this period began
	uint64_t arrived;   // bytes in this sample
	uint64_t sample_us; // when it began; 0: nothing is measured, because nothing is under way
	uint64_t under_way; // bytes of bulk
};

size_t mux_flow_room(const struct mux_flow *flow); // how many bytes of bulk may be sent now
void mux_flow_note_sent(struct mux_flow *flow, size_t bulk_bytes, uint64_t now_us);
void mux_flow_note_arrived(struct mux_flow *flow, size_t bytes, bool is_bulk, uint64_t now_us);
void mux_flow_forget(
	struct mux_flow *flow, uint64_t bulk_bytes); // they will not be told to have arrived
void mux_flow_note_round_trip(struct mux_flow *flow, uint64_t sent_us, uint64_t now_us);

#endif
