/* SPDX-License-Identifier: MIT */
#include "tests/unit/stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/soon.h"
#include "base/text.h"

enum {
	TURNS = 40,          // of the loop, for all that needs no waiting
	DEADLINE_MS = 30000, // for a test that waits for something
};

struct stage_sandbox {
	struct sandbox sandbox;
	struct stage *stage;
	struct list link; // stage.sandboxes
	const struct sandbox_listener *listener;
	void *data;
	struct soon ready;
	size_t roots_asked;
};

static const char *const environment[] = {"PATH=/bin", NULL};

/* ---- time ---- */

void stage_settle(struct stage *stage)
{
	for (int i = 0; i < TURNS; i++) {
		ev_run(stage->loop, EVRUN_NOWAIT);
	}
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

void stage_wait_turn(struct stage *stage)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.001, 0.);
	ev_timer_start(stage->loop, &tick);
	ev_run(stage->loop, EVRUN_ONCE);
	ev_timer_stop(stage->loop, &tick);
}

void stage_until(struct stage *stage, const bool *flag)
{
	long long deadline = clock_now_ms() + DEADLINE_MS;
	while (!*flag) {
		assert_true(clock_now_ms() < deadline);
		stage_wait_turn(stage);
	}
}

/* ---- sandboxes ---- */

struct stage *stage_of(struct sandbox *sandbox)
{
	return CONTAINER_OF(sandbox, struct stage_sandbox, sandbox)->stage;
}

static struct stage_sandbox *newest(struct stage *stage)
{
	assert_false(list_is_empty(&stage->sandboxes));
	return LIST_ENTRY(stage->sandboxes.prev, struct stage_sandbox, link);
}

static void make_ready(struct stage_sandbox *self)
{
	if (self->stage->ready_error.code != ERROR_NONE) {
		self->listener->on_failed(self->data, &self->stage->ready_error);
		return;
	}
	self->sandbox.capabilities = self->stage->capabilities;
	self->sandbox.no_terminals = self->stage->no_terminals;
	self->sandbox.was_ready = true;
	self->listener->on_ready(self->data);
}

static void on_ready(struct soon *soon)
{
	make_ready(CONTAINER_OF(soon, struct stage_sandbox, ready));
}

void stage_ready(struct stage *stage)
{
	make_ready(newest(stage));
}

void stage_lose(struct stage *stage, const char *text)
{
	struct error err;
	struct stage_sandbox *self = newest(stage);
	error_set(&err, ERROR_UNAVAILABLE, "%s", text);
	self->listener->on_failed(self->data, &err);
}

void stage_lose_link(struct stage *stage, const char *text)
{
	struct error err;
	struct stage_sandbox *self = newest(stage);
	error_set(&err, ERROR_UNAVAILABLE, "%s", text);
	sandbox_note_link(&self->sandbox, false);
	self->listener->on_link_lost(self->data, "box", &err);
}

void stage_find_link(struct stage *stage)
{
	struct stage_sandbox *self = newest(stage);
	sandbox_note_link(&self->sandbox, true);
	self->listener->on_link_back(self->data);
}

int stage_open_sandboxes(const struct stage *stage)
{
	int count = 0;
	LIST_FOR_EACH(self, &stage->sandboxes, struct stage_sandbox, link) {
		count++;
	}
	return count;
}

/* Roots are ready at once; if paths are mapped, they are below "/runtime". */
static void stage_add_root(
	struct sandbox *sandbox, const char *local_root, sandbox_done *done, void *data)
{
	struct stage_sandbox *self = CONTAINER_OF(sandbox, struct stage_sandbox, sandbox);
	const char *base = self->stage->runtime ? self->stage->runtime : "/runtime";
	const char *prefix = sandbox->capabilities.maps_paths ? base : "";
	struct error err = {.code = ERROR_NONE};
	bool is_known = false;
	for (size_t i = 0; i < sandbox->root_count; i++) {
		is_known = is_known || strcmp(sandbox->roots[i].local, local_root) == 0;
	}
	if (strstr(local_root, "missing")) {
		error_set_reason(&err, ERROR_NOT_FOUND, "DIRECTORY_NOT_FOUND",
			"workspace %s: no such directory", local_root);
	} else if (!is_known && self->stage->roots_max > 0 &&
		   sandbox->root_count >= self->stage->roots_max) {
		error_set(&err, ERROR_UNAVAILABLE, "workspace %s: it takes no more", local_root);
	} else if (!is_known) {
		char runtime[FILE_PATH_MAX];
		snprintf(runtime, sizeof(runtime), "%s%s", prefix, local_root);
		sandbox->roots = mem_realloc(
			sandbox->roots, (sandbox->root_count + 1) * sizeof(*sandbox->roots));
		sandbox->roots[sandbox->root_count++] = (struct sandbox_root){
			.local = mem_strdup(local_root), .runtime = mem_strdup(runtime)};
	}
	sandbox_raise_later(sandbox, done, data, err.code == ERROR_NONE ? NULL : &err);
}

