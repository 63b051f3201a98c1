/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "base/fd.h"

struct toolhost_fixture fixture;

/* ---- the loop ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
}

static bool never(const void *data)
{
	return false;
}

/* Runs the loop until the condition holds, or for this time. */
bool fixture_turn(bool (*holds)(const void *data), const void *data, int ms)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.002, 0.002);
	ev_timer_start(fixture.loop, &tick);
	long long deadline_ms = clock_now_ms() + ms;
	bool does = holds(data);
	while (!does && clock_now_ms() < deadline_ms) {
		ev_run(fixture.loop, EVRUN_ONCE);
		does = holds(data);
	}
	ev_timer_stop(fixture.loop, &tick);
	return does;
}

void fixture_run_for(int ms)
{
	fixture_turn(never, NULL, ms);
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

static void on_result(void *data, struct span id, struct buf *text)
{
	struct span result = buf_span(text);
	struct error err;
	struct json_doc *doc = json_doc_parse(result, &err);
	if (!doc) {
		fail_msg("%.*s: %s", (int)result.len, result.data, err.text);
	}
	json_doc_destroy(doc);
	answer_of(id)->text = mem_strndup(result);
}

static void on_failure(void *data, struct span id, const struct error *failure)
{
	struct answer *answer = answer_of(id);
	answer->is_failure = true;
	answer->code = failure_code_get(failure_code_of(failure))->name;
	answer->text = mem_strdup(failure->text);
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

static bool is_full(void *data)
{
	return fixture.agent_is_slow;
}

static const struct toolhost_listener listener = {
	.on_result = on_result,
	.on_failure = on_failure,
	.on_update = on_update,
	.is_full = is_full,
};

/* ---- before and after ---- */

/* Makes the ToolHost with the present settings of the fixture. */
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
	fixture.agent_is_slow = false;
	fixture.may_be_lost = false;
}

void fixture_begin(struct ev_loop *loop, struct sandbox *sandbox)
{
	fixture.loop = loop;
	fixture.sandbox = sandbox;
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
	path_map_init(&fixture.map);
	fixture.places = places_create();
	for (size_t i = 0; i < sandbox_root_count(sandbox); i++) {
		const struct sandbox_root *root = sandbox_root_at(sandbox, i);
		assert_true(path_map_add(&fixture.map, root->local, root->runtime));
		fixture.roots[i] = root->runtime;
		fixture.roots[i + 1] = NULL;
	}
	fixture_open();
}

void fixture_end(void)
{
	toolhost_destroy(fixture.toolhost);
	fixture.toolhost = NULL;
	path_map_finish(&fixture.map);
	json_places_destroy(fixture.places);
	fixture.places = NULL;
	forget();
}
