/* SPDX-License-Identifier: MIT */
#include "sync/workspace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/unit/dir_transport.h"
#include "tests/unit/store_fixture.h"

/* A workspace whose runtime is the directory "runtime" beside it. */
struct fixture {
	struct place *place;
	struct ev_loop *loop;
	struct pool *pool;
	char runtime[FIXTURE_PATH_MAX + 16];
	struct workspace_request request;
	struct workspace *workspace;
	int told;
	bool is_ok;
	struct sync_result result;
	char conflict[64]; // the path of the first
	char note[256];
	struct error err;
};

static int set_up(void **state)
{
	void *place = NULL;
	if (place_setup(&place) != 0) {
		return -1;
	}
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->place = place;
	fixture->loop = ev_loop_new(0);
	fixture->pool = pool_create(fixture->loop);
	snprintf(fixture->runtime, sizeof(fixture->runtime), "%s/runtime", fixture->place->folder);
	assert_int_equal(mkdir(fixture->runtime, 0755), 0);
	fixture->request = (struct workspace_request){
		.loop = fixture->loop,
		.pool = fixture->pool,
		.store_folder = fixture->place->store_path,
		.name = "runtime",
		.local_root = fixture->place->root,
		.runtime_root = fixture->runtime,
		.limits = snapshot_default_limits,
		.create_transport = dir_transport_create,
		.timeout_ms = 60000,
		.lock_timeout_ms = 60000,
		.max_checkpoints = 100,
	};
	dir_transport_hooks = (struct dir_transport_hooks){0};
	fixture->workspace = workspace_create(&fixture->request);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	void *place = fixture->place;
	workspace_destroy(fixture->workspace);
	pool_destroy(fixture->pool);
	ev_loop_destroy(fixture->loop);
	free(fixture);
	return place_teardown(&place);
}

static void on_synced(void *data, const struct sync_result *result, const struct error *err)
{
	struct fixture *fixture = data;
	fixture->told++;
	fixture->is_ok = err == NULL;
	fixture->conflict[0] = '\0';
	if (err) {
		fixture->err = *err;
		return;
	}
	fixture->result = *result;
	struct conflict *first = LIST_FIRST(result->conflicts, struct conflict, link);
	snprintf(fixture->conflict, sizeof(fixture->conflict), "%s", first ? first->path : "");
	snprintf(fixture->note, sizeof(fixture->note), "%s", result->note);
}

static void begin(struct fixture *fixture, const struct sync_order *order)
{
	workspace_sync(fixture->workspace, order, on_synced, fixture);
}

static void sync_with(struct fixture *fixture, const struct sync_order *order)
{
	int told = fixture->told;
	begin(fixture, order);
	assert_int_equal(fixture->told, told);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, told + 1);
}

static void sync_once(struct fixture *fixture)
{
	sync_with(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN, .session = "s-1"});
	if (!fixture->is_ok) {
		fail_msg("%s", fixture->err.text);
	}
}

static void roll_back(struct fixture *fixture, const char *checkpoint)
{
	sync_with(
		fixture, &(struct sync_order){.reason = SYNC_REASON_TURN, .rollback = checkpoint});
}

/* A shell script, with the two directories as $L and $R. */
static char *ask(struct fixture *fixture, const char *format)
{
	char script[4096];
	snprintf(script, sizeof(script), "L=. R='%s'; %s", fixture->runtime, format);
	return place_ask(fixture->place, script);
}

static void run(struct fixture *fixture, const char *script)
{
	free(ask(fixture, script));
}

static void expect(struct fixture *fixture, const char *script, const char *output)
{
	char *text = ask(fixture, script);
	assert_string_equal(text, output);
	free(text);
}

static void expect_same(struct fixture *fixture)
{
	expect(fixture, "diff -r --exclude='*.acp-conflict' $L $R && echo same", "same\n");
}

