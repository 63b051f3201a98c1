/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_RUNS_H
#define PROVIDERS_SSH_RUNS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

/*
 * The runs of this broker whose end nobody has confirmed. A connection that was lost says nothing
 * about what it had started: the host may learn of it an hour later (link-grace), and until then
 * the agent goes on. So the next connection to the same place is told of those runs, and its
 * control ends them before anything is started (remote/earlier.sh). A provider owns the list, its
 * hosts add to it. Loop thread.
 */
struct ssh_runs {
	struct list runs; // of struct ssh_run
	uint64_t added;   // so many were added: the number of the last one
};

void ssh_runs_init(struct ssh_runs *runs);
void ssh_runs_finish(struct ssh_runs *runs);

/* How a run was left. */
struct ssh_run_end {
	const char *place;  // who asks for the same one reaches the same folders
	const char *folder; // of the run, there
	const char *node;   // that machine's name
	long long grace_ms; // after which it ends by itself
	bool was_lost;      // else it was closed, and is expected to end
};

void ssh_runs_add(struct ssh_runs *runs, const struct ssh_run_end *end);

/* Appends " && acp_end_earlier …" for each of the place, which ends it. */
bool ssh_runs_append_script(const struct ssh_runs *runs, const char *place, struct buf *buf,
	struct error *err) ATTR_NODISCARD;

/*
 * All of that has succeeded. `told` is what `added` was when the script was appended: another host
 * of the place may have been lost since, and nobody has ended what ran there.
 */
void ssh_runs_forget(struct ssh_runs *runs, const char *place, uint64_t told);

#endif
