/* SPDX-License-Identifier: MIT */
#include "broker/relay/auth_methods.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_doc.h"
#include "base/json_names.h"
#include "base/log.h"
#include "base/words.h"
#include "broker/agent/login.h"
#include "broker/agent/login_note.h"

/* The new authMethods list. */
struct edit {
	struct peer *peer;
	const struct json_doc *doc;
	struct buf out;
	size_t terminal_count;
	bool runs_here;
	bool has_terminal; // elsewhere: a login can have one there
	bool has_changed;
	bool has_dropped; // for the log: a method was left out that runs where the agent is not
};

static const char terminal_auth[] = "terminal-auth";

static const char *const known_names[] = {"id", "name", "description", "type", "args", "env",
	"vars", "varName", "_meta", terminal_auth, NULL};

/* ---- reading ---- */

static struct span quoted_key(const struct json_doc *doc, json_node member)
{
	struct span inside = json_key(doc, member);
	return (struct span){inside.data - 1, inside.len + 2};
}

static bool key_equals(const struct json_doc *doc, json_node member, const char *name,
	int (*compare)(const char *a, const char *b, size_t len))
{
	struct buf key;
	buf_init(&key, json_key(doc, member).len + 2);
	bool is_it = json_decode_string(quoted_key(doc, member), &key, NULL) &&
	             key.len == strlen(name) && compare(key.data, name, key.len) == 0;
	buf_finish(&key);
	return is_it;
}

static bool key_is(const struct json_doc *doc, json_node member, const char *name)
{
	return key_equals(doc, member, name, strncmp);
}

/* Some readers accept "Type" for "type". */
static bool is_type(const struct json_doc *doc, json_node member)
{
	return key_equals(doc, member, "type", strncasecmp);
}

/* Whether any reader could take it for this type; with two types, some readers use the last. */
static bool has_type(const struct json_doc *doc, json_node method, const char *wanted)
{
	for (json_node member = json_first(doc, method); member != JSON_NODE_NONE;
		member = json_next(doc, member)) {
		char *type = is_type(doc, member) ? json_string(doc, member) : NULL;
		bool is_it = type && strcasecmp(type, wanted) == 0;
		free(type);
		if (is_it) {
			return true;
		}
	}
	return false;
}

static bool check_count(const struct json_doc *doc, json_node list, struct error *err)
{
	return json_count(doc, list) <= LOGIN_WORDS_MAX ||
	       error_set(err, ERROR_LIMIT, "more than %d args or variables", LOGIN_WORDS_MAX);
}

static bool read_args(const struct json_doc *doc, json_node args, char ***words, struct error *err)
{
	bool is_none = args == JSON_NODE_NONE || json_is(doc, args, JSON_NULL);
	if (!is_none && !json_is(doc, args, JSON_ARRAY)) {
		return error_set(err, ERROR_PROTOCOL, "its args are not an array");
	}
	if (!check_count(doc, args, err)) {
		return false;
	}
	for (json_node arg = json_first(doc, args); arg != JSON_NODE_NONE;
		arg = json_next(doc, arg)) {
		char *word = json_string(doc, arg);
		if (!word) {
			return error_set(err, ERROR_PROTOCOL, "its args are not strings");
		}
		words_append(words, word);
		free(word);
	}
	return true;
}

/* Whether a list of NAME=VALUE has the name that begins the entry. */
static bool has_variable(char *const *words, const char *entry)
{
	size_t len = strcspn(entry, "=") + 1;
	while (words && *words && strncmp(*words, entry, len) != 0) {
		words++;
	}
	return words && *words;
}

static bool read_variable(const struct json_doc *doc, struct span quoted_name, json_node value_node,
	char ***words, struct error *err)
{
	struct buf entry;
	char *value = json_string(doc, value_node);
	buf_init(&entry, LOGIN_NOTE_MAX);
	bool ok = value && quoted_name.len > 0 && json_decode_string(quoted_name, &entry, err);
	ok = ok && environment_name_is_valid(entry.data, entry.len) &&
	     buf_append_format(&entry, err, "=%s", value);
	char *text = ok ? mem_strndup(buf_span(&entry)) : NULL;
	ok = ok && !has_variable(*words, text);
	if (ok) {
		words_append(words, text);
	}
	free(text);
	free(value);
	buf_finish(&entry);
	return ok || error_set(err, ERROR_PROTOCOL,
			     "a variable of its env has no name or no value, or is there twice");
}

/* ACP version 1 has an object here, version 2 a list of {name, value}. */
static bool read_env(const struct json_doc *doc, json_node env, char ***words, struct error *err)
{
	bool is_list = json_is(doc, env, JSON_ARRAY);
	bool is_none = env == JSON_NODE_NONE || json_is(doc, env, JSON_NULL);
	if (!is_none && !is_list && !json_is(doc, env, JSON_OBJECT)) {
		return error_set(err, ERROR_PROTOCOL, "its env is neither an object nor a list");
	}
	bool ok = check_count(doc, env, err);
	for (json_node member = json_first(doc, env); ok && member != JSON_NODE_NONE;
		member = json_next(doc, member)) {
		ok = is_list ? read_variable(doc, json_raw(doc, json_get(doc, member, "name")),
				       json_get(doc, member, "value"), words, err)
		             : read_variable(doc, quoted_key(doc, member), member, words, err);
	}
	return ok;
}

