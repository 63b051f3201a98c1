/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sync/git/remotes.h"
#include "tests/unit/transport_fixture.h"

/* The user's branches, tags and remotes in the runtime's repository. */

static const char repository[] =
	"git init -q -b main; echo a > a; git add a; git commit -qm one; git tag -a -m v1 v1\n"
	"git checkout -q -b topic; echo t > t; git add t; git commit -qm topic; git tag light\n"
	"git checkout -q main; echo b > b; git add b; git commit -qm two\n"
	"git tag of-a-file main:a; git tag of-a-folder main^{tree}; git checkout -q -b work\n"
	"git commit -q --allow-empty -m three\n";

static void assert_same_answer(struct stage *stage, const char *script)
{
	char *here = place_ask(stage->place, script);
	char *there = stage_ask(stage, script);
	if (strcmp(here, there) != 0) {
		fail_msg("%s\nhere: %s\nthere: %s", script, here, there);
	}
	free(here);
	free(there);
}

/* Begins another session after a change here. */
static void start_anew(struct stage *stage, const char *script)
{
	place_run(stage->place, script);
	stage_restart(stage);
	stage_prepare(stage);
}

static const char all_refs[] = "git for-each-ref refs/heads refs/tags; git symbolic-ref HEAD";

static void test_branches_and_tags_are_there_and_follow(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	assert_same_answer(stage, all_refs);
	assert_same_answer(stage, "git describe; git diff --stat topic...HEAD; git show v1\n"
				  "git fsck --strict 2>/dev/null");
	static const char *const changes[] = {
		"git tag -d light; git tag -f v1 main; git branch -m topic topic/x",
		"git branch -f main work; git branch -m topic/x topic; git checkout -q --detach",
		"git checkout -q -B main; git branch -D work",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		start_anew(stage, changes[i]);
		tree = stage_collect(stage, &tree);
		assert_string_equal(stage->collected.note, "");
		assert_same_answer(
			stage, i == 1 ? "git for-each-ref refs/heads refs/tags" : all_refs);
	}
	stage_program(stage, "git",
		"case \" $* \" in *' update-ref '*) : > \"${0%/*}/sent\" ;; esac\n"
		"exec /usr/bin/git \"$@\"");
	start_anew(stage, "");
	place_run(stage->place, "test ! -e ../bin/sent"); // it knows that all is there
}

static void test_what_the_agent_makes_of_branches_and_tags_stays(void **state)
{
	struct stage *stage = *state;
	git_oid tree = stage_send_first(stage, repository);
	stage_there(stage, "git branch fresh; git tag fresh; git tag -f v1 HEAD\n"
			   "git update-ref refs/heads/topic $(git commit-tree -m own -p topic "
			   "topic^{tree})");
	start_anew(stage, "git tag other; git branch -f topic; git branch -D main");
	stage_there(stage, "test $(git rev-parse fresh) = $(git rev-parse HEAD)\n"
			   "test $(git rev-parse refs/tags/fresh v1 other | uniq | wc -l) = 1\n"
			   "git log -1 --format=%s topic | grep -qx own\n"
			   "! git rev-parse -q --verify refs/heads/main");
	stage_collect(stage, &tree);
	place_run(stage->place, "git --git-dir=../state/store log -1 --format=%s "
				"refs/acp-broker/agent/topic | grep -qx own");
}

static void test_without_git_here_the_library_sends_them_all(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	char *path = strdup(getenv("PATH"));
	setenv("PATH", "/nonexistent", 1);
	stage_prepare(stage);
	setenv("PATH", path, 1);
	free(path);
	assert_same_answer(stage, all_refs);
	assert_same_answer(stage, "git describe; git show v1 of-a-file of-a-folder\n"
				  "git fsck --strict 2>/dev/null");
}

/* A ref that leads to nothing here is left out, and the others are sent. */
static void test_a_ref_that_leads_to_nothing_is_in_the_way_of_no_other(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	stage_send_first(stage, "echo 1234567890123456789012345678901234567890 "
				"> .git/refs/tags/lost; rm .git/refs/tags/light");
	assert_string_equal(stage->collected.note, "");
	stage_there(stage, "git describe; ! git rev-parse -q --verify refs/tags/lost");
}

/* ---- remotes ---- */

static void test_remotes_are_there_without_credentials_and_follow(void **state)
{
	struct stage *stage = *state;
	place_run(stage->place, repository);
	stage_send_first(stage,
		"git remote add origin https://me:t0ken@example.org/a.git\n"
		"git remote set-url --push origin 'no push'\n"
		"git remote add helper 'ext::sh -c false'; git remote add a.b ../b\n"
		"git config http.extraHeader 'Authorization: t0ken'");
	static const char list[] = "git config --local --get-regexp '^remote[.].*url' | sort";
	char *there = stage_ask(stage, list);
	assert_string_equal(there, "remote.a.b.url ../b\n"
				   "remote.origin.pushurl no push\n"
				   "remote.origin.url https://example.org/a.git\n");
	free(there);
	stage_there(stage, "! grep -r t0ken .git; test $(git remote | wc -l) = 2\n"
			   "git remote set-url a.b /mine; git remote add further /mine");
	start_anew(stage, "git remote set-url origin https://example.org/c.git\n"
			  "git remote set-url a.b ../c; git remote add further ../c");
	there = stage_ask(stage, list);
	assert_string_equal(there, "remote.a.b.url /mine\nremote.further.url /mine\n"
				   "remote.origin.pushurl no push\n"
				   "remote.origin.url https://example.org/c.git\n");
	free(there);
	start_anew(stage, "git remote remove origin");
	stage_there(stage, "test \"$(git remote | sort | xargs)\" = 'a.b further'");
}

static void test_a_url_loses_what_may_be_secret(void **state)
{
	static const char *const urls[][2] = {
		{"https://example.org/a.git", "https://example.org/a.git"},
		{"https://t0ken@example.org/a", "https://example.org/a"},
		{"HTTPS://me:t0@ken@example.org:8443/a?t=t0ken#x", "HTTPS://example.org:8443/a"},
		{"http://[::1]:80/a", "http://[::1]:80/a"},
		{"https://me:t0/ken@example.org/a", NULL},
		{"https://mirror.example/https://t0ken@example.org/a", NULL},
		{"ssh://git:t0ken@example.org:22/~a/b?c", "ssh://git@example.org:22/~a/b?c"},
		{"git@example.org:a/b.git", "git@example.org:a/b.git"},
		{"me:t0ken@example.org:a", NULL},
		{"ext::sh -c t0ken", NULL},
		{"file:///srv/a#b", "file:///srv/a#b"},
		{"/srv/a@b", "/srv/a@b"},
		{"../a", "../a"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(urls); i++) {
		char *clean = remote_url_clean(urls[i][0]);
		if (!urls[i][1]) {
			assert_null(clean);
		} else {
			assert_string_equal(clean, urls[i][1]);
		}
		free(clean);
	}
}

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_setup, stage_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAGE_TEST(test_branches_and_tags_are_there_and_follow),
		STAGE_TEST(test_what_the_agent_makes_of_branches_and_tags_stays),
		STAGE_TEST(test_without_git_here_the_library_sends_them_all),
		STAGE_TEST(test_a_ref_that_leads_to_nothing_is_in_the_way_of_no_other),
		STAGE_TEST(test_remotes_are_there_without_credentials_and_follow),
		cmocka_unit_test(test_a_url_loses_what_may_be_secret),
	};
	return cmocka_run_group_tests(tests, stage_group_setup, stage_group_teardown);
}
