/* SPDX-License-Identifier: MIT */
#include "tests/unit/transport_fixture.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "tests/support/fake/fake.h"

enum { DEADLINE_S = 120 };

static struct spawner *spawner;
static struct ev_loop *loop;
static struct pool *pool;

int stage_group_setup(void **state)
{
	struct error err;
	spawner = spawner_create(&err);
	signal(SIGPIPE, SIG_IGN);
	loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, loop);
	pool = pool_create(loop);
	/*
	 * libgit2 frees its data of each thread together with the thread, if it is loaded until
	 * then.
	 */
	return spawner && git_open(&err) ? 0 : -1;
}

int stage_group_teardown(void **state)
{
	pool_destroy(pool);
	git_close();
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	return 0;
}

/* ---- waiting ---- */

static void on_deadline(struct ev_loop *which, ev_timer *timer, int events)
{
	*(bool *)timer->data = true;
}

static void run_until(const bool *flag)
{
	bool is_late = false;
	ev_timer timer;
	ev_timer_init(&timer, on_deadline, DEADLINE_S, 0.);
	timer.data = &is_late;
	ev_timer_start(loop, &timer);
	while (!*flag && !is_late) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &timer);
	assert_true(*flag);
}

static void finish(struct stage *stage, const struct error *err)
{
	assert_false(stage->is_done);
	stage->is_done = true;
	stage->failed = err != NULL;
	if (err) {
		stage->err = *err;
	}
}

void stage_on_done(void *data, const struct error *err)
{
	finish(data, err);
}

void stage_on_collected(
	void *data, const struct transport_collected *collected, const struct error *err)
{
	struct stage *stage = data;
	if (collected) {
		stage->collected = *collected;
	}
	finish(stage, err);
}

void stage_on_delivered(
	void *data, const struct transport_delivered *delivered, const struct error *err)
{
	struct stage *stage = data;
	if (delivered) {
		stage->delivered = *delivered;
	}
	stage->stuck[0] = '\0';
	for (size_t i = 0; err && delivered && i < delivered->stuck->count; i++) {
		size_t len = strlen(stage->stuck);
		snprintf(stage->stuck + len, sizeof(stage->stuck) - len, "%s\n",
			delivered->stuck->paths[i].path);
	}
	finish(stage, err);
}

void stage_wait(struct stage *stage)
{
	assert_false(stage->is_done);
	run_until(&stage->is_done);
	stage->is_done = false;
}

static void expect_success(struct stage *stage)
{
	stage_wait(stage);
	if (stage->failed) {
		fail_msg("%s", stage->err.text);
	}
}

static void expect_failure(struct stage *stage, enum error_code code, const char *words)
{
	stage_wait(stage);
	assert_true(stage->failed);
	if (stage->err.code != code || !strstr(stage->err.text, words)) {
		fail_msg("error %d \"%s\", expected %d with \"%s\"", (int)stage->err.code,
			stage->err.text, (int)code, words);
	}
}

void stage_prepare(struct stage *stage)
{
	transport_prepare(stage->transport, stage_on_done, stage);
	expect_success(stage);
}

git_oid stage_collect(struct stage *stage, const git_oid *base)
{
	transport_collect(stage->transport, base, stage_on_collected, stage);
	expect_success(stage);
	return stage->collected.tree;
}

void stage_deliver(struct stage *stage, const git_oid *from, const git_oid *to)
{
	transport_deliver(stage->transport, from, to, stage_on_delivered, stage);
	expect_success(stage);
}

const char stage_awkward[] =
	"echo a > a; printf 'x\\r\\ny\\n' > crlf; printf '#!' > run; chmod +x run\n"
	"mkdir -p d/e; ln -s ../nowhere d/link; ln -s /etc/passwd out; : > d/e/empty\n"
	"printf new > \"$(printf 'd/new\\nline')\"; printf raw > \"$(printf 'd/\\377\\376')\"\n"
	"printf q > 'd/\"quoted\\'; echo o > -n; echo p > '('; echo s > ' '; echo c > a:b\n"
	"echo w > '*'; echo h > '#h'; echo e > '!e'; echo b > '\\#'; mkdir ' d'; echo x > ' d/ '\n"
	"printf '* text=auto eol=crlf filter=evil\\n' > .gitattributes\n"
	"mkdir sub; cd sub; git init -q; echo n > nested; git add .; git commit -qm x\n";

git_oid stage_send_first(struct stage *stage, const char *script)
{
	place_run(stage->place, script);
	git_oid tree = place_take(stage->place, NULL);
	stage_prepare(stage);
	git_oid there = stage_collect(stage, &store_empty_tree);
	stage_assert_same(&there, &store_empty_tree);
	stage_deliver(stage, &store_empty_tree, &tree);
	return tree;
}

void stage_collect_fails(
	struct stage *stage, const git_oid *base, enum error_code code, const char *words)
{
	transport_collect(stage->transport, base, stage_on_collected, stage);
	expect_failure(stage, code, words);
}

void stage_deliver_fails(struct stage *stage, const git_oid *from, const git_oid *to,
	enum error_code code, const char *words)
{
	transport_deliver(stage->transport, from, to, stage_on_delivered, stage);
	expect_failure(stage, code, words);
}

/* ---- set-up ---- */