static void stage_close(struct sandbox *sandbox)
{
	struct stage_sandbox *self = CONTAINER_OF(sandbox, struct stage_sandbox, sandbox);
	soon_stop(&self->ready);
	for (size_t i = 0; i < sandbox->root_count; i++) {
		free((char *)sandbox->roots[i].local);
		free((char *)sandbox->roots[i].runtime);
	}
	free(sandbox->roots);
	list_remove(&self->link);
	free(self);
}

/* ---- suspending ---- */

static void answer_suspend(struct stage *stage, struct sandbox *sandbox, sandbox_done *done,
	void *data, const struct error *err)
{
	if (stage->holds_suspend) {
		assert_null(stage->held_done);
		stage->held_done = done;
		stage->held_data = data;
	} else if (done) {
		sandbox_raise_later(sandbox, done, data, err);
	}
}

static void stage_suspend(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct stage *stage = stage_of(sandbox);
	bool fails = stage->suspend_error.code != ERROR_NONE;
	stage->suspended += fails ? 0 : 1;
	stage->held_is_suspend = true;
	answer_suspend(stage, sandbox, done, data, fails ? &stage->suspend_error : NULL);
}

/* Also withdraws a suspend that waits. */
static void stage_resume(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	struct stage *stage = stage_of(sandbox);
	struct error err;
	stage->suspended -= stage->suspended > 0 ? 1 : 0;
	error_set_reason(&err, ERROR_UNAVAILABLE, "PAUSE_INTERRUPTED", "it was taken back");
	if (stage->held_done) {
		sandbox_raise_later(sandbox, stage->held_done, stage->held_data,
			stage->held_is_suspend ? &err : NULL);
		stage->held_done = NULL;
	}
	stage->held_is_suspend = false;
	if (done) {
		answer_suspend(stage, sandbox, done, data, NULL);
	}
}

void stage_go_on(struct stage *stage)
{
	sandbox_done *done = stage->held_done;
	stage->held_done = NULL;
	assert_non_null(done);
	done(stage->held_data, NULL);
}

static void stage_withdraw(struct sandbox *sandbox, sandbox_done *done, void *data)
{
	stage_of(sandbox)->withdrawn++;
	sandbox_raise_later(sandbox, done, data, NULL);
}

/* ---- wishes ---- */

static void stage_decide(
	struct sandbox *sandbox, uint32_t id, const struct sandbox_verdict *verdict)
{
	struct stage *stage = stage_of(sandbox);
	text_append(stage->decided, sizeof(stage->decided), "%u %s%s, ", id,
		verdict->is_allowed ? "yes" : "no", verdict->why ? " told" : "");
}

static void stage_look_for_program(struct sandbox *sandbox, uint32_t id)
{
	const struct stage_sandbox *self = CONTAINER_OF(sandbox, struct stage_sandbox, sandbox);
	self->listener->on_program(
		self->data, id, self->stage->program ? self->stage->program : "");
}

void stage_wishes(struct stage *stage, uint32_t id, const char *host, uint16_t port)
{
	const struct stage_sandbox *self = newest(stage);
	const struct sandbox_wish wish = {.id = id, .host = host, .port = port};
	self->listener->on_wish(self->data, &wish);
}

void stage_wish_goes(struct stage *stage, uint32_t id)
{
	const struct stage_sandbox *self = newest(stage);
	self->listener->on_wish_gone(self->data, id);
}

