/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_PROBE_H
#define BROKER_METHODS_PROBE_H

#include <ev.h>
#include <stdint.h>

#include "providers/provider.h"

/*
 * Checks whether a sandbox responds: one process in it reports the free space of its disk, then
 * echoes its input. Loop thread only.
 */
struct probe;

struct probe_result {
	bool has_answered;
	long long start_us;      // from requesting the process to its first output
	long long round_trip_us; // of one echo
	bool has_disk;
	uint64_t disk_free_bytes, disk_size_bytes;
	struct error err; // why it has not responded
};

struct probe_config {
	struct ev_loop *loop;
	struct sandbox *sandbox; // ready
	const char *folder;      // on the disk to report; copied
	int timeout_ms;          // for the whole probe
	const char *timeout_key; // its key in the configuration
	/* Called once, never from inside probe_start. May destroy the probe. */
	void (*done)(void *data);
	void *data;
};

struct probe *probe_start(const struct probe_config *config);
const struct probe_result *probe_result(const struct probe *probe);

/* Ends its process; no callback follows. NULL is fine. */
void probe_destroy(struct probe *probe);

#endif
