/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_PROBE_H
#define BROKER_METHODS_PROBE_H

#include <ev.h>
#include <stdint.h>

#include "providers/provider.h"

/*
 * Asks a sandbox whether it answers: one process in it says how much room its disk has, then
 * sends back what it is sent. Loop thread only.
 */
struct probe;

struct probe_result {
	bool has_answered;
	long long start_us;      // from asking for the process to its first word
	long long round_trip_us; // of a word there and back
	bool has_disk;
	uint64_t disk_free_bytes, disk_size_bytes;
	struct error err; // why it has not answered
};

struct probe_config {
	struct ev_loop *loop;
	struct sandbox *sandbox; // ready
	const char *folder;      // whose disk is meant; copied
	int timeout_ms;          // for all of it
	const char *timeout_key; // its name in the configuration
	/* Once, never from inside probe_start. May destroy the probe. */
	void (*done)(void *data);
	void *data;
};

struct probe *probe_start(const struct probe_config *config);
const struct probe_result *probe_result(const struct probe *probe);

/* Ends what it started; raises nothing more. NULL is fine. */
void probe_destroy(struct probe *probe);

#endif