/* ---- writing ---- */

static bool put(struct edit *edit, struct span text, struct error *err)
{
	return buf_append(&edit->out, text, err);
}

/* Writes a comma unless this is the first element. */
static bool put_comma(struct edit *edit, struct error *err)
{
	char last = edit->out.data[edit->out.len - 1];
	return last == '[' || last == '{' || put(edit, SPAN_LITERAL(","), err);
}

static bool put_member(struct edit *edit, json_node member, struct error *err)
{
	return put_comma(edit, err) && put(edit, quoted_key(edit->doc, member), err) &&
	       put(edit, SPAN_LITERAL(":"), err) && put(edit, json_raw(edit->doc, member), err);
}

/* Stores the args and env of the login; false if that fails. */
static bool note_login(
	struct edit *edit, json_node method, char token[LOGIN_TOKEN_SIZE], struct error *err)
{
	const struct relay_config *config = &edit->peer->relay->config;
	char **args = NULL;
	char **env = NULL;
	bool ok = read_args(edit->doc, json_get(edit->doc, method, "args"), &args, err) &&
	          read_env(edit->doc, json_get(edit->doc, method, "env"), &env, err) &&
	          login_note_write(config->state_folder,
			  edit->runs_here ? NULL : config->profile->name, args, env, token, err);
	words_free(args);
	words_free(env);
	return ok;
}

/* Without terminal-auth: an editor would run its command here. */
static bool put_meta(struct edit *edit, json_node meta, struct error *err)
{
	bool ok = put_comma(edit, err) && put(edit, SPAN_LITERAL("\"_meta\":{"), err);
	for (json_node member = json_first(edit->doc, meta); ok && member != JSON_NODE_NONE;
		member = json_next(edit->doc, member)) {
		ok = key_is(edit->doc, member, terminal_auth) || put_member(edit, member, err);
	}
	return ok && put(edit, SPAN_LITERAL("}"), err);
}

static bool put_terminal(struct edit *edit, json_node method, const char *token, struct error *err)
{
	json_node meta = edit->runs_here ? JSON_NODE_NONE : json_get(edit->doc, method, "_meta");
	bool ok = put_comma(edit, err) &&
	          buf_append_format(&edit->out, err,
			  "{\"args\":[],\"env\":{\"" LOGIN_MARK "\":\"%s\"}", token);
	for (json_node member = json_first(edit->doc, method); ok && member != JSON_NODE_NONE;
		member = json_next(edit->doc, member)) {
		if (member == meta && json_is(edit->doc, meta, JSON_OBJECT)) {
			ok = put_meta(edit, meta, err);
		} else if (!key_is(edit->doc, member, "args") &&
			   !key_is(edit->doc, member, "env")) {
			ok = put_member(edit, member, err);
		}
	}
	return ok && put(edit, SPAN_LITERAL("}"), err);
}

static bool add_terminal(struct edit *edit, json_node method, struct error *err)
{
	struct error why;
	char token[LOGIN_TOKEN_SIZE];
	const struct json_name_rules rules = {.known = known_names};
	edit->has_changed = true;
	if (!edit->runs_here && !edit->has_terminal) {
		edit->has_dropped = true;
		return true;
	}
	bool ok = ++edit->terminal_count <= AUTH_METHODS_TERMINAL_MAX ||
	          error_set(&why, ERROR_LIMIT, "there are more than %d", AUTH_METHODS_TERMINAL_MAX);
	if (!ok || !json_names_check(json_raw(edit->doc, method), &rules, &why) ||
		!note_login(edit, method, token, &why)) {
		log_failure(LOG_LEVEL_WARNING, &why,
			"%s: a login in the terminal is not offered: %s", edit->peer->hop,
			why.text);
		return true;
	}
	return put_terminal(edit, method, token, err);
}

/* Writes the method without _meta.terminal-auth. */
static bool put_without_command(
	struct edit *edit, json_node method, json_node meta, struct error *err)
{
	bool ok = put_comma(edit, err) && put(edit, SPAN_LITERAL("{"), err);
	for (json_node member = json_first(edit->doc, method); ok && member != JSON_NODE_NONE;
		member = json_next(edit->doc, member)) {
		ok = member == meta ? put_meta(edit, meta, err) : put_member(edit, member, err);
	}
	return ok && put(edit, SPAN_LITERAL("}"), err);
}

static bool is_handed_on(const struct edit *edit, json_node name)
{
	bool is_it = false;
	for (char **known = edit->peer->relay->config.profile->secret_env; known && *known;
		known++) {
		is_it = is_it || json_string_is(edit->doc, name, *known);
	}
	return is_it;
}

/*
 * The editor asks the user for the values of such a method, under the agent's labels, and starts
 * its agent command (the broker) with them. An agent elsewhere gets only those variables of the
 * broker's environment that secret-env names, so it may ask for no others.
 */
