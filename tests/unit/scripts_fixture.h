/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SCRIPTS_FIXTURE_H
#define TESTS_SCRIPTS_FIXTURE_H

/*
 * The plain local sandbox, for code that runs scripts in a sandbox (providers/script_run.h), and a
 * folder. Everything is static: include it in one file of tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/impl.h"
#include "providers/local/local.h"

enum { DEADLINE_MS = 30000 };

struct fixture {
	struct provider_context context;
	struct provider *provider;
	struct sandbox *sandbox;
	char root[64];
	bool is_ready, is_done, is_ok;
	struct error err;
	struct buf output;
};

static void run_until(struct fixture *fixture, const bool *flag)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!*flag && clock_now_ms() < deadline_ms) {
		ev_run(fixture->context.loop, EVRUN_ONCE);
	}
	assert_true(*flag);
}

static void on_ready(void *data)
{
	((struct fixture *)data)->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static void on_done(void *data, const struct error *err)
{
	struct fixture *fixture = data;
	assert_false(fixture->is_done);
	fixture->is_done = true;
	fixture->is_ok = !err;
	if (err) {
		fixture->err = *err;
	}
}

static struct spawner *spawner;
static struct ev_loop *loop;

static int fixture_set_up(void **state)
{
	struct error err;
	struct settings none;
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	*state = fixture;
	fixture->context = (struct provider_context){.loop = loop,
		.spawner = spawner,
		.pool = pool_create(loop),
		.environment = (const char *const *)environ};
	snprintf(fixture->root, sizeof(fixture->root), "/tmp/scripts-XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	buf_init(&fixture->output, SIZE_MAX / 2);
	fixture->provider = local_provider_create(&fixture->context);
	settings_init(&none);
	fixture->sandbox = sandbox_prepare(fixture->provider,
		&(struct sandbox_request){.profile = "p", .settings = &none}, &sandbox_listener,
		fixture, &err);
	assert_non_null(fixture->sandbox);
	run_until(fixture, &fixture->is_ready);
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int fixture_tear_down(void **state)
{
	struct fixture *fixture = *state;
	sandbox_close(fixture->sandbox);
	provider_destroy(fixture->provider);
	pool_destroy(fixture->context.pool);
	buf_finish(&fixture->output);
	nftw(fixture->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(fixture);
	return 0;
}

static const char *below(const struct fixture *fixture, const char *name)
{
	static char path[200];
	snprintf(path, sizeof(path), "%s/%s", fixture->root, name);
	return path;
}

/* Runs the tests with a spawner and a loop. */
static int run_with_loop(int (*run)(void))
{
	struct error err;
	spawner = spawner_create(&err);
	if (!spawner) {
		return 1;
	}
	loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(spawner, loop);
	int failed = run();
	spawner_destroy(spawner);
	ev_loop_destroy(loop);
	return failed;
}

#endif
