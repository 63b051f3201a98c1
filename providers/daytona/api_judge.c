/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api_judge.h"

#include <stdio.h>
#include <string.h>

#include "providers/daytona/api_read.h"

enum { PAUSE_DOUBLINGS = 4, FAILED_TRIES_MAX = 3 };

/* ---- no answer ---- */

static bool set_unavailable(struct error *err, const struct daytona_try *tried, const char *why)
{
	return error_set_reason(err, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE", "%s at %s: %s",
		tried->what, tried->host, why);
}

/*
 * A proxy that refuses reports this in its answer to CONNECT; the service does not see the request.
 */
static enum daytona_verdict judge_proxy(
	const struct daytona_try *tried, const struct http_answer *answer, struct error *err)
{
	bool is_passing = answer->proxy_status >= 500;
	error_set_reason(err, is_passing ? ERROR_UNAVAILABLE : ERROR_DENIED,
		is_passing ? "DAYTONA_UNAVAILABLE" : "DAYTONA_REJECTED",
		"%s at %s: the proxy from the environment refused the connection with status %d",
		tried->what, tried->host, answer->proxy_status);
	return is_passing ? DAYTONA_VERDICT_AGAIN : DAYTONA_VERDICT_FAILED;
}

static enum daytona_verdict judge_trouble(
	const struct daytona_try *tried, const struct http_answer *answer, struct error *err)
{
	if (answer->proxy_status != 0) {
		return judge_proxy(tried, answer, err);
	}
	bool is_safe = tried->may_be_twice || !answer->was_sent;
	switch (answer->trouble) {
	case HTTP_UNTRUSTED:
		error_set_reason(err, ERROR_DENIED, "DAYTONA_UNTRUSTED",
			"%s at %s: %s; to use an authority of your own, set SSL_CERT_FILE",
			tried->what, tried->host, answer->why);
		return DAYTONA_VERDICT_FAILED;
	case HTTP_LATE:
		error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"%s at %s: no answer in time (api-timeout): %s", tried->what, tried->host,
			answer->why);
		return is_safe ? DAYTONA_VERDICT_AGAIN : DAYTONA_VERDICT_FAILED;
	case HTTP_UNREADABLE:
		set_unavailable(err, tried, answer->why);
		return DAYTONA_VERDICT_FAILED;
	default: // no connection, or it broke
		set_unavailable(err, tried, answer->why);
		return is_safe ? DAYTONA_VERDICT_AGAIN : DAYTONA_VERDICT_FAILED;
	}
}

/* ---- an answer ---- */

static enum daytona_verdict judge_conflict(
	const struct daytona_try *tried, const char *message, struct error *err)
{
	/* "Sandbox state change in progress"; "… was modified by another operation, please try
	 * again". */
	bool is_passing = strcasestr(message, "in progress") || strcasestr(message, "try again");
	error_set_reason(err, is_passing ? ERROR_TIMEOUT : ERROR_UNAVAILABLE,
		is_passing ? "TIMEOUT_EXCEEDED" : "DAYTONA_CONFLICT", "%s at %s: status 409: %s%s",
		tried->what, tried->host, message, is_passing ? " (until api-timeout ended)" : "");
	return is_passing ? DAYTONA_VERDICT_AGAIN : DAYTONA_VERDICT_FAILED;
}

static enum daytona_verdict judge_limit(const struct daytona_try *tried,
	const struct http_answer *answer, const char *message, struct error *err)
{
	char asks[64] = "";
	if (answer->retry_in_s >= 0) {
		snprintf(asks, sizeof(asks), "; it asks to wait %lld s", answer->retry_in_s);
	}
	error_set_reason(err, ERROR_LIMIT, "DAYTONA_RATE_LIMITED", "%s at %s: status 429: %s%s",
		tried->what, tried->host, message, asks);
	return DAYTONA_VERDICT_AGAIN;
}

/*
 * 403 means forbidden, or that the organization has reached a limit: "Total CPU limit exceeded.
 * Maximum allowed: 10." Stopping or deleting another sandbox frees some of it.
 */
static bool is_over_quota(const char *message)
{
	return strcasestr(message, "limit exceeded") || strcasestr(message, "quota");
}

/* "CPU request 64 exceeds maximum allowed per sandbox (4)": this never becomes possible. */
static bool is_too_much(const char *message)
{
	return strcasestr(message, "exceeds maximum allowed") != NULL;
}

