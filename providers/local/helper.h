/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_HELPER_H
#define PROVIDERS_LOCAL_HELPER_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process.h"
#include "base/span.h"

/*
 * A process of ours that works for one cell, but outside of it. It is this program, executed again,
 * so that it has none of the broker's memory; main recognises it by its argument. It sends packets
 * of one size over a SOCK_SEQPACKET pair, which is its stdin. Because it reads strangers' data, the
 * broker checks each packet and reads only a limited number per second. It ends with the broker.
 *
 * Loop thread only; nothing blocks; nothing is raised before a call returns.
 */
struct helper;

struct helper_kind {
	const char *argument; // of the program
	const char *name;     // in errors: "the process that …"
	size_t packet_size;   // HELPER_PACKET_MAX at most
};
enum { HELPER_PACKET_MAX = 4096, HELPER_START_MS = 10000, HELPER_TEXT_SIZE = 512 };

struct helper_listener {
	/*
	 * One packet of packet_size bytes, borrowed. The owner may destroy the helper in the call.
	 * False: our program never writes such a packet; then on_end follows.
	 */
	bool (*on_packet)(void *data, struct span packet);
	/*
	 * Raised once: the process could not start, or has ended. Destroy the helper here or later.
	 */
	void (*on_end)(void *data, const struct error *err);
};

/*
 * Makes only the channel; the process is not started yet. `kind` and `listener` are borrowed. Fails
 * with ERROR_SYSTEM.
 */
struct helper *helper_create(struct ev_loop *loop, const struct helper_kind *kind,
	const struct helper_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/*
 * The channel's descriptor, for the first packet, which is sent before the start. -1 once the
 * process has ended.
 */
int helper_channel(const struct helper *helper);

/*
 * Starts the process with this machine's spawner. From then on its deadline runs, until
 * helper_is_ready is called.
 */
bool helper_start(struct helper *helper, struct spawner *spawner, struct error *err) ATTR_NODISCARD;

/* Call it when the process has said that it is ready: ends its deadline. */
void helper_is_ready(struct helper *helper);

/* Sends a packet without waiting. If the process does not take it, on_end follows. */
void helper_send(struct helper *helper, struct span packet);

/*
 * Call it when the process has said why it ends: raises on_end. With is_unavailable, the error has
 * the reason CELL_UNAVAILABLE.
 */
void helper_fail(struct helper *helper, const char *text, bool is_unavailable);

void helper_destroy(struct helper *helper); // ends the process; NULL is fine

/* Whether a text in a packet is terminated and has only printable ASCII. */
bool helper_text_is_whole(const char *text, size_t size);

/* For the process: writes an error's text in that form, cut if it is too long. */
void helper_put_text(char *out, size_t size, const struct error *err);

#endif
