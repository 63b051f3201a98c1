/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_H
#define BROKER_LEDGER_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/*
 * What a broker writes down of a sandbox that it uses for a workspace, so that
 * whoever comes after it - killed at any point - knows what is where and what
 * has been collected. One JSON file a record, sessions/ID.json in the state
 * directory, 0600. A state is written before the step it names is taken. Beside it
 * lies ID.lock, locked (flock) while its broker lives: only the owner of that
 * lock may write. Nothing in a record is secret.
 *
 * All functions here may block; those on files belong on the worker pool.
 */
enum record_state {
	RECORD_CREATING,   // the sandbox is being prepared
	RECORD_SYNCING,    // the workspace goes into it for the first time
	RECORD_STARTING,   // the session is being opened
	RECORD_ACTIVE,     // the agent can be prompted
	RECORD_PAUSED,     // frozen
	RECORD_COLLECTING, // what the agent left is being fetched for the last time
	RECORD_STOPPED,    // nothing runs; everything has been collected
	RECORD_FAILED,     // ended without that: see error
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
 * Proof that the edits in the runtime are safe here: the snapshot of the runtime
 * that was merged, what came of it, and how many conflicts were parked. destroy asks
 * for it.
 */
struct record_receipt {
	char runtime_tree[RECORD_TREE_SIZE]; // "" where there is no receipt
	char merged_tree[RECORD_TREE_SIZE];
	size_t conflicts;
	char time[32];
};

struct record {
	char id[RECORD_ID_SIZE];
	enum record_state state;
	char *profile, *backend, *sync, *persistence; // owned
	char *local_root, *runtime_root;              // owned
	char *agent;     // owned; its name in the configuration, NULL in what older brokers wrote
	char *reference; // owned; sandbox_reference, or NULL where there is none
	char *instance;  // owned; sandbox_instance, or NULL
	char **sessions; // owned, of ACP; the first ones
	char **choices;  // owned; of each session what the editor has chosen in it (JSON), or NULL
	size_t session_count;
	struct record_receipt receipt;
	char *error; // owned; why it failed; NULL
	char created[32], updated[32];
};

void record_init(struct record *record); // with a new id
void record_finish(struct record *record);

/* False once there are RECORD_SESSIONS_MAX of them. */
bool record_add_session(struct record *record, const char *session_id);

void record_remove_session(struct record *record, const char *session_id);

/*
 * What the editor has chosen in a session: an array of JSON, empty where there is nothing.
 * Over RECORD_CHOICES_MAX the session has none. A session that the record does not have is
 * unchanged.
 */
enum record_choices_set {
	RECORD_CHOICES_UNCHANGED,
	RECORD_CHOICES_CHANGED,
	RECORD_CHOICES_TOO_LONG,
};
enum record_choices_set record_set_choices(
	struct record *record, const char *session_id, struct span json);
const char *record_choices(const struct record *record, const char *session_id); // or NULL

/* Whether it is of what has this sandbox_reference and this sandbox_instance; both may be NULL. */
bool record_is_of(const struct record *record, const char *reference, const char *instance);

bool record_write_json(
	const struct record *record, struct buf *out, struct error *err) ATTR_NODISCARD;

/*
 * Fills an initialised record. ERROR_PROTOCOL for what no broker has written;
 * ERROR_UNAVAILABLE for a record of a newer version.
 */
bool record_read_json(struct record *record, struct span text, struct error *err) ATTR_NODISCARD;

/*
 * The folder of the records; made (0700), with its parents, where it is missing. A descriptor, or
 * -1 with the error set.
 */
int record_folder_open(const char *state_folder, struct error *err) ATTR_NODISCARD;

/*
 * Takes the lock of a record: a descriptor that holds it until it is closed.
 * -1: ERROR_UNAVAILABLE where a living broker has it, ERROR_SYSTEM otherwise.
 */
int record_lock(int folder_fd, const char *id, struct error *err) ATTR_NODISCARD;

/* Replaces the file: temporary file, fsync, rename, fsync of the folder. */
bool record_save(int folder_fd, const char *id, struct span json, struct error *err) ATTR_NODISCARD;
/* The same without fsync, for a record that nobody needs after the machine's end. */
bool record_write(
	int folder_fd, const char *id, struct span json, struct error *err) ATTR_NODISCARD;
/* record_save of a record whose lock is held. */
bool record_put(int folder_fd, const struct record *record, struct error *err) ATTR_NODISCARD;
bool record_load(
	int folder_fd, const char *id, struct record *out_record, struct error *err) ATTR_NODISCARD;

/* Removes the file and its lock file; a record that is not there is no error. */
bool record_remove(int folder_fd, const char *id, struct error *err) ATTR_NODISCARD;

/*
 * Removes the oldest records of what is stopped, beyond the newest `kept_max`. Those
 * that cannot be read, or belong to a broker that runs, stay.
 */
bool record_prune(int folder_fd, size_t kept_max, struct error *err) ATTR_NODISCARD;

/* Removes the half-written records of brokers that were killed. */
bool record_sweep(int folder_fd, struct error *err) ATTR_NODISCARD;

/* Calls visit with the id of each record in the folder, in no order. */
bool record_visit(int folder_fd, void (*visit)(void *data, const char *id), void *data,
	struct error *err) ATTR_NODISCARD;

#endif
