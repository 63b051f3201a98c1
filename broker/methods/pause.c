/* SPDX-License-Identifier: MIT */
#include "broker/methods/pause.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/ledger/keeper.h"
#include "broker/methods/inquiry.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/in_flight.h"

/* The steps; each is left by one event, or by pause_release. */
enum pause_step {
	PAUSE_OFF,
	PAUSE_DRAINING, // waiting for tool calls to end
	PAUSE_WRITING,  // saving "paused" in the record
	PAUSE_FREEZING,
	PAUSE_ON,
	PAUSE_THAWING,
	PAUSE_CLEARING, // saving the earlier state in the record
};

struct pause {
	struct peer *peer;
	enum pause_step step;
	bool is_wanted;      // the last request: paused or not
	struct drain *drain; // owned; while draining
	unsigned unanswered; // suspends and resumes without an answer; some for longer than
	                     // pause-timeout
	ev_timer due;        // pause-timeout, for freezing and for resuming
	long long away_ms;   // sandbox_extend_timer
	struct error err;    // why the request failed
};

static const unsigned TOOL_CALLS = IN_FLIGHT_TERMINALS | IN_FLIGHT_CALLS;

static void move(struct pause *pause);

static struct sandbox *sandbox_of(const struct pause *pause)
{
	return agent_sandbox(pause->peer->agent);
}

/* ---- answers ---- */

static void refuse(struct relay *relay, const struct call *call, const char *code, const char *text)
{
	struct error err;
	relay_fail(relay, call->message.id, failure_set(&err, code, "session", "%s", text));
}

static void add_session(void *data, struct session *session)
{
	json_write_text(data, session->id);
}

/*
 * The session's agent has ended, paused or not. The session exists, and the next prompt restarts
 * its agent.
 */
static void serve_without_agent(struct relay *relay, const struct call *call,
	const struct session *session, enum inquiry_wish wish)
{
	struct json_writer writer;
	if (wish == INQUIRY_PAUSE) {
		refuse(relay, call, "AGENT_EXITED",
			"the session's agent has ended, so there is nothing to pause; the "
			"next prompt restarts it");
		return;
	}
	buf_clear(&relay->scratch);
	json_write_begin(&writer, &relay->scratch);
	json_write_object(&writer);
	json_write_member_bool(&writer, "paused", false);
	json_write_key(&writer, "sessions");
	json_write_array(&writer);
	json_write_text(&writer, session->id);
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	if (json_write_end(&writer, NULL)) {
		relay_answer(relay, call->message.id, buf_span(&relay->scratch));
	}
}

static bool write_result(const struct pause *pause, struct inquiry *inquiry)
{
	struct json_writer writer;
	json_write_begin(&writer, &inquiry->result);
	json_write_object(&writer);
	json_write_member_bool(&writer, "paused", pause->step == PAUSE_ON);
	if (pause->step == PAUSE_ON) {
		json_write_key(&writer, "by");
		json_write_text(&writer,
			sandbox_suspended_by_signals(sandbox_of(pause)) ? "signals" : "cgroup");
	}
	json_write_key(&writer, "sessions");
	json_write_array(&writer);
	session_table_visit(&pause->peer->relay->sessions, pause->peer, add_session, &writer);
	json_write_array_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, &inquiry->err);
}

static void answer(struct pause *pause, enum inquiry_wish wish, const struct error *err)
{
	LIST_FOR_EACH(inquiry, inquiries_of(pause->peer), struct inquiry, link) {
		if (inquiry->wish != wish) {
			continue;
		}
		if (err) {
			inquiry->err = *err;
		} else {
			inquiry->is_ok = write_result(pause, inquiry);
		}
		inquiry_answer(inquiry);
	}
}

/*
 * The agent is paused, or it runs: answers the requests for that, and fails those for the opposite.
 */
static void settle(struct pause *pause)
{
	bool is_on = pause->step == PAUSE_ON;
	enum inquiry_wish fulfilled = is_on ? INQUIRY_PAUSE : INQUIRY_RESUME;
	answer(pause, fulfilled, NULL);
	if (pause->is_wanted != is_on) {
		move(pause);
		return;
	}
	if (pause->err.code == ERROR_NONE) {
		error_set_reason(&pause->err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
			"the session was %s meanwhile", is_on ? "paused" : "resumed");
	}
	answer(pause, is_on ? INQUIRY_RESUME : INQUIRY_PAUSE, &pause->err);
	pause->err = (struct error){0};
}

/* ---- the record ---- */

static void on_cleared(void *data, const struct error *err)
{
	struct pause *pause = data;
	if (err) {
		log_failure(LOG_LEVEL_ERROR, err, "%s: %s", pause->peer->hop, err->text);
	}
	if (pause->step == PAUSE_CLEARING) {
		pause->step = PAUSE_OFF;
		settle(pause);
	}
}

/*
 * The agent runs, or was never frozen: its messages go on, and the record gets its earlier state.
 */
