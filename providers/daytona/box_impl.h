/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_BOX_IMPL_H
#define PROVIDERS_DAYTONA_BOX_IMPL_H

#include "base/fd.h"
#include "base/soon.h"
#include "providers/daytona/box.h"
#include "providers/daytona/wanted.h"

/*
 * Shared by box.c (polls and acts), box_make.c (creates), box_fit.c (adapts one that was made for
 * another profile) and box_delete.c.
 */

enum daytona_goal { DAYTONA_GOAL_RUN, DAYTONA_GOAL_REST, DAYTONA_GOAL_ARCHIVE };

enum { DAYTONA_ACT_NONE = -1 };

/* An accepted request may take this long until the sandbox's state shows it. */
enum { DAYTONA_SETTLES_MS = 10000 };

struct daytona_box {
	struct daytona_box_config config;
	char *name;      // owned
	char *others;    // owned; NULL once this account has seen the sandbox
	char *instance;  // owned; or NULL
	bool is_another; // the sandbox has another id
	char id[128];
	char state[64]; // the last state that was reported
	enum daytona_goal goal;
	daytona_box_done *done;
	struct daytona_call *call; // the call that is running; or NULL
	ev_timer poll;             // the next poll
	ev_timer due;              // create-timeout or stop-timeout
	double pause;              // before the next poll
	int asked;                 // the last request, enum daytona_act; or DAYTONA_ACT_NONE
	bool has_failed;           // the last request has failed, with err
	struct error err;
	long long acted_ms; // when it was answered
	int starts;
	int creates;
	long long creates_until_ms; // until then, creates again if the service fails; 0: not set
	bool is_made;               // this order has created it: it is empty
	bool has_made, has_started; // what a withdrawal must undo
	bool is_creating;           // the create call is running
	bool is_deleting;           // a poll looks for the sandbox to be deleted
	bool found_runs;            // the sandbox of the name `found` runs
	bool is_doubted;            // a create failed or was given up, and its outcome is unknown
	long long doubted_ms;       // since when
	struct soon nothing;        // ends an order that has nothing to do
	unsigned int unfit;         // settings that still differ from the profile
	enum daytona_unfit fitting; // the setting that is being changed
	struct error refusal;       // why the network was refused; ERROR_NONE: it was not
	bool is_left;               // the key may not delete it, so we stop it instead
	struct error forbidden;     // what the service answered to the delete
	int auto_stop_min;          // the sandbox's; -1: not given
	char *found;                // owned; name of a sandbox that the labels have found; or NULL
};

/* deadline_ms 0: only the calls have deadlines. */
void daytona_box_begin(struct daytona_box *box, enum daytona_goal goal, long long deadline_ms,
	daytona_box_done *done);
void daytona_box_end(struct daytona_box *box, const struct error *err);
void daytona_box_poll(struct daytona_box *box);
void daytona_box_poll_later(struct daytona_box *box);

/* Notes that the outcome of its create is unknown. */
void daytona_box_doubt(struct daytona_box *box);

/* Looks once more for the sandbox that is to be deleted. */
void daytona_box_look_to_delete(struct daytona_box *box);

/*
 * Call it when the service does not know the sandbox. True if the sandbox belongs to another
 * account; then the order has ended.
 */
bool daytona_box_is_others(struct daytona_box *box);

/* Takes the sandbox's id. False if the sandbox is not ours; then the order has ended. */
bool daytona_box_take(struct daytona_box *box, const struct daytona_sandbox *seen);

/* The sandbox runs: changes the settings that differ from the profile, then ends the order. */
void daytona_box_fit(struct daytona_box *box, const struct daytona_sandbox *seen);

/*
 * Call this when a stop that replaces a delete has ended: writes the error that the order ends
 * with. Returns NULL if the sandbox is gone after all.
 */
const struct error *daytona_box_tell_left(
	struct daytona_box *box, const struct error *err, struct error *out_left);

void daytona_box_withdraw_init(struct daytona_box *box);

/* No sandbox has the name: looks for one with the labels, then creates one. */
void daytona_box_make(struct daytona_box *box);

/* Deletes what a failed create has left, then fails the order with the reason. */
void daytona_box_remove_failed(struct daytona_box *box, const struct daytona_sandbox *seen);

#endif
