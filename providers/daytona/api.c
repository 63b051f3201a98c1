/* SPDX-License-Identifier: MIT */
#include "providers/daytona/api.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "providers/daytona/api_impl.h"
#include "providers/daytona/api_judge.h"
#include "providers/daytona/api_write.h"

static const char user_agent[] = "User-Agent: acp-broker/" ACP_BROKER_VERSION;

enum { PAUSE_MS = 500, KEY_MAX = 16 << 10, UNAUTHORIZED = 401 };

/* ---- the API ---- */

static bool is_header_word(const char *text)
{
	size_t len = 0;
	for (; text[len]; len++) {
		if ((unsigned char)text[len] <= ' ' || (unsigned char)text[len] >= 0x7f) {
			return false;
		}
	}
	return len > 0 && len <= KEY_MAX;
}

bool daytona_key_is_jwt(const char *key)
{
	const char *dot = strchr(key, '.');
	const char *second = dot ? strchr(dot + 1, '.') : NULL;
	return second && !strchr(second + 1, '.');
}

/*
 * libcurl, the cipher library and the kernel have copies of the key, and the environment with which
 * this process started has one. Only a core without any memory contains none of them (core(5)).
 * Making the process undumpable would suffice, too, but then no other process could see which
 * broker holds a session.
 */
static void keep_out_of_cores(void)
{
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "0", 1) == 1;
	fd_close(&fd);
	if (!ok) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
}

static bool check(const struct daytona_api_config *config, struct error *err)
{
	assert(config->try_timeout_ms > 0 && config->timeout_ms > 0);
	if (!is_header_word(config->key)) {
		return error_set(err, ERROR_CONFIG,
			"the key of Daytona's API is empty, too long, or contains bytes that no "
			"key has");
	}
	if (config->organization && !is_header_word(config->organization)) {
		return error_set(err, ERROR_CONFIG,
			"the organization's id is empty, too long, or contains bytes that no id "
			"has");
	}
	return true;
}

static char *header_of(const char *name, const char *value)
{
	size_t size = strlen(name) + strlen(value) + 1;
	char *header = mem_alloc(size);
	text_whole(header, size, "%s%s", name, value);
	return header;
}

/* The headers of every request; the caller wipes them. */
static char **headers_of(const char *key, const char *organization)
{
	char **headers = NULL;
	char *authorization = header_of("Authorization: Bearer ", key);
	words_append(&headers, authorization);
	words_append(&headers, "Accept: application/json");
	words_append(&headers, user_agent);
	if (organization && daytona_key_is_jwt(key)) {
		char *header = header_of("X-Daytona-Organization-ID: ", organization);
		words_append(&headers, header);
		free(header);
	}
	mem_wipe_free(authorization);
	return headers;
}

struct daytona_api *daytona_api_create(const struct daytona_api_config *config, struct error *err)
{
	if (!check(config, err)) {
		return NULL;
	}
	keep_out_of_cores();
	char **headers = headers_of(config->key, config->organization);
	struct http_config http_config = {.loop = config->loop,
		.url = config->url,
		.headers = (const char *const *)headers,
		.environment = config->environment};
	struct http *http = http_create(&http_config, err);
	words_wipe_free(headers);
	if (!http) {
		return NULL;
	}
	struct daytona_api *api = mem_alloc_zero(sizeof(*api));
	api->loop = config->loop;
	api->http = http;
	api->key = mem_strdup(config->key);
	api->organization = mem_strdup_or_null(config->organization);
	if (config->command) {
		api->command = *config->command;
		api->command.line = mem_strdup(config->command->line);
	}
	api->try_timeout_ms = config->try_timeout_ms;
	api->timeout_ms = config->timeout_ms;
	api->pause_ms = config->pause_ms > 0 ? config->pause_ms : PAUSE_MS;
	list_init(&api->calls);
	return api;
}

void daytona_api_destroy(struct daytona_api *api)
{
	if (!api) {
		return;
	}
	LIST_FOR_EACH(call, &api->calls, struct daytona_call, link) {
		daytona_call_cancel(call);
	}
	daytona_key_cancel(api->wait);
	http_destroy(api->http);
	mem_wipe_free(api->key);
	free(api->organization);
	free((char *)api->command.line);
	free(api);
}

const char *daytona_api_key(const struct daytona_api *api)
{
	return api->key;
}

long long daytona_api_asked_ms(const struct daytona_api *api)
{
	return api->asked_ms;
}