static enum daytona_verdict judge_refusal(const struct daytona_try *tried,
	const struct http_answer *answer, const char *message, struct error *err)
{
	int status = answer->status;
	bool is_own = daytona_is_own_error(answer->body);
	bool is_gone = status == 404 && is_own && !tried->is_creation;
	enum error_code code = ERROR_DENIED;
	const char *reason = "DAYTONA_REJECTED";
	if (status == 400 && strcasestr(message, "no available runners")) {
		code = ERROR_UNAVAILABLE; // there may be one later
		reason = "DAYTONA_UNAVAILABLE";
	} else if (status == 403 && is_over_quota(message)) {
		code = ERROR_LIMIT;
		reason = "DAYTONA_QUOTA_EXCEEDED";
	} else if (status == 401 || (status == 403 && !is_too_much(message))) {
		reason = "DAYTONA_UNAUTHORIZED";
	} else if (is_gone) {
		code = ERROR_NOT_FOUND;
		reason = "SANDBOX_NOT_FOUND";
	}
	const char *hint = "";
	if (status / 100 == 3) {
		hint = " (it redirects to another place, to which the key is not sent: set the URL "
		       "to that place)";
	} else if (status == 401) {
		hint = " (is the key really one of this service? It comes from DAYTONA_API_KEY, "
		       "the variable in api-key-env, api-key-command, or the profile of Daytona's "
		       "CLI; acp-broker check shows from which)";
	} else if (status == 403 && strcmp(reason, "DAYTONA_UNAUTHORIZED") == 0) {
		hint = " (the broker's key needs the permissions write:sandboxes and "
		       "delete:sandboxes)";
	} else if (status == 404 && !is_own) {
		hint = " (is this the URL of the API, in its first version?)";
	}
	error_set_reason(err, code, reason, "%s at %s: status %d: %s%s", tried->what, tried->host,
		status, message, hint);
	return DAYTONA_VERDICT_FAILED;
}

static enum daytona_verdict judge_server(
	const struct daytona_try *tried, int status, const char *message, struct error *err)
{
	/* A 500 may be temporary, or the answer that this call always gets. */
	bool is_passing = status == 408 || status == 502 || status == 503 || status == 504 ||
	                  (status == 500 && tried->tries < FAILED_TRIES_MAX);
	error_set_reason(err, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE", "%s at %s: status %d: %s",
		tried->what, tried->host, status, message);
	return is_passing && tried->may_be_twice ? DAYTONA_VERDICT_AGAIN : DAYTONA_VERDICT_FAILED;
}

enum daytona_verdict daytona_judge(
	const struct daytona_try *tried, const struct http_answer *answer, struct error *err)
{
	if (answer->trouble != HTTP_FINE) {
		return judge_trouble(tried, answer, err);
	}
	if (answer->status / 100 == 2) {
		return DAYTONA_VERDICT_DONE;
	}
	char text[DAYTONA_MESSAGE_MAX];
	const char *message = daytona_read_message(answer->body, tried->key, text);
	message = message[0] ? message : "the service gives no reason";
	if (answer->status == 409) {
		return judge_conflict(tried, message, err);
	}
	if (answer->status == 429) {
		return judge_limit(tried, answer, message, err);
	}
	if (answer->status >= 300 && answer->status < 500 && answer->status != 408) {
		return judge_refusal(tried, answer, message, err);
	}
	return judge_server(tried, answer->status, message, err);
}

bool daytona_may_be_done(const struct http_answer *answer)
{
	int status = answer->status;
	if (answer->trouble != HTTP_FINE) {
		return answer->was_sent && answer->proxy_status == 0;
	}
	return status / 100 == 2 || status == 408 || status >= 500;
}

long long daytona_pause_ms(
	long long first_ms, int tries, unsigned int random, const struct http_answer *answer)
{
	int doublings = tries - 1 < PAUSE_DOUBLINGS ? tries - 1 : PAUSE_DOUBLINGS;
	long long whole = first_ms << doublings;
	long long pause = whole / 2 + (long long)(random % 1024) * (whole - whole / 2) / 1023;
	long long asked = answer->trouble == HTTP_FINE && answer->retry_in_s >= 0
	                          ? answer->retry_in_s * 1000
	                          : 0;
	return asked > pause ? asked + pause / 4 : pause;
}

bool daytona_set_unreadable(struct error *err, const struct daytona_try *tried,
	const struct http_answer *answer, bool is_secret, const char *why)
{
	char text[DAYTONA_MESSAGE_MAX];
	const char *begin = is_secret ? "" : daytona_excerpt(answer->body, tried->key, text);
	return error_set_reason(err, ERROR_UNAVAILABLE, "DAYTONA_UNAVAILABLE",
		"%s at %s: status %d, and an answer that cannot be read; the platform's first "
		"version does not answer like this: %s%s%s",
		tried->what, tried->host, answer->status, why, begin[0] ? "; it begins: " : "",
		begin);
}