static void test_the_first_sync_fills_the_runtime(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "mkdir d; echo a > a; echo b > d/b; ln -s a l; chmod +x d/b");
	sync_once(fixture);
	expect_same(fixture);
	assert_int_equal(fixture->result.to_runtime.added, 3);
	assert_int_equal(fixture->result.to_local.added, 0);
	assert_int_equal(fixture->result.files, 3);
	assert_int_equal(fixture->result.checkpoint, 1);
	assert_non_null(workspace_tree(fixture->workspace));
}

static void test_a_second_sync_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	dir_transport_hooks.delivers = 0;
	sync_once(fixture);
	assert_int_equal(dir_transport_hooks.delivers, 0);
	assert_int_equal(fixture->result.to_local.changed + fixture->result.to_local.added +
				 fixture->result.to_local.deleted,
		0);
	assert_int_equal(fixture->result.checkpoint, 1);
}

static void test_both_sides_changes_meet(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b; echo c > c; seq 20 > n");
	sync_once(fixture);
	run(fixture, "echo a2 > a; rm b; sed -i s/^1$/one/ n; echo r > $R/new; rm $R/c; "
		     "sed -i s/^20$/twenty/ $R/n");
	sync_once(fixture);
	expect_same(fixture);
	expect(fixture, "ls; cat a; head -1 n; tail -1 n", "a\nn\nnew\na2\none\ntwenty\n");
	assert_int_equal(fixture->result.conflict_count, 0);
	assert_int_equal(fixture->result.text_merges, 1);
}

static void test_a_conflict_parks_the_runtimes_version_and_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo its > $R/a");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 1);
	assert_string_equal(fixture->conflict, "a");
	expect(fixture, "cat a $R/a a.*.acp-conflict", "mine\nmine\nits\n");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "ls $R", "a\n");
}

static void test_a_failed_delivery_leaves_nothing_half_known(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo its > $R/b");
	dir_transport_hooks.fail_delivers = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_non_null(strstr(fixture->err.text, "the link is down"));
	assert_non_null(strstr(fixture->err.text, fixture->place->root));
	expect(fixture, "cat b", "its\n"); // it is here already
	run(fixture, "echo mine again > b");
	sync_once(fixture);
	assert_int_equal(fixture->result.conflict_count, 0);
	expect(fixture, "cat $R/a $R/b", "mine\nmine again\n");
}

static void test_a_failed_collection_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	dir_transport_hooks.fail_collects = 1;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_START});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	expect(fixture, "ls $R", "");
	sync_once(fixture);
	expect_same(fixture);
}

static void write_late(void *data)
{
	struct fixture *fixture = data;
	static int times;
	char script[64];
	snprintf(script, sizeof(script), "echo late %d > $R/a", ++times);
	run(fixture, script);
}

static void test_a_runtime_that_changes_meanwhile_gets_another_round(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a; echo b > b");
	sync_once(fixture);
	run(fixture, "echo mine > a; echo b2 > b");
	dir_transport_hooks.before_deliver = write_late;
	dir_transport_hooks.data = fixture;
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	dir_transport_hooks.before_deliver = NULL;
	assert_false(fixture->is_ok);
	assert_string_equal(fixture->err.reason, "RUNTIME_CHANGED");
	sync_once(fixture);
	expect_same(fixture);
	/* Each version that was in the runtime is somewhere. */
	expect(fixture, "cat a; cat a.*.acp-conflict | sort | tail -1", "mine\nlate 3\n");
}

static void test_many_deletions_are_not_followed(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "for i in $(seq 30); do echo $i > f$i; done");
	sync_once(fixture);
	run(fixture, "rm $R/f*; echo new > $R/new");
	sync_once(fixture);
	assert_int_equal(fixture->result.kept, 30);
	expect(fixture, "ls | wc -l", "31\n");
	expect_same(fixture);
	run(fixture, "rm $R/f1 $R/f2; rm f3 f4 f5 f6 f7 f8 f9 f1? f2?");
	sync_once(fixture);
	assert_int_equal(fixture->result.kept, 0);
	expect(fixture, "ls", "f30\nnew\n");
	expect_same(fixture);
}