bool daytona_api_may_be_done(const struct daytona_api *api)
{
	return api->may_be_done;
}

int daytona_api_status(const struct daytona_api *api)
{
	return api->status;
}

/* ---- end of a call ---- */

/* Stops everything; the code that raises the end frees the call. */
static void call_detach(struct daytona_call *call)
{
	if (call->api) {
		ev_timer_stop(call->api->loop, &call->timer);
		http_cancel(call->transfer);
		call->transfer = NULL;
		list_remove(&call->link);
		call->api = NULL;
	}
}

void daytona_call_free(struct daytona_call *call)
{
	call_detach(call);
	for (struct daytona_pair *label = call->list.labels; label && label->name; label++) {
		free((char *)label->name);
		free((char *)label->value);
	}
	free(call->list.labels);
	free(call->list.cursor);
	buf_finish(&call->path);
	buf_finish(&call->body);
	free(call->what);
	free(call);
}

void daytona_call_cancel(struct daytona_call *call)
{
	if (call && call->is_raising) {
		call_detach(call);
	} else if (call) {
		daytona_call_free(call);
	}
}

/* ---- an attempt ---- */

static void fail(struct daytona_call *call, struct error *err)
{
	if (call->tries > 1) {
		struct error whole = *err;
		error_set_reason(err, whole.code, whole.reason, "%s (tried %d times in %lld ms)",
			whole.text, call->tries, clock_now_ms() - call->begun_ms);
	}
	call->kind->fail(call, err);
}

static void try_later(struct daytona_call *call, long long pause_ms)
{
	ev_now_update(call->api->loop);
	ev_timer_set(&call->timer, (double)pause_ms / 1000, 0);
	ev_timer_start(call->api->loop, &call->timer);
}

static unsigned int any_number(void)
{
	unsigned int number = 0;
	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return number;
}

static struct daytona_try try_of(const struct daytona_call *call)
{
	return (struct daytona_try){
		.what = call->what,
		.host = http_host(call->api->http),
		.key = call->api->key,
		.is_creation = call->kind->traits & DAYTONA_CALL_CREATION,
		.may_be_twice = !(call->kind->traits & DAYTONA_CALL_ONCE),
		.tries = call->tries,
	};
}

/* ---- another key ---- */

static bool take_key(struct daytona_api *api, const char *key)
{
	if (strcmp(key, api->key) == 0 || !is_header_word(key)) {
		return false;
	}
	char **headers = headers_of(key, api->organization);
	http_set_headers(api->http, (const char *const *)headers);
	words_wipe_free(headers);
	mem_wipe_free(api->key);
	api->key = mem_strdup(key);
	api->key_number++;
	return true;
}

/* Every call that waits for the key is repeated, or fails, in a separate turn of the loop. */
static void on_key(void *data, const char *key, const struct error *err)
{
	struct daytona_api *api = data;
	api->wait = NULL;
	api->is_refused = !key || !take_key(api, key);
	LIST_FOR_EACH(call, &api->calls, struct daytona_call, link) {
		if (!call->waits_for_key) {
			continue;
		}
		call->waits_for_key = false;
		call->deadline_ms += clock_now_ms() - call->key_asked_ms;
		if (api->is_refused) {
			call->unfit = call->before;
			error_set_reason(&call->unfit, call->before.code, call->before.reason,
				"%s; api-key-command was run again: %s", call->before.text,
				err   ? err->text
				: key ? "it printed no new key"
				      : "");
		}
		try_later(call, 0);
	}
}

/* Whether the call waits for another key, or is repeated with one that has come meanwhile. */
static bool waits_for_key(
	struct daytona_call *call, const struct http_answer *answer, const struct error *err)
{
	struct daytona_api *api = call->api;
	bool is_old = call->key_number != api->key_number;
	if (answer->trouble != HTTP_FINE || answer->status != UNAUTHORIZED || !api->command.line ||
		call->had_other_key || (api->is_refused && !is_old)) {
		return false;
	}
	call->had_other_key = true;
	if (is_old) {
		try_later(call, 0);
		return true;
	}
	log_failure(LOG_LEVEL_INFO, err, "%s: getting another key from api-key-command", err->text);
	call->before = *err;
	call->waits_for_key = true;
	call->key_asked_ms = clock_now_ms();
	if (!api->wait) {
		api->wait = daytona_key_ask(&api->command, api->key, on_key, api);
	}
	return true;
}

