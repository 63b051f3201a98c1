/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/heir.h"
#include "providers/ssh/host_impl.h"

/*
 * The connection of a run that outlives it. When the connection is lost, the run goes on there, and
 * the broker connects again, with growing pauses, until `link-grace` is over. A change of this
 * machine's network, or a suspend, ends the pause. If the connection was not lost, the broker then
 * probes it.
 */

enum {
	PAUSE_MIN_MS = 500,
	PAUSE_MAX_MS = 30000,
	DOUBLINGS_MAX = 6,
	/*
	 * After such a change, a connection counts as lost if nothing comes over it for this time.
	 */
	PROBE_MS = 3000,
	/*
	 * After one loss, changes of the network restart at most this many attempts. Later attempts
	 * get the time that they need.
	 */
	RESTARTS_MAX = 8,
};

static long long grace_ms(const struct ssh_host *host, bool may_have_turn)
{
	const struct ssh_host_request *request = &host->request;
	bool is_longer = may_have_turn && request->turn_grace_ms > request->grace_ms;
	return is_longer ? request->turn_grace_ms : request->grace_ms;
}

long long ssh_reattach_grace_ms(const struct ssh_host *host)
{
	return grace_ms(host, host->reattach.has_turn);
}

long long ssh_longest_grace_ms(const struct ssh_host *host)
{
	return grace_ms(host, host->request.outlives && !host->no_runner);
}

const char *ssh_grace_key(const struct ssh_host *host, long long grace_ms)
{
	return grace_ms == host->request.grace_ms ? "link-grace" : "turn-grace";
}

static bool is_in_time(const struct ssh_host *host)
{
	return clock_now_ms() < host->reattach.lost_ms + ssh_reattach_grace_ms(host);
}

static void send_turn(struct ssh_host *host)
{
	struct ssh_reattach *reattach = &host->reattach;
	reattach->has_turn = reattach->is_turn_open;
	remote_set_grace(host->remote, ssh_reattach_grace_ms(host), reattach->sleep.is_asleep);
}

/* During a loss the host cannot learn it, and the run goes on for as long as before. */
void ssh_host_note_turn(struct ssh_host *host, bool is_open)
{
	struct ssh_reattach *reattach = &host->reattach;
	ssh_host_enter(host);
	reattach->is_turn_open = is_open && remote_outlives(host->remote);
	if (remote_outlives(host->remote) && reattach->lost_ms == 0) {
		send_turn(host);
	}
	ssh_host_leave(host);
}

/* A connection that ends from now on does not mean that this broker has ended. */
static void on_sleep(struct sleep_watch *watch, bool begins)
{
	struct ssh_host *host = CONTAINER_OF(watch, struct ssh_host, reattach.sleep);
	ssh_host_enter(host);
	remote_set_grace(host->remote, ssh_reattach_grace_ms(host), begins);
	ssh_host_leave(host);
}

/* Errors after which we do not connect again: we would fail in the same way, or ask twice. */
static bool is_final(const struct error *err)
{
	static const char *const reasons[] = {"HOST_KEY_MISMATCH", "HOST_KEY_UNKNOWN",
		"AUTH_FAILED", "SSH_UNSUPPORTED", "SANDBOX_UNAVAILABLE"};
	for (size_t i = 0; err->reason && i < ARRAY_LENGTH(reasons); i++) {
		if (strcmp(err->reason, reasons[i]) == 0) {
			return true;
		}
	}
	return false;
}

static long long pause_ms(const struct ssh_host *host)
{
	const struct ssh_reattach *reattach = &host->reattach;
	unsigned doublings =
		reattach->attempts < DOUBLINGS_MAX ? reattach->attempts : DOUBLINGS_MAX;
	long long least_ms = host->request.pause_ms;
	long long pause = (long long)PAUSE_MIN_MS << doublings;
	pause = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
	return reattach->attempts == 0 ? 0 : pause > least_ms ? pause : least_ms;
}