static void clear_record(struct pause *pause)
{
	struct peer *peer = pause->peer;
	pause->step = PAUSE_CLEARING;
	link_resume(agent_link(peer->agent));
	if (!peer->keeper || !keeper_pause(peer->keeper, false, on_cleared, pause)) {
		on_cleared(pause, NULL);
	}
}

/* The pause fails. */
static void give_up(struct pause *pause, const struct error *err)
{
	if (err) {
		pause->err = *err;
	}
	pause->is_wanted = false;
	clear_record(pause);
}

/* ---- freezing ---- */

static void arm(struct pause *pause)
{
	struct ev_loop *loop = pause->peer->relay->config.loop;
	pause->away_ms = sandbox_away_ms(sandbox_of(pause));
	ev_now_update(loop);
	ev_timer_set(&pause->due, pause->peer->relay->config.profile->pause_timeout_ms / 1000., 0.);
	ev_timer_start(loop, &pause->due);
}

static void disarm(struct pause *pause)
{
	ev_timer_stop(pause->peer->relay->config.loop, &pause->due);
}

static void on_suspended(void *data, const struct error *err)
{
	struct pause *pause = data;
	pause->unanswered--;
	if (pause->step != PAUSE_FREEZING) {
		return;
	}
	disarm(pause);
	if (err) {
		give_up(pause, err);
		return;
	}
	const char *why = sandbox_suspended_by_signals(sandbox_of(pause));
	log_info("%s: paused %s%s", pause->peer->hop,
		why ? "by signals, because no cgroup is available: " : "by a cgroup",
		why ? why : "");
	pause->step = PAUSE_ON;
	settle(pause);
}

static void on_written(void *data, const struct error *err)
{
	struct pause *pause = data;
	if (pause->step != PAUSE_WRITING) {
		return;
	}
	if (err || !pause->is_wanted) {
		give_up(pause, err);
		return;
	}
	pause->step = PAUSE_FREEZING;
	arm(pause);
	pause->unanswered++;
	sandbox_suspend(sandbox_of(pause), on_suspended, pause);
}

static void on_drained(void *data, const char *left)
{
	struct pause *pause = data;
	struct peer *peer = pause->peer;
	pause->drain = NULL;
	if (left) {
		error_set_reason(&pause->err, ERROR_UNAVAILABLE, "TOOLS_IN_FLIGHT",
			"%s (pause-drain-timeout)", left);
		pause->is_wanted = false;
		pause->step = PAUSE_OFF;
		settle(pause);
		return;
	}
	pause->step = PAUSE_WRITING;
	if (!peer->keeper || !keeper_pause(peer->keeper, true, on_written, pause)) {
		on_written(pause, NULL);
	}
}

/* ---- resuming ---- */

/* The agent is still paused, as far as known. */
static void stay(struct pause *pause, const struct error *err)
{
	pause->err = *err;
	pause->is_wanted = true;
	pause->step = PAUSE_ON;
	settle(pause);
}

static void on_resumed(void *data, const struct error *err)
{
	struct pause *pause = data;
	pause->unanswered--;
	bool is_late = pause->step == PAUSE_ON && !err; // it has been resumed nevertheless
	if (pause->step != PAUSE_THAWING && !is_late) {
		return;
	}
	disarm(pause);
	if (err) {
		stay(pause, err);
		return;
	}
	pause->is_wanted = pause->is_wanted && !is_late;
	log_info("%s: resumed", pause->peer->hop);
	pause->peer->heard_at = ev_now(pause->peer->relay->config.loop);
	clear_record(pause);
}

static void resume(struct pause *pause)
{
	pause->unanswered++;
	sandbox_resume(sandbox_of(pause), on_resumed, pause);
}

/* The sandbox has not answered yet, and cannot be asked for a pause again until it does. */
static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct pause *pause = CONTAINER_OF(timer, struct pause, due);
	bool is_freezing = pause->step == PAUSE_FREEZING;
	struct error err;
	if (sandbox_extend_timer(sandbox_of(pause), timer, &pause->away_ms)) {
		return;
	}
	error_set(&err, ERROR_TIMEOUT, "%s did not %s within %d ms (pause-timeout)",
		pause->peer->hop, is_freezing ? "stand still" : "go on",
		pause->peer->relay->config.profile->pause_timeout_ms);
	if (is_freezing) {
		resume(pause);
		give_up(pause, &err);
	} else {
		answer(pause, INQUIRY_PAUSE, &err); // it may be resumed at any moment
		stay(pause, &err);
	}
}

/* ---- the next step ---- */

