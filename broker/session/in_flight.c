/* SPDX-License-Identifier: MIT */
#include "broker/session/in_flight.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "broker/agent/agent.h"
#include "broker/ledger/keeper.h"
#include "broker/session/hop.h"
#include "broker/toolhost/toolhost.h"

static const char cut[] = ", …";

enum { LIST_MAX = IN_FLIGHT_TEXT_MAX - 64 }; // bytes of the list itself

struct in_flight {
	char *text;
	size_t len;
	bool is_cut;
	unsigned kinds;
	const struct peer *peer;
};

static void say(struct in_flight *found, const char *format, ...) ATTR_PRINTF(2, 3);
static void say(struct in_flight *found, const char *format, ...)
{
	char item[256];
	const char *between = found->len > 0 ? ", " : "";
	va_list args;
	va_start(args, format);
	text_vformat(item, sizeof(item), format, args);
	va_end(args);
	size_t room = LIST_MAX - found->len;
	if (found->is_cut || strlen(between) + strlen(item) >= room) {
		found->is_cut = true;
		return;
	}
	found->len += (size_t)snprintf(found->text + found->len, room, "%s%s", between, item);
}

static void add_prompt(void *data, struct session *session)
{
	struct in_flight *found = data;
	bool is_given = found->kinds & IN_FLIGHT_PROMPTS && session->prompts > 0;
	if (is_given ||
		(found->kinds & IN_FLIGHT_WAITING &&
			found->peer->relay->ops->has_waiting_prompt(found->peer, session))) {
		say(found, "a prompt in session %s", session->id);
	}
}

static void add_terminal(
	void *data, const char *session_id, const char *terminal_id, bool is_ending)
{
	const struct in_flight *found = data;
	if (found->kinds & (is_ending ? IN_FLIGHT_ENDING : IN_FLIGHT_TERMINALS)) {
		say(data, "%s in session %s", terminal_id, session_id);
	}
}

static bool is_at(const struct peer *peer, enum desk_stage stage)
{
	return desk_has(&peer->relay->desk, (struct desk_pick){stage, peer, NULL});
}

static void add_calls(struct in_flight *found, const struct peer *peer)
{
	if (peer->toolhost && toolhost_is_busy(peer->toolhost)) {
		say(found, "a request for a file or a terminal");
	}
	LIST_FOR_EACH(pending, &peer->relay->asked_editor.order, struct pending, order_link) {
		const struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->peer == peer && !request->is_beside) {
			say(found, "a request of the agent to the editor");
		}
	}
	LIST_FOR_EACH(pending, &peer->asked.order, struct pending, order_link) {
		const struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (!request_is_prompt(request)) {
			bool is_named = request->method && request->method->name;
			say(found, "%s", is_named ? request->method->name : "a request");
		}
	}
	if (is_at(peer, STAGE_LINKS)) {
		say(found, "a request whose paths are being resolved");
	}
	if (is_at(peer, STAGE_ROOTS)) {
		say(found, "a session that is being opened");
	}
	if (is_at(peer, STAGE_SYNC) || is_at(peer, STAGE_ANSWER)) {
		say(found, "the sync of a turn");
	}
}

/* A part of a peer: how many commands of the broker's own MCP server run. */
static const struct part_type commands_type = {.size = sizeof(int)};

static int count_commands(const struct peer *peer)
{
	const int *count = parts_find(&peer->parts, &commands_type);
	return count ? *count : 0;
}

/* Whether any work is in progress. */
static bool find(struct peer *peer, unsigned kinds, char list[LIST_MAX], bool *out_is_cut)
{
	struct in_flight found = {.text = list, .kinds = kinds, .peer = peer};
	list[0] = '\0';
	if (kinds & (IN_FLIGHT_PROMPTS | IN_FLIGHT_WAITING)) {
		session_table_visit(&peer->relay->sessions, peer, add_prompt, &found);
	}
	if (kinds & IN_FLIGHT_CALLS) {
		add_calls(&found, peer);
	}
	if (peer->toolhost) {
		toolhost_visit_running(peer->toolhost, add_terminal, &found);
	}
	if (kinds & IN_FLIGHT_TERMINALS && count_commands(peer) > 0) {
		say(&found, "%d commands of mcp-exec", count_commands(peer));
	}
	*out_is_cut = found.is_cut;
	return found.len > 0 || found.is_cut;
}

