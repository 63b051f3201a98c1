/* SPDX-License-Identifier: MIT */
/* What the broker does with the commits that an agent makes in the runtime's repository. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/utf8.h"
#include "sync/git/commits.h"
#include "tests/unit/transport_fixture.h"
#include "tests/support/facts.h"

static const char repository[] =
	"git init -q; git config user.name 'The User'; git config user.email u@example.org\n"
	"echo a > a; git add a; git commit -qm one\n"
	"git branch old; echo b > b; git add b; git commit -qm two; echo changed > a\n";

/* ---- the store's content ---- */

struct listed {
	struct buf text;
	char branch[256];
};

static bool list_branch(void *data, const struct agent_branch *branch)
{
	struct listed *listed = data;
	text_whole(listed->branch, sizeof(listed->branch), "%s%s%s", branch->repository,
		*branch->repository ? ": " : "", branch->name);
	return true;
}

static bool list_commit(void *data, const struct agent_commit *commit)
{
	struct listed *listed = data;
	assert_true(buf_append_format(&listed->text, NULL, "%s %s %s\n", listed->branch,
		commit->author, commit->subject));
	return true;
}

static char *commits_of(struct stage *stage, size_t max)
{
	struct listed listed;
	struct error err;
	struct agent_commits_visitor visitor = {list_branch, list_commit, &listed};
	buf_init(&listed.text, 1 << 20);
	assert_true(agent_commits_list(&stage->place->store, max, &visitor, &err));
	char *said = mem_strndup(buf_span(&listed.text));
	buf_finish(&listed.text);
	return said;
}

static void assert_commits(struct stage *stage, const char *expected)
{
	char *said = commits_of(stage, 100);
	assert_string_equal(said, expected);
	free(said);
}

static void fetch_here(struct stage *stage)
{
	place_run(stage->place,
		"git --git-dir=../state/store fsck --strict\n"
		"git fetch -q ../state/store 'refs/acp-broker/agent/*:refs/agent/*'");
}

/* Expects the note, with the ids of the named branches instead of "ID". */
static void assert_note(struct stage *stage, const char *branches, const char *format)
{
	char script[400], expected[TRANSPORT_NOTE_MAX] = "";
	snprintf(script, sizeof(script),
		"for b in %s; do git rev-parse $b | cut -c -12 | tr -d '\\n'; done", branches);
	char *ids = stage_ask(stage, script);
	const char *at = ids;
	for (size_t len = 0; *format; len = strlen(expected)) {
		bool is_id = strncmp(format, "ID", 2) == 0;
		snprintf(expected + len, sizeof(expected) - len, "%.*s", is_id ? 12 : 1,
			is_id ? at : format);
		at += is_id ? 12 : 0;
		format += is_id ? 2 : 1;
	}
	free(ids);
	assert_names(stage->collected.note, expected);
}

static void test_the_agents_commits_come_back(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	assert_commits(stage, "");
	stage_there(stage, "git commit -qam 'First mine'; echo z > z; git add z;"
			   "git -c user.name=Agent commit -qm Second -m 'and a body'");
	tree = stage_collect(stage, &tree);
	assert_commits(stage, "main A Second\nmain A First mine\n");
	fetch_here(stage);
	place_run(stage->place, "test $(git log --format=%s -1 refs/agent/main) = Second;"
				"test \"$(git show refs/agent/main:z)\" = z; git fsck --strict");
	stage_there(stage,
		"git checkout -q -b other HEAD~1; echo o > o; git add o; git commit -qm Other");
	tree = stage_collect(stage, &tree);
	assert_commits(stage, "main A Second\nmain A First mine\nother A Other\n"
			      "other A First mine\n");
	char *said = commits_of(stage, 1);
	assert_string_equal(said, "main A Second\nother A Other\n");
	free(said);
	fetch_here(stage);
}

static void test_a_branch_that_grows_keeps_its_name(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -qam first");
	tree = stage_collect(stage, &tree);
	stage_there(
		stage, "git commit -q --allow-empty -m then; git commit -q --allow-empty -m last");
	stage_collect(stage, &tree);
	assert_commits(stage, "main A last\nmain A then\nmain A first\n");
}

static void test_a_rewritten_branch_keeps_what_it_was(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -qam draft");
	tree = stage_collect(stage, &tree);
	stage_there(stage, "git commit -q --amend -m final");
	stage_collect(stage, &tree);
	char *ids = place_ask(stage->place, "git --git-dir=../state/store for-each-ref "
					    "--format='%(subject)' refs/acp-broker/agent");
	assert_string_equal(ids, "final\ndraft\n");
	free(ids);
	fetch_here(stage);
}

/* Neither the very first commit nor one whose parent is in the store belongs to the agent. */
static void test_what_the_agent_built_upon_is_not_its_own(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -qam mine; git checkout -q -b early HEAD~2\n"
			   "git commit -q --allow-empty -m early");
	stage_collect(stage, &tree);
	assert_commits(stage, "early A early\nmain A mine\n");
	fetch_here(stage);
	place_run(stage->place, "test ! -e .git/shallow; git fsck --strict\n"
				"test $(git rev-list --count refs/agent/main) = 3");
}

