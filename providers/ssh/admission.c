/* SPDX-License-Identifier: MIT */
#include "providers/ssh/admission.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/soon.h"
#include "providers/ssh/host_impl.h"

enum { DEFAULT_TIMEOUT_MS = 30 * 1000 };

enum turn_state {
	TURN_NEW,
	TURN_ASKED,
	TURN_GRANTED,
	TURN_REFUSED,
	TURN_OVER, // settled or cancelled; its owner no longer refers to it
};

struct ssh_admission_turn {
	struct ssh_link *of;
	enum turn_state state;
	struct ssh_target target; // the host's, with borrowed texts and the user's name
	struct error refusal;
	struct soon next; // runs the next step in the loop's next turn
	ev_timer deadline;
};

static struct ssh_host *host_of(const struct ssh_admission_turn *turn)
{
	return turn->of->host;
}

/* ---- the answer ---- */

static void answer(struct ssh_admission_turn *turn, enum turn_state state)
{
	assert(turn->state == TURN_ASKED);
	turn->state = state;
	ev_timer_stop(host_of(turn)->loop, &turn->deadline);
	soon_start(&turn->next);
}

void ssh_admission_grant(struct ssh_admission_turn *turn, const char *user)
{
	turn->target.user = mem_strdup(user);
	turn->target.user_is_secret = true;
	answer(turn, TURN_GRANTED);
}

void ssh_admission_refuse(struct ssh_admission_turn *turn, const struct error *err)
{
	turn->refusal = *err;
	answer(turn, TURN_REFUSED);
}

/* ---- the next steps ---- */

/* Frees the turn if the link tries again later. */
static void fail(struct ssh_admission_turn *turn, const struct error *err)
{
	struct error copy = *err;
	if (!ssh_reattach_take_loss(turn->of, &copy)) {
		ssh_link_fail(turn->of, &copy);
	}
}

static void ask(struct ssh_admission_turn *turn)
{
	const struct ssh_host_request *request = &host_of(turn)->request;
	turn->state = TURN_ASKED;
	ev_timer_start(host_of(turn)->loop, &turn->deadline);
	request->admission->ask(request->admission_data, turn);
}

static void connect_link(struct ssh_admission_turn *turn)
{
	struct error err;
	if (!ssh_link_connect(turn->of, &turn->target, &err)) {
		fail(turn, &err);
	}
}

static void on_next(struct soon *soon)
{
	struct ssh_admission_turn *turn = CONTAINER_OF(soon, struct ssh_admission_turn, next);
	struct ssh_host *host = host_of(turn);
	ssh_host_enter(host);
	if (turn->state == TURN_NEW) {
		ask(turn);
	} else if (turn->state == TURN_GRANTED) {
		connect_link(turn);
	} else {
		fail(turn, &turn->refusal);
	}
	ssh_host_leave(host);
}

/* Calls the owner's callback, too. */
static void end(struct ssh_admission_turn *turn)
{
	const struct ssh_host_request *request = &host_of(turn)->request;
	enum turn_state state = turn->state;
	turn->state = TURN_OVER;
	soon_stop(&turn->next);
	ev_timer_stop(host_of(turn)->loop, &turn->deadline);
	if (state == TURN_ASKED) {
		request->admission->cancel(request->admission_data, turn);
	} else if (state == TURN_GRANTED) {
		request->admission->settled(request->admission_data, turn);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ssh_admission_turn *turn = CONTAINER_OF(timer, struct ssh_admission_turn, deadline);
	struct ssh_host *host = host_of(turn);
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"connecting to %s: the token for the login did not come within %g s (auth-timeout)",
		ssh_host_name(host), turn->deadline.repeat);
	ssh_host_enter(host);
	fail(turn, &err);
	ssh_host_leave(host);
}

/* ---- life ---- */

struct ssh_admission_turn *ssh_admission_begin(struct ssh_link *link)
{
	struct ssh_admission_turn *turn = mem_alloc_zero(sizeof(*turn));
	long long timeout_ms = link->host->request.target->auth_timeout_ms;
	double timeout_s = (double)(timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS) / 1000;
	turn->of = link;
	turn->target = *link->host->request.target;
	turn->target.user = NULL;
	soon_init(&turn->next, host_of(turn)->loop, on_next);
	ev_timer_init(&turn->deadline, on_deadline, timeout_s, timeout_s);
	soon_start(&turn->next);
	return turn;
}

void ssh_admission_settle(struct ssh_admission_turn *turn)
{
	if (turn && turn->state != TURN_OVER) {
		end(turn);
	}
}

void ssh_admission_forget(struct ssh_admission_turn *turn)
{
	if (turn && turn->target.user) {
		explicit_bzero(turn->target.user, strlen(turn->target.user));
	}
}

void ssh_admission_end(struct ssh_admission_turn *turn)
{
	if (turn) {
		ssh_admission_settle(turn);
		mem_wipe_free(turn->target.user);
		free(turn);
	}
}

/* ---- a connection that was dropped ---- */

bool ssh_admission_was_in_vain(const struct error *err)
{
	return error_has_reason(err, "LINK_LOST") || error_has_reason(err, "AUTH_FAILED");
}

void ssh_admission_explain(const struct ssh_link *link, struct error *err)
{
	if (error_has_reason(err, "LINK_LOST")) {
		error_set_reason(err, ERROR_UNAVAILABLE, "LINK_LOST",
			"connecting to %s: the gateway accepted the token and then dropped the "
			"connection, and did so again with a new token: the token is no longer "
			"valid, or the sandbox behind it has not started (%s)",
			ssh_host_name(link->host), err->text);
	}
}
