/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/world.h"

struct prepared {
	struct sandbox *sandbox;
	bool is_ready;
	bool has_failed;
};

static void on_ready(void *data)
{
	((struct prepared *)data)->is_ready = true;
}

static void on_failed(void *data, const struct error *err)
{
	((struct prepared *)data)->has_failed = true;
}

static const struct sandbox_listener listener = {.on_ready = on_ready, .on_failed = on_failed};

static void prepare(const struct world *world, struct prepared *out)
{
	*out = (struct prepared){0};
	struct sandbox_request request = {.profile = "test", .settings = &world->settings};
	struct error err;
	out->sandbox = sandbox_prepare(world->provider, &request, &listener, out, &err);
	assert_non_null(out->sandbox);
	assert_false(out->is_ready);
}

static void provider_is_found_in_the_registry(struct world *world)
{
	struct registry *registry = registry_create();
	const char *backend = world->subject->backend;
	struct error err;
	assert_null(registry_get(registry, backend, &err));
	assert_string_equal(err.text, "provider not registered");
	struct provider *provider = world->subject->create(&world->context, world->folder);
	assert_true(registry_add(registry, provider, &err));
	assert_ptr_equal(registry_get(registry, backend, &err), provider);
	registry_destroy(registry);
}

static void close_before_ready_is_silent(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	sandbox_close(prepared.sandbox);
	world_run_for(world, 100);
	assert_false(prepared.is_ready);
	assert_false(prepared.has_failed);
}

static void two_sandboxes_do_not_disturb_each_other(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	world_run_until(world, &prepared.is_ready);
	struct run run;
	run_start_shell(&run, world, "sleep 0.2; echo survived");
	sandbox_close(prepared.sandbox);
	run_expect(&run, "sxe");
	world_run_until(world, &run.out.at_end);
	assert_string_equal(sink_text(&run.out), "survived\n");
	run_destroy(&run);
}

static void close_ends_what_runs(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	world_run_until(world, &prepared.is_ready);
	struct world other = *world;
	other.sandbox = prepared.sandbox;
	other.root = sandbox_home(prepared.sandbox);
	struct run run;
	run_start_shell(&run, &other, "(setsid sh -c 'echo $$; exec sleep 600' &); sleep 600");
	while (run.out.total == 0 || !strchr(sink_text(&run.out), '\n')) {
		world_run_for(world, 5);
	}
	long daemon = strtol(sink_text(&run.out), NULL, 10);
	assert_true(daemon > 1);
	run_expect(&run, "s"); // its output may be read before
	sandbox_close(prepared.sandbox);
	world_expect_gone(world, daemon);
	assert_string_equal(run.told, "s");
	exec_kill_tree(run.exec); // the handle is silent, but there
	run_destroy(&run);
}

static void close_cancels_file_operations(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	world_run_until(world, &prepared.is_ready);
	struct outcome outcomes[20] = {0};
	for (size_t i = 0; i < ARRAY_LENGTH(outcomes); i++) {
		sandbox_write_file(prepared.sandbox, world_path(world, "file"), SPAN_LITERAL("x"),
			outcome_on_done, &outcomes[i]);
	}
	struct outcome root = {0};
	sandbox_add_root(prepared.sandbox, world->local_root, outcome_on_done, &root);
	sandbox_close(prepared.sandbox);
	world_run_for(world, 50);
	for (size_t i = 0; i < ARRAY_LENGTH(outcomes); i++) {
		assert_false(outcomes[i].is_done);
	}
	assert_false(root.is_done);
}

static void destroy_wants_a_receipt(struct world *world)
{
	struct outcome refused = {0};
	sandbox_destroy(world->sandbox, NULL, false, outcome_on_done, &refused);
	assert_false(refused.is_done);
	world_run_until(world, &refused.is_done);
	expect_error(&refused, ERROR_DENIED, "have not been collected");
	assert_string_equal(refused.err.reason, "SYNC_INCOMPLETE");
	world_shell(world, "true"); // it still exists
}

static void destroy_with_discard_is_done(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	world_run_until(world, &prepared.is_ready);
	struct outcome destroyed = {0};
	sandbox_destroy(prepared.sandbox, NULL, true, outcome_on_done, &destroyed);
	world_run_until(world, &destroyed.is_done);
	assert_true(destroyed.is_ok);
	sandbox_close(prepared.sandbox);
}

static void destroy_with_a_receipt_is_done(struct world *world)
{
	struct prepared prepared;
	prepare(world, &prepared);
	world_run_until(world, &prepared.is_ready);
	struct outcome destroyed = {0};
	sandbox_destroy(prepared.sandbox, "receipt", false, outcome_on_done, &destroyed);
	world_run_until(world, &destroyed.is_done);
	assert_true(destroyed.is_ok);
	sandbox_close(prepared.sandbox);
}

