/* SPDX-License-Identifier: MIT */
#ifndef SYNC_CHECKPOINT_H
#define SYNC_CHECKPOINT_H

#include "base/json_writer.h"
#include "sync/store.h"

/*
 * Snapshots that are kept so that one can go back to them: one before the first prompt
 * of a session and one after each turn, the user's own edits before a turn, those a user asks for,
 * and one before each rollback. They are numbered from 1 in each store, and named
 * checkpoints/NUMBER there. Everything here blocks: on the worker pool, or in a command line of its
 * own.
 */
enum { CHECKPOINT_SESSION_MAX = 1025, CHECKPOINT_REASON_MAX = 64, CHECKPOINT_DIFF_MAX = 16 << 20 };

enum { CHECKPOINT_NAME_SIZE = 32 };
/* The name that the store keeps it under. */
void checkpoint_name(char name[CHECKPOINT_NAME_SIZE], unsigned number);

struct checkpoint {
	unsigned number;
	git_oid tree;
	long long time;                       // seconds since 1970
	char reason[CHECKPOINT_REASON_MAX];   // "turn 2: …", "start", or the user's words
	char session[CHECKPOINT_SESSION_MAX]; // of ACP; "" where it belongs to none
	unsigned turn; // it is what this turn of the session has made; 0: it is no turn's
};

/*
 * Adds one. Where the newest has the same tree none is added, and *out_number is
 * the newest's; one that cannot be read has another. Control characters in the texts become spaces.
 * The store is locked by the caller (sync/workspace.c), so that no two get one number.
 */
bool checkpoint_add(struct store *store, const git_oid *tree, const char *reason,
	const char *session, unsigned *out_number, struct error *err) ATTR_NODISCARD;

/*
 * Adds that of a turn of the session. Turns are counted from 1: this one is the next after those
 * that the session has checkpoints of, and at least number `least`. What the turn has made is
 * added also where the newest has the same tree, so that each turn has exactly one. What was there
 * before it is added as any other.
 */
struct checkpoint_turn {
	bool is_before; // the turn begins; or it has ended
	unsigned least;
	const char *words; // how its prompt begins; may be NULL
};
bool checkpoint_add_turn(struct store *store, const git_oid *tree,
	const struct checkpoint_turn *turn, const char *session, unsigned *out_number,
	struct error *err) ATTR_NODISCARD;

/* Of the checkpoints that are there and cannot be read: they stay, and are in no one's way. */
enum { CHECKPOINT_DAMAGE_MAX = 400 };
struct checkpoint_damage {
	size_t count;
	unsigned first; // valid unless count is 0, as is `err`
	struct error err;
};

/* For people: which, why, and that they stay. NULL where there is no damage. */
const char *checkpoint_damage_text(
	const struct checkpoint_damage *damage, char text[CHECKPOINT_DAMAGE_MAX]);

/* All that can be read, oldest first; to be freed. */
bool checkpoint_list(struct store *store, struct checkpoint **out_list, size_t *out_count,
	struct checkpoint_damage *out_damage, struct error *err) ATTR_NODISCARD;

/* The members of its JSON (docs/schemas/checkpoint-list.json), into an object that is begun. */
void checkpoint_write(struct json_writer *writer, const struct checkpoint *checkpoint);

/* By number, "12", or counted from the newest, "-1". ERROR_NOT_FOUND. */
bool checkpoint_find(struct store *store, const char *which, struct checkpoint *out,
	struct error *err) ATTR_NODISCARD;

/*
 * What changed from one tree to the other, as `git diff` prints it. Files over
 * CHECKPOINT_DIFF_MAX bytes, and big files, are said to differ, no more. The reader gets the
 * text in pieces; where it returns false the diff ends (ERROR_UNAVAILABLE).
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
 * What is older than an age, by the checkpoints themselves: the first `old` of the list, and all
 * that is from before the time `before`. Between two checkpoints, or the newest and now, a tenth of
 * the age passes at most, and never less than nothing. So neither a clock that
 * has jumped nor a long absence makes all of them old.
 */
struct checkpoint_horizon {
	size_t old;
	long long before;
};
struct checkpoint_horizon checkpoint_horizon(
	const struct checkpoint *list, size_t count, long long age_max_seconds, long long now);

/* Those of the list that have another tree than the one before. */
size_t checkpoint_count_states(const struct checkpoint *list, size_t count);

/*
 * Forgets what is beyond the limits, but never the newest, nor what cannot be read: what is too
 * old; then, while they are too many, turns that have changed nothing, the oldest first, so that
 * they push no older state out; then the oldest. What only they kept goes with store_prune.
 */
struct checkpoint_limits {
	size_t count_max;
	long long age_max_seconds; // 0: any age
};
struct checkpoint_forgotten {
	size_t count;
	long long before; // of the horizon; 0: the age has no limit
};
bool checkpoint_forget(struct store *store, const struct checkpoint_limits *limits, long long now,
	struct checkpoint_forgotten *out, struct checkpoint_damage *out_damage,
	struct error *err) ATTR_NODISCARD;

#endif
