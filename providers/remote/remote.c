/* SPDX-License-Identifier: MIT */
#include "providers/remote/remote.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "base/text.h"
#include "providers/remote/remote_impl.h"

enum { US = 1000000, HELLO_MAX = 512 };

uint64_t remote_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US + (uint64_t)now.tv_nsec / 1000;
}

/* ---- sending ---- */

static void arm(struct remote *remote, uint64_t now_us)
{
	uint64_t due_us = mux_due_us(remote->mux);
	double pause_s = due_us > now_us ? (double)(due_us - now_us) / US : 0.;
	ev_timer_stop(remote->request.loop, &remote->due);
	ev_timer_set(&remote->due, pause_s, 0.);
	ev_timer_start(remote->request.loop, &remote->due);
}

static void flush(struct remote *remote)
{
	uint64_t now_us = remote_now_us();
	size_t taken = 1;
	struct span out;
	while (taken > 0 && (out = mux_output(remote->mux, now_us)).len > 0) {
		taken = carrier_write(remote->stream, out);
		mux_sent(remote->mux, taken);
	}
	if (taken > 0) {
		arm(remote, now_us);
	} else {
		ev_timer_stop(remote->request.loop, &remote->due); // on_writable follows
	}
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct remote *remote = CONTAINER_OF(timer, struct remote, due);
	remote_hold(remote);
	remote_let_go(remote);
}

/* ---- lifetime: the memory stays while a call uses it ---- */

void remote_hold(struct remote *remote)
{
	remote->depth++;
}

void remote_let_go(struct remote *remote)
{
	bool has_link = remote->mux && remote->stream && remote->start.is_over;
	if (remote->depth == 1 && has_link && !remote_start_has_unsent(remote)) {
		flush(remote);
	}
	remote->depth--;
	if (remote->depth == 0 && remote->is_closed) {
		assert(list_is_empty(&remote->execs) && list_is_empty(&remote->files));
		assert(list_is_empty(&remote->forwards) && remote->connection_count == 0);
		explicit_bzero(remote->attach.key, sizeof(remote->attach.key));
		free(remote->attach.folder);
		free(remote);
	}
}

/* ---- its end ---- */

static void drop(struct remote *remote)
{
	struct ev_loop *loop = remote->request.loop;
	ev_timer_stop(loop, &remote->due);
	remote_start_finish(remote);
	carrier_close(remote->stream);
	remote->stream = NULL;
}

/* Call this after the streams of the link and their users are gone. */
static void drop_link(struct remote *remote)
{
	mux_destroy(remote->mux);
	remote->mux = NULL;
}

void remote_unfit(struct remote *remote, const char *why)
{
	if (remote->is_over) {
		return;
	}
	remote->is_over = true;
	drop(remote);
	drop_link(remote);
	remote->listener->on_unfit(remote->data, why);
}

static void tell_lost(struct remote *remote, const struct error *err)
{
	remote->was_busy = remote_is_busy(remote);
	remote->is_over = true;
	drop(remote);
	remote_forwards_end(remote);
	remote_execs_lose(remote, err);
	remote_files_lose(remote, err);
	if (!remote->is_closed) {
		drop_link(remote);
	}
}

void remote_lose(struct remote *remote, const struct error *err)
{
	struct error failure = *err; // a copy, because *err may belong to the carrier
	if (remote->is_over) {
		return;
	}
	if (!remote->is_ready) {
		remote_unfit(remote, failure.text);
		return;
	}
	tell_lost(remote, &failure);
	if (!remote->is_closed) {
		remote->listener->on_lost(remote->data, &failure);
	}
}

static void tell_parted(struct remote *remote)
{
	void (*parted)(void *data) = remote->parted;
	remote->parted = NULL;
	if (parted) {
		parted(remote->parted_data);
	}
}

void remote_cut(struct remote *remote, const struct error *err)
{
	if (remote && remote->parted) {
		tell_parted(remote);
	} else if (remote && !remote->is_over) {
		remote_hold(remote);
		tell_lost(remote, err);
		remote_let_go(remote);
	}
}

bool remote_outlives(const struct remote *remote)
{
	return remote && remote->request.outlives && remote->is_ready && !remote->is_over;
}

const char *remote_tied(const struct remote *remote)
{
	return remote->tied[0] ? remote->tied : NULL;
}

void remote_detach(struct remote *remote)
{
	assert(remote_outlives(remote));
	remote->is_detached = true;
	drop(remote);
}

