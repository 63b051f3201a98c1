/* SPDX-License-Identifier: MIT */
#include "broker/relay/login_hint.h"

#include <stdio.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "base/text.h"

static const char login_env[] = "login-env";

/* No character of these needs an escape in JSON. */
static const char *hint_of(const struct relay *relay)
{
	size_t count;
	const struct setting_key *keys = provider_keys(relay->config.provider, &count);
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
	char text[1024];
	const char *hint = hint_of(peer->relay);
	log_warning("%s: the agent is not logged in. %s", peer->hop, hint);
	text_format(text, sizeof(text), " (%s)", hint);
	return splice_add(call->edits, at, at, span_of(text), err);
}