static void on_answer(void *data, const struct http_answer *answer)
{
	struct daytona_call *call = data;
	struct daytona_try tried = try_of(call);
	struct error err;
	call->transfer = NULL;
	bool asks = answer->trouble == HTTP_FINE && answer->retry_in_s > 0;
	call->api->status = answer->trouble == HTTP_FINE ? answer->status : 0;
	call->api->asked_ms = asks ? answer->retry_in_s * 1000 : 0;
	call->api->may_be_done = daytona_may_be_done(answer);
	enum daytona_verdict verdict = daytona_judge(&tried, answer, &err);
	if (verdict == DAYTONA_VERDICT_DONE) {
		call->api->is_refused = false;
		if (!call->kind->read(call, answer, &err)) {
			char why[128];
			text_format(why, sizeof(why), "%s", err.text);
			bool is_secret = call->kind->traits & DAYTONA_CALL_SECRET;
			daytona_set_unreadable(&err, &tried, answer, is_secret, why);
			fail(call, &err);
		}
		return;
	}
	if (verdict == DAYTONA_VERDICT_AGAIN) {
		long long pause =
			daytona_pause_ms(call->api->pause_ms, call->tries, any_number(), answer);
		if (clock_now_ms() + pause < call->deadline_ms) {
			if (call->tries == 1 && err.code == ERROR_UNAVAILABLE) {
				log_failure(LOG_LEVEL_WARNING, &err,
					"%s: trying again, for %lld s at most", err.text,
					(call->deadline_ms - clock_now_ms()) / 1000);
			}
			call->before = err;
			try_later(call, pause);
			return;
		}
		/* The trouble that lasted the whole time says more than a timeout. */
		bool is_over = answer->trouble == HTTP_LATE && call->is_cut_short;
		err = is_over && call->before.code != ERROR_NONE ? call->before : err;
	}
	if (!waits_for_key(call, answer, &err)) {
		fail(call, &err);
	}
}

static void call_try(struct daytona_call *call)
{
	struct daytona_api *api = call->api;
	long long left = call->deadline_ms - clock_now_ms();
	left = left < 1 ? 1 : left;
	call->is_cut_short = left < api->try_timeout_ms;
	struct http_request request = {
		.method = call->kind->method,
		.path = call->path.data,
		.body = buf_span(&call->body),
		.timeout_ms = call->is_cut_short ? left : api->try_timeout_ms,
		.is_fresh = call->kind->traits & DAYTONA_CALL_ONCE,
	};
	call->tries++;
	call->key_number = api->key_number;
	call->transfer = http_start(api->http, &request, on_answer, call);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	struct daytona_call *call = CONTAINER_OF(watcher, struct daytona_call, timer);
	if (call->unfit.code != ERROR_NONE) {
		struct error err = call->unfit;
		fail(call, &err);
	} else {
		call_try(call);
	}
}

/* ---- start of a call ---- */

struct daytona_call *daytona_call_create(
	struct daytona_api *api, const struct daytona_call_kind *kind, void *data)
{
	struct daytona_call *call = mem_alloc_zero(sizeof(*call));
	call->api = api;
	call->kind = kind;
	call->data = data;
	buf_init(&call->path, DAYTONA_PATH_MAX);
	buf_init(&call->body, DAYTONA_BODY_MAX);
	ev_timer_init(&call->timer, on_timer, 0, 0);
	list_append(&api->calls, &call->link);
	return call;
}

static void set_what(struct daytona_call *call)
{
	struct span path = buf_span(&call->path);
	const char *query = path.len > 0 ? memchr(path.data, '?', path.len) : NULL;
	int len = (int)(query ? query - path.data : (long)path.len);
	char what[256];
	text_format(what, sizeof(what), "%s %.*s", call->kind->method, len,
		path.len > 0 ? path.data : "");
	mem_set_text(&call->what, what);
}

void daytona_call_go_on(struct daytona_call *call, bool ok)
{
	set_what(call);
	call->tries = 0;
	call->before.code = ERROR_NONE;
	if (ok && buf_append(&call->path, (struct span){"", 1}, &call->unfit)) {
		call->unfit.code = ERROR_NONE;
	} else {
		error_prefix(&call->unfit, "%s", call->what);
	}
	try_later(call, 0);
}

struct daytona_call *daytona_call_begin(struct daytona_call *call, bool ok)
{
	call->begun_ms = clock_now_ms();
	call->deadline_ms = call->begun_ms + call->api->timeout_ms;
	daytona_call_go_on(call, ok);
	return call;
}
