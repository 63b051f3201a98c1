/* SPDX-License-Identifier: MIT */
#include "providers/ssh/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "providers/ssh/host_impl.h"

enum {
	CLOSED_MAX = 8, // closed runs end by themselves, so older ones are forgotten
	/* The watch on the host checks every 20 s, and a heartbeat may have been under way. */
	GRACE_MORE_MS = 60000,
	CALLS_MAX = 128 * 1024,
};

const char ssh_members_script[] =
#include "providers/ssh/remote/members.sh.inc"
	;
const char ssh_earlier_script[] =
#include "providers/ssh/remote/earlier.sh.inc"
	;

struct ssh_run {
	struct list link;  // ssh_runs.runs
	char *place;       // owned, like the next two
	char *folder;      // on the host
	char *node;        // the host's own name
	long long over_ms; // the time by which it has ended by itself
	bool was_lost, was_idle;
	uint64_t number; // from 1
};

static void run_free(struct ssh_run *run)
{
	list_remove(&run->link);
	free(run->place);
	free(run->folder);
	free(run->node);
	free(run);
}

void ssh_runs_init(struct ssh_runs *runs)
{
	list_init(&runs->runs);
	runs->added = 0;
}

void ssh_runs_finish(struct ssh_runs *runs)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		run_free(run);
	}
}

/* The oldest ones come first. */
static void drop_closed(struct ssh_runs *runs)
{
	size_t count = 0;
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		count += !run->was_lost;
	}
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (count > CLOSED_MAX && !run->was_lost) {
			run_free(run);
			count--;
		}
	}
}

void ssh_runs_add(struct ssh_runs *runs, const struct ssh_run_end *end)
{
	struct ssh_run *run = mem_alloc_zero(sizeof(*run));
	run->place = mem_strdup(end->place);
	run->folder = mem_strdup(end->folder);
	run->node = mem_strdup(end->node);
	run->over_ms = clock_now_ms() + end->grace_ms + GRACE_MORE_MS;
	run->was_lost = end->was_lost;
	run->was_idle = end->was_idle;
	run->number = ++runs->added;
	list_append(&runs->runs, &run->link);
	drop_closed(runs);
}

bool ssh_runs_append_script(
	const struct ssh_runs *runs, const char *place, struct buf *buf, struct error *err)
{
	bool is_whole = true;
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (strcmp(run->place, place) != 0) {
			continue;
		}
		bool may_run_elsewhere = run->was_lost && clock_now_ms() < run->over_ms;
		is_whole = is_whole && buf_append(buf, SPAN_LITERAL(" && acp_end_earlier "), err) &&
		           script_quote_append(buf, span_of(run->folder), err) &&
		           buf_append(buf, SPAN_LITERAL(" "), err) &&
		           script_quote_append(buf, span_of(run->node), err) &&
		           buf_append_format(buf, err, " %s",
				   !may_run_elsewhere ? "over"
				   : run->was_idle    ? "idle"
						      : "lost");
	}
	return is_whole;
}

bool ssh_runs_append_function(const struct ssh_runs *runs, const char *place, const char *name,
	struct buf *buf, struct error *err)
{
	struct buf calls;
	buf_init(&calls, CALLS_MAX);
	bool is_whole = ssh_runs_append_script(runs, place, &calls, err);
	if (is_whole && calls.len > 0) {
		is_whole = buf_append(buf, SPAN_LITERAL("acp_library="), err) &&
		           script_quote_append(buf, span_of(ssh_members_script), err) &&
		           script_quote_append(buf, span_of(ssh_earlier_script), err) &&
		           buf_append_format(buf, err, "; eval \"$acp_library\"; %s() { :", name) &&
		           buf_append(buf, buf_span(&calls), err) &&
		           buf_append(buf, SPAN_LITERAL("; };"), err);
	}
	buf_finish(&calls);
	return is_whole;
}

void ssh_runs_forget(struct ssh_runs *runs, const char *place, uint64_t told)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (run->number <= told && strcmp(run->place, place) == 0) {
			run_free(run);
		}
	}
}
