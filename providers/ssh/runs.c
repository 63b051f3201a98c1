/* SPDX-License-Identifier: MIT */
#include "providers/ssh/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/mux/wire.h"
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
	bool is_adopted; // a killed broker has left it
	bool is_kept;    // and it could not be ended
	struct ssh_run_note note;
	uint64_t number; // from 1
};

static void run_free(struct ssh_run *run)
{
	list_remove(&run->link);
	ssh_run_note_finish(&run->note);
	free(run->place);
	free(run->folder);
	free(run->node);
	free(run);
}

void ssh_runs_init(struct ssh_runs *runs, const char *state_folder)
{
	list_init(&runs->runs);
	runs->added = 0;
	runs->state_folder = state_folder && *state_folder ? state_folder : NULL;
}

void ssh_runs_finish(struct ssh_runs *runs)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		run_free(run);
	}
}

/* It has ended, so no later broker needs to know of it. */
static void run_forget(struct ssh_runs *runs, struct ssh_run *run)
{
	if (run->is_kept) {
		ssh_run_note_keep(&run->note);
	} else if (run->note.lock_fd >= 0) {
		ssh_run_note_remove(runs->state_folder, &run->note);
	}
	run_free(run);
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
			run_forget(runs, run);
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
	run->note = (struct ssh_run_note){.lock_fd = -1};
	if (end->note) {
		run->note = *end->note;
		*end->note = (struct ssh_run_note){.lock_fd = -1};
	}
	list_append(&runs->runs, &run->link);
	drop_closed(runs);
}

static struct ssh_run *find_adopted(
	const struct ssh_runs *runs, const char *place, struct span token)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (run->is_adopted && strcmp(run->place, place) == 0 &&
			span_is(token, run->note.token)) {
			return run;
		}
	}
	return NULL;
}

void ssh_runs_adopt(struct ssh_runs *runs, struct ssh_run_note *note)
{
	if (find_adopted(runs, note->place, span_of(note->token))) {
		ssh_run_note_finish(note);
		return;
	}
	struct ssh_run *run = mem_alloc_zero(sizeof(*run));
	run->place = mem_strdup(note->place);
	run->folder = mem_strdup(note->folder);
	run->node = mem_strdup(note->node);
	run->was_lost = run->is_adopted = true;
	run->note = *note;
	run->number = ++runs->added;
	*note = (struct ssh_run_note){.lock_fd = -1};
	list_append(&runs->runs, &run->link);
}

/* The reasons of earlier.sh, and what to tell the user around the name of the run's machine. */
static const struct {
	const char *why;
	const char *before, *after;
} kept[] = {
	{"used", "A note of an earlier broker names processes on ",
		" that another broker uses: they are left alone"},
	{"elsewhere", "An earlier broker has left processes on ",
		", and the connection now leads to another machine: they cannot be ended from "
		"there, and end by themselves after orphan-grace or link-grace"},
	{"unseen", "An earlier broker has left processes on ",
		", and nothing there says whether they still run: they end by themselves after "
		"orphan-grace or link-grace"},
};

bool ssh_runs_keep(
	struct ssh_runs *runs, const char *place, const char *told, char *text, size_t size)
{
	size_t len = strcspn(told, " ");
	struct ssh_run *run = find_adopted(runs, place, (struct span){told, len});
	for (size_t i = 0; run && told[len] && i < ARRAY_LENGTH(kept); i++) {
		if (strcmp(told + len + 1, kept[i].why) == 0) {
			char node[ERROR_TEXT_MAX];
			runner_show(node, sizeof(node), span_of(run->node));
			run->is_kept = true;
			text_format(text, size, "%s%s%s", kept[i].before, node, kept[i].after);
			return true;
		}
	}
	return false;
}

bool ssh_runs_has(const struct ssh_runs *runs, const char *place)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (strcmp(run->place, place) == 0) {
			return true;
		}
	}
	return false;
}

/* How its connection ended, in a word of remote/earlier.sh. */
static const char *word_of(const struct ssh_run *run)
{
	bool may_run_elsewhere =
		run->is_adopted || (run->was_lost && clock_now_ms() < run->over_ms);
	return !may_run_elsewhere     ? "over"
	       : run->note.is_certain ? "dead"
	       : run->is_adopted      ? "orphan"
	       : run->was_idle        ? "idle"
	                              : "lost";
}

bool ssh_runs_append_script(
	const struct ssh_runs *runs, const char *place, struct buf *buf, struct error *err)
{
	bool is_whole = true;
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (strcmp(run->place, place) != 0) {
			continue;
		}
		is_whole = is_whole && buf_append(buf, SPAN_LITERAL(" && acp_end_earlier "), err) &&
		           script_quote_append(buf, span_of(run->folder), err) &&
		           buf_append(buf, SPAN_LITERAL(" "), err) &&
		           script_quote_append(buf, span_of(run->node), err) &&
		           buf_append_format(buf, err, " %s", word_of(run));
	}
	return is_whole;
}

bool ssh_runs_append_lines(
	const struct ssh_runs *runs, const char *place, struct buf *buf, struct error *err)
{
	LIST_FOR_EACH(run, &runs->runs, struct ssh_run, link) {
		if (strcmp(run->place, place) == 0 &&
			!buf_append_format(buf, err, "on %s\nearlier %s %s\n", run->node,
				word_of(run), run->folder)) {
			return false;
		}
	}
	return true;
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
			run_forget(runs, run);
		}
	}
}
