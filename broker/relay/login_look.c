/* SPDX-License-Identifier: MIT */
#include "broker/relay/login_look.h"

#include <stdlib.h>

#include "base/json_doc.h"
#include "broker/gate/grant_login.h"

enum {
	DEPTH_MAX = 8,                     // levels of a value that are searched
	URL_ELICITATION_REQUIRED = -32042, // ACP, as in MCP: the error's data has elicitations
};

/* What gets the addresses. */
struct look {
	struct peer *peer;
	const struct session *session; // NULL: unknown
};

static void on_found(void *data, const struct login_url *login)
{
	const struct look *look = data;
	grant_login_offer(look->peer, look->session, login);
}

static void search_text(struct look *look, const char *text)
{
	struct login_scan scan = {.len = 0};
	login_scan_feed(&scan, span_of(text), on_found, look);
	login_scan_end(&scan, on_found, look);
}

static void search(struct look *look, const struct json_doc *doc, json_node node, int depth)
{
	char *text = json_string(doc, node);
	if (text) {
		search_text(look, text);
		free(text);
		return;
	}
	for (json_node child = depth < DEPTH_MAX ? json_first(doc, node) : JSON_NODE_NONE;
		child != JSON_NODE_NONE; child = json_next(doc, child)) {
		search(look, doc, child, depth + 1);
	}
}

bool login_look_elicitation(const struct call *call, struct login_url *out)
{
	if (call->method->tool != USAGE_ELICITATION) {
		return false;
	}
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&call->message, PLACE_PARAMS), NULL);
	char *url = doc && json_string_is(doc, json_get(doc, 0, "mode"), "url")
	                    ? json_string(doc, json_get(doc, 0, "url"))
	                    : NULL;
	bool is_login = url && login_url_read(span_of(url), out);
	free(url);
	json_doc_destroy(doc);
	return is_login;
}

void login_look_greeting(struct peer *peer, const struct call *call)
{
	struct look look = {.peer = peer};
	struct span methods = message_place(&call->message, PLACE_RESULT_AUTH_METHODS);
	struct json_doc *doc = methods.len > 0 && grant_login_is_watched(peer)
	                               ? json_doc_parse_unchecked(methods, NULL)
	                               : NULL;
	if (doc) {
		search(&look, doc, 0, 0);
	}
	json_doc_destroy(doc);
}

void login_look_error(struct peer *peer, const struct request *request, const struct call *call)
{
	if (!call->message.is_error || !grant_login_is_watched(peer)) {
		return;
	}
	struct look look = {
		.peer = peer,
		.session = request->session_id
	                           ? session_find(&peer->relay->sessions, request->session_id)
	                           : NULL,
	};
	struct json_doc *doc =
		json_doc_parse_unchecked(message_place(&call->message, PLACE_ERROR), NULL);
	long long code = doc ? json_int(doc, json_get(doc, 0, "code"), 0) : 0;
	if (code == AUTH_REQUIRED || code == URL_ELICITATION_REQUIRED) {
		search(&look, doc, 0, 0);
	}
	json_doc_destroy(doc);
}