/* The runner ends after this time without a byte. */
static void set_patience(struct remote *remote)
{
	mux_set_patience(remote->mux, (uint64_t)remote->request.grace_ms * (US / 1000));
}

void remote_set_grace(struct remote *remote, long long grace_ms, bool is_suspend)
{
	struct error ignored; // the runner does not read: then the link is lost soon
	const struct runner_message message = {.kind = RUNNER_GRACE,
		.grace = {.ms = (uint64_t)grace_ms, .is_suspend = is_suspend}};
	remote_hold(remote);
	remote->request.grace_ms = grace_ms;
	if (remote->mux && !remote->is_over) {
		set_patience(remote);
		(void)!mux_send(remote->mux, &message, &ignored);
	}
	remote_let_go(remote);
}

void remote_ping(struct remote *remote)
{
	remote_hold(remote);
	if (remote->mux && !remote->is_detached) {
		mux_ping(remote->mux);
	}
	remote_let_go(remote);
}

uint64_t remote_heard_us(const struct remote *remote)
{
	return remote->mux ? mux_heard_us(remote->mux) : 0;
}

void remote_end_stream(struct remote *remote, const struct error *err)
{
	struct error failure = *err; // a copy, for the same reason
	if (!remote_outlives(remote)) {
		remote_lose(remote, &failure);
		return;
	}
	remote_detach(remote);
	remote->listener->on_detached(remote->data, &failure);
}

bool remote_start_was_late(const struct remote *remote)
{
	return remote->start.was_late && !remote->start.was_answered;
}

void remote_set_lost(const struct remote *remote, const char *what, struct error *err)
{
	error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST", "%s: there is no connection to %s",
		what, remote->request.name);
}

/* A run that may outlive the stream does not end with it, so we send END. */
static bool say_end(struct remote *remote)
{
	bool has_link = remote->mux && remote->stream && remote->start.is_over;
	bool can_end = has_link && remote->request.outlives && !remote_start_has_unsent(remote);
	if (can_end) {
		mux_end(remote->mux, (struct span){0});
		flush(remote);
	}
	return can_end;
}

static void abandon(struct remote *remote)
{
	remote->is_over = true;
	remote_forwards_end(remote);
	remote_execs_abandon(remote);
	remote_files_abandon(remote);
}

bool remote_part(struct remote *remote, void (*parted)(void *data), void *data)
{
	if (!remote_outlives(remote) || remote->is_detached) {
		return false;
	}
	remote_hold(remote);
	abandon(remote);
	bool waits = say_end(remote);
	remote->has_said_end = waits;
	remote->parted = waits ? parted : NULL;
	remote->parted_data = data;
	remote_let_go(remote);
	return waits;
}

void remote_close(struct remote *remote)
{
	if (!remote) {
		return;
	}
	assert(!remote->is_closed);
	remote_hold(remote);
	remote->is_closed = true;
	abandon(remote);
	if (!remote->has_said_end) {
		(void)say_end(remote);
	}
	drop(remote);
	drop_link(remote);
	remote_let_go(remote);
}

/* ---- the link ---- */

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct remote *remote = data;
	struct span build;
	char why[HELLO_MAX];
	const char *wanted = remote->start.image.build;
	if (!is_same_version || !runner_find_line(text, "build", &build) ||
		!span_is(build, wanted)) {
		text_format(why, sizeof(why),
			"the runner on the host is not the one with build id %s", wanted);
		if (remote->is_ready) {
			remote_attach_on_gone(remote, why);
		} else {
			remote_unfit(remote, why);
		}
		return;
	}
	ev_timer_stop(remote->request.loop, &remote->start.deadline);
	if (remote->is_ready) {
		remote->is_detached = false;
		remote->listener->on_attached(remote->data);
		return;
	}
	remote->is_ready = true;
	remote->listener->on_ready(remote->data);
}

static void on_message(void *data, const struct runner_message *message)
{
	struct remote *remote = data;
	if (remote->is_ready && !remote->is_over && !remote_execs_take(remote, message)) {
		(void)remote_files_take(remote, message);
	}
}

static void on_end(void *data, struct span text)
{
	struct remote *remote = data;
	struct error err;
	struct span why;
	char shown[HELLO_MAX] = "";
	if (runner_find_line(text, "why", &why)) {
		runner_show(shown, sizeof(shown), why);
	}
	error_set_reason(&err, ERROR_UNAVAILABLE, "LINK_LOST",
		"%s: the runner on the host has ended%s%s", remote->request.name,
		*shown ? ": " : "", shown);
	remote_lose(remote, &err);
}

