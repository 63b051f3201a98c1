/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_PLAIN_RECORD_H
#define BROKER_LEDGER_PLAIN_RECORD_H

#include "base/pool.h"
#include "broker/ledger/record.h"

/*
 * Records of sessions that work in the workspace itself (isolation = none). Such a session has
 * nothing to collect, so these records only tell other programs that it is open. They have the
 * format and the locks of all records, but are in their own folder, plain/ in the state directory,
 * which no recovery reads. A broker removes its records when it ends. The next broker, and every
 * command that lists the records, removes those of a killed broker.
 */
struct plain_records;

/* Loop and pool are borrowed, the texts are copied. */
struct plain_config {
	struct pool *pool;
	const char *state_folder;
	const char *profile, *backend;
	const char *agent; // may be NULL
};

struct plain_records *plain_records_create(const struct plain_config *config);

/* Removes the records once no worker is writing one. NULL is fine. */
void plain_records_destroy(struct plain_records *records);

/*
 * A session was opened in these directories (NULL-terminated, copied), or was closed. The files
 * follow later; a failure is logged once and changes nothing for the session.
 */
void plain_records_add(struct plain_records *records, char *const *roots, const char *session_id);
void plain_records_remove(struct plain_records *records, const char *session_id);

/* ---- for programs that look; these block ---- */

/* Opens the folder; creates it if missing. Returns a descriptor, or -1 with the error set. */
int plain_folder_open(const char *state_folder, struct error *err) ATTR_NODISCARD;

/* Removes the records of brokers that have ended. */
bool plain_folder_sweep(int folder_fd, struct error *err) ATTR_NODISCARD;

#endif
