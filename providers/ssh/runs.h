/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_RUNS_H
#define PROVIDERS_SSH_RUNS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

/*
 * Runs of this broker whose end is not confirmed. A lost connection does not end its processes: the
 * host may notice the loss an hour later (link-grace), and the agent works until then. So the next
 * connection to the same place learns of those runs, and its control ends them before it starts
 * anything (remote/earlier.sh). A provider owns the list; its hosts add to it. Loop thread.
 */
struct ssh_runs {
	struct list runs; // struct ssh_run
	uint64_t added;   // how many were ever added: the number of the last one
};

void ssh_runs_init(struct ssh_runs *runs);
void ssh_runs_finish(struct ssh_runs *runs);

/* Describes a run whose connection has ended. */
struct ssh_run_end {
	const char *place;  // runs with the same place work in the same folders
	const char *folder; // the run's folder there, or a name if it has none (earlier.sh)
	const char *node;   // that machine's name
	long long grace_ms; // after this time it ends by itself
	bool was_lost;      // false: it was closed, and is expected to end
	bool was_idle;      // lost, but nothing ran there, as far as we know
};

void ssh_runs_add(struct ssh_runs *runs, const struct ssh_run_end *end);

/* Appends " && acp_end_earlier …" for each run of the place; that command ends the run. */
bool ssh_runs_append_script(const struct ssh_runs *runs, const char *place, struct buf *buf,
	struct error *err) ATTR_NODISCARD;

/*
 * Appends the definition of a shell function that ends these runs, "NAME() { … };", with everything
 * that it needs. Appends nothing if there are no runs. The function prints "ended COUNT", and "left
 * WHY" if some are still there.
 */
bool ssh_runs_append_function(const struct ssh_runs *runs, const char *place, const char *name,
	struct buf *buf, struct error *err) ATTR_NODISCARD;

/* The scripts that this function needs (remote/members.sh, remote/earlier.sh). */
extern const char ssh_members_script[], ssh_earlier_script[];

/*
 * Call this when all of these commands have succeeded. `told` is the value of `added` when the
 * script was written. Later runs stay in the list: another host of the place may have been lost
 * since.
 */
void ssh_runs_forget(struct ssh_runs *runs, const char *place, uint64_t told);

#endif
