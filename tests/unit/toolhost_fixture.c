/* SPDX-License-Identifier: MIT */
#include "tests/unit/toolhost_fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>

#include "base/fd.h"
#include "providers/local/local.h"

struct toolhost_fixture fixture;

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

/* ---- the loop ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

static bool never(const void *data)
{
	return false;
}

/* Turns the loop until it holds, or for the time. */
bool fixture_turn(bool (*holds)(const void *data), const void *data, int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.002, 0.002);
	ev_timer_start(fixture.loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	while (!holds(data) && clock_now_ms() < deadline_ms) {
		ev_run(fixture.loop, EVRUN_ONCE);
	}
	ev_timer_stop(fixture.loop, &tick);
	return holds(data);
}

void fixture_run_for(int ms)
{
	fixture_turn(never, NULL, ms);
}

static bool is_true(const void *data)
{
	return *(const bool *)data;
}

/* ---- the listener ---- */

static struct answer *answer_of(struct span id)
{
	char text[16];
	assert_true(id.len < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", (int)id.len, id.data);
	long number = strtol(text, NULL, 10);
	assert_true(number > 0 && number <= fixture.last_id);
	struct answer *answer = &fixture.answers[number];
	assert_false(fixture.is_inside);
	assert_false(answer->is_there); // once
	answer->is_there = true;
	fixture.answer_count++;
	return answer;
}

static void on_result(void *data, struct span id, struct span result)
{
	struct error err;
	struct json_doc *doc = json_doc_parse(result, &err);
	if (!doc) {
		fail_msg("%.*s: %s", (int)result.len, result.data, err.text);
	}
	json_doc_destroy(doc);
	answer_of(id)->text = mem_strndup(result);
}

static void on_failure(void *data, struct span id, const struct failure *failure)
{
	struct answer *answer = answer_of(id);
	answer->is_failure = true;
	answer->code = failure_code_get(failure->code)->name;
	answer->text = mem_strdup(failure->message);
	answer->detail = mem_strndup(failure->detail);
	assert_string_equal(failure->stage, "tool");
}

static bool on_update(void *data, struct span message)
{
	struct error err;
	if (fixture.editor_is_slow) {
		return false;
	}
	assert_true(fixture.update_count < FIXTURE_UPDATES_MAX);
	struct update *update = &fixture.updates[fixture.update_count++];
	update->at = ev_now(fixture.loop);
	update->text = mem_strndup(message);
	update->doc = json_doc_parse(span_of(update->text), &err);
	if (!update->doc) {
		fail_msg("%s: %s", update->text, err.text);
	}
	return true;
}

static const struct toolhost_listener listener = {
	.on_result = on_result,
	.on_failure = on_failure,
	.on_update = on_update,
};

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

/* Returns its name in the sandbox. */
const char *fixture_add_root(const char *path)
{
	bool is_added = false;
	sandbox_add_root(fixture.sandbox, path, on_added, &is_added);
	assert_true(fixture_turn(is_true, &is_added, FIXTURE_DEADLINE_MS));
	size_t last = sandbox_root_count(fixture.sandbox) - 1;
	const struct sandbox_root *root = sandbox_root_at(fixture.sandbox, last);
	assert_true(path_map_add(&fixture.map, root->local, root->runtime));
	return root->runtime;
}

/* Makes the ToolHost as the fixture says by now. */
void fixture_open(void)
{
	struct toolhost_config config = {
		.loop = fixture.loop,
		.sandbox = fixture.sandbox,
		.limits = fixture.limits,
		.editor_shows_terminals = fixture.editor_shows_terminals,
		.agent_name = fixture.agent_name,
		.map = &fixture.map,
		.listener = &listener,
	};
	toolhost_destroy(fixture.toolhost);
	fixture.toolhost = toolhost_create(&config);
}

int fixture_set_up(void **state)
{
	fixture.fd_count = count_fds();
	snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/test-toolhost-XXXXXX");
	assert_non_null(mkdtemp(fixture.folder));
	snprintf(fixture.root, sizeof(fixture.root), "%s/root", fixture.folder);
	assert_int_equal(mkdir(fixture.root, 0755), 0);
	fixture.limits = (struct toolhost_limits){
		.max_file = 16 << 20,
		.output_limit = 1 << 20,
		.max_terminals = 100,
		.file_timeout_ms = 60000,
	};
	fixture.agent_name = "";
	fixture.editor_shows_terminals = false;
	fixture.session = "s1";
	fixture.resolved = NULL;
	fixture.provider = fixture.is_fake ? fake_provider_create(&fixture.context)
	                                   : local_provider_create(&fixture.context);
	settings_init(&fixture.settings);
	path_map_init(&fixture.map);
	fixture.places = places_create();
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
	fixture.roots[0] = fixture_add_root(fixture.root);
	fixture.roots[1] = NULL;
	snprintf(fixture.files, sizeof(fixture.files), "%s", fixture.roots[0]);
	fixture_open();
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static void forget(void)
{
	for (int i = 0; i <= fixture.last_id; i++) {
		free(fixture.answers[i].text);
		free(fixture.answers[i].detail);
		fixture.answers[i] = (struct answer){0};
	}
	for (int i = 0; i < fixture.update_count; i++) {
		free(fixture.updates[i].text);
		json_doc_destroy(fixture.updates[i].doc);
	}
	fixture.last_id = 0;
	fixture.answer_count = 0;
	fixture.update_count = 0;
	fixture.editor_is_slow = false;
	fixture.may_be_lost = false;
}

int fixture_tear_down(void **state)
{
	toolhost_destroy(fixture.toolhost);
	fixture.toolhost = NULL;
	sandbox_close(fixture.sandbox);
	provider_destroy(fixture.provider);
	settings_finish(&fixture.settings);
	path_map_finish(&fixture.map);
	json_places_destroy(fixture.places);
	forget();
	fixture_run_for(10); // workers hand back what they had
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
	signal(SIGPIPE, SIG_IGN); // after the fork, as the program does
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