/* `err` is the reason why the last attempt has failed. */
static void give_up_late(struct ssh_host *host, const struct error *err)
{
	struct error failure;
	error_set_reason(&failure, ERROR_UNAVAILABLE, "LINK_LOST",
		"%s: unreachable for longer than %s (%lld ms), so what ran there ends: %s",
		ssh_host_name(host), ssh_grace_key(host, ssh_reattach_grace_ms(host)),
		ssh_reattach_grace_ms(host), err->text);
	ssh_host_fail(host, &failure);
}

/* Another login may have made a token invalid, so only the second refusal in a row counts. */
static bool is_first_refusal(struct ssh_host *host, const struct error *err)
{
	bool was_refused = host->reattach.was_refused;
	host->reattach.was_refused =
		host->request.admission && error_has_reason(err, "AUTH_FAILED");
	return host->reattach.was_refused && !was_refused;
}

static void try_later(struct ssh_host *host, const struct error *err)
{
	struct ssh_reattach *reattach = &host->reattach;
	if (!is_first_refusal(host, err) && is_final(err)) {
		ssh_host_fail(host, err);
		return;
	}
	if (reattach->lost_ms > 0 && !is_in_time(host)) {
		give_up_late(host, err);
		return;
	}
	if (reattach->lost_ms == 0) {
		reattach->lost_ms = clock_now_ms();
		if (host->listener->on_link_lost) {
			host->listener->on_link_lost(host->data, err);
		}
	}
	ev_timer_stop(host->loop, &reattach->again);
	ev_timer_set(&reattach->again, (double)pause_ms(host) / 1000., 0.);
	ev_timer_start(host->loop, &reattach->again);
	reattach->attempts++;
}

static void close_link(struct ssh_link *link)
{
	ssh_client_close(link->client);
	ssh_admission_end(link->turn);
	link->client = NULL;
	link->turn = NULL;
	link->is_ready = link->is_full = link->is_resting = link->is_of_use = false;
}

/*
 * The connection of a gateway may stand although the sandbox behind it has stopped, so with an
 * admission each attempt has a connection of its own: the admission learns what has happened.
 */
static void try_now(struct ssh_host *host)
{
	struct ssh_link *link = LIST_FIRST(&host->links, struct ssh_link, link);
	struct error err;
	host->reattach.tried_us = remote_now_us();
	if (host->request.admission) {
		close_link(link);
	}
	if (link->is_ready) {
		remote_attach(host->remote, &host->carrier.carrier);
	} else if (host->request.admission) {
		link->turn = ssh_admission_begin(link); // each attempt needs a token of its own
	} else if (!ssh_link_connect(link, host->request.target, &err)) {
		try_later(host, &err);
	}
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_host *host = CONTAINER_OF(timer, struct ssh_host, reattach.again);
	ssh_host_enter(host);
	try_now(host);
	ssh_host_leave(host);
}

static void lose(struct ssh_host *host, const struct error *err)
{
	struct ssh_link *link = LIST_FIRST(&host->links, struct ssh_link, link);
	remote_detach(host->remote);
	close_link(link);
	try_later(host, err);
}

/* ---- changes of this machine's network ---- */

/* Whether nothing has come since the probe began: from the runner, or from a host to connect to. */
static bool is_silent(struct ssh_host *host)
{
	struct ssh_reattach *reattach = &host->reattach;
	if (reattach->lost_ms == 0) {
		return remote_heard_us(host->remote) < reattach->probed_us;
	}
	return !ev_is_active(&reattach->again) && reattach->tried_us < reattach->probed_us &&
	       reattach->restarts++ < RESTARTS_MAX;
}

static void probe(struct ssh_host *host)
{
	struct ssh_reattach *reattach = &host->reattach;
	reattach->has_changed = false;
	reattach->probed_us = remote_now_us();
	remote_ping(host->remote);
	ev_timer_set(&reattach->probe, PROBE_MS / 1000., 0.);
	ev_timer_start(host->loop, &reattach->probe);
}

