/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_SANDBOX_IMPL_H
#define PROVIDERS_DAYTONA_SANDBOX_IMPL_H

#include "base/soon.h"
#include "providers/daytona/box.h"
#include "providers/daytona/claim.h"
#include "providers/daytona/gate.h"
#include "providers/daytona/opening.h"
#include "providers/daytona/wanted.h"
#include "providers/impl.h"

/*
 * What sandbox.c (its beginning), sandbox_use.c (what is done in it), sandbox_lost.c (its link) and
 * sandbox_end.c share.
 *
 *     claim ── box ── gate ── inner
 *     the name and the lock here; the platform's sandbox; tokens; the SSH sandbox that is used
 */
struct daytona_place {
	struct sandbox sandbox;
	const struct provider_context *context; // borrowed
	struct daytona_shared *shared;          // borrowed
	const struct sandbox_listener *listener;
	void *data;
	struct daytona_profile profile;
	struct daytona_wanted wanted;
	bool has_reference;              // the very one that is wanted
	char *instance;                  // owned; its id; NULL: not known
	char *directory, *wanted_name;   // owned; of the request, until it is claimed; or NULL
	struct daytona_opening *opening; // owned; or NULL
	struct daytona_api *api;         // owned; NULL until it is open
	struct daytona_claim *claim;     // owned; the same
	struct daytona_box *box;         // owned; NULL until the name is known
	struct daytona_gate *gate;       // owned; NULL until it runs
	struct sandbox *inner;           // owned; NULL until there is a way in
	char *reference;                 // owned; its name
	int connects;                    // how often it was connected to
	bool is_hurried;                 // the first channel has a deadline of our own
	long long connect_ms;            // when, the last time
	ev_timer again;                  // connects once more
	long long prepare_until_ms;      // prepare-timeout; 0: never

	struct list execs;  // of struct daytona_exec
	struct list adding; // of struct daytona_adding
	bool is_fleeting;   // its note still says that it goes with this broker, though it is not
	                    // synced
	bool is_keeping;    // that is being changed
	bool end_waits;     // for the claim, which is busy
	ev_timer touch;     // tells the service that there is activity
	struct daytona_call *touching;

	struct soon exec_lost;        // one process was lost, and perhaps the link with it
	bool is_lost;                 // the link was; what the service says of it is asked for
	bool is_over;                 // on_failed was raised, or is not to be
	struct error lost;            // why
	struct daytona_call *inquiry; // or NULL
	ev_timer inquiry_due;

	bool is_ending;     // it rests, or is destroyed
	bool is_destroyed;  // the latter
	bool is_withdrawn;  // nobody can use it
	sandbox_done *done; // of that
	void *done_data;
};

/* ---- sandbox.c ---- */

struct daytona_place *daytona_place_of(struct sandbox *sandbox);
void daytona_place_fail(struct daytona_place *place, const struct error *err);

/* ---- sandbox_use.c ---- */

void daytona_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data);
struct exec *daytona_start_exec(struct sandbox *sandbox, const struct exec_spec *spec,
	const struct exec_listener *listener, void *data, struct error *err);
struct file_op *daytona_read_file(struct sandbox *sandbox, const char *path, enum file_links links,
	size_t max_bytes, file_read_done *done, void *data);
struct file_op *daytona_write_file(struct sandbox *sandbox, const char *path, enum file_links links,
	struct span content, sandbox_done *done, void *data);
struct file_op *daytona_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
void daytona_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_resume(struct sandbox *sandbox, sandbox_done *done, void *data);
const char *daytona_by_signals(const struct sandbox *sandbox);
struct file_op *daytona_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

/* Shows the roots of the inner sandbox as its own. */
void daytona_mirror_roots(struct daytona_place *place);

/* Tells one process that it was lost; false: none is left that has to hear it. */
bool daytona_exec_tell_lost(struct daytona_place *place);
void daytona_use_finish(struct daytona_place *place);

/* ---- sandbox_lost.c ---- */

void daytona_lost_init(struct daytona_place *place);
void daytona_lost_finish(struct daytona_place *place);

/*
 * The link was lost, or could not be made: asks what has become of the sandbox, and then tells
 * everybody. Told twice, the first error counts.
 */
void daytona_place_lose(struct daytona_place *place, const struct error *err);

/* A process is not heard of any more. It is told, once it is known whether the link is there. */
void daytona_exec_lost(struct daytona_place *place);

/* While processes run in it the service is told so. */
void daytona_touch_start(struct daytona_place *place);

/* ---- sandbox_end.c ---- */

/* The claim is not busy any more: an end that waits for it begins. */
void daytona_end_go_on(struct daytona_place *place);

/* The same where the sandbox is gone: an end that waits for the claim is done. */
void daytona_end_without(struct daytona_place *place);

void daytona_rest(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_destroy(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data);

#endif