static void on_ready(void *data)
{
	((struct stage *)data)->is_done = true;
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static const struct sandbox_listener listener = {.on_ready = on_ready, .on_failed = on_failed};

static void start_sandbox(struct stage *stage)
{
	struct error err;
	struct sandbox_request request = {.profile = "test", .settings = &stage->settings};
	stage->provider = fake_provider_create(&stage->context);
	struct fake_behaviour *behaviour = fake_behaviour(stage->provider);
	snprintf(behaviour->runtime_root, sizeof(behaviour->runtime_root), "%s/runtime",
		stage->place->folder);
	behaviour->read_chunk = 4096;
	behaviour->delay_ms = 1;
	stage->sandbox = sandbox_prepare(stage->provider, &request, &listener, stage, &err);
	assert_non_null(stage->sandbox);
	stage_wait(stage);
	sandbox_add_root(stage->sandbox, stage->place->root, stage_on_done, stage);
	expect_success(stage);
	stage->root = sandbox_root_at(stage->sandbox, 0)->runtime;
}

void stage_restart(struct stage *stage)
{
	transport_destroy(stage->transport);
	stage->transport = stage->create(&stage->request);
}

int stage_setup(void **state)
{
	struct stage *stage = mem_alloc_zero(sizeof(*stage));
	void *place;
	place_setup(&place);
	stage->place = place;
	stage->loop = loop;
	snprintf(stage->bin, sizeof(stage->bin), "%.400s/bin", stage->place->folder);
	assert_int_equal(mkdir(stage->bin, 0755), 0);
	snprintf(stage->path, sizeof(stage->path), "PATH=%.400s:/usr/local/bin:/usr/bin:/bin",
		stage->bin);
	stage->environment[0] = stage->path;
	stage->environment[1] = "GIT_DIR=/nonexistent"; // it must not matter
	stage->environment[2] = "GIT_CONFIG_PARAMETERS='core.autocrlf=true'";
	stage->context = (struct provider_context){
		.loop = loop, .spawner = spawner, .pool = pool, .environment = stage->environment};
	settings_init(&stage->settings);
	start_sandbox(stage);
	stage->request = (struct transport_request){.loop = loop,
		.pool = pool,
		.sandbox = stage->sandbox,
		.store = &stage->place->store,
		.local_root = stage->place->root,
		.runtime_root = stage->root,
		.home = stage->place->folder,
		.tools = &stage->tools,
		.timeout_ms = 60000};
	stage->tools.spawner = spawner;
	stage->create = transport_git_create;
	stage_restart(stage);
	*state = stage;
	return 0;
}

int stage_setup_rsync(void **state)
{
	int failed = stage_setup(state);
	struct stage *stage = *state;
	stage->create = transport_rsync_create;
	/* Under valgrind, "this program" would be another one. */
	static char self[PATH_MAX];
	stage->tools.shell = realpath(program_invocation_name, self);
	stage_restart(stage);
	return failed;
}

int stage_teardown(void **state)
{
	struct stage *stage = *state;
	transport_destroy(stage->transport);
	sandbox_close(stage->sandbox);
	provider_destroy(stage->provider);
	settings_finish(&stage->settings);
	void *place = stage->place;
	free(stage);
	return place_teardown(&place);
}

/* ---- the sandbox's side ---- */

char *stage_ask(struct stage *stage, const char *script)
{
	char *all = mem_alloc(strlen(script) + strlen(stage->root) + 16);
	snprintf(all, strlen(script) + strlen(stage->root) + 16, "cd %s\n%s", stage->root, script);
	char *said = place_ask(stage->place, all);
	free(all);
	return said;
}

void stage_there(struct stage *stage, const char *script)
{
	free(stage_ask(stage, script));
}

void stage_assert_equal(struct stage *stage)
{
	char script[2 * FIXTURE_PATH_MAX];
	snprintf(script, sizeof(script), "diff -r --no-dereference -x .git . %s >&2", stage->root);
	place_run(stage->place, script);
}

void stage_assert_same(const git_oid *a, const git_oid *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

void stage_program(struct stage *stage, const char *name, const char *script)
{
	char path[2 * FIXTURE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", stage->bin, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

void stage_cut(struct stage *stage, int at)
{
	char script[1024];
	snprintf(script, sizeof(script),
		"here=${0%%/*}; echo >> \"$here/calls\"\n"
		"[ $(wc -l < \"$here/calls\") -eq %d ] || exec \"/usr/bin/${0##*/}\" \"$@\"\n"
		"p=$PPID; while tr '\\0' '\\n' < /proc/$p/cmdline | grep -qx acp-broker-sync; do\n"
		"	read -r a b c up rest < /proc/$p/stat; kill -KILL $p; p=$up\n"
		"done",
		at);
	place_run(stage->place, ": > ../bin/calls");
	stage_program(stage, "git", script);
	stage_program(stage, "mv", script);
}

bool stage_heal(struct stage *stage, int at)
{
	stage_program(stage, "git", "exec /usr/bin/git \"$@\"");
	stage_program(stage, "mv", "exec /usr/bin/mv \"$@\"");
	char *calls = place_ask(stage->place, "wc -l < ../bin/calls");
	bool was_reached = strtol(calls, NULL, 10) >= at;
	free(calls);
	return was_reached;
}
