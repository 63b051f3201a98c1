/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_H
#define BROKER_LEDGER_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/*
 * A broker writes a record of each sandbox that it uses for a workspace. From it a later broker
 * knows which sandbox has which changes and what was collected, even if the first broker was killed
 * at any point. One JSON file per record, sessions/ID.json in the state folder, with the mode 0600.
 * The broker writes a state before it begins the step that the state names. Beside the file lies
 * ID.lock, locked (flock) while its broker lives; only the owner of the lock may write. Nothing in
 * a record is secret.
 *
 * All functions here may block; those on files belong on the worker pool.
 */
enum record_state {
	RECORD_CREATING,   // the sandbox is being prepared
	RECORD_SYNCING,    // the first sync copies the workspace into it
	RECORD_STARTING,   // the session is being opened
	RECORD_ACTIVE,     // the agent takes prompts
	RECORD_PAUSED,     // its processes are frozen
	RECORD_COLLECTING, // the last changes are being collected
	RECORD_STOPPED,    // nothing runs; everything was collected
	RECORD_FAILED,     // ended without that; `error` says why
	RECORD_STATE_COUNT,
};

const char *record_state_name(enum record_state state); // "creating", …

enum {
	RECORD_VERSION = 1,
	RECORD_ID_SIZE = 17, // 16 hexadecimal digits
	RECORD_TREE_SIZE = 41,
	RECORD_SESSIONS_MAX = 1024,
	RECORD_FILE_MAX = 1 << 20,
	RECORD_CHOICES_MAX = 256 << 10, // bytes of the choices of all sessions
	RECORD_STOPPED_MAX = 100,       // records of stopped sessions that are kept
};

/*
 * Proof that the agent's edits are safe here: the snapshot of the sandbox that was merged, the
 * result of the merge, and how many conflicts were parked. A sandbox is destroyed only with it.
 */
struct record_receipt {
	char runtime_tree[RECORD_TREE_SIZE]; // "" if there is no receipt
	char merged_tree[RECORD_TREE_SIZE];
	size_t conflicts;
	char time[32];
};

struct record {
	char id[RECORD_ID_SIZE];
	enum record_state state;
	char *profile, *backend, *sync, *persistence; // owned
	char *local_root, *runtime_root;              // owned
	char *agent;     // owned; its name in the configuration; NULL in records of older brokers
	char *reference; // owned; sandbox_reference, or NULL
	char *instance;  // owned; sandbox_instance, or NULL
	char **sessions; // owned; ids of ACP sessions; the first ones
	char **choices;  // owned; for each session the editor's choices (JSON), or NULL
	size_t session_count;
	struct record_receipt receipt;
	char *error; // owned; why it failed; may be NULL
	char created[32], updated[32];
};

void record_init(struct record *record); // with a new id
void record_finish(struct record *record);

/* False if it already has RECORD_SESSIONS_MAX sessions. */
bool record_add_session(struct record *record, const char *session_id);

void record_remove_session(struct record *record, const char *session_id);

/*
 * Sets the editor's choices in a session: a JSON array, or empty. If all choices together exceed
 * RECORD_CHOICES_MAX bytes, the session gets none. Does nothing for a session that the record does
 * not have.
 */
enum record_choices_set {
	RECORD_CHOICES_UNCHANGED,
	RECORD_CHOICES_CHANGED,
	RECORD_CHOICES_TOO_LONG,
};
enum record_choices_set record_set_choices(
	struct record *record, const char *session_id, struct span json);
const char *record_choices(const struct record *record, const char *session_id); // or NULL

/*
 * Whether the record's reference and instance equal these (sandbox_reference, sandbox_instance).
 * Both may be NULL.
 */
bool record_is_of(const struct record *record, const char *reference, const char *instance);

bool record_write_json(
	const struct record *record, struct buf *out, struct error *err) ATTR_NODISCARD;

/*
 * Fills an initialised record. ERROR_PROTOCOL if no broker has written the text; ERROR_UNAVAILABLE
 * for a record of a newer version.
 */
bool record_read_json(struct record *record, struct span text, struct error *err) ATTR_NODISCARD;

/*
 * Opens the folder of the records; creates it (0700) and its parents if missing. Returns a
 * descriptor, or -1 with the error set.
 */
int record_folder_open(const char *state_folder, struct error *err) ATTR_NODISCARD;

/*
 * Takes the lock of a record. Returns a descriptor that holds it until it is closed, or -1:
 * ERROR_UNAVAILABLE if a running broker has it, else ERROR_SYSTEM.
 */
int record_lock(int folder_fd, const char *id, struct error *err) ATTR_NODISCARD;

/* Replaces the file: temporary file, fsync, rename, fsync of the folder. */
bool record_save(int folder_fd, const char *id, struct span json, struct error *err) ATTR_NODISCARD;
/* The same without fsync, for a record that is not needed after the machine has stopped. */
bool record_write(
	int folder_fd, const char *id, struct span json, struct error *err) ATTR_NODISCARD;
/* record_save for a record whose lock the caller holds. */
bool record_put(int folder_fd, const struct record *record, struct error *err) ATTR_NODISCARD;
bool record_load(
	int folder_fd, const char *id, struct record *out_record, struct error *err) ATTR_NODISCARD;

/* Removes the file and its lock file. A missing record is not an error. */
bool record_remove(int folder_fd, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Removes the oldest records of stopped sandboxes, except for the newest `kept_max`. Records that
 * cannot be read, or belong to a running broker, stay.
 */
bool record_prune(int folder_fd, size_t kept_max, struct error *err) ATTR_NODISCARD;

/* Removes half-written records of killed brokers. */
bool record_sweep(int folder_fd, struct error *err) ATTR_NODISCARD;

/* Calls visit with the id of each record in the folder, in no particular order. */
bool record_visit(int folder_fd, void (*visit)(void *data, const char *id), void *data,
	struct error *err) ATTR_NODISCARD;

#endif
