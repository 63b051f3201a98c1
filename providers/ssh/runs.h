/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_RUNS_H
#define PROVIDERS_SSH_RUNS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "providers/ssh/run_note.h"

/*
 * Runs whose end is not confirmed: those of this broker, and those that killed brokers have left. A
 * lost connection does not end its processes: the host may notice the loss an hour later
 * (link-grace), and the agent works until then. So the next connection to the same place learns of
 * those runs, and its control ends them before it starts anything (remote/earlier.sh). A provider
 * owns the list; its hosts add to it. Loop thread.
 */
struct ssh_runs {
	struct list runs;         // struct ssh_run
	uint64_t added;           // how many were ever added: the number of the last one
	const char *state_folder; // borrowed; notes of runs are there (run_note.h); NULL: none
};

/* Without a state folder (NULL or ""), no notes are kept. */
void ssh_runs_init(struct ssh_runs *runs, const char *state_folder);
void ssh_runs_finish(struct ssh_runs *runs);

/* Describes a run whose connection has ended. */
struct ssh_run_end {
	const char *place;         // runs with the same place work in the same folders
	const char *folder;        // the run's folder there, or a name if it has none (earlier.sh)
	const char *node;          // that machine's name
	long long grace_ms;        // after this time it ends by itself
	bool was_lost;             // false: it was closed, and is expected to end
	bool was_idle;             // lost, but nothing ran there, as far as we know
	struct ssh_run_note *note; // taken over; NULL: none
};

void ssh_runs_add(struct ssh_runs *runs, const struct ssh_run_end *end);

/*
 * Adds a run that a note names and whose broker is gone (ssh_run_notes_find). Takes the note over,
 * and only finishes it if the run is in the list already.
 */
void ssh_runs_adopt(struct ssh_runs *runs, struct ssh_run_note *note);

/*
 * The command has printed "kept TOKEN WHY": it could not end the run of a killed broker, and
 * whatever has to start may start all the same. Writes a sentence for the user to `text`. False if
 * no such run is in the list.
 */
bool ssh_runs_keep(struct ssh_runs *runs, const char *place, const char *told, char *text,
	size_t size) ATTR_NODISCARD;

/* Whether the list has a run of the place. */
bool ssh_runs_has(const struct ssh_runs *runs, const char *place);

/* Appends " && acp_end_earlier …" for each run of the place; that command ends the run. */
bool ssh_runs_append_script(const struct ssh_runs *runs, const char *place, struct buf *buf,
	struct error *err) ATTR_NODISCARD;

/*
 * Appends the definition of a shell function that ends these runs, "NAME() { … };", with everything
 * that it needs. Appends nothing if there are no runs. The function prints "ended COUNT", "kept
 * TOKEN WHY", and "left WHY" if some are still there.
 */
bool ssh_runs_append_function(const struct ssh_runs *runs, const char *place, const char *name,
	struct buf *buf, struct error *err) ATTR_NODISCARD;

/* Appends the same for runner/begin.c: lines "on NODE" and "earlier WORD FOLDER". */
bool ssh_runs_append_lines(const struct ssh_runs *runs, const char *place, struct buf *buf,
	struct error *err) ATTR_NODISCARD;

/*
 * Writes the note of a run of this broker on the pool, and takes the note over. Raises done once,
 * with an error if the note could not be written; not before it returns, and never after
 * ssh_noting_end. runs->state_folder must not be NULL.
 */
struct pool;
struct ssh_noting;
typedef void ssh_noted(void *data, const struct error *err);
struct ssh_noting *ssh_noting_start(struct pool *pool, const struct ssh_runs *runs,
	struct ssh_run_note *note, ssh_noted *done, void *data, struct error *err) ATTR_NODISCARD;
bool ssh_noting_is_pending(const struct ssh_noting *noting); // NULL is fine

/*
 * The run is left. If it is over, its note is removed, now or once it has been written. Otherwise
 * *out_note is the note; it has no lock if there is none. Frees the noting; NULL is fine.
 */
void ssh_noting_end(struct ssh_noting *noting, bool is_over, struct ssh_run_note *out_note);

/*
 * Looks on the pool for notes of the place whose brokers are gone, and adopts their runs. Raises
 * done once, never before it returns, unless it is cancelled first.
 */
struct ssh_runs_look;
struct ssh_runs_look *ssh_runs_look_start(struct pool *pool, struct ssh_runs *runs,
	const char *place, void (*done)(void *data), void *data, struct error *err) ATTR_NODISCARD;
void ssh_runs_look_cancel(struct ssh_runs_look *look); // only before done; NULL is fine

/* The scripts that this function needs (remote/members.sh, remote/earlier.sh). */
extern const char ssh_members_script[], ssh_earlier_script[];

/*
 * Call this when all of these commands have succeeded. `told` is the value of `added` when the
 * script was written. Later runs stay in the list: another host of the place may have been lost
 * since. Also removes the notes of these runs.
 */
void ssh_runs_forget(struct ssh_runs *runs, const char *place, uint64_t told);

#endif