static void on_probed(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_host *host = CONTAINER_OF(timer, struct ssh_host, reattach.probe);
	struct error err;
	ssh_host_enter(host);
	if (!host->is_over && is_silent(host)) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
			"%s: nothing has come for %d ms since the network here changed",
			ssh_host_name(host), PROBE_MS);
		lose(host, &err);
	} else if (!host->is_over && host->reattach.has_changed) {
		probe(host);
	}
	ssh_host_leave(host);
}

/* Any change may have changed the path to the host, so we do not look which change it was. */
static void on_network(struct network_watch *watch, bool has_slept)
{
	struct ssh_host *host = CONTAINER_OF(watch, struct ssh_host, reattach.network);
	struct ssh_reattach *reattach = &host->reattach;
	ssh_host_enter(host);
	reattach->attempts = 0;
	if (ev_is_active(&reattach->again)) {
		ev_timer_stop(host->loop, &reattach->again);
		try_now(host);
	} else if (ev_is_active(&reattach->probe)) {
		reattach->has_changed =
			true; // probe again: an answer may be older than this change
	} else {
		probe(host);
	}
	ssh_host_leave(host);
}

void ssh_host_drop_link(struct ssh_host *host)
{
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
		"%s: the broker itself has closed the connection", ssh_host_name(host));
	ssh_host_enter(host);
	if (!host->is_over && host->reattach.lost_ms == 0) {
		lose(host, &err);
	}
	ssh_host_leave(host);
}

/* ---- life ---- */

void ssh_reattach_init(struct ssh_host *host)
{
	ev_init(&host->reattach.again, on_again);
	ev_init(&host->reattach.probe, on_probed);
}

void ssh_reattach_begin(struct ssh_host *host)
{
	if (remote_outlives(host->remote)) {
		const char *const *environment = host->request.context->environment;
		if (host->request.profile && !host->request.admission) {
			heir_name(host->request.context->heir, host->request.profile,
				"SSH_AUTH_SOCK");
		}
		network_watch_start(&host->reattach.network, host->loop, on_network);
		sleep_watch_start(&host->reattach.sleep, host->loop,
			environment ? environment_get(environment, "DBUS_SYSTEM_BUS_ADDRESS")
				    : NULL,
			on_sleep);
	}
}

void ssh_reattach_stop(struct ssh_host *host)
{
	ev_timer_stop(host->loop, &host->reattach.again);
	ev_timer_stop(host->loop, &host->reattach.probe);
	network_watch_stop(&host->reattach.network);
	sleep_watch_stop(&host->reattach.sleep);
}

bool ssh_reattach_take_loss(struct ssh_link *link, const struct error *err)
{
	struct ssh_host *host = link->host;
	struct error failure = *err; // a copy, because *err may belong to the client
	if (host->is_over || !remote_outlives(host->remote)) {
		return false;
	}
	lose(host, &failure);
	return true;
}

bool ssh_reattach_take_link(struct ssh_link *link)
{
	struct ssh_host *host = link->host;
	if (!remote_outlives(host->remote)) {
		return false;
	}
	ssh_carrier_init(&host->carrier, link->client);
	remote_attach(host->remote, &host->carrier.carrier);
	return true;
}

void ssh_reattach_on_detached(struct ssh_host *host, const struct error *err)
{
	if (!host->is_over) {
		ssh_admission_settle(LIST_FIRST(&host->links, struct ssh_link, link)->turn);
		try_later(host, err);
	}
}

void ssh_reattach_on_attached(struct ssh_host *host)
{
	struct ssh_reattach *reattach = &host->reattach;
	reattach->lost_ms = 0;
	reattach->attempts = reattach->restarts = 0;
	reattach->was_refused = false;
	ssh_link_prove(LIST_FIRST(&host->links, struct ssh_link, link));
	if (reattach->has_turn != reattach->is_turn_open) {
		send_turn(host);
	}
	if (host->listener->on_link_back && !host->is_over) {
		host->listener->on_link_back(host->data);
	}
}