static void test_a_history_of_the_agents_own_is_its_own_from_the_first_commit_on(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, "git init -q -b fresh; echo a > a");
	stage_there(stage, "git config user.name A; git config user.email a@b\n"
			   "git add a; git commit -qm root");
	tree = stage_collect(stage, &tree);
	stage_there(stage, "git commit -q --allow-empty -m next");
	stage_collect(stage, &tree);
	assert_commits(stage, "fresh A next\nfresh A root\n");
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
}

/* Makes commits one upon the other that change no file. */
static void make_commits(struct stage *stage, const char *branch, unsigned count)
{
	char script[500];
	snprintf(script, sizeof(script),
		"from=$(git rev-parse HEAD)\n"
		"{ for n in $(seq %u); do printf 'commit refs/heads/%s\\ncommitter A <a@b> %%s "
		"+0000\\ndata 2\\nc\\n\\n' $n; [ $n != 1 ] || printf 'from %%s\\n' $from; "
		"done; } | git fast-import --quiet",
		count, branch);
	stage_there(stage, script);
}

static void assert_count_of(struct stage *stage, const char *branch, const char *expected)
{
	char script[200];
	snprintf(script, sizeof(script),
		"git --git-dir=../state/store rev-list --count refs/acp-broker/agent/%s", branch);
	char *count = place_ask(stage->place, script);
	assert_string_equal(count, expected);
	free(count);
}

static void test_thousands_of_commits_come_back_at_once(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	make_commits(stage, "many", 2500);
	tree = stage_collect(stage, &tree);
	assert_false(stage->collected.commits_left);
	assert_non_null(strstr(stage->collected.note, "(2500 commits: \"c\""));
	assert_count_of(stage, "many", "2501\n"); // including the commits that they build upon
	stage_there(stage, "git checkout -q many; git commit -q --allow-empty --amend -m other");
	stage_collect(stage, &tree);
	assert_count_of(stage, "many", "2501\n");
	fetch_here(stage);
}

static void test_more_than_can_be_taken_are_told_until_they_are_gone(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	make_commits(stage, "flood", 65537);
	stage_there(stage, "echo fine > fine");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nb\nfine\n");
	for (int i = 0; i < 2; i++) {
		assert_non_null(strstr(stage->collected.note, "more than 65536 are new"));
		assert_true(stage->collected.commits_left);
		stage_collect(stage, &there);
	}
	assert_commits(stage, "");
	stage_there(stage, "git update-ref -d refs/heads/flood");
	stage_collect(stage, &there);
	assert_false(stage->collected.commits_left);
}

static void test_commits_that_no_tree_can_have_are_left_where_they_are(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"git hash-object -w --stdin </dev/null\n"
		"tree=$(printf '100644 .GIT\\0\\346\\235\\342\\233\\262\\321\\326CK"
		"\\213)\\256wZ\\330\\302\\344\\214S\\221' |"
		" git hash-object -t tree -w --literally --stdin)\n"
		"git update-ref refs/heads/evil $(git commit-tree -m evil -p HEAD $tree)\n"
		"echo fine > fine");
	git_oid there = stage_collect(stage, &tree);
	assert_paths(stage->place, &there, "a\nb\nfine\n");
	assert_commits(stage, "");
	assert_non_null(strstr(stage->collected.note, "commits were not taken"));
	assert_true(stage->collected.commits_left);
	stage_collect(stage, &there); // they still are
	assert_true(stage->collected.commits_left);
	stage_there(stage, "git update-ref -d refs/heads/evil");
	stage_collect(stage, &there);
	assert_false(stage->collected.commits_left);
	place_run(stage->place, "git --git-dir=../state/store fsck --strict");
}

static void forget(struct stage *stage, long long age_seconds)
{
	struct error err;
	struct store_pruned pruned;
	long long before = age_seconds > 0 ? (long long)time(NULL) - age_seconds : 0;
	assert_true(agent_commits_forget(&stage->place->store, before, &err));
	assert_true(store_prune(&stage->place->store, -1, 0, &pruned, &err));
}

/* Opens the store again, so that libgit2 forgets what it has in memory. */
static void open_again(struct place *place)
{
	struct error err;
	store_close(&place->store);
	assert_true(store_open(&place->store, place->store_path, 0, &err));
}