static void test_one_goes_back_and_forth(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo 1 > a; echo k > k");
	sync_once(fixture);
	run(fixture, "echo 2 > $R/a; echo n > $R/n; rm $R/k");
	sync_once(fixture);
	run(fixture, "echo 3 > a");
	roll_back(fixture, "1");
	assert_true(fixture->is_ok);
	expect(fixture, "cat a k; ls", "1\nk\na\nk\n");
	expect_same(fixture);
	assert_int_equal(fixture->result.checkpoint, 4);
	roll_back(fixture, "3"); // what was before it
	expect(fixture, "cat a n; ls", "3\nn\na\nn\n");
	expect_same(fixture);
	roll_back(fixture, "17");
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_NOT_FOUND);
	expect(fixture, "cat a", "3\n");
}

static void test_another_brokers_sync_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	sync_once(fixture);
	char path[FIXTURE_PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/acp-broker.lock", fixture->place->store_path);
	int lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	for (int i = 0; i < 5; i++) {
		ev_run(fixture->loop, EVRUN_ONCE);
	}
	assert_int_equal(fixture->told, 1);
	fd_close(&lock);
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 2);
	assert_true(fixture->is_ok);
}

static void test_a_lock_that_is_never_let_go_ends_the_wait(void **state)
{
	struct fixture *fixture = *state;
	sync_once(fixture);
	workspace_destroy(fixture->workspace);
	fixture->request.lock_timeout_ms = 100;
	fixture->workspace = workspace_create(&fixture->request);
	char path[FIXTURE_PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/acp-broker.lock", fixture->place->store_path);
	int lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_TIMEOUT);
	fd_close(&lock);
}

static void test_syncs_are_done_in_order_and_destroyed_ones_are_silent(void **state)
{
	struct fixture *fixture = *state;
	run(fixture, "echo a > a");
	for (int i = 0; i < 3; i++) {
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
	}
	ev_run(fixture->loop, 0);
	assert_int_equal(fixture->told, 3);
	for (int turns = 0; turns < 12; turns++) {
		begin(fixture, &(struct sync_order){.reason = SYNC_REASON_TURN});
		for (int i = 0; i < turns; i++) {
			ev_run(fixture->loop, EVRUN_ONCE);
		}
		fixture->told = 0;
		workspace_destroy(fixture->workspace);
		ev_run(fixture->loop, 0);
		assert_int_equal(fixture->told, 0);
		fixture->workspace = workspace_create(&fixture->request);
	}
	sync_once(fixture);
	expect_same(fixture);
}

static void test_a_root_that_may_not_be_synced_is_refused(void **state)
{
	struct fixture *fixture = *state;
	workspace_destroy(fixture->workspace);
	fixture->request.local_root = "/";
	fixture->workspace = workspace_create(&fixture->request);
	begin(fixture, &(struct sync_order){.reason = SYNC_REASON_START});
	ev_run(fixture->loop, 0);
	assert_false(fixture->is_ok);
	assert_int_equal(fixture->err.code, ERROR_DENIED);
}

#define WORKSPACE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKSPACE_TEST(test_the_first_sync_fills_the_runtime),
		WORKSPACE_TEST(test_a_second_sync_changes_nothing),
		WORKSPACE_TEST(test_both_sides_changes_meet),
		WORKSPACE_TEST(test_a_conflict_parks_the_runtimes_version_and_is_told_once),
		WORKSPACE_TEST(test_a_failed_delivery_leaves_nothing_half_known),
		WORKSPACE_TEST(test_a_failed_collection_changes_nothing),
		WORKSPACE_TEST(test_a_runtime_that_changes_meanwhile_gets_another_round),
		WORKSPACE_TEST(test_many_deletions_are_not_followed),
		WORKSPACE_TEST(test_one_goes_back_and_forth),
		WORKSPACE_TEST(test_another_brokers_sync_is_waited_for),
		WORKSPACE_TEST(test_a_lock_that_is_never_let_go_ends_the_wait),
		WORKSPACE_TEST(test_syncs_are_done_in_order_and_destroyed_ones_are_silent),
		WORKSPACE_TEST(test_a_root_that_may_not_be_synced_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