static bool check_variables(const struct edit *edit, json_node method, struct error *err)
{
	json_node vars = json_get(edit->doc, method, "vars");
	json_node one = json_get(edit->doc, method, "varName"); // from an earlier draft of ACP
	bool ok = one == JSON_NODE_NONE ? json_count(edit->doc, vars) > 0 : is_handed_on(edit, one);
	ok = ok && (vars == JSON_NODE_NONE || json_is(edit->doc, vars, JSON_ARRAY));
	for (json_node item = json_first(edit->doc, vars); ok && item != JSON_NODE_NONE;
		item = json_next(edit->doc, item)) {
		ok = is_handed_on(edit, json_get(edit->doc, item, "name"));
	}
	return ok ||
	       error_set(err, ERROR_DENIED,
		       "it asks for variables that the agent there would not get: secret-env in "
		       "the profile does not name them");
}

/* Whether the editor may see a method of an agent elsewhere, if its type is not terminal. */
static bool check_far(const struct edit *edit, json_node method, struct error *err)
{
	const struct json_name_rules rules = {.known = known_names};
	return (json_is(edit->doc, method, JSON_OBJECT) ||
		       error_set(err, ERROR_PROTOCOL, "it is not an object")) &&
	       json_names_check(json_raw(edit->doc, method), &rules, err) &&
	       (!has_type(edit->doc, method, "env_var") || check_variables(edit, method, err));
}

/* Adds a method whose type is not terminal. */
static bool add_other(struct edit *edit, json_node method, struct error *err)
{
	struct error why;
	struct span raw = json_raw(edit->doc, method);
	if (!edit->runs_here && !check_far(edit, method, &why)) {
		log_failure(LOG_LEVEL_WARNING, &why, "%s: a login is not offered: %s",
			edit->peer->hop, why.text);
		edit->has_changed = true;
		return true;
	}
	json_node meta = json_get(edit->doc, method, "_meta");
	if (!edit->runs_here && json_get(edit->doc, meta, terminal_auth) != JSON_NODE_NONE) {
		edit->has_changed = true;
		edit->has_dropped = true;
		return put_without_command(edit, method, meta, err);
	}
	return put_comma(edit, err) && put(edit, raw, err);
}

static bool write_list(struct edit *edit, struct error *err)
{
	bool ok = put(edit, SPAN_LITERAL("["), err);
	for (json_node method = json_first(edit->doc, 0); ok && method != JSON_NODE_NONE;
		method = json_next(edit->doc, method)) {
		bool is_object = json_is(edit->doc, method, JSON_OBJECT);
		ok = is_object && has_type(edit->doc, method, "terminal")
		             ? add_terminal(edit, method, err)
		             : add_other(edit, method, err);
	}
	return ok && put(edit, SPAN_LITERAL("]"), err);
}

static bool edit_list(struct edit *edit, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_RESULT_AUTH_METHODS);
	if (!write_list(edit, err)) {
		return false;
	}
	if (edit->has_dropped) {
		const struct sandbox *sandbox = agent_sandbox(edit->peer->agent);
		const char *why = sandbox ? sandbox_no_terminals(sandbox) : NULL;
		log_info("%s: its login in a terminal is not offered to the editor, because %s: "
			 "log in there",
			edit->peer->hop,
			edit->has_terminal ? "the agent names its command for this machine"
			: why              ? why
					   : "the agent does not run on this machine");
	}
	return !edit->has_changed ||
	       splice_add(call->edits, hit->start, hit->end, buf_span(&edit->out), err);
}

/* Some editors accept "AuthMethods" for "authMethods". */
static bool check_result(const struct call *call, struct error *err)
{
	static const char *const known[] = {
		"protocolVersion", "agentCapabilities", "agentInfo", "authMethods", "_meta", NULL};
	const struct json_name_rules rules = {.known = known, .is_flat = true};
	struct error why;
	return json_names_check(message_place(&call->message, PLACE_RESULT), &rules, &why) ||
	       error_set_reason(err, ERROR_PROTOCOL, "PROTOCOL_UNSUPPORTED",
		       "the agent's answer to initialize: %s", why.text);
}

bool auth_methods_edit(struct peer *peer, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_RESULT_AUTH_METHODS);
	const struct sandbox *sandbox = agent_sandbox(peer->agent);
	struct edit edit = {
		.peer = peer,
		.runs_here = sandbox && !sandbox_capabilities(sandbox)->confined,
		.has_terminal = sandbox && sandbox_capabilities(sandbox)->has_terminals,
	};
	if (!edit.runs_here && !check_result(call, err)) {
		return false;
	}
	if (!hit) {
		return true;
	}
	struct json_doc *doc = json_doc_parse_unchecked(
		message_place(&call->message, PLACE_RESULT_AUTH_METHODS), err);
	if (!doc) {
		return error_prefix(err, "initialize: authMethods");
	}
	edit.doc = doc;
	buf_init(&edit.out, SPLICE_BYTES_MAX);
	bool ok = !json_is(doc, 0, JSON_ARRAY) || edit_list(&edit, call, err);
	buf_finish(&edit.out);
	json_doc_destroy(doc);
	return ok;
}
