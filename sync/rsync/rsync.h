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
 * What the files of the transport share. An operation is a chain of steps: blocking work on
 * the pool, a script in the sandbox with such work at its other end, or a run of rsync. One
 * step at a time; the last one ends the operation.
 */
struct rsync_transport;
typedef bool rsync_work(struct rsync_transport *rsync, struct remote_ends *ends, struct error *err);
typedef void rsync_then(struct rsync_transport *rsync);

enum { RSYNC_LOOK_ANSWER_MAX = 4 << 20 };
enum { RSYNC_PARTIAL = 23, RSYNC_VANISHED = 24 }; // rsync's status where files were left out

struct rsync_collecting {
	git_oid base;
	int pulls;
	bool has_pulled_all;
	bool has_looked;  // for what cannot be read
	bool is_partial;  // the last pull has left something out
	bool is_whole;    // it has left out nothing, and nothing has vanished meanwhile
	bool has_refused; // the snapshot has: it has to look at everything the next time, too
	struct transport_collected result;
};

struct rsync_delivering {
	git_oid from, to;
	bool is_recovery;   // of a delivery that was cut, before a collect
	bool is_settled;    // nothing was replaced there
	bool is_narrow;     // the push looks at what differs alone
	bool is_unread;     // of what was replaced something cannot be fetched
	bool is_not_back;   // something cannot be put back
	struct rules was;   // what the runtime's files were collected by
	struct stuck stuck; // paths that cannot be replaced
	struct mirror_found found;
	struct transport_delivered result;
};

/* What has changed there since the last pull. */
enum rsync_changed { CHANGED_NOTHING, CHANGED_WITHIN_REACH, CHANGED_SOMEWHERE };

struct rsync_looking {
	struct print kept; // of the last pull
	git_oid kept_of;   // what the mirror was then, or was made by deliveries since
	bool has_kept;
	struct print print;
	bool has_print;      // the last look has told one
	struct buf answer;   // that look's
	struct span differs; // in it: the words about what differs
	enum rsync_changed changed;
	struct reach reach;   // of CHANGED_WITHIN_REACH
	bool is_off;          // there: it cannot be done, or takes longer than a pull
	double began, took_s; // of the look, then of the pull
	rsync_then *then;
};

struct rsync_transport {
	struct transport transport;
	struct transport_request request; // strings are owned copies
	struct transport_tools tools;     // likewise
	char *name;                       // of our folders, here and there
	char *side;                       // the one there; NULL until it is known
	bool is_busy;
	bool is_held;     // transport_hold
	rsync_then *held; // what waits for its end; NULL: nothing
	bool was_told;    // that there is no history by rsync
	atomic_bool is_cancelled;

	struct remote *remote; // what runs, or
	struct call *call;
	rsync_work *work;
	rsync_then *then;
	rsync_then *settled; // what follows rsync_settle
	bool is_try;         // what runs may fail
	bool (*judge)(struct rsync_transport *rsync, const struct call_result *result,
		struct error *err); // what the run has to say
	struct soon kick;           // the first step of an operation
	rsync_then *begin;
	void (*end)(struct rsync_transport *rsync, const struct error *err);
	union {
		sandbox_done *prepare;
		transport_collect_done *collect;
		transport_deliver_done *deliver;
	} done;
	void *done_data;

