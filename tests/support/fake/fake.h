/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include "providers/provider.h"

/*
 * A provider for tests that behaves like a distant, slow and unreliable one. Its sandbox is a
 * folder of this machine under another name, its outcomes come late, its streams come in small
 * pieces, and every operation can be made to fail. With all of this except the failures it passes
 * the conformance table.
 *
 * The program that creates the provider sets its behaviour. The keys of a profile with backend =
 * fake override that:
 *
 *   runtime-root folder below which the roots are, as 0, 1, …; made if missing roots-max how many
 *   roots it takes; 0: any number delay how late every outcome and every event is read-chunk the
 *   most bytes that one read of an output gives; 0: all isolated what its capabilities say; the
 *   default is true with runtime-root fail an operation that always fails, or "inventory"; may be
 *   repeated inventory a folder whose files are the sandboxes of provider_inventory
 */
enum fake_operation {
	FAKE_PREPARE,
	FAKE_ADD_ROOT,
	FAKE_EXEC,  // refused by sandbox_exec itself
	FAKE_START, // on_failed
	FAKE_READ,
	FAKE_WRITE,
	FAKE_STAT,
	FAKE_RESOLVE,
	FAKE_DESTROY,
	FAKE_OPERATION_COUNT,
};

struct fake_behaviour {
	char runtime_root[FILE_PATH_MAX]; // "": roots have the same name inside
	size_t roots_max;
	int delay_ms;
	size_t read_chunk;
	bool isolated;
	/* How many of the next calls fail, and their error (ERROR_NONE: ERROR_UNAVAILABLE). */
	int failures[FAKE_OPERATION_COUNT];
	struct error failure[FAKE_OPERATION_COUNT];
};

struct provider *fake_provider_create(const struct provider_context *context);

/* The sandboxes read it at each call. A sandbox that was prepared with keys has its own copy. */
struct fake_behaviour *fake_behaviour(struct provider *provider);

/* The link is lost: every sandbox of the provider raises failed, every process lost. */
void fake_lose(struct provider *provider, const char *text);

/* How many sandboxes are open. */
size_t fake_sandbox_count(const struct provider *provider);

#endif