/* Takes the first step to the requested state. A step in progress looks again when it has ended. */
static void move(struct pause *pause)
{
	bool is_late = pause->unanswered > 0;
	if (pause->is_wanted && pause->step == PAUSE_OFF && is_late) {
		error_set_reason(&pause->err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
			"the sandbox is still undoing the last pause, which took too long");
		pause->is_wanted = false;
		settle(pause);
	} else if (pause->is_wanted && pause->step == PAUSE_OFF) {
		pause->step = PAUSE_DRAINING;
		pause->drain = drain_start(pause->peer, TOOL_CALLS, on_drained, pause);
	} else if (!pause->is_wanted && pause->step == PAUSE_DRAINING) {
		drain_destroy(pause->drain);
		pause->drain = NULL;
		pause->step = PAUSE_OFF;
		settle(pause);
	} else if (!pause->is_wanted && pause->step == PAUSE_FREEZING) {
		sandbox_resume(sandbox_of(pause), NULL, NULL);
	} else if (pause->step == PAUSE_ON) {
		pause->step = PAUSE_THAWING;
		arm(pause);
		if (!is_late) {
			resume(pause);
		}
	}
}

static void want(struct pause *pause, bool is_wanted)
{
	bool is_going_on = pause->step == PAUSE_ON && pause->unanswered > 0;
	bool is_there = pause->step == (is_wanted ? PAUSE_ON : PAUSE_OFF) && !is_going_on;
	pause->is_wanted = is_wanted;
	if (is_there) {
		settle(pause);
	} else {
		move(pause);
	}
}

/* ---- the methods ---- */

static struct pause *pause_of(struct peer *peer)
{
	if (!peer->pause) {
		peer->pause = mem_alloc_zero(sizeof(*peer->pause));
		peer->pause->peer = peer;
		ev_init(&peer->pause->due, on_due);
	}
	return peer->pause;
}

static void serve(struct relay *relay, const struct call *call, enum inquiry_wish wish)
{
	struct session *session = relay_session_of(relay, &call->message);
	struct peer *peer = session ? session->peer : NULL;
	bool is_there = peer && !peer->is_down && !agent_has_exited(peer->agent);
	struct sandbox *sandbox = is_there ? agent_sandbox(peer->agent) : NULL;
	if (!session) {
		refuse(relay, call, "INVALID_PARAMS",
			"params.sessionId names no session of this broker");
		return;
	}
	if (!sandbox) {
		serve_without_agent(relay, call, session, wish);
		return;
	}
	if (!sandbox_capabilities(sandbox)->can_suspend) {
		refuse(relay, call, "PAUSE_UNSUPPORTED",
			"the processes in this sandbox cannot be frozen");
		return;
	}
	inquiry_create(peer, call, "")->wish = wish;
	want(pause_of(peer), wish == INQUIRY_PAUSE);
}

void pause_call(struct relay *relay, const struct call *call)
{
	serve(relay, call, INQUIRY_PAUSE);
}

void pause_resume_call(struct relay *relay, const struct call *call)
{
	serve(relay, call, INQUIRY_RESUME);
}

/* ---- for the relay ---- */

bool pause_refuses(struct peer *peer, const struct call *call)
{
	struct pause *pause = peer->pause;
	char text[MESSAGE_METHOD_MAX + 128];
	if (!pause || pause->step == PAUSE_OFF || pause->step == PAUSE_CLEARING) {
		return false;
	}
	if (call->method->means == MEANS_END_SESSION) {
		want(pause, false);
		return false;
	}
	text_format(text, sizeof(text),
		"%s: the session's agent is paused; _broker/session/resume resumes it",
		call->message.method);
	refuse(peer->relay, call, "SESSION_PAUSED", text);
	return true;
}

bool pause_holds_agent(const struct peer *peer)
{
	const struct pause *pause = peer->pause;
	return pause && pause->step >= PAUSE_WRITING && pause->step <= PAUSE_THAWING;
}

static void ignore(void *data, const struct error *err)
{
}

void pause_release(void *data)
{
	struct peer *peer = data;
	struct pause *pause = peer->pause;
	if (!pause || pause->step == PAUSE_OFF) {
		return;
	}
	bool may_be_frozen = pause->step >= PAUSE_FREEZING && pause->step <= PAUSE_THAWING;
	bool was_written = pause->step >= PAUSE_WRITING;
	struct sandbox *sandbox = sandbox_of(pause);
	drain_destroy(pause->drain);
	pause->drain = NULL;
	disarm(pause);
	pause->step = PAUSE_OFF;
	pause->is_wanted = false;
	if (may_be_frozen && sandbox) {
		sandbox_resume(sandbox, NULL, NULL);
	}
	if (was_written && peer->keeper) {
		(void)!keeper_pause(peer->keeper, false, ignore, NULL);
	}
	error_set_reason(&pause->err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED",
		"the session's agent is ending, or has ended");
	settle(pause);
	link_resume(agent_link(peer->agent));
}

void pause_destroy(struct peer *peer)
{
	if (peer->pause) {
		drain_destroy(peer->pause->drain);
		disarm(peer->pause);
		free(peer->pause);
		peer->pause = NULL;
	}
}
