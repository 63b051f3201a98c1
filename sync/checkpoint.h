/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CHECKPOINT_H
#define SYNC_CHECKPOINT_H

#include "base/json_writer.h"
#include "sync/store.h"

/*
 * Checkpoints: snapshots that are kept so that the user can go back to them. There is one before
 * the first prompt of a session, one after each turn, one of the user's own edits before a turn,
 * one whenever the user asks for it, and one before each rollback. They are numbered from 1 in each
 * store, where their names are checkpoints/NUMBER. All functions block: call them on the worker
 * pool, or in a command.
 */
enum { CHECKPOINT_SESSION_MAX = 1025, CHECKPOINT_REASON_MAX = 64, CHECKPOINT_DIFF_MAX = 16 << 20 };

enum { CHECKPOINT_NAME_SIZE = 32 };
/* The name of a checkpoint in the store. */
void checkpoint_name(char name[CHECKPOINT_NAME_SIZE], unsigned number);

struct checkpoint {
	unsigned number;
	git_oid tree;
	long long time;                       // seconds since 1970
	char reason[CHECKPOINT_REASON_MAX];   // "turn 2: …", "start", or the user's words
	char session[CHECKPOINT_SESSION_MAX]; // id in ACP; "" if it belongs to no session
	unsigned turn;                        // the turn of the session that produced it; 0: none
};

/*
 * Adds a checkpoint. If the newest one has the same tree, adds none and sets *out_number to the
 * number of the newest; an unreadable checkpoint counts as different. Control characters in the
 * texts become spaces. The caller holds the store's lock (sync/workspace.c), so that no number is
 * used twice.
 */
bool checkpoint_add(struct store *store, const git_oid *tree, const char *reason,
	const char *session, unsigned *out_number, struct error *err) ATTR_NODISCARD;

/*
 * Adds the checkpoint of a turn of the session. Turns are counted from 1: this one gets the number
 * after the highest of the session's checkpoints, and at least `least`. The checkpoint after a turn
 * is added even if the newest one has the same tree, so that each turn has exactly one. The one
 * before a turn is added like any other.
 */
struct checkpoint_turn {
	bool is_before; // true: before the turn; false: after it
	unsigned least;
	const char *words; // the beginning of its prompt; may be NULL
};
bool checkpoint_add_turn(struct store *store, const git_oid *tree,
	const struct checkpoint_turn *turn, const char *session, unsigned *out_number,
	struct error *err) ATTR_NODISCARD;

/* Describes checkpoints that exist but cannot be read. They stay, and do not disturb the others. */
enum { CHECKPOINT_DAMAGE_MAX = 400 };
struct checkpoint_damage {
	size_t count;
	unsigned first; // valid if count is not 0, like `err`
	struct error err;
};

/* A text for people: which ones, why, and that they stay. NULL if there is no damage. */
const char *checkpoint_damage_text(
	const struct checkpoint_damage *damage, char text[CHECKPOINT_DAMAGE_MAX]);

/* All readable checkpoints, oldest first; the caller frees the list. */
bool checkpoint_list(struct store *store, struct checkpoint **out_list, size_t *out_count,
	struct checkpoint_damage *out_damage, struct error *err) ATTR_NODISCARD;

/*
 * Writes its JSON members (docs/schemas/checkpoint-list.json) into an object that is already begun.
 */
void checkpoint_write(struct json_writer *writer, const struct checkpoint *checkpoint);

/* Finds one by number, "12", or counted from the newest, "-1". ERROR_NOT_FOUND. */
bool checkpoint_find(struct store *store, const char *which, struct checkpoint *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Prints the changes from one tree to another, like `git diff`. For big files, and files over
 * CHECKPOINT_DIFF_MAX bytes, it only says that they differ. The reader gets the text in pieces; if
 * it returns false, the diff ends (ERROR_UNAVAILABLE).
 */
enum checkpoint_format { CHECKPOINT_PATCH, CHECKPOINT_STAT };
struct checkpoint_reader {
	bool (*read)(void *data, struct span text);
	void *data;
};
bool checkpoint_diff(struct store *store, const git_oid *from, const git_oid *to,
	enum checkpoint_format format, const struct checkpoint_reader *reader,
	struct error *err) ATTR_NODISCARD;

/* How many files differ between two trees. */
bool checkpoint_count_changed(struct store *store, const git_oid *from, const git_oid *to,
	size_t *out_files, struct error *err) ATTR_NODISCARD;

/*
 * Finds the checkpoints that are older than an age: the first `old` of the list, and all from
 * before the time `before`. A checkpoint's age is the sum of the times from each checkpoint to the
 * next, beginning with this one, and from the newest until now. Each of these times counts at most
 * as a tenth of the age limit, and never as negative. So neither a wrong clock nor a long absence
 * makes all checkpoints old.
 */
struct checkpoint_horizon {
	size_t old;
	long long before;
};
struct checkpoint_horizon checkpoint_horizon(
	const struct checkpoint *list, size_t count, long long age_max_seconds, long long now);

/* How many in the list have a different tree than the one before them. */
size_t checkpoint_count_states(const struct checkpoint *list, size_t count);

/*
 * Forgets checkpoints beyond the limits, but never the newest, nor unreadable ones. First it
 * forgets those that are too old. Then, while there are too many, it forgets turns that changed
 * nothing, oldest first, so that they push no older state out; then the oldest. store_prune later
 * removes the objects that only they needed.
 */
struct checkpoint_limits {
	size_t count_max;
	long long age_max_seconds; // 0: any age
};
struct checkpoint_forgotten {
	size_t count;
	long long before; // as in struct checkpoint_horizon; 0: there is no age limit
};
bool checkpoint_forget(struct store *store, const struct checkpoint_limits *limits, long long now,
	struct checkpoint_forgotten *out, struct checkpoint_damage *out_damage,
	struct error *err) ATTR_NODISCARD;

#endif
