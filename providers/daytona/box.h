/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_BOX_H
#define PROVIDERS_DAYTONA_BOX_H

#include <ev.h>

#include "providers/daytona/identity.h"
#include "providers/daytona/profile.h"

/*
 * One sandbox on the platform, found by its name: starts it, stops it, or deletes it. It does not
 * know what happens inside the sandbox, and does not know other brokers. Loop thread.
 *
 * At most one order at a time. Its done is raised once, not before the call returns, and never
 * after daytona_box_destroy. Everything in the configuration is borrowed until then.
 */
struct daytona_box;

struct daytona_box_config {
	struct ev_loop *loop;
	struct daytona_api *api;
	const struct daytona_profile *profile;
	const struct daytona_identity *identity; // the sandbox must belong to it
	const char *name;                        // copied
	const char *instance;                    // the id that it must have; copied; NULL: any
	/* What to create if there is none; NULL: fail with SANDBOX_NOT_FOUND. */
	const struct daytona_create *create;
	/* The settings that an existing one gets; NULL: it keeps its own. */
	const struct daytona_create *wanted;
	bool network_is_required; // fail if the network cannot be set as wanted
	/*
	 * If no sandbox has the name, the box uses one with these labels; it creates a new one only
	 * if there is none. NULL: no labels.
	 */
	const struct daytona_pair *query;
	/*
	 * The other account that made the sandbox. If the service does not know the sandbox, the
	 * order fails with DAYTONA_OTHER_ACCOUNT and creates none. NULL: this account. Copied.
	 */
	const char *others;
	void (*on_progress)(void *data, const char *text); // may be NULL
	void (*on_warning)(
		void *data, const char *text); // about a setting that was not applied; may be NULL
	void *data;
};

typedef void daytona_box_done(void *data, const struct error *err);

/* Sets SANDBOX_NOT_FOUND: somebody has deleted the sandbox of this name. */
bool daytona_box_set_gone(struct error *err, const char *name);

struct daytona_box *daytona_box_create(const struct daytona_box_config *config);
void daytona_box_destroy(struct daytona_box *box); // NULL is fine

/*
 * Makes the sandbox run, within create-timeout: creates it if there is none, starts it if it is
 * stopped, and waits. Then its id is known. If the id is "", the labels have found a sandbox with
 * another name, and the box now has that name; call this again once that name may be used. Errors
 * besides those of the API: SANDBOX_NOT_FOUND, SANDBOX_FAILED (with the platform's reason),
 * TIMEOUT_EXCEEDED, ERROR_DENIED for another user's sandbox. It deletes the sandbox that a failed
 * create has left, at once or later. It also deletes a sandbox in the state build_failed, because
 * such a sandbox has never run.
 *
 * Then it changes the settings that differ from the profile, as far as the service can, and asks
 * the service which network is in force. If the service has refused the network (400) or keeps
 * another one, a warning names the network in force; if the profile requires the network, this is
 * the error NETWORK_NOT_ENFORCED instead. Any other failure of network or ingress is an error; a
 * failure of another setting is a warning.
 */
void daytona_box_bring(struct daytona_box *box, daytona_box_done *done);

/*
 * Stops it and waits until it has stopped (stop-timeout). With `is_archived` it then asks the
 * service to archive it, which takes longer. A missing sandbox counts as stopped, unless another
 * account owns it.
 */
void daytona_box_rest(struct daytona_box *box, bool is_archived, daytona_box_done *done);

/*
 * Undoes daytona_box_bring, even if it still runs. Deletes the sandbox if daytona_box_bring has
 * created it and `is_used` is false. Otherwise stops it if daytona_box_bring has created or started
 * it. Does nothing in other cases. If the outcome of a create is unknown, the sandbox may still
 * appear. Then this function looks for it for as long as one call may take (api-timeout), but at
 * most 10 s, and then fails.
 */
void daytona_box_withdraw(struct daytona_box *box, bool is_used, daytona_box_done *done);
void daytona_box_drop(
	struct daytona_box *box); // drops the present order, which raises nothing more
bool daytona_box_has_made(const struct daytona_box *box); // created it, and did not take that back
bool daytona_box_is_doubted(const struct daytona_box *box); // it may still be created
bool daytona_box_has_acted(const struct daytona_box *box);  // created or started it

/*
 * Deletes it, within api-timeout or stop-timeout, whichever is longer (TIMEOUT_EXCEEDED). A missing
 * sandbox counts as deleted, unless another account owns it. If the key may not delete
 * (DAYTONA_UNAUTHORIZED), it stops the sandbox instead (stop-timeout). The error then says whether
 * the stop succeeded; if so, daytona_box_is_left is true.
 */
void daytona_box_delete(struct daytona_box *box, daytona_box_done *done);
bool daytona_box_is_left(const struct daytona_box *box); // stopped instead of deleted

/* Whether the sandbox with its name has another id than the wanted one. */
bool daytona_box_is_another(const struct daytona_box *box);

const char *daytona_box_id(const struct daytona_box *box);    // "" until it is known
const char *daytona_box_name(const struct daytona_box *box);  // the name it is found by
int daytona_box_auto_stop(const struct daytona_box *box);     // minutes; 0: never; -1: not given
const char *daytona_box_state(const struct daytona_box *box); // as last seen; or ""

#endif