	struct store store; // our own handle, used by one step after the other
	bool has_store;
	struct mirror mirror;
	struct filter filter;
	struct rsync_collecting collecting;
	struct rsync_delivering delivering;
	struct rsync_looking looking;
	char **unreadable; // paths in the runtime that the last collect could not read; owned
	bool is_to_clean;  // what a delivery has left beside the root is needed no more
	char kept[64];     // or the folder it goes to; "": none
	char note[256];    // what the next collect is to say
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
void rsync_end(struct rsync_transport *rsync, const struct error *err); // NULL: all is well

/* Goes on with `then` once nothing is held. */
void rsync_wait(struct rsync_transport *rsync, rsync_then *then);
void rsync_hold(struct transport *transport, bool holds);

void rsync_do(struct rsync_transport *rsync, rsync_work *work, rsync_then *then);
/* `argv` is NULL-terminated and borrowed until this returns. */
void rsync_script(
	struct rsync_transport *rsync, const char *const *argv, rsync_work *work, rsync_then *then);
/* The same, but where it fails, `then` follows as well. */
void rsync_try_script(struct rsync_transport *rsync, const char *const *argv, long long timeout_ms,
	rsync_work *work, rsync_then *then);
/*
 * Runs rsync with these words, which are taken over; `judge` NULL is rsync_judge, which takes any
 * status but 0 for an error.
 */
void rsync_run(struct rsync_transport *rsync, char **argv,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then);
/*
 * The same; what is_to_clean says is done on the way, by the same exec. `tells`: far_words have
 * RSYNC_NOTHING_REPLACED where the folder for that is empty afterwards; without it, it may be.
 */
#define RSYNC_NOTHING_REPLACED "nothing replaced"
void rsync_run_around(struct rsync_transport *rsync, char **argv, bool tells,
	bool (*judge)(
		struct rsync_transport *rsync, const struct call_result *result, struct error *err),
	rsync_then *then);
void rsync_has_cleaned(struct rsync_transport *rsync); // a run has done it
bool rsync_judge(struct rsync_transport *rsync, const struct call_result *result,
	struct error *err) ATTR_NODISCARD;

/*
 * The words of a transfer; further options and the two places are appended by the caller.
 * `filter` is the name of a file of rules in our folder, or NULL.
 */
char **rsync_words(const struct rsync_transport *rsync, const char *filter);
/* The runtime's name for what is at `path`, or for `rest` below it. */
void rsync_add_far(char ***words, const char *path, const char *rest);

/* Work: the store and the folder, opened where they are not. */
bool rsync_open(struct rsync_transport *rsync, bool *out_is_new, struct error *err) ATTR_NODISCARD;
/* Work: the rules as the mirror has them, for the members of these trees, written to "filter". */
bool rsync_write_filter(struct rsync_transport *rsync, const git_oid *const *trees, size_t count,
	bool reads, struct error *err) ATTR_NODISCARD;

/* Work: all that a script tells, to its end. */
bool rsync_read_answer(
	struct remote_ends *ends, struct buf *answer, struct error *err) ATTR_NODISCARD;

/*
 * unreadable.c: finds what cannot be read in the runtime, makes that `unreadable`, and goes on
 * with `then`. It is left out of what travels, in both directions, and stays in the mirror as it
 * was; so it neither looks deleted nor is it overwritten.
 */
void rsync_find_unreadable(struct rsync_transport *rsync, rsync_then *then);
/* Work: ERROR_SYSTEM where these trees differ in something that cannot be read there. */
bool rsync_check_readable(struct rsync_transport *rsync, const git_oid *from, const git_oid *to,
	struct error *err) ATTR_NODISCARD;

/*
 * busy.c: whether a transfer was partial for nothing but files that were written to meanwhile:
 * rsync leaves them as they were in the mirror. Those are added to `left`.
 */
bool rsync_left_busy(const char *said, struct transport_left *left);

/* look.c: one look there, where that can be of use; takes no snapshot. */
void rsync_look(struct rsync_transport *rsync, rsync_then *then);
/*
 * Work, with "filter" written: what has changed there, by that look. Where anything has, nothing
 * is kept any more, so that the mirror may be changed; CHANGED_WITHIN_REACH: "narrow" are the
 * rules for that. A look that has failed is as one that differs.
 */
bool rsync_compare(struct rsync_transport *rsync, struct error *err) ATTR_NODISCARD;
/* After a pull of everything. */
void rsync_has_pulled(struct rsync_transport *rsync);
/* Work, after a pull that was whole, by the rules of "filter": keeps what the look has told. */
bool rsync_keep_print(
	struct rsync_transport *rsync, const git_oid *tree, struct error *err) ATTR_NODISCARD;
/* Work, after a delivery: what it has changed there differs from what is kept. */
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
 * settle.c: sees what a delivery has replaced in the runtime without knowing it, puts it back,
 * and goes on with `then`; delivering.found says what it was.
 */
void rsync_settle(struct rsync_transport *rsync, rsync_then *then);

/* The texts of the scripts. */
extern const char rsync_open_script[], rsync_around_script[], rsync_look_script[],
	rsync_unreadable_script[];

#endif
