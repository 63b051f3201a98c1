/* SPDX-License-Identifier: MIT */
#include "broker/relay/error_hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acp/failure.h"
#include "base/buf.h"
#include "base/environment.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/mask.h"
#include "base/text.h"
#include "broker/config/known_agents.h"
#include "broker/relay/opens.h"

enum { HINT_SIZE = 1024, REFUSAL_MAX = 200 }; // bytes

static const char login_env[] = "login-env";
static const char agent_state[] = "agent-state";

/*
 * For an agent in a cell on this machine: its login is a file that is copied in when the cell is
 * made.
 */
static const char *hint_of_cell(const struct settings *settings, char text[HINT_SIZE])
{
	const char *name = settings_get(settings, agent_state);
	const struct known_agent *known = name ? known_agent_find(name) : NULL;
	if (!known) {
		return "acp-broker: this agent is confined, and its home has no login. In the "
		       "profile, agent-state = NAME gives it the login of that agent, and "
		       "secret-env = NAME passes on a variable with a key";
	}
	text_format(text, HINT_SIZE,
		"acp-broker: this agent is confined, and cannot log in there. Log in "
		"outside: type %s in a terminal%s%s, then start the agent again. It gets its login "
		"(agent-state = %s)",
		known->login, known->login_step ? " and choose " : "",
		known->login_step ? known->login_step : "", name);
	return text;
}

/* None of these texts needs an escape in JSON. */
static const char *hint_of(const struct relay *relay, char text[HINT_SIZE])
{
	size_t count;
	const struct setting_key *keys = provider_keys(relay->config.provider, &count);
	if (setting_key_find(keys, count, agent_state)) {
		return hint_of_cell(&relay->config.profile->settings, text);
	}
	if (!setting_key_find(keys, count, login_env)) {
		return "acp-broker: this agent runs in its own sandbox, without your variables "
		       "and files. In the profile, secret-env = NAME passes on a variable, "
		       "and copy = FILE copies a file there";
	}
	if (!settings_find(&relay->config.profile->settings, login_env)) {
		return "acp-broker: this agent runs on another host, and gets none of the "
		       "variables that your login files there export. In the profile, login-env = "
		       "NAME (or all) passes them on, secret-env = NAME passes on one from here, "
		       "and copy = FILE copies a file there; or log in there";
	}
	return "acp-broker: this agent runs on another host. Of the variables that your login "
	       "files there export it gets those that login-env in the profile names; secret-env = "
	       "NAME passes on one from here, and copy = FILE copies a file there; or log in there";
}

/* The end of the error message's text in the frame; 0 if it has none, or another code. */
static size_t end_of_message(const struct call *call, long long code)
{
	struct span error = message_place(&call->message, PLACE_ERROR);
	struct json_doc *doc = json_doc_parse_unchecked(error, NULL);
	if (!doc) {
		return 0;
	}
	size_t end = 0;
	json_node message = json_get(doc, 0, "message");
	if (json_int(doc, json_get(doc, 0, "code"), 0) == code &&
		json_is(doc, message, JSON_STRING)) {
		struct span text = json_raw(doc, message);
		size_t start = message_hit(&call->message, PLACE_ERROR)->start;
		end = start + (size_t)(text.data - error.data) + text.len - 1;
	}
	json_doc_destroy(doc);
	return end;
}

static bool add_login_hint(struct peer *peer, const struct call *call, size_t at, struct error *err)
{
	char text[HINT_SIZE + 16];
	char own[HINT_SIZE];
	const char *hint = hint_of(peer->relay, own);
	log_warning("%s: the agent is not logged in. %s", peer->hop, hint);
	text_format(text, sizeof(text), " (%s)", hint);
	return splice_add(call->edits, at, at, span_of(text), err);
}

/* ---- root ---- */

/*
 * The newest line of the agent's stderr that says that it refuses to work as root; empty if there
 * is none.
 */
static struct span find_refusal_of_root(struct span words)
{
	static const char *const signs[] = {"as root", "with root", "by root"};
	struct span found = {words.data, 0};
	while (words.len > 0) {
		const char *end = memchr(words.data, '\n', words.len);
		size_t len = end ? (size_t)(end - words.data) : words.len;
		for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
			if (len <= REFUSAL_MAX &&
				memmem(words.data, len, signs[i], strlen(signs[i]))) {
				found = (struct span){words.data, len};
			}
		}
		words.data += end ? len + 1 : len;
		words.len -= end ? len + 1 : len;
	}
	return found;
}

static bool add_refusal(const struct call *call, size_t at, struct span refusal, struct error *err)
{
	struct buf text;
	struct json_writer writer;
	char *line = mask_line(refusal);
	buf_init(&text, 8 * HINT_SIZE);
	json_write_begin(&writer, &text);
	char whole[HINT_SIZE];
	text_format(whole, sizeof(whole),
		" (acp-broker: the agent said: %s. It has to run as a user who is not root)", line);
	json_write_text(&writer, whole);
	struct span quoted = buf_span(&text);
	bool ok = json_write_end(&writer, err) &&
	          splice_add(
			  call->edits, at, at, (struct span){quoted.data + 1, quoted.len - 2}, err);
	buf_finish(&text);
	free(line);
	return ok;
}

/*
 * Whether the agent's user may be root. About another host only variables of the environment give a
 * hint.
 */
static bool may_be_root(const struct sandbox *sandbox)
{
	static const char *const names[] = {"USER", "LOGNAME"};
	const struct sandbox_capabilities *can = sandbox_capabilities(sandbox);
	if (can->is_near) {
		return geteuid() == 0 && !can->confined; // a cell's user is never root
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *user = environment_get(sandbox_environment(sandbox), names[i]);
		if (user && strcmp(user, "root") != 0) {
			return false;
		}
	}
	return true;
}

bool error_hint_edit(struct peer *peer, const struct request *request, const struct call *call,
	struct error *err)
{
	if (!call->message.is_error) {
		return true;
	}
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	bool is_elsewhere = sandbox && sandbox_capabilities(sandbox)->confined;
	size_t at = is_elsewhere ? end_of_message(call, AUTH_REQUIRED) : 0;
	if (at > 0) {
		return add_login_hint(peer, call, at, err);
	}
	bool is_roots = sandbox && may_be_root(sandbox);
	at = is_roots && opens_find(request) ? end_of_message(call, RPC_INTERNAL_ERROR) : 0;
	if (at == 0) {
		return true;
	}
	struct span refusal = find_refusal_of_root(agent_last_words(peer->agent));
	return refusal.len == 0 || add_refusal(call, at, refusal, err);
}
