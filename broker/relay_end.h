/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_END_H
#define BROKER_RELAY_END_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

/* What is for the editor once no agent is left (relay_end.c). */
struct last_words {
	struct ev_timer due; // drain-timeout for the editor to take more of it
	uint64_t written;    // to the editor when that began
	bool is_unread;      // it did not
	bool is_hurried;     // and is not waited for
};

/* agent_listener.count_taken: of the peer's editor. */
uint64_t relay_count_taken(void *peer);

#endif
