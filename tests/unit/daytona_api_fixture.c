/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/support/facts.h"

enum { WAIT_MAX_MS = 60 * 1000, TICK_MS = 2, TEXTS_MAX = 4096 };

struct ev_loop *loop;
struct daytona_api *api;
struct daytona_api_config config;
struct outcome outcome;

static char url[64];
static char *texts[TEXTS_MAX];
static size_t text_count;

/* ---- life ---- */

int api_setup(void **state)
{
	loop = ev_loop_new(0);
	memset(&outcome, 0, sizeof(outcome));
	server_begin(loop);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/api", server_port());
	config = (struct daytona_api_config){.loop = loop,
		.url = url,
		.key = KEY,
		.try_timeout_ms = 30000,
		.timeout_ms = 60000,
		.pause_ms = 4};
	api_again();
	return 0;
}

int api_teardown(void **state)
{
	daytona_api_destroy(api);
	api = NULL;
	server_end();
	ev_loop_destroy(loop);
	while (text_count > 0) {
		free(texts[--text_count]);
	}
	return 0;
}

void api_again(void)
{
	struct error err;
	daytona_api_destroy(api);
	api = daytona_api_create(&config, &err);
	if (!api) {
		fail_msg("%s", err.text);
	}
}

/* ---- outcomes ---- */

static const char *keep(const char *text)
{
	assert_non_null(text);
	assert_true(text_count < TEXTS_MAX);
	texts[text_count] = mem_strdup(text);
	return texts[text_count++];
}

static void set_error(const struct error *err)
{
	outcome.count++;
	outcome.has_failed = err != NULL;
	if (err) {
		outcome.err = *err;
	}
	if (outcome.destroys) {
		daytona_api_destroy(api);
		api = NULL;
	}
}

static void set_sandbox(const struct daytona_sandbox *sandbox)
{
	outcome.sandbox = *sandbox;
	const char **const kept[] = {&outcome.sandbox.id, &outcome.sandbox.name,
		&outcome.sandbox.state, &outcome.sandbox.desired_state,
		&outcome.sandbox.error_reason, &outcome.sandbox.user, &outcome.sandbox.target,
		&outcome.sandbox.snapshot, &outcome.sandbox.created_at,
		&outcome.sandbox.network_allow_list, &outcome.sandbox.domain_allow_list};
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
		*kept[i] = keep(*kept[i]);
	}
	size_t count = 0;
	while (sandbox->labels[count].name) {
		count++;
	}
	struct daytona_pair *labels = mem_alloc_zero((count + 1) * sizeof(*labels));
	texts[text_count++] = (char *)labels;
	for (size_t i = 0; i < count; i++) {
		labels[i] = (struct daytona_pair){.name = keep(sandbox->labels[i].name),
			.value = keep(sandbox->labels[i].value)};
	}
	outcome.sandbox.labels = labels;
}

void on_told(void *data, const struct daytona_sandbox *sandbox, const struct error *err)
{
	assert_true((sandbox == NULL) == (err != NULL));
	if (sandbox) {
		set_sandbox(sandbox);
	}
	set_error(err);
}

void on_told_access(void *data, const struct daytona_access *access, const struct error *err)
{
	assert_true((access == NULL) == (err != NULL));
	if (access) {
		outcome.access = (struct daytona_access){.token = keep(access->token),
			.host = keep(access->host),
			.expires_at = keep(access->expires_at),
			.port = access->port};
	}
	set_error(err);
}

void on_told_done(void *data, const struct error *err)
{
	set_error(err);
}

static void on_sandbox(void *data, const struct daytona_sandbox *sandbox)
{
	size_t used = strlen(outcome.ids);
	snprintf(outcome.ids + used, sizeof(outcome.ids) - used, "%s ", sandbox->id);
	outcome.listed++;
	if (outcome.cancels) {
		daytona_call_cancel(outcome.call);
	}
	if (outcome.destroys) {
		daytona_api_destroy(api);
		api = NULL;
	}
}

const struct daytona_list_listener on_listed = {on_sandbox, on_told_done};

/* ---- calls ---- */

void ask(void)
{
	outcome.count = 0;
	daytona_get(api, "p1", on_told, NULL);
}

void create_one(void)
{
	outcome.count = 0;
	daytona_create(
		api, &(struct daytona_create){.name = "p1", .auto_delete_min = -1}, on_told, NULL);
}

void will_sandbox(void)
{
	server_will_answer(200, "", sandbox_text("e1", "started"));
}

/* ---- time ---- */

static void on_tick(struct ev_loop *of, struct ev_timer *watcher, int events)
{
}

static void turn_until(bool (*is_true)(long long number), long long number)
{
	struct ev_timer tick;
	long long end_ms = clock_now_ms() + WAIT_MAX_MS;
	ev_timer_init(&tick, on_tick, TICK_MS / 1000.0, TICK_MS / 1000.0);
	ev_timer_start(loop, &tick);
	while (!is_true(number) && clock_now_ms() < end_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_true(is_true(number));
}

static bool is_done(long long number)
{
	return outcome.count >= number;
}

static bool has_requests(long long number)
{
	return server_count() >= (size_t)number;
}

static bool is_past(long long number)
{
	return clock_now_ms() >= number;
}

void wait_done(void)
{
	turn_until(is_done, 1);
	assert_int_equal(outcome.count, 1);
}

void wait_requests(size_t count)
{
	turn_until(has_requests, (long long)count);
}

void loop_for_ms(long long ms)
{
	turn_until(is_past, clock_now_ms() + ms);
}

/* ---- expectations ---- */

void expect_done(void)
{
	wait_done();
	if (outcome.has_failed) {
		fail_msg("%s", outcome.err.text);
	}
}

void expect_failed(const char *reason, const char *facts)
{
	wait_done();
	assert_true(outcome.has_failed);
	if (!outcome.err.reason || strcmp(outcome.err.reason, reason) != 0) {
		fail_msg("not %s but %s: %s", reason, outcome.err.reason, outcome.err.text);
	}
	assert_names(outcome.err.text, facts);
	assert_has_not(outcome.err.text, KEY);
	outcome.count = 0;
}

const char *sandbox_text(const char *id, const char *state)
{
	static char text[1024];
	snprintf(text, sizeof(text),
		"{\"id\":\"%s\",\"name\":\"p1\",\"target\":\"us\",\"labels\":{\"a/b\":\"1\"},"
		"\"state\":\"%s\",\"desiredState\":\"started\",\"errorReason\":null,"
		"\"networkAllowList\":null,\"autoStopInterval\":15,\"unknown\":{\"x\":[1]}}",
		id, state);
	return text;
}

void assert_has(const char *text, const char *words)
{
	if (!strstr(text, words)) {
		fail_msg("not there: %s: %s", words, text);
	}
}

void assert_has_not(const char *text, const char *words)
{
	if (strstr(text, words)) {
		fail_msg("there: %s: %s", words, text);
	}
}
