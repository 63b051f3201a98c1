/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_BOX_IMPL_H
#define PROVIDERS_DAYTONA_BOX_IMPL_H

#include "base/fd.h"
#include "base/soon.h"
#include "providers/daytona/box.h"
#include "providers/daytona/wanted.h"

/*
 * What box.c (polling and acting), box_make.c (where there is none), box_fit.c (where it was made
 * for another profile) and box_delete.c share.
 */

enum daytona_goal { DAYTONA_GOAL_RUN, DAYTONA_GOAL_REST, DAYTONA_GOAL_ARCHIVE };

enum { DAYTONA_ACT_NONE = -1 };

/* What was accepted may not be seen for so long. */
enum { DAYTONA_SETTLES_MS = 10000 };

struct daytona_box {
	struct daytona_box_config config;
	char *name;      // owned
	char *others;    // owned; NULL once this account has seen it
	char *instance;  // owned; or NULL
	bool is_another; // it has another id
	char id[128];
	char state[64]; // the last one that was told
	enum daytona_goal goal;
	daytona_box_done *done;
	struct daytona_call *call; // the one under way; or NULL
	ev_timer poll;             // the next poll
	ev_timer due;              // create-timeout or stop-timeout
	double pause;              // before the next poll
	int asked;                 // enum daytona_act, the last one; or DAYTONA_ACT_NONE
	bool has_failed;           // that, with err
	struct error err;
	long long acted_ms; // when it was answered
	int starts;
	int creates;
	long long creates_until_ms; // it is created anew where the service fails; 0: not so far
	bool is_made;               // by this order: nothing is in it yet
	bool has_made, has_started; // since it was brought; what is to be taken back
	bool is_creating;           // its create is under way
	bool is_doubted;            // a create failed in passing, or was left: it may be made yet
	long long doubted_ms;       // since when
	bool is_deleting;           // a poll looks for what is to be deleted
	struct soon nothing;        // ends the order that has nothing to do
	unsigned int unfit;         // what is still to become as the profile says
	enum daytona_unfit fitting; // what is being made so
	struct error refusal;       // why the network was not; ERROR_NONE: it was
	bool is_left;               // the key may not delete it: it is stopped instead
	struct error forbidden;     // what the service said to the delete
	int auto_stop_min;          // of the sandbox; -1: not told
	char *found;                // owned; the name of one that the labels have found; or NULL
	bool found_runs;
};

/* deadline_ms 0: it has none but those of its calls. */
void daytona_box_begin(struct daytona_box *box, enum daytona_goal goal, long long deadline_ms,
	daytona_box_done *done);
void daytona_box_end(struct daytona_box *box, const struct error *err);
void daytona_box_poll(struct daytona_box *box);
void daytona_box_poll_later(struct daytona_box *box);

/* Nobody knows what has become of its create. */
void daytona_box_doubt(struct daytona_box *box);

/* Looks once more for what is to be deleted. */
void daytona_box_look_to_delete(struct daytona_box *box);

/* The service does not know it: whether that is said of another account's, which ends the order. */
bool daytona_box_is_others(struct daytona_box *box);

/* Takes its id; false, and it has ended, where it is not ours to use. */
bool daytona_box_take(struct daytona_box *box, const struct daytona_sandbox *seen);

/* It runs: what is not as the profile says is made so; then the order ends. */
void daytona_box_fit(struct daytona_box *box, const struct daytona_sandbox *seen);

/*
 * The end of a stop in place of a delete: writes what is told of it. NULL where the sandbox is gone
 * after all.
 */
const struct error *daytona_box_tell_left(
	struct daytona_box *box, const struct error *err, struct error *out_left);

void daytona_box_withdraw_init(struct daytona_box *box);

/* There is none of that name: by its labels, then a new one. */
void daytona_box_make(struct daytona_box *box);

/* What a create has left that failed is deleted; then the order fails, with the reason. */
void daytona_box_remove_failed(struct daytona_box *box, const struct daytona_sandbox *seen);

#endif
