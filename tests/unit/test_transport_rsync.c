/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "sync/rsync/shell.h"
#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

static const git_oid *const nothing = &store_empty_tree;

static void test_the_first_delivery_fills_an_empty_root(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	stage_assert_equal(stage);
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "test ! -e .git; test ! -e sub/.git; test -x run; test ! -x a");
	stage_there(stage, "test -z \"$(find .. -name '.acp-broker-*.tmp')\"");
}

static void test_changes_there_come_back(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	const char *changes = "rm a; mkdir a; echo in > a/b; rm -r d; ln -s sub d; chmod -x run\n"
			      "printf 'x\\r\\nz\\n' > crlf; echo m > sub/more; rm sub/nested\n"
			      "mkdir -p new/deep; echo y > new/deep/y; echo x > '-x'; mkfifo fifo\n"
			      "ln -sfn /etc out; rm '*'; chmod 0600 '#h'\n";
	stage_there(stage, changes);
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, changes);
	git_oid here = place_take(stage->place, &tree);
	stage_assert_same(&there, &here);
	there = stage_collect(stage, &there);
	stage_assert_same(&there, &here);
}

static void test_changes_here_go_there(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, stage_awkward);
	place_run(stage->place, "rm crlf; mkdir crlf; echo in > crlf/b; rm -r d; ln -s sub d; "
				"chmod -x run; chmod +x a; echo b > '#h'");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_assert_equal(stage);
	stage_there(stage, "test ! -x run; test -x a");
	place_run(stage->place, "rm -r crlf d; mkdir d; echo f > d/f; echo c > crlf");
	git_oid last = place_take(stage->place, &next);
	stage_deliver(stage, &next, &last);
	stage_assert_equal(stage);
	stage_deliver(stage, &last, &tree);
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
}

static void test_a_change_there_is_not_replaced(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; echo b > b; echo d > d; echo r > r");
	place_run(stage->place, "echo aa > a; echo bb > b; echo c > c; rm d; chmod +x r");
	git_oid next = place_take(stage->place, &tree);
	static const char *const changes[] = {
		"echo x > b", "echo mine > c", "chmod +x a", "touch d", "ln -sf b a", "echo y > r"};
	static const char *const names[] = {": b", ": c", ": a", ": d", ": a", ": r"};
	static const char *const tests[] = {"test $(cat b) = x", "test $(cat c) = mine",
		"test $(cat a) = a; test -x a", "test $(cat d) = d", "test $(readlink a) = b",
		"test $(cat r) = y"};
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		stage_there(stage, changes[i]);
		stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, names[i]);
		assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
		stage_there(stage, tests[i]);
		git_oid there = stage_collect(stage, &tree);
		assert_memory_not_equal(&there, &next, sizeof(there));
		stage_deliver(stage, &there, &tree);
		git_oid back = stage_collect(stage, &tree);
		stage_assert_same(&back, &tree);
	}
	stage_deliver(stage, &tree, &next);
	stage_assert_equal(stage);
}

static void test_what_else_is_done_there_stays(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; mkdir d e; echo b > d/b; echo c > e/c;"
					       "echo f > e/f; echo g > g");
	place_run(stage->place, "echo aa > a; rm -r d; rm e/f; mkdir n; echo n > n/n");
	git_oid next = place_take(stage->place, &tree);
	stage_there(
		stage, "rm g; echo new > new; echo in > d/in; mkdir n; echo m > n/m; chmod +x e/c");
	stage_deliver(stage, &tree, &next);
	git_oid there = stage_collect(stage, &next);
	assert_paths(stage->place, &there, "a\nd/in\ne/c\nn/m\nn/n\nnew\n");
	stage_there(stage, "test $(cat a) = aa; test -x e/c; test ! -e g");
}

static void test_a_file_takes_the_place_of_empty_folders(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(
		stage, "mkdir -p d/e/g h; echo x > d/e/g/x; echo f > d/f; echo i > h/i");
	stage_there(stage, "rm d/e/g/x; mkdir h/empty");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "rm -r d h; echo now > d; ln -s d h");
	git_oid next = place_take(stage->place, &there);
	stage_deliver(stage, &there, &next);
	stage_assert_equal(stage);
}

