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
 * Shared by sandbox.c (preparation), sandbox_use.c (use), sandbox_lost.c (a lost link) and
 * sandbox_end.c.
 *
 *     claim ── box ── gate ── inner
 *     name and lock on this machine; the platform's sandbox; tokens; the SSH sandbox inside
 */
struct daytona_place {
	struct sandbox sandbox;
	const struct provider_context *context; // borrowed
	struct daytona_shared *shared;          // borrowed
	const struct sandbox_listener *listener;
	void *data;
	struct daytona_profile profile;
	struct daytona_wanted wanted;
	bool has_reference;            // the request wants exactly one sandbox
	bool is_for_session;           // sandbox_request
	char *instance;                // owned; its id; NULL: unknown
	char *directory, *wanted_name; // owned; from the request, until the claim is taken; or NULL
	struct daytona_opening *opening; // owned; or NULL
	struct daytona_api *api;         // owned; NULL until it is open
	struct daytona_claim *claim;     // owned; NULL until it is open
	struct daytona_box *box;         // owned; NULL until the name is known
	struct daytona_gate *gate;       // owned; NULL until the sandbox runs
	struct sandbox *inner;           // owned; NULL until the gate is open
	char *reference;                 // owned; the sandbox's name
	int connects;                    // number of connections so far
	char outlives[ERROR_TEXT_MAX];   // sandbox_outlives
	bool is_hurried;                 // the first channel has our own deadline
	long long connect_ms;            // when the last connection was made
	ev_timer again;                  // for connecting again
	long long prepare_until_ms;      // prepare-timeout; 0: never

	struct list execs;  // struct daytona_exec
	struct list adding; // struct daytona_adding
	bool is_fleeting;   // synced, but its note still says that it ends with this broker
	bool is_keeping;    // that note is being changed
	bool end_waits;     // until the claim's order has ended
	ev_timer touch;     // for reporting activity to the service
	struct daytona_call *touching;

	struct soon exec_lost;        // a process was lost, and perhaps the link
	bool is_lost;                 // the link was lost; the service is asked about the sandbox
	bool is_over;                 // on_failed was raised, or must not be raised
	struct error lost;            // the reason
	struct daytona_call *inquiry; // or NULL
	ev_timer inquiry_due;

	bool is_ending;     // it is being stopped or destroyed
	bool is_destroyed;  // it is being destroyed
	bool is_withdrawn;  // the caller cannot use it
	sandbox_done *done; // of the end
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
	struct shared *content, sandbox_done *done, void *data);
struct file_op *daytona_stat_file(
	struct sandbox *sandbox, const char *path, file_stat_done *done, void *data);
void daytona_suspend(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_resume(struct sandbox *sandbox, sandbox_done *done, void *data);
const char *daytona_by_signals(const struct sandbox *sandbox);
bool daytona_forward(struct sandbox *sandbox, const struct forward_port *port,
	const int fds[FORWARD_ADDRESSES], const struct forward_visit *visit, struct error *err);
void daytona_unforward(struct sandbox *sandbox, uint16_t here, bool resets);
struct file_op *daytona_resolve_path(
	struct sandbox *sandbox, const char *path, file_resolve_done *done, void *data);

/* Shows the roots of the inner sandbox as its own. */
void daytona_mirror_roots(struct daytona_place *place);

/* Tells one process that it was lost; false if none is left to tell. */
bool daytona_exec_tell_lost(struct daytona_place *place);
void daytona_use_finish(struct daytona_place *place);

/* ---- sandbox_lost.c ---- */

void daytona_lost_init(struct daytona_place *place);
void daytona_lost_finish(struct daytona_place *place);

/*
 * Call it when the link was lost or could not be made: asks the service about the sandbox, then
 * tells the listeners. If called twice, the first error counts.
 */
void daytona_place_lose(struct daytona_place *place, const struct error *err);

/*
 * The connection to a process was lost. Raises on_lost for it once we know whether the link still
 * stands.
 */
void daytona_exec_lost(struct daytona_place *place);

/* Reports activity to the service while processes run. */
void daytona_touch_start(struct daytona_place *place);

/* The sandbox's own auto-stop, whatever the profile says, and the time between two reports; 0:
 * never. */
long long daytona_auto_stop_seconds(const struct daytona_place *place);
long long daytona_touch_seconds(const struct daytona_place *place);

/* ---- sandbox_end.c ---- */

/* Call it when the claim has finished its order: begins an end that waited for the claim. */
void daytona_end_go_on(struct daytona_place *place);

/* The sandbox is gone: finishes an end that waits for the claim. */
void daytona_end_without(struct daytona_place *place);

void daytona_rest(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_destroy(struct sandbox *sandbox, sandbox_done *done, void *data);
void daytona_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data);

#endif
