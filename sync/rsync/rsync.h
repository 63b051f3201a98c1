/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_RSYNC_H
#define SYNC_RSYNC_RSYNC_H

#include <stdatomic.h>

#include "base/soon.h"
#include "sync/git/remote.h"
#include "sync/rsync/call.h"
#include "sync/rsync/filter.h"
#include "sync/rsync/mirror.h"
#include "sync/rsync/print.h"
#include "sync/rsync/reach.h"
#include "sync/stuck.h"
#include "sync/transport.h"

/*
 * Shared by the files of the transport. An operation is a chain of steps: blocking work on the
 * pool, a script in the sandbox with such work at its other end, or a run of rsync. One step at a
 * time; the last one ends the operation.
 */
struct rsync_transport;
typedef bool rsync_work(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err);
typedef void rsync_then(struct rsync_transport *rsync);

enum { RSYNC_LOOK_ANSWER_MAX = 4 << 20 };
enum { RSYNC_PARTIAL = 23, RSYNC_VANISHED = 24 }; // rsync's exit status if files were left out

struct rsync_collecting {
	git_oid base;
	int pulls;
	bool has_pulled_all;
	bool has_looked;  // for unreadable files
	bool is_partial;  // the last pull left files out
	bool is_whole;    // it left no file out, and no file vanished meanwhile
	bool has_refused; // the snapshot left files out: the next one must look at everything too
	struct transport_collected result;
};

struct rsync_delivering {
	git_oid from, to;
	bool is_recovery;   // recovers from an interrupted delivery, before a collect
	bool is_settled;    // nothing was replaced there
	bool is_narrow;     // the push looks only at differences
	bool is_unread;     // a replaced file cannot be fetched
	bool is_not_back;   // a file cannot be put back
	struct rules was;   // the rules with which the runtime's files were collected
	struct stuck stuck; // paths that cannot be replaced
	struct mirror_found found;
	struct transport_delivered result;
};

/* What has changed in the runtime since the last pull. */
enum rsync_changed { CHANGED_NOTHING, CHANGED_WITHIN_REACH, CHANGED_SOMEWHERE };

struct rsync_looking {
	struct print kept; // of the last pull
	git_oid kept_of;   // the mirror's tree then, or after later deliveries
	bool has_kept;
	struct print print;
	bool has_print;      // the last look returned one
	struct buf answer;   // of that look
	struct span differs; // part of it: the words about differences
	enum rsync_changed changed;
	struct reach reach;   // for CHANGED_WITHIN_REACH
	bool is_off;          // looks do not work there, or take longer than a pull
	double began, took_s; // duration of the look, then of the pull
	rsync_then *then;
};

struct rsync_transport {
	struct transport transport;
	struct transport_request request; // strings are owned copies
	struct transport_tools tools;     // likewise
	char *name;                       // of our folders, here and there
	char *side;                       // path of the folder there; NULL until it is known
	bool is_busy;
	bool is_held;     // transport_hold
	rsync_then *held; // continues after the hold; NULL: nothing waits
	bool was_told;    // that rsync transfers no history
	atomic_bool is_cancelled;

	struct remote *remote; // the running script; NULL: none
	struct call *call;     // the running rsync; NULL: none
	rsync_work *work;
	rsync_then *then;
	rsync_then *settled; // the step after rsync_settle
	bool is_try;         // the running step may fail
	bool (*judge)(struct rsync_transport *rsync, const struct call_result *result,
		struct error *err); // judges the run's result
	struct soon kick;           // the first step of an operation
	rsync_then *begin;
	void (*end)(struct rsync_transport *rsync, const struct error *err);
	union {
		sandbox_done *prepare;
		transport_collect_done *collect;
		transport_deliver_done *deliver;
	} done;
	void *done_data;

	struct store store; // our own handle; the steps use it in turn
	bool has_store;
	struct mirror mirror;
	struct filter filter;
	struct rsync_collecting collecting;
	struct rsync_delivering delivering;
	struct rsync_looking looking;
	char **unreadable; // paths in the runtime that the last collect could not read; owned
	bool is_to_clean;  // the files that a delivery left beside the root are no longer needed
	char kept[64];     // the folder to which they are then moved; "": they are removed
	char note[256];    // for the next collect
};

static inline struct rsync_transport *rsync_from(struct transport *transport)
{
	return CONTAINER_OF(transport, struct rsync_transport, transport);
}

/* ---- rsync.c ---- */

void rsync_drop(void *data);

/* ---- steps.c ---- */

void rsync_begin(struct rsync_transport *rsync, rsync_then *begin,
	void (*end)(struct rsync_transport *rsync, const struct error *err), void *data);
void rsync_end(struct rsync_transport *rsync, const struct error *err); // NULL: success

/* Calls `then` once there is no hold. */
void rsync_wait(struct rsync_transport *rsync, rsync_then *then);
void rsync_hold(struct transport *transport, bool holds);