/* So many changes that everything is examined; then everything must be unchanged. */
static void test_a_large_delivery_is_stopped_by_any_change(void **state)
{
	struct stage *stage = *state;
	git_oid tree =
		stage_send_first(stage, "for i in $(seq 1200); do echo $i > $i; done; echo b > b");
	place_run(stage->place, "for i in $(seq 1200); do echo x$i > $i; done");
	git_oid next = place_take(stage->place, &tree);
	stage_there(stage, "echo c > c");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "meanwhile: c");
	assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
	stage_there(stage, "test $(cat 7) = 7; rm c b");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "meanwhile: b");
	git_oid there = stage_collect(stage, &tree);
	stage_deliver(stage, &there, &next);
	stage_assert_equal(stage);
}

/* The real rsync. Before it begins as the server of a push, it runs a script. */
static void interfere(struct stage *stage, const char *script)
{
	char text[4096];
	snprintf(text, sizeof(text),
		"case \"$*\" in *--sender*|*--version*) ;; *)\n"
		"n=$(cat %s/count 2>/dev/null || echo 0); echo $((n+1)) > %s/count\n"
		"cd %s; if [ $n = 0 ]; then\n%s\nfi ;; esac\n"
		"exec /usr/bin/rsync \"$@\"",
		stage->bin, stage->bin, stage->root, script);
	stage_program(stage, "rsync", text);
}

static void test_what_is_written_during_a_delivery_is_put_back(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(
		stage, "echo a > a; echo b > b; mkdir d; echo k > d/k; echo g > g");
	place_run(stage->place, "echo A > a; rm g; echo f > f");
	git_oid next = place_take(stage->place, &tree);
	interfere(stage, "echo mine > a; echo other > b; echo new > d/new; echo gone > g; rm d/k");
	stage_deliver_fails(stage, &tree, &next, ERROR_UNAVAILABLE, "files have changed");
	assert_string_equal(stage->err.reason, "RUNTIME_CHANGED");
	stage_there(stage, "test $(cat a) = mine; test $(cat b) = other; test $(cat d/new) = new;"
			   "test $(cat g) = gone");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nb\nd/new\nf\ng\n");
	place_run(stage->place, "echo merged > a; echo other > b; echo new > d/new; rm d/k");
	git_oid last = place_take(stage->place, &there);
	stage_deliver(stage, &there, &last);
	stage_assert_equal(stage);
}

static void test_an_ignored_file_in_the_way_is_kept_beside(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo mine > .gitignore; echo a > a");
	stage_there(stage, "echo x > mine");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	place_run(stage->place, "rm .gitignore; echo here > mine");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_there(stage, "test $(cat mine) = here; test $(cat mine.*.acp-conflict) = x");
	there = stage_collect(stage, &next);
	stage_assert_same(&there, &next);
	assert_non_null(strstr(stage->collected.note, "in the way"));
}

static void test_what_is_ignored_does_not_travel(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, "git init -q; echo secret >> .git/info/exclude; mkdir ../.config;"
				"mkdir ../.config/git; echo mine > ../.config/git/ignore");
	git_oid tree = stage_send_first(stage, "echo node_modules > .gitignore; echo a > a");
	stage_there(stage, "mkdir -p node_modules n; seq 200000 > node_modules/m; echo s > secret;"
			   "echo x > mine; echo '*.big' > n/.gitignore; seq 200000 > n/x.big");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, ".gitignore\na\nn/.gitignore\n");
	there = stage_collect(stage, &tree);
	assert_true(stage->collected.received_bytes < 10000);
	char *held = place_ask(
		stage->place, "find ../state/store/rsync -name x.big -o -name node_modules");
	assert_string_equal(held, "");
	free(held);
	stage_there(stage, "echo a >> .gitignore; echo aa > a");
	there = stage_collect(stage, &there);
	assert_paths(stage->place, &there, ".gitignore\na\nn/.gitignore\n"); // a member stays one
	place_run(stage->place, "echo changed > a; mkdir n; echo '*.big' > n/.gitignore;"
				"printf 'node_modules\\na\\n' > .gitignore");
	git_oid next = place_take(stage->place, &there);
	stage_deliver(stage, &there, &next);
	stage_there(stage, "test $(cat a) = changed; test -s node_modules/m; test -s secret;"
			   "test -s n/x.big");
}