/* ---- roots ---- */

static void same_root_twice_is_one(struct world *world)
{
	struct outcome again = {0};
	sandbox_add_root(world->sandbox, world->local_root, outcome_on_done, &again);
	assert_false(again.is_done);
	world_run_until(world, &again.is_done);
	assert_true(again.is_ok);
	assert_int_equal(sandbox_root_count(world->sandbox), 1);
}

static void the_same_root_twice_at_once_is_one(struct world *world)
{
	struct outcome outcomes[3] = {{0}};
	char second[PATH_MAX];
	snprintf(second, sizeof(second), "%.4000s/second", world->folder);
	assert_int_equal(mkdir(second, 0755), 0);
	for (size_t i = 0; i < ARRAY_LENGTH(outcomes); i++) {
		sandbox_add_root(world->sandbox, second, outcome_on_done, &outcomes[i]);
	}
	bool takes_more = sandbox_capabilities(world->sandbox)->many_roots;
	for (size_t i = 0; i < ARRAY_LENGTH(outcomes); i++) {
		world_run_until(world, &outcomes[i].is_done);
		assert_int_equal(outcomes[i].is_ok, takes_more);
	}
	assert_int_equal(sandbox_root_count(world->sandbox), takes_more ? 2 : 1);
}

static void second_root_is_as_promised(struct world *world)
{
	char second[PATH_MAX];
	snprintf(second, sizeof(second), "%.4000s/second", world->folder);
	assert_int_equal(mkdir(second, 0755), 0);
	struct outcome added = {0};
	sandbox_add_root(world->sandbox, second, outcome_on_done, &added);
	world_run_until(world, &added.is_done);
	if (!sandbox_capabilities(world->sandbox)->many_roots) {
		expect_error(&added, ERROR_UNAVAILABLE, second);
		assert_int_equal(sandbox_root_count(world->sandbox), 1);
		return;
	}
	assert_true(added.is_ok);
	assert_int_equal(sandbox_root_count(world->sandbox), 2);
	assert_string_equal(sandbox_root_at(world->sandbox, 1)->local, second);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%.4000s/file", sandbox_root_at(world->sandbox, 1)->runtime);
	expect_written(world, path, "in the second");
	expect_content(world, path, "in the second");
}

static void bad_roots_are_refused(struct world *world)
{
	struct outcome relative = {0};
	sandbox_add_root(world->sandbox, "here", outcome_on_done, &relative);
	assert_false(relative.is_done);
	world_run_until(world, &relative.is_done);
	expect_error(&relative, ERROR_DENIED, "here");
	assert_int_equal(sandbox_root_count(world->sandbox), 1);
}

static void mapping_is_as_promised(struct world *world)
{
	const struct sandbox_root *root = sandbox_root_at(world->sandbox, 0);
	bool is_mapped = strcmp(root->local, root->runtime) != 0;
	assert_string_equal(root->local, world->local_root);
	assert_int_equal(is_mapped, sandbox_capabilities(world->sandbox)->maps_paths);
	assert_string_equal(world_shell(world, "pwd"), root->runtime);
}

/* Facts that are known before there is a sandbox must match the sandbox. */
static void place_is_as_promised(struct world *world)
{
	bool is_isolated = sandbox_capabilities(world->sandbox)->isolated;
	bool was_promised = provider_is_isolated(world->provider, &world->settings);
	if (provider_runs_here(world->provider) || !was_promised) {
		assert_int_equal(is_isolated, was_promised);
	}
}

static const struct world_case cases[] = {
	{"the provider is found in the registry", provider_is_found_in_the_registry},
	{"closing before ready is silent", close_before_ready_is_silent},
	{"two sandboxes do not disturb each other", two_sandboxes_do_not_disturb_each_other},
	{"closing ends what runs", close_ends_what_runs},
	{"closing cancels file operations", close_cancels_file_operations},
	{"destroying without a receipt is refused", destroy_wants_a_receipt},
	{"destroying with discard is done", destroy_with_discard_is_done},
	{"destroying with a receipt is done", destroy_with_a_receipt_is_done},
	{"the same root twice is one", same_root_twice_is_one},
	{"the same root twice at once is one", the_same_root_twice_at_once_is_one},
	{"a second root is as promised", second_root_is_as_promised},
	{"bad roots are refused", bad_roots_are_refused},
	{"the mapping of paths is as promised", mapping_is_as_promised},
	{"the place where it works is as promised", place_is_as_promised},
};
const struct world_table life_cases = {.cases = cases, .count = ARRAY_LENGTH(cases)};
