/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_BOX_H
#define PROVIDERS_DAYTONA_BOX_H

#include <ev.h>

#include "providers/daytona/identity.h"
#include "providers/daytona/profile.h"

/*
 * One sandbox on the platform, found by its name: gets it to run, to rest, or away. It knows
 * nothing of what is done inside, and of no other broker. Loop thread.
 *
 * At most one order at a time. Its done is raised once, not before the call returns, and never
 * after daytona_box_destroy. Everything in the configuration is borrowed until then.
 */
struct daytona_box;

struct daytona_box_config {
	struct ev_loop *loop;
	struct daytona_api *api;
	const struct daytona_profile *profile;
	const struct daytona_identity *identity; // whose it has to be
	const char *name;                        // copied
	const char *instance; // the id that it has to have; copied; NULL: whichever it has
	/* What is made where there is none; NULL: SANDBOX_NOT_FOUND then. */
	const struct daytona_create *create;
	/* Whose settings one that is there gets; NULL: they stay as they are. */
	const struct daytona_create *wanted;
	bool network_is_required; // a network that is not as wanted ends the order
	/* Where there is none of that name, one with these labels is taken first; NULL: none is. */
	const struct daytona_pair *query;
	/* As whom it was made, where that was another account: DAYTONA_OTHER_ACCOUNT says so where
	 * the service does not know it, and none is made. NULL: as this one. Copied. */
	const char *others;
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_warning)(void *data, const char *text);  // what it has not; may be NULL
	void *data;
};

typedef void daytona_box_done(void *data, const struct error *err);

struct daytona_box *daytona_box_create(const struct daytona_box_config *config);
void daytona_box_destroy(struct daytona_box *box); // NULL is fine

/*
 * Gets it to run: creates it where there is none, starts it where it is stopped, and waits, for
 * create-timeout. Then its id is known. Where that is "", the labels have found one of another
 * name, which is the box's now: it is brought once more when that name may be used. Errors besides
 * those of the API: SANDBOX_NOT_FOUND, SANDBOX_FAILED (with the platform's reason),
 * TIMEOUT_EXCEEDED, ERROR_DENIED for one that is not this user's. What a create has left that
 * failed, at once or later, is deleted; so is one in build_failed, which has never run.
 * Then what is not as the profile says is made so, where the service can, and the network is read
 * back. A service that refuses the network (400), or keeps another one, is a warning with what is
 * in force, or NETWORK_NOT_ENFORCED where it is required. Any other failure of the network or the
 * ingress is an error, and one of the rest a warning.
 */
void daytona_box_bring(struct daytona_box *box, daytona_box_done *done);

/*
 * Stops it, and waits for that (stop-timeout); then asks for it to be archived, which takes its
 * time. One that is gone rests, but for another account's.
 */
void daytona_box_rest(struct daytona_box *box, bool is_archived, daytona_box_done *done);

/*
 * Takes back what bringing it has done, also where that is still under way: one that was made is
 * deleted, unless it `is_used`, and one that was started is stopped. Else nothing is done. While
 * nobody knows what has become of a create, one that is not there may be made yet: it is looked
 * for, for as long as one call may take (api-timeout), up to 10 s. Then that is an error.
 */
void daytona_box_withdraw(struct daytona_box *box, bool is_used, daytona_box_done *done);
void daytona_box_drop(struct daytona_box *box); // the order under way; it raises nothing more
bool daytona_box_has_made(const struct daytona_box *box);   // and it was not taken back
bool daytona_box_is_doubted(const struct daytona_box *box); // it may be made yet
bool daytona_box_has_acted(const struct daytona_box *box);  // made or started it

/*
 * Deletes it, within api-timeout or stop-timeout, whichever is longer (TIMEOUT_EXCEEDED). A missing
 * sandbox counts as deleted, unless another account owns it. Where the key
 * may not delete (DAYTONA_UNAUTHORIZED), the sandbox is stopped instead (stop-timeout); the error
 * then says whether that was done, and daytona_box_is_left is true if it was.
 */
void daytona_box_delete(struct daytona_box *box, daytona_box_done *done);
bool daytona_box_is_left(const struct daytona_box *box); // stopped, and not deleted

/* That of its name has another id than the one that was wanted. */
bool daytona_box_is_another(const struct daytona_box *box);

const char *daytona_box_id(const struct daytona_box *box);    // "" until it is known
const char *daytona_box_name(const struct daytona_box *box);  // the one it is found by
int daytona_box_auto_stop(const struct daytona_box *box);     // minutes; 0: never; -1: not told
const char *daytona_box_state(const struct daytona_box *box); // when last seen; or ""

#endif