void rsync_do(struct rsync_transport *rsync, rsync_work *work, rsync_then *then);
/* `argv` is NULL-terminated and borrowed until this returns. */
void rsync_script(
	struct rsync_transport *rsync, const char *const *argv, rsync_work *work, rsync_then *then);
/* The same, but `then` also follows a failure. */
void rsync_try_script(struct rsync_transport *rsync, const char *const *argv, long long timeout_ms,
	rsync_work *work, rsync_then *then);
/*
 * Runs rsync with these words, which it takes over. A `judge` of NULL is rsync_judge, which treats
 * any status except 0 as an error.
 */
void rsync_run(struct rsync_transport *rsync, char **argv,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then);
/*
 * Like rsync_run, but the exec that runs rsync also does the cleaning of is_to_clean. With `tells`,
 * far_words contain RSYNC_NOTHING_REPLACED only if the folder for replaced files is empty
 * afterwards. Without these words it may be empty, too.
 */
#define RSYNC_NOTHING_REPLACED "nothing replaced"
void rsync_run_around(struct rsync_transport *rsync, char **argv, bool tells,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then);
void rsync_has_cleaned(struct rsync_transport *rsync); // a run has done the cleaning
bool rsync_judge(struct rsync_transport *rsync, const struct call_result *result,
	struct error *err) ATTR_NODISCARD;

/*
 * The arguments of a transfer; the caller appends further options and the two places. `filter` is
 * the name of a file of rules in our folder, or NULL.
 */
char **rsync_words(const struct rsync_transport *rsync, const char *filter);
/* Appends the runtime's name for `path`, or for `rest` below it. */
void rsync_add_far(char ***words, const char *path, const char *rest);

/* Work: opens the store and the folder if they are not open. */
bool rsync_open(struct rsync_transport *rsync, bool *out_is_new, struct error *err) ATTR_NODISCARD;
/* Work: writes the mirror's rules, for the members of these trees, to "filter". */
bool rsync_write_filter(struct rsync_transport *rsync, const git_oid *const *trees, size_t count,
	bool reads, struct error *err) ATTR_NODISCARD;

/* Work: reads the whole answer of a script. */
bool rsync_read_answer(
	struct remote_ends *ends, struct buf *answer, struct error *err) ATTR_NODISCARD;

/*
 * unreadable.c: finds the unreadable paths in the runtime, sets `unreadable`, and continues with
 * `then`. These paths are excluded from transfers in both directions and stay in the mirror. So we
 * neither take them for deleted nor overwrite them.
 */
void rsync_find_unreadable(struct rsync_transport *rsync, rsync_then *then);
/* Work: ERROR_SYSTEM if these trees differ in a path that cannot be read there. */
bool rsync_check_readable(struct rsync_transport *rsync, const git_oid *from, const git_oid *to,
	struct error *err) ATTR_NODISCARD;

/*
 * busy.c: whether a transfer was partial only because programs wrote to some files meanwhile. rsync
 * leaves these files unchanged in the mirror. Adds them to `left`.
 */
bool rsync_left_busy(const char *said, struct transport_left *left);

/* look.c: looks at the runtime root, if that may help; takes no snapshot. */
void rsync_look(struct rsync_transport *rsync, rsync_then *then);
/*
 * Work, after "filter" was written: finds what has changed there since the kept look. If anything
 * has, forgets the kept look, so that the mirror may be changed. For CHANGED_WITHIN_REACH it writes
 * the rules to "narrow". A failed look counts as a difference.
 */
bool rsync_compare(struct rsync_transport *rsync, struct error *err) ATTR_NODISCARD;
/* Call it after a pull of everything. */
void rsync_has_pulled(struct rsync_transport *rsync);
/* Work, after a complete pull with the rules of "filter": keeps the look. */
bool rsync_keep_print(
	struct rsync_transport *rsync, const git_oid *tree, struct error *err) ATTR_NODISCARD;
/*
 * Work, after a delivery: updates the kept look, from which the runtime now differs by the
 * delivery.
 */
bool rsync_carry_print(struct rsync_transport *rsync, const git_oid *from, const git_oid *to,
	struct error *err) ATTR_NODISCARD;
/* Work, before anything else changes the mirror. */
bool rsync_forget_print(struct rsync_transport *rsync, struct error *err) ATTR_NODISCARD;

/* ---- the operations ---- */

void rsync_prepare(struct transport *transport, sandbox_done *done, void *data);
void rsync_collect(
	struct transport *transport, const git_oid *base, transport_collect_done *done, void *data);
void rsync_deliver(struct transport *transport, const git_oid *from, const git_oid *to,
	transport_deliver_done *done, void *data);

/*
 * settle.c: finds the files that a delivery replaced in the runtime by mistake, puts them back, and
 * continues with `then`; delivering.found describes them.
 */
void rsync_settle(struct rsync_transport *rsync, rsync_then *then);

/* The texts of the scripts. */
extern const char rsync_open_script[], rsync_around_script[], rsync_look_script[],
	rsync_unreadable_script[];

#endif
