/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_watch.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/libc.h"
#include "base/log.h"
#include "broker/methods/pause.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/in_flight.h"

/* A part of the relay. */
struct watch {
	struct relay *relay;
	struct ev_timer look;  // checks whether the editor is still there while it is not read
	double hung_up_at;     // ev_now when its end was noticed; 0: it has not left
	struct ev_timer quiet; // since the last large message
	bool keeps_freed;      // libc_keep_freed was called
};

static const struct part_type type = {.size = sizeof(struct watch)};

static struct watch *watch_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

/* ---- idle-timeout: a prompt while the agent is silent ---- */

bool relay_watch_excuses(const struct peer *peer)
{
	if (pause_holds_agent(peer) || sandbox_is_away(agent_sandbox(peer->agent)) ||
		desk_has(&peer->relay->desk, (struct desk_pick){STAGE_LINKS, peer, NULL}) ||
		(link_is_paused(agent_link(peer->agent)) && !relay_agent_is_flooded(peer)) ||
		(peer->toolhost && toolhost_is_busy(peer->toolhost)) ||
		in_flight_has_commands(peer)) {
		return true;
	}
	LIST_FOR_EACH(pending, &peer->relay->asked_editor.order, struct pending, order_link) {
		const struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->peer == peer && !request->is_beside) {
			return true;
		}
	}
	return false;
}

static bool has_prompt(const struct peer *peer)
{
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		if (request_is_prompt(CONTAINER_OF(pending, struct request, pending))) {
			return true;
		}
	}
	return false;
}

/* Answers every prompt of the agent with the name of the deadline, and cancels it at the agent. */
static void give_up_prompts(struct peer *peer)
{
	struct relay *relay = peer->relay;
	struct error err;
	failure_set(&err, "TIMEOUT_EXCEEDED", "relay", "%s said nothing for %d ms (idle-timeout)",
		peer->hop, relay->config.profile->idle_timeout_ms);
	log_warning("%s; its prompts are cancelled", err.text);
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (!request_is_prompt(request)) {
			continue;
		}
		struct session *session =
			request->session_id ? session_find(&relay->sessions, request->session_id)
					    : NULL;
		if (session) {
			relay_cancel_prompt(relay, session);
		}
		pending_remove(&peer->asked, pending);
		relay_fail_request(relay, request, &err);
	}
}

/* A part of a peer that was prompted. */
struct idle {
	struct peer *peer;
	struct ev_timer timer; // idle-timeout, while a prompt is in flight
};

static void finish_idle(void *part, void *peer)
{
	struct idle *idle = part;
	ev_timer_stop(idle->peer->relay->config.loop, &idle->timer);
}

static const struct part_type idle_type = {.size = sizeof(struct idle), .finish = finish_idle};

static void on_idle(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct peer *peer = CONTAINER_OF(timer, struct idle, timer)->peer;
	double allowed = peer->relay->config.profile->idle_timeout_ms / 1000.0;
	double silent = ev_now(loop) - peer->heard_at;
	if (peer->is_down || !has_prompt(peer)) {
		return; // the next prompt starts the watch again
	}
	if (relay_watch_excuses(peer)) {
		peer->heard_at = ev_now(loop);
		silent = 0;
	}
	if (silent >= allowed) {
		give_up_prompts(peer);
		return;
	}
	ev_timer_set(timer, allowed - silent, 0.0);
	ev_timer_start(loop, timer);
}

void relay_watch_prompt(struct peer *peer)
{
	struct ev_loop *loop = peer->relay->config.loop;
	int ms = peer->relay->config.profile->idle_timeout_ms;
	struct idle *idle = parts_get(&peer->parts, &idle_type);
	idle->peer = peer;
	peer->heard_at = ev_now(loop);
	if (ms > 0 && !ev_is_active(&idle->timer)) {
		ev_timer_init(&idle->timer, on_idle, ms / 1000.0, 0.0);
		ev_timer_start(loop, &idle->timer);
	}
}

/* ---- the memory of large messages ---- */

enum {
	LARGE_MESSAGE = 64 * 1024,
	KEPT_BYTES = 8 * 1024 * 1024, // a message of 1 MiB, its content, and the content for a file
	QUIET_MS = 1000,
};

static bool has_much_queued(const struct relay *relay)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (link_queued(agent_link(peer->agent)) >= LARGE_MESSAGE) {
			return true;
		}
	}
	return link_queued(&relay->editor) >= LARGE_MESSAGE;
}

/* malloc keeps some MiB of freed memory for the next large message; gives them back. */
static void on_quiet(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct relay *relay = CONTAINER_OF(timer, struct watch, quiet)->relay;
	if (!has_much_queued(relay)) {
		ev_timer_stop(loop, timer);
		libc_trim();
	}
}

void relay_watch_memory(struct relay *relay, size_t length)
{
	if (length < LARGE_MESSAGE) {
		return;
	}
	struct watch *watch = watch_of(relay);
	if (!watch->keeps_freed) {
		watch->keeps_freed = true;
		libc_keep_freed(KEPT_BYTES);
	}
	ev_timer_again(relay->config.loop, &watch->quiet);
}

/* ---- an editor that leaves while it is not read ---- */

void relay_editor_gone(struct relay *relay)
{
	relay->editor_has_ended = true;
	if (!relay->was_told_gone) {
		relay->was_told_gone = true;
		relay->config.listener->on_editor_gone(relay->config.data);
	}
}

enum { LOOK_MS = 500 };

static bool has_hung_up(const struct relay *relay)
{
	struct pollfd end = {.fd = relay->editor.in, .events = POLLRDHUP};
	return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

static void on_look(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct watch *watch = CONTAINER_OF(timer, struct watch, look);
	struct relay *relay = watch->relay;
	double allowed = relay->config.profile->stop_eof_ms / 1000.0;
	if (!link_is_paused(&relay->editor) || relay->was_told_gone) {
		ev_timer_stop(loop, timer);
		return;
	}
	if (!has_hung_up(relay)) {
		return;
	}
	if (watch->hung_up_at == 0) {
		watch->hung_up_at = ev_now(loop);
	}
	if (ev_now(loop) - watch->hung_up_at >= allowed) {
		ev_timer_stop(loop, timer);
		log_warning(
			"editor: it left while its messages waited for an agent that reads slowly");
		relay_editor_gone(relay);
	}
}

void relay_watch_init(struct relay *relay)
{
	struct watch *watch = watch_of(relay);
	watch->relay = relay;
	ev_timer_init(&watch->look, on_look, LOOK_MS / 1000.0, LOOK_MS / 1000.0);
	ev_timer_init(&watch->quiet, on_quiet, QUIET_MS / 1000.0, QUIET_MS / 1000.0);
}

void relay_watch_finish(struct relay *relay)
{
	struct watch *watch = watch_of(relay);
	ev_timer_stop(relay->config.loop, &watch->look);
	ev_timer_stop(relay->config.loop, &watch->quiet);
}

/* Restarts the wait at each call, because a reader that makes progress is worth waiting for. */
void relay_watch_editor(struct relay *relay)
{
	struct watch *watch = watch_of(relay);
	watch->hung_up_at = 0;
	ev_timer_again(relay->config.loop, &watch->look);
}
