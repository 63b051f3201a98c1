/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>

#include "base/fd.h"
#include "providers/local/local.h"

static int count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;
	assert_non_null(folder);
	while (readdir(folder)) {
		count++;
	}
	closedir(folder);
	return count;
}

static bool is_true(const void *data)
{
	return *(const bool *)data;
}

/* Workers hand back what they had, some of them only when the disk lets them. */
static bool has_as_many_fds(const void *data)
{
	return count_fds() == *(const int *)data;
}

/* ---- before and after ---- */

static void on_ready(void *data)
{
	*(bool *)data = true;
}

static void on_failed(void *data, const struct error *err)
{
	if (!fixture.may_be_lost) {
		fail_msg("%s", err->text);
	}
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static void on_added(void *data, const struct error *err)
{
	assert_null(err);
	*(bool *)data = true;
}

static const struct sandbox_root *add_root(const char *path)
{
	bool is_added = false;
	sandbox_add_root(fixture.sandbox, path, on_added, &is_added);
	assert_true(fixture_turn(is_true, &is_added, FIXTURE_DEADLINE_MS));
	size_t last = sandbox_root_count(fixture.sandbox) - 1;
	return sandbox_root_at(fixture.sandbox, last);
}

/* Returns the name of the root in the sandbox. */
const char *fixture_add_root(const char *path)
{
	const struct sandbox_root *root = add_root(path);
	assert_true(path_map_add(&fixture.map, root->local, root->runtime));
	return root->runtime;
}

int fixture_set_up(void **state)
{
	fixture.fd_count = count_fds();
	snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/test-toolhost-XXXXXX");
	assert_non_null(mkdtemp(fixture.folder));
	snprintf(fixture.root, sizeof(fixture.root), "%s/root", fixture.folder);
	assert_int_equal(mkdir(fixture.root, 0755), 0);
	fixture.provider = fixture.is_fake ? fake_provider_create(&fixture.context)
	                                   : local_provider_create(&fixture.context);
	settings_init(&fixture.settings);
	struct sandbox_request request = {.profile = "test", .settings = &fixture.settings};
	struct error err;
	bool is_ready = false;
	if (fixture.is_fake) {
		struct fake_behaviour *behaviour = fake_behaviour(fixture.provider);
		snprintf(behaviour->runtime_root, sizeof(behaviour->runtime_root), "%s/far",
			fixture.folder);
		behaviour->delay_ms = 5;
	}
	fixture.sandbox =
		sandbox_prepare(fixture.provider, &request, &sandbox_listener, &is_ready, &err);
	assert_non_null(fixture.sandbox);
	assert_true(fixture_turn(is_true, &is_ready, FIXTURE_DEADLINE_MS));
	add_root(fixture.root);
	fixture_begin(fixture.loop, fixture.sandbox);
	snprintf(fixture.files, sizeof(fixture.files), "%s", fixture.roots[0]);
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

int fixture_tear_down(void **state)
{
	fixture_end();
	sandbox_close(fixture.sandbox);
	provider_destroy(fixture.provider);
	settings_finish(&fixture.settings);
	(void)fixture_turn(has_as_many_fds, &fixture.fd_count, FIXTURE_DEADLINE_MS);
	assert_int_equal(nftw(fixture.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
	assert_int_equal(count_fds(), fixture.fd_count);
	return 0;
}

int fixture_set_up_fake(void **state)
{
	fixture.is_fake = true;
	return fixture_set_up(state);
}

int fixture_tear_down_fake(void **state)
{
	fixture.is_fake = false;
	return fixture_tear_down(state);
}

/* ---- main ---- */

int fixture_run(const struct CMUnitTest *tests, size_t count)
{
	static const char *const environment[] = {
		"PATH=/usr/bin:/bin", "HOME=/", "LANG=C.UTF-8", "PAGER=less", NULL};
	struct error err;
	fixture.spawner = spawner_create(&err);
	if (!fixture.spawner) {
		return 1;
	}
	signal(SIGPIPE, SIG_IGN); // after the spawner: commands get the original setting
	fixture.loop = ev_loop_new(EVFLAG_AUTO);
	spawner_attach(fixture.spawner, fixture.loop);
	fixture.context = (struct provider_context){.loop = fixture.loop,
		.spawner = fixture.spawner,
		.pool = pool_create(fixture.loop),
		.environment = environment};
	int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
	pool_destroy(fixture.context.pool);
	spawner_destroy(fixture.spawner);
	ev_loop_destroy(fixture.loop);
	return failed;
}
