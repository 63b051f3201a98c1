/* SPDX-License-Identifier: MIT */
#include "sync/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tests/support/campaign.h"
#include "tests/unit/moment_fixture.h"

/* ---- the user ---- */

static const char the_users[] = "the user's\n";

enum { STEP = 19 }; // of the moments that are tried

struct user {
	struct place *place;
	const char *name;
};

/* Writes a file and renames it into place, as vim and most other editors do. */
static void save_by_rename(void *data)
{
	struct user *user = data;
	char from[FIXTURE_PATH_MAX * 2];
	snprintf(from, sizeof(from), "%s", place_path(user->place, "saving.acp-conflict"));
	place_write(user->place, "saving.acp-conflict", the_users);
	(void)(rename(from, place_path(user->place, user->name)) == 0); // a folder may be there
	unlink(from);
}

static void save_in_place(void *data)
{
	struct user *user = data;
	struct error err;
	int fd = open(place_path(user->place, user->name), O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC,
		0644);
	if (fd >= 0) {
		assert_true(fd_write_all(fd, span_of(the_users), &err));
		close(fd);
	}
}

/* Checks that the user's save is under its own name. */
static void assert_saved(struct user *user)
{
	char text[64] = "";
	int fd = open(place_path(user->place, user->name), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, the_users);
	assert_int_equal(tree_count(user->place->root, ".tmp", NULL), 0);
}

/* Checks that the user's save is under its own name, or under that of a parked version. */
static void assert_kept(struct user *user)
{
	const char *root = user->place->root;
	assert_true(tree_count(root, "", the_users) >= 1);
	assert_int_equal(tree_count(root, ".tmp", NULL), 0);
}

static void save_everywhere(struct place *place, const char *name, void (*save)(void *data))
{
	struct moment moment;
	struct error err;
	int at = 1 - campaign_step(STEP);
	do {
		moment_reset(&moment, place);
		struct user user = {place, name};
		at += campaign_step(STEP);
		calls_begin(at);
		calls.before = save;
		calls.data = &user;
		bool applied = moment_apply(&moment, &moment.from, &moment.to, &err);
		calls_end();
		if (!applied) {
			fail_msg("%s saved at call %d: %s", name, at, err.text);
		}
		if (calls.count >= at) {
			assert_saved(&user);
		}
	} while (calls.count >= at);
}

static void test_what_is_saved_at_any_moment_by_a_rename_stays(void **state)
{
	save_everywhere(*state, "a", save_by_rename);
	save_everywhere(*state, "Up", save_by_rename);
}

static void test_what_is_saved_at_any_moment_in_place_stays(void **state)
{
	save_everywhere(*state, "a", save_in_place);
	save_everywhere(*state, "Up", save_in_place);
}

static void test_what_appears_at_any_moment_where_a_new_file_goes_stays(void **state)
{
	save_everywhere(*state, "up", save_by_rename);
	save_everywhere(*state, "up", save_in_place);
}

/* The user saves, and the broker is killed some calls later. */
struct end {
	struct user user;
	int calls_later;
};

static void save_and_be_killed_later(void *data)
{
	struct end *end = data;
	save_by_rename(&end->user);
	calls.at += end->calls_later;
	calls.before = moment_be_killed;
}

/* Applies in a child that is killed; false if it has ended before that call. */
static bool save_until_killed(struct moment *moment, struct end *end, int at)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		calls_begin(at);
		calls.before = save_and_be_killed_later;
		calls.data = end;
		bool applied = moment_apply(moment, &moment->from, &moment->to, NULL);
		store_close(&moment->place->store);
		_exit(applied ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void save_and_be_killed_everywhere(struct place *place, int calls_later)
{
	struct moment moment;
	struct error err;
	struct end end = {{place, "a"}, calls_later};
	bool was_killed = true;
	for (int at = calls_later; was_killed; at += campaign_step(STEP)) {
		moment_reset(&moment, place);
		was_killed = save_until_killed(&moment, &end, at);
		if (!moment_apply(&moment, &moment.from, &moment.to, &err)) {
			fail_msg("saved at call %d: %s", at, err.text);
		}
		if (was_killed) {
			assert_kept(&end.user);
		}
	}
}

static void test_what_is_saved_in_the_moment_of_a_kill_is_kept(void **state)
{
	for (int calls_later = 1; calls_later <= 4; calls_later++) {
		save_and_be_killed_everywhere(*state, calls_later);
	}
}

/*
 * After the save the user goes on typing, and saves once more into the file that is there by then.
 */
struct twice {
	struct user user;
	int calls_later;
};

static void save_again_later(void *data)
{
	struct twice *twice = data;
	place_write(twice->user.place, "saving.acp-conflict", "the user's first\n");
	(void)(rename(place_path(twice->user.place, "saving.acp-conflict"),
		       place_path(twice->user.place, twice->user.name)) == 0);
	calls.at += twice->calls_later;
	calls.before = save_in_place;
	calls.data = &twice->user;
}

static void save_twice_everywhere(struct place *place, int calls_later)
{
	struct moment moment;
	struct error err;
	int count = 0;
	int at = 1 - campaign_step(STEP);
	do {
		moment_reset(&moment, place);
		struct twice twice = {{place, "a"}, calls_later};
		at += campaign_step(STEP);
		calls_begin(at);
		calls.before = save_again_later;
		calls.data = &twice;
		bool applied = moment_apply(&moment, &moment.from, &moment.to, &err);
		count = calls.count;
		calls_end();
		assert_true(applied);
		if (count >= at + calls_later) {
			assert_kept(&twice.user);
		}
	} while (count >= at);
}

static void test_what_is_saved_twice_at_any_moment_is_kept(void **state)
{
	for (int calls_later = 1; calls_later <= 2; calls_later++) {
		save_twice_everywhere(*state, calls_later);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_saved_at_any_moment_by_a_rename_stays),
		TEST(test_what_is_saved_at_any_moment_in_place_stays),
		TEST(test_what_appears_at_any_moment_where_a_new_file_goes_stays),
		TEST(test_what_is_saved_in_the_moment_of_a_kill_is_kept),
		TEST(test_what_is_saved_twice_at_any_moment_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