bool in_flight_describe(struct peer *peer, unsigned kinds, char text[IN_FLIGHT_TEXT_MAX])
{
	static const char advice[] = ": cancel it, or wait until it ends";
	char list[LIST_MAX];
	bool is_cut;
	text[0] = '\0';
	if (!find(peer, kinds, list, &is_cut)) {
		return false;
	}
	text_format(text, IN_FLIGHT_TEXT_MAX, "in flight: %s%s%s", list, is_cut ? cut : "", advice);
	return true;
}

bool in_flight_note(struct peer *peer, struct error *err)
{
	static const unsigned lasting = IN_FLIGHT_PROMPTS | IN_FLIGHT_TERMINALS;
	char list[LIST_MAX];
	bool is_cut;
	struct sandbox *sandbox = peer->agent ? agent_sandbox(peer->agent) : NULL;
	if (sandbox) {
		sandbox_note_turn(sandbox, find(peer, IN_FLIGHT_PROMPTS, list, &is_cut));
	}
	if (!peer->keeper) {
		return true;
	}
	bool is_lasting = find(peer, lasting, list, &is_cut);
	bool is_any = find(peer, lasting | IN_FLIGHT_ENDING, list, &is_cut);
	char text[TURN_TEXT_MAX];
	text_format(text, sizeof(text), "%s%s", list, is_cut ? cut : "");
	struct turn_text turn = {text, is_lasting};
	return keeper_note_turn(peer->keeper, is_any ? &turn : NULL, err);
}

bool in_flight_has_commands(const struct peer *peer)
{
	return count_commands(peer) > 0;
}

bool in_flight_add_command(struct peer *peer, int change, struct error *err)
{
	int *count = parts_get(&peer->parts, &commands_type);
	*count += change;
	if (in_flight_note(peer, err) || change < 0) {
		return true;
	}
	*count -= change;
	return false;
}

/* ---- waiting for it ---- */

/* Many places end such work. Looking every now and then is simpler than a call in each. */
static const double look_s = 0.02;

struct drain {
	struct peer *peer;
	unsigned kinds;
	double until;      // ev_now
	long long away_ms; // sandbox_away_ms at the start; the time stands still meanwhile
	ev_timer look;
	drain_done *done;
	void *data;
};

static const struct sandbox *sandbox_of(const struct drain *drain)
{
	return agent_sandbox(drain->peer->agent);
}

static double until(const struct drain *drain)
{
	const struct sandbox *sandbox = sandbox_of(drain);
	long long away_ms = sandbox ? sandbox_away_ms(sandbox) - drain->away_ms : 0;
	return drain->until + (double)away_ms / 1000.;
}

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct drain *drain = CONTAINER_OF(timer, struct drain, look);
	char left[IN_FLIGHT_TEXT_MAX];
	bool is_left = in_flight_describe(drain->peer, drain->kinds, left);
	if (is_left && ev_now(loop) < until(drain)) {
		return;
	}
	drain_done *done = drain->done;
	void *data = drain->data;
	drain_destroy(drain);
	done(data, is_left ? left : NULL);
}

struct drain *drain_start(struct peer *peer, unsigned kinds, drain_done *done, void *data)
{
	struct ev_loop *loop = peer->relay->config.loop;
	struct drain *drain = mem_alloc_zero(sizeof(*drain));
	drain->peer = peer;
	drain->kinds = kinds;
	drain->until = ev_now(loop) + peer->relay->config.profile->pause_drain_timeout_ms / 1000.;
	drain->away_ms = sandbox_of(drain) ? sandbox_away_ms(sandbox_of(drain)) : 0;
	drain->done = done;
	drain->data = data;
	ev_timer_init(&drain->look, on_look, 0., look_s);
	ev_timer_start(loop, &drain->look);
	return drain;
}

void drain_destroy(struct drain *drain)
{
	if (drain) {
		ev_timer_stop(drain->peer->relay->config.loop, &drain->look);
		free(drain);
	}
}