void stage_confine(struct stage *stage)
{
	newest(stage)->sandbox.capabilities.confined = true;
}

void stage_assert_decided(struct stage *stage, const char *expected)
{
	assert_string_equal(stage->decided, expected);
	stage->decided[0] = '\0';
}

/* Finds "/writable/a" for "/writable/a/b/c". */
static bool stage_find_write_hint(
	const struct sandbox *sandbox, const char *path, char out_folder[FILE_PATH_MAX])
{
	static const char start[] = "/writable/";
	size_t len = sizeof(start) - 1;
	return strncmp(path, start, len) == 0 &&
	       text_whole(
		       out_folder, PATH_MAX, "%.*s", (int)(len + strcspn(path + len, "/")), path);
}

static const struct sandbox_impl sandbox_impl = {
	.add_root = stage_add_root,
	.exec = stage_exec,
	.close = stage_close,
	.suspend = stage_suspend,
	.resume = stage_resume,
	.decide = stage_decide,
	.look_for_program = stage_look_for_program,
	.find_write_hint = stage_find_write_hint,
};

static const struct sandbox_impl withdrawing_impl = {
	.add_root = stage_add_root,
	.exec = stage_exec,
	.close = stage_close,
	.withdraw = stage_withdraw,
};

static struct sandbox *stage_prepare(struct provider *provider,
	const struct sandbox_request *request, const struct sandbox_listener *listener, void *data,
	struct error *err)
{
	struct stage *stage = CONTAINER_OF(provider, struct stage, provider);
	stage->prepared++;
	if (stage->prepare_error.code != ERROR_NONE) {
		*err = stage->prepare_error;
		return NULL;
	}
	struct stage_sandbox *self = mem_alloc_zero(sizeof(*self));
	sandbox_init(&self->sandbox, stage->can_withdraw ? &withdrawing_impl : &sandbox_impl,
		stage->loop);
	self->sandbox.home = "/home";
	self->sandbox.environment = environment;
	self->stage = stage;
	self->listener = listener;
	self->data = data;
	list_append(&stage->sandboxes, &self->link);
	soon_init(&self->ready, stage->loop, on_ready);
	if (!stage->holds_ready) {
		soon_start(&self->ready);
	}
	return &self->sandbox;
}

/* ---- life ---- */

static void stage_destroy(struct provider *provider)
{
}

static const struct error_reason reasons[] = {
	{"MOON_HAS_SET", true, "wait for the night"},
	{"MOON_IS_FULL", false, "take another"},
};

static const struct provider_impl provider_impl = {
	.name = "local",
	.network = {.asks = true},
	.reasons = reasons,
	.reason_count = ARRAY_LENGTH(reasons),
	.destroy = stage_destroy,
	.prepare = stage_prepare,
};

void stage_init(struct stage *stage)
{
	static const char *const argv[] = {"/bin/agent", "--acp", NULL};
	struct options options = {.agent_argv = argv};
	struct error err;
	*stage = (struct stage){.provider = {.impl = &provider_impl}};
	stage->capabilities.shares_loopback = true;
	stage->capabilities.is_near = true;
	stage->loop = ev_loop_new(EVFLAG_AUTO);
	stage->registry = registry_create();
	list_init(&stage->sandboxes);
	assert_true(registry_add(stage->registry, &stage->provider, &err));
	if (!config_load(&stage->config, &options, stage->registry, environment, &err)) {
		fail_msg("%s", err.text);
	}
	log_set_level(LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN);
}

void stage_finish(struct stage *stage)
{
	assert_int_equal(stage_open_sandboxes(stage), 0);
	actors_free(stage);
	config_finish(&stage->config);
	registry_destroy(stage->registry);
	ev_loop_destroy(stage->loop);
}

void stage_policy(struct stage *stage, const char *const *lines)
{
	struct settings settings;
	struct error err;
	settings_init(&settings);
	for (; *lines; lines++) {
		char key[16];
		const char *equals = strstr(*lines, " = ");
		assert_non_null(equals);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - *lines), *lines);
		settings_add(&settings, key, equals + 3, "test");
	}
	policy_destroy(stage->config.profile.policy);
	stage->config.profile.policy = policy_create(&settings, &err);
	assert_non_null(stage->config.profile.policy);
	settings_finish(&settings);
}