static void test_another_run_of_the_broker_goes_on(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a; echo b > b");
	stage_restart(stage);
	stage_prepare(stage);
	place_run(stage->place, "echo aa > a");
	git_oid next = place_take(stage->place, &tree);
	stage_deliver(stage, &tree, &next);
	stage_assert_equal(stage);
	/* If the mirror is missing, it is made again from the base. */
	stage_restart(stage);
	place_run(stage->place, "rm -rf ../state/store/rsync");
	stage_prepare(stage);
	stage_deliver_fails(stage, &next, &tree, ERROR_UNAVAILABLE, "collected first");
	git_oid there = stage_collect(stage, &next);
	stage_assert_same(&there, &next);
	stage_deliver(stage, &next, &tree);
}

static void test_a_cut_delivery_leaves_whole_files_and_loses_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree =
		stage_send_first(stage, "seq 300000 > big; echo b > b; echo c > c; echo k > k");
	place_run(stage->place, "seq 2 400000 > big; echo bb > b; rm c; seq 9 500000 > new");
	git_oid next = place_take(stage->place, &tree);
	interfere(stage, "echo mine > c; (sleep 0.4; kill -9 $PPID) >/dev/null 2>&1 <&- &\n"
			 "/usr/bin/rsync \"$@\" --bwlimit=300; exit 99");
	transport_deliver(stage->transport, &tree, &next, stage_on_delivered, stage);
	stage_wait(stage);
	stage_there(stage, "rm -f ../bin/rsync");
	assert_true(stage->failed);
	stage_there(stage, "seq 300000 | cmp big - || seq 2 400000 | cmp big -;"
			   "test -z \"$(find . -name '.*.?*')\"");
	git_oid there = stage_collect(stage, &tree);
	stage_there(stage, "test $(cat c) = mine");
	assert_memory_not_equal(&there, &tree, sizeof(there));
	stage_deliver(stage, &there, &next);
	stage_assert_equal(stage);
}

static void test_a_sparse_file_stays_so(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "truncate -s 300M sparse; echo end >> sparse");
	stage_there(stage, "test $(stat -c %s sparse) = 314572804;"
			   "test $(($(stat -c '%b * %B' sparse))) -lt 30000000");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	assert_true(stage->collected.received_bytes < 100000);
}

static void test_many_small_files(void **state)
{
	struct stage *stage = *state;
	git_oid tree =
		stage_send_first(stage, "for i in $(seq 10); do mkdir $i; for j in $(seq 100); do "
					"echo $i $j > $i/$j; done; done");
	stage_there(stage, "for i in $(seq 10); do echo more >> $i/$i; done");
	git_oid there = stage_collect(stage, &tree);
	assert_true(stage->collected.received_bytes > 0);
	assert_true(stage->collected.received_bytes < 500000);
	stage_deliver(stage, &there, &tree);
	stage_assert_equal(stage);
}

