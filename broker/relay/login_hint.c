/* SPDX-License-Identifier: MIT */
#include "broker/relay/login_hint.h"

#include <stdio.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "base/text.h"
#include "broker/config/known_agents.h"

enum { HINT_SIZE = 1024 };

static const char login_env[] = "login-env";
static const char agent_state[] = "agent-state";

/* In a cell of this machine: its login is a file that goes in when the cell is made. */
static const char *hint_of_cell(const struct settings *settings, char text[HINT_SIZE])
{
	const char *name = settings_get(settings, agent_state);
	const struct known_agent *known = name ? known_agent_find(name) : NULL;
	if (!known) {
		return "acp-broker: this agent is confined, and its home has no login. In the "
		       "profile, agent-state = NAME says whose login it gets, and secret-env = "
		       "NAME hands on a variable with a key";
	}
	text_format(text, HINT_SIZE,
		"acp-broker: this agent is confined, and cannot be logged in from there. Log in "
		"outside: type %s in a terminal%s%s, then start the agent again. Its login goes in "
		"(agent-state = %s)",
		known->login, known->login_step ? " and choose " : "",
		known->login_step ? known->login_step : "", name);
	return text;
}

/* No character of these needs an escape in JSON. */
static const char *hint_of(const struct relay *relay, char text[HINT_SIZE])
{
	size_t count;
	const struct setting_key *keys = provider_keys(relay->config.provider, &count);
	if (setting_key_find(keys, count, agent_state)) {
		return hint_of_cell(&relay->config.profile->settings, text);
	}
	if (!setting_key_find(keys, count, login_env)) {
		return "acp-broker: this agent runs in a sandbox of its own, without the variables "
		       "and files of yours. In the profile, secret-env = NAME hands on a variable, "
		       "and copy = FILE brings a file there";
	}
	if (!settings_find(&relay->config.profile->settings, login_env)) {
		return "acp-broker: this agent runs on another host, and gets none of the "
		       "variables "
		       "that your login files there export. In the profile, login-env = NAME (or "
		       "all) hands them on, secret-env = NAME hands on one from here, and copy = "
		       "FILE brings a file there; or log in there";
	}
	return "acp-broker: this agent runs on another host. Of the variables that your login "
	       "files "
	       "there export it gets what login-env in the profile names; secret-env = NAME hands "
	       "on one from here, and copy = FILE brings a file there; or log in there";
}

/* Where the text of the error's message ends, in the frame; 0: it has none. */
static size_t end_of_message(const struct call *call)
{
	struct span error = message_place(&call->message, PLACE_ERROR);
	struct json_doc *doc = json_doc_parse_unchecked(error, NULL);
	if (!doc) {
		return 0;
	}
	size_t end = 0;
	json_node message = json_get(doc, 0, "message");
	if (json_int(doc, json_get(doc, 0, "code"), 0) == AUTH_REQUIRED &&
		json_is(doc, message, JSON_STRING)) {
		struct span text = json_raw(doc, message);
		size_t start = message_hit(&call->message, PLACE_ERROR)->start;
		end = start + (size_t)(text.data - error.data) + text.len - 1;
	}
	json_doc_destroy(doc);
	return end;
}

bool login_hint_edit(struct peer *peer, const struct call *call, struct error *err)
{
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	bool is_elsewhere = sandbox && sandbox_capabilities(sandbox)->confined;
	size_t at = call->message.is_error && is_elsewhere ? end_of_message(call) : 0;
	if (at == 0) {
		return true;
	}
	char text[HINT_SIZE + 16];
	char own[HINT_SIZE];
	const char *hint = hint_of(peer->relay, own);
	log_warning("%s: the agent is not logged in. %s", peer->hop, hint);
	text_format(text, sizeof(text), " (%s)", hint);
	return splice_add(call->edits, at, at, span_of(text), err);
}