static void test_old_branches_are_forgotten(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -qam mine; git checkout -q -b fix/it HEAD~2\n"
			   "git commit -q --allow-empty -m Fixed; git checkout -q main");
	git_oid there = stage_collect(stage, &tree);
	place_run(stage->place, "cd ../state/store/refs/acp-broker/agent\n"
				"touch -d '2 hours ago' fix/it; touch -d '10 minutes ago' main");
	forget(stage, 0);
	forget(stage, 3 * 3600);
	assert_commits(stage, "fix/it A Fixed\nmain A mine\n");
	forget(stage, 3600);
	assert_commits(stage, "main A mine\n");
	place_run(stage->place, "test ! -e ../state/store/refs/acp-broker/agent/fix");
	fetch_here(stage);
	forget(stage, 60);
	assert_commits(stage, "");
	place_run(stage->place, "test -d ../state/store/refs/acp-broker");
	place_run(stage->place, "test -s ../state/store/shallow");
	open_again(stage->place);
	forget(stage, 60); // there is no branch any more
	place_run(stage->place, "test ! -s ../state/store/shallow");
	stage_there(stage, "git checkout -q fix/it; git commit -q --allow-empty -m Further");
	stage_collect(stage, &there); // they still are there
	assert_commits(stage, "fix/it A Further\nfix/it A Fixed\nmain A mine\n");
	fetch_here(stage);
}

/* ---- what the user is told ---- */

static void test_they_are_told_by_the_collect_that_finds_them(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"git commit -qam one\n"
		"for n in 2 3 4 5; do git commit -q --allow-empty -m \"number $n\"; done\n"
		"git checkout -q -b fix/it HEAD~5; git commit -q --allow-empty -m 'It is'");
	tree = stage_collect(stage, &tree);
	assert_note(stage, "fix/it main",
		"fix/it at ID (1 commit: \"It is\") | main at ID (5 commits: \"number 5\", "
		"\"number 4\", \"number 3\" and 2 more) | acp-broker commits list");
	tree = stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	stage_restart(stage);
	stage_prepare(stage);
	tree = stage_collect(stage, &tree);
	assert_string_equal(stage->collected.note, "");
	stage_there(stage, "git commit -q --allow-empty -m Further");
	tree = stage_collect(stage, &tree);
	assert_note(
		stage, "fix/it", "fix/it at ID (1 commit: \"Further\") | acp-broker commits list");
}

static void test_no_more_is_told_than_there_is_room_for(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage,
		"for n in 1 2 3 4 5 6 7; do git checkout -q -b branch$n main\n"
		"git commit -q --allow-empty -m \"$(printf '\\342\\202\\254%.0s' $(seq 40)) $n\"\n"
		"git commit -q --allow-empty -m 'say \"\\\"'\n"
		"git commit -q --allow-empty -m \"$(printf 'a\\033[2Jb\\302\\233c')\"; done");
	stage_collect(stage, &tree);
	const char *note = stage->collected.note;
	size_t len = strlen(note);
	assert_non_null(strstr(note, "branch1 at "));
	assert_null(strstr(note, "branch6"));
	assert_non_null(strstr(note, "(3 commits: \"a\\033[2Jb\\302\\233c\", \"say \\\""));
	assert_non_null(strstr(note, "\342\202\254\"..."));
	assert_true(len > 200 && len < 1024);
	assert_int_equal(utf8_whole_length(span_of(note)), len);
	const char *more = strstr(note, " more branches");
	assert_non_null(more);
	assert_names(more, "acp-broker commits list");
	assert_string_equal(note + len - strlen("fetch them"), "fetch them");
}

/* The files of this collect did not arrive, and the next collect finds no new commit. */
static void test_what_a_collect_found_that_failed_is_told_by_the_next(void **state)
{
	struct stage *stage = *state;
	stage->place->store.big_file_bytes = 1000;
	stage_restart(stage);
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git commit -qam mine; head -c 5000 /dev/zero > big");
	stage_program(
		stage, "stat", "case $* in *%b*big) exit 1 ;; esac; exec /usr/bin/stat \"$@\"");
	stage_collect_fails(stage, &tree, ERROR_UNAVAILABLE, "fetching big");
	assert_commits(stage, "main A mine\n");
	place_run(stage->place, "rm ../bin/stat");
	stage_collect(stage, &tree);
	assert_non_null(strstr(stage->collected.note, "committed to main"));
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_the_agents_commits_come_back),
		STAGE_TEST(test_a_branch_that_grows_keeps_its_name),
		STAGE_TEST(test_a_rewritten_branch_keeps_what_it_was),
		STAGE_TEST(test_what_the_agent_built_upon_is_not_its_own),
		STAGE_TEST(test_a_history_of_the_agents_own_is_its_own_from_the_first_commit_on),
		STAGE_TEST(test_thousands_of_commits_come_back_at_once),
		STAGE_TEST(test_more_than_can_be_taken_are_told_until_they_are_gone),
		STAGE_TEST(test_commits_that_no_tree_can_have_are_left_where_they_are),
		STAGE_TEST(test_old_branches_are_forgotten),
		STAGE_TEST(test_they_are_told_by_the_collect_that_finds_them),
		STAGE_TEST(test_no_more_is_told_than_there_is_room_for),
		STAGE_TEST(test_what_a_collect_found_that_failed_is_told_by_the_next),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