static void test_a_missing_program_is_named_with_its_side(void **state)
{
	struct stage *stage = *state;
	stage->tools.path = "/nonexistent";
	stage_restart(stage);
	transport_prepare(stage->transport, stage_on_done, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_names(stage->err.text, "this machine | no rsync");
	assert_string_equal(stage->err.reason, "SYNC_TOOL_MISSING");
	stage->tools.path = NULL;
	stage_program(stage, "rsync", "echo 'rsync  version 3.1.1  protocol version 31'");
	stage_restart(stage);
	transport_prepare(stage->transport, stage_on_done, stage);
	stage_wait(stage);
	assert_true(stage->failed);
	assert_non_null(strstr(stage->err.text, "rsync of the sandbox"));
	assert_non_null(strstr(stage->err.text, "3.1.3"));
	assert_string_equal(stage->err.reason, "SYNC_TOOL_MISSING");
}

static void test_a_missing_root_deletes_nothing(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	stage_there(stage, "mv ../0 ../moved");
	stage_collect_fails(stage, &tree, ERROR_SYSTEM, "rsync ended with status");
	place_run(stage->place, "mv ../runtime/moved ../runtime/0");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
}

static void test_a_destroyed_transport_leaves_nothing(void **state)
{
	struct stage *stage = *state;
	stage_prepare(stage);
	transport_collect(stage->transport, nothing, stage_on_collected, stage);
	for (int i = 0; i < 20; i++) {
		ev_run(stage->loop, EVRUN_ONCE);
	}
	stage_restart(stage);
	stage_prepare(stage);
	git_oid there = stage_collect(stage, nothing);
	stage_assert_same(&there, nothing);
}

/* A folder in the way has the effect that nothing can be renamed into the root for the moment. */
static void test_a_side_with_what_a_cut_delivery_replaced_stays(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "echo a > a");
	char *side = stage_ask(stage, "cd ../.acp-broker/rsync/*; printf %s \"$PWD\"");
	stage_there(stage, "cd ../.acp-broker/rsync/*; mkdir -p backup; echo agents >backup/saved");
	char script[FIXTURE_PATH_MAX * 2];
	snprintf(script, sizeof(script), "mkdir -p \".acp-broker-$(basename '%s')-probe.tmp/in\"",
		side);
	stage_there(stage, script);
	stage_restart(stage);
	stage_prepare(stage);
	snprintf(script, sizeof(script), "test $(cat '%s/backup/saved') = agents", side);
	stage_there(stage, script);
	stage_there(stage, "rm -r .acp-broker-*-probe.tmp");
	git_oid there = stage_collect(stage, &tree);
	stage_assert_same(&there, &tree);
	stage_there(stage, "test -z \"$(ls -d .acp-broker-* 2>/dev/null)\"");
	free(side);
}

#define RSYNC_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup_rsync, stage_teardown)

static void test_what_is_excluded_after_it_was_delivered(void **state)
{
	struct stage *stage = *state;
	static const char *const exclude[] = {"tmp", NULL};
	git_oid tree = stage_send_first(stage, "mkdir tmp; echo t > tmp/t; echo a > a");
	stage->request.exclude = exclude;
	stage_restart(stage);
	stage_prepare(stage);
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\n"); // it belongs to no side any more
	place_run(stage->place, "rm -r tmp; echo b > a");
	git_oid next = place_take(stage->place, &there);
	stage_deliver(stage, &there, &next);
	stage_there(stage, "test $(cat tmp/t) = t; test $(cat a) = b");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], RSYNC_SHELL_WORD) == 0) {
		return rsync_shell_main(argc, argv, (const char *const *)environ);
	}
	const struct CMUnitTest tests[] = {
		RSYNC_TEST(test_the_first_delivery_fills_an_empty_root),
		RSYNC_TEST(test_a_side_with_what_a_cut_delivery_replaced_stays),
		RSYNC_TEST(test_changes_there_come_back),
		RSYNC_TEST(test_changes_here_go_there),
		RSYNC_TEST(test_a_change_there_is_not_replaced),
		RSYNC_TEST(test_what_else_is_done_there_stays),
		RSYNC_TEST(test_a_file_takes_the_place_of_empty_folders),
		RSYNC_TEST(test_a_large_delivery_is_stopped_by_any_change),
		RSYNC_TEST(test_what_is_written_during_a_delivery_is_put_back),
		RSYNC_TEST(test_an_ignored_file_in_the_way_is_kept_beside),
		RSYNC_TEST(test_what_is_ignored_does_not_travel),
		RSYNC_TEST(test_another_run_of_the_broker_goes_on),
		RSYNC_TEST(test_a_cut_delivery_leaves_whole_files_and_loses_nothing),
		RSYNC_TEST(test_a_sparse_file_stays_so),
		RSYNC_TEST(test_many_small_files),
		RSYNC_TEST(test_a_missing_program_is_named_with_its_side),
		RSYNC_TEST(test_a_missing_root_deletes_nothing),
		RSYNC_TEST(test_a_destroyed_transport_leaves_nothing),
		RSYNC_TEST(test_what_is_excluded_after_it_was_delivered),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