static void on_status(void *data, struct span text)
{
}

static const struct mux_listener mux_listener = {
	.on_hello = on_hello,
	.on_message = on_message,
	.on_end = on_end,
	.on_status = on_status,
};

void remote_begin_link(struct remote *remote)
{
	struct buf text;
	struct error err;
	uint64_t now_us = remote_now_us();
	buf_init(&text, HELLO_MAX);
	bool is_whole = buf_append_format(&text, &err, "build=%s\ngrace-ms=%lld\n",
				remote->start.image.build, remote->request.grace_ms) &&
	                remote_attach_hello(remote, &text, &err);
	assert(is_whole);
	(void)is_whole;
	if (remote->mux) {
		mux_restart(remote->mux, now_us);
	} else {
		remote->mux = mux_create(MUX_BROKER, &mux_listener, remote, now_us);
	}
	set_patience(remote);
	mux_acknowledge_at_once(remote->mux); // by this the runner knows that we need no proof
	mux_hello(remote->mux, buf_span(&text));
	buf_wipe(&text);
}

static void receive(struct remote *remote, struct span bytes)
{
	struct error err;
	if (bytes.len > 0 && remote->mux && !remote->is_over &&
		!mux_receive(remote->mux, bytes, remote_now_us(), &err)) {
		error_prefix(
			&err, "%s: invalid data from the runner on the host", remote->request.name);
		remote_lose(remote, &err);
	}
}

/* ---- the carrier ---- */

static void on_bytes(void *data, struct span bytes)
{
	struct remote *remote = data;
	remote_hold(remote);
	size_t taken = remote->start.is_over ? 0 : remote_start_take(remote, bytes);
	bytes.data += taken;
	bytes.len -= taken;
	receive(remote, bytes);
	remote_let_go(remote);
}

static void on_writable(void *data)
{
	struct remote *remote = data;
	remote_hold(remote);
	if (!remote->start.is_over || remote_start_has_unsent(remote)) {
		remote_start_flush(remote);
	}
	remote_let_go(remote);
}

static void on_closed(void *data, bool has_begun, const struct error *err)
{
	struct remote *remote = data;
	remote_hold(remote);
	if (remote->parted) {
		tell_parted(remote);
	} else {
		remote_end_stream(remote, err);
	}
	remote_let_go(remote);
}

static const struct carrier_listener carrier_listener = {
	.on_bytes = on_bytes,
	.on_writable = on_writable,
	.on_closed = on_closed,
};

/* ---- start ---- */

static struct carrier_stream *open_stream(struct remote *remote, struct error *err)
{
	char line[REMOTE_COMMAND_MAX];
	const struct remote_request *request = &remote->request;
	struct carrier *carrier = request->carrier;
	if (request->program) {
		const char *const argv[] = {request->program, "begin", request->token, NULL};
		return carrier_start(carrier, argv, &carrier_listener, remote, err);
	}
	if (!text_whole(line, sizeof(line), "exec /usr/bin/env ACP_BROKER_RUN=%s %s -c '%s'",
		    request->token, request->sh, SCRIPT_BEGIN_APART) ||
		strlen(line) > carrier->impl->line_max) {
		error_set(err, ERROR_LIMIT, "%s cannot run a command of %zu bytes",
			carrier->impl->name, strlen(line));
		return NULL;
	}
	return carrier_open(carrier, line, &carrier_listener, remote, err);
}

struct remote *remote_open(const struct remote_request *request,
	const struct remote_listener *listener, void *data, struct error *err)
{
	struct remote *remote = mem_alloc_zero(sizeof(*remote));
	remote->request = *request;
	remote->listener = listener;
	remote->data = data;
	list_init(&remote->execs);
	list_init(&remote->files);
	list_init(&remote->forwards);
	list_init(&remote->connections);
	ev_init(&remote->due, on_due);
	random_fill(remote->attach.key, sizeof(remote->attach.key));
	if (!remote_start_begin(remote, err) || !(remote->stream = open_stream(remote, err))) {
		remote_close(remote);
		return NULL;
	}
	remote_start_flush(remote);
	return remote;
}

void remote_attach(struct remote *remote, struct carrier *carrier)
{
	struct error err;
	assert(remote_outlives(remote) && remote->is_detached && !remote->stream);
	remote_hold(remote);
	remote->request.carrier = carrier;
	if (remote_start_further(remote, &err) && (remote->stream = open_stream(remote, &err))) {
		remote_start_flush(remote);
	} else {
		remote_end_stream(remote, &err);
	}
	remote_let_go(remote);
}
