/* SPDX-License-Identifier: MIT */
#include "broker/in_flight.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "broker/relay_turn.h"

static const char cut[] = ", …";

enum { LIST_MAX = IN_FLIGHT_TEXT_MAX - 64 }; // bytes of the list alone

struct in_flight {
	char *text;
	size_t len;
	bool is_cut;
	const struct peer *peer;
};

static void say(struct in_flight *found, const char *format, ...) ATTR_PRINTF(2, 3);
static void say(struct in_flight *found, const char *format, ...)
{
	char item[256];
	const char *between = found->len > 0 ? ", " : "";
	va_list args;
	va_start(args, format);
	vsnprintf(item, sizeof(item), format, args);
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
	if (session->prompts > 0 || relay_turn_has_prompt(found->peer, session)) {
		say(found, "a prompt in session %.180s", session->id);
	}
}

static void add_terminal(void *data, const char *session_id, const char *terminal_id)
{
	say(data, "%s in session %.180s", terminal_id, session_id);
}

bool in_flight_describe(struct peer *peer, char text[IN_FLIGHT_TEXT_MAX])
{
	static const char advice[] = ": cancel it, or wait for its end";
	char list[LIST_MAX] = "";
	struct in_flight found = {.text = list, .peer = peer};
	session_table_visit(&peer->relay->sessions, peer, add_prompt, &found);
	if (peer->toolhost) {
		toolhost_visit_running(peer->toolhost, add_terminal, &found);
	}
	text[0] = '\0';
	if (found.len == 0 && !found.is_cut) {
		return false;
	}
	snprintf(text, IN_FLIGHT_TEXT_MAX, "in flight: %s%s%s", list, found.is_cut ? cut : "",
		advice);
	return true;
}
