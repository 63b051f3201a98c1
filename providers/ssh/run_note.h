/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_RUN_NOTE_H
#define PROVIDERS_SSH_RUN_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * A note of a run on a host, STATE/runs/TOKEN.json (providers/notes.h). A broker writes it before
 * its agent starts there, and holds its lock alone as long as it lives. So a later broker knows
 * which runs were left by a broker that was killed, and ends them before it starts anything in the
 * same place. A run is ours only if a note here has its random token, and if no living broker holds
 * the note's lock. Nobody touches any other run.
 *
 * All functions block, so they are for the worker pool, except where that is said.
 */
enum { SSH_TOKEN_SIZE = 33 }; // names a run: 128 random bits as hexadecimal digits

struct ssh_run_note {
	char token[SSH_TOKEN_SIZE];
	char *place;  // owned, like the next two; runs with the same place work in the same folders
	char *folder; // the run's folder there, or a name if it has none (remote/earlier.sh)
	char *node;   // that machine's name
	long long grace_ms; // the longest time that the run lives without its broker
	/*
	 * Found, not written: whether no living broker can have the run. This is certain if its
	 * broker ran on this kernel, which would still hold the lock. Otherwise the folder may have
	 * been copied, or the machine cloned; then the run itself has to say whether a broker uses
	 * it.
	 */
	bool is_certain;
	int lock_fd; // -1: none
};

/* Closes its lock, too. For every thread. A zeroed note with lock_fd = -1 is fine. */
void ssh_run_note_finish(struct ssh_run_note *note);

/* Takes the note's lock, alone, and writes the note. On failure lock_fd is -1. */
bool ssh_run_note_write(
	const char *state_folder, struct ssh_run_note *note, struct error *err) ATTR_NODISCARD;

/*
 * Removes the files of a note whose lock we hold, except while other brokers share it; then
 * finishes the note. Takes microseconds, so the loop's thread may call it.
 */
void ssh_run_note_remove(const char *state_folder, struct ssh_run_note *note);

/*
 * For a run that the caller leaves, although it may not have ended: it could not be reached, or has
 * not said so. The file stays, so that a later broker tries again, but only until the run must have
 * ended by itself. Then finishes the note. For the loop's thread, too.
 */
void ssh_run_note_keep(struct ssh_run_note *note);

/*
 * Finds the notes of a place whose brokers are gone, and shares their locks. The caller finishes
 * each of them and frees the list. Notes of brokers on other machines, which share this folder, are
 * not found; nor are notes that cannot be read, nor more than 64 at once. Also keeps the notes of
 * other places (ssh_run_note_keep), so that they go some day.
 */
struct ssh_run_note *ssh_run_notes_find(
	const char *state_folder, const char *place, size_t *out_count);

/*
 * Whether the last name in a folder's path is one of this run: "KIND.TOKEN." and more. The host
 * chooses the path, and must not name another run. For every thread.
 */
bool ssh_run_is_named(const char *folder, const char *token);

#endif
