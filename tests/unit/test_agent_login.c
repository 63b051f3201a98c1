/* SPDX-License-Identifier: MIT */
#include "providers/local/agent_login.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/lock_file.h"
#include "base/remove_folder.h"
#include "base/text.h"

#define LOGIN(token, time)                                                                         \
	"{\"claudeAiOauth\":{\"accessToken\":\"" token "\",\"expiresAt\":" #time                   \
	",\"scopes\":[\"a\"]}}"
#define FILE_NAME "/.claude/.credentials.json"

enum { DEADLINE_MS = 60000 };

static char folder[64];
static struct ev_loop *loop;
static struct pool *pool;
static struct agent_home agent;
static struct agent_login *login;
static int cell_fd;
static struct error err;

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *content)
{
	FILE *file = fopen(path_of(name), "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
}

static bool has(const char *name, const char *content)
{
	char text[4096] = "";
	ATTR_CLEANUP(fd_cleanup) int fd = open(path_of(name), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && strcmp(text, content) == 0;
}

static void on_tick(struct ev_loop *of, ev_timer *timer, int events)
{
}

static void wait_for(const char *name, const char *content)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (!has(name, content) && clock_now_ms() < deadline_ms) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_true(has(name, content));
}

static int set_up(void **state)
{
	text_whole(folder, sizeof(folder), "/tmp/test-agent-login-XXXXXX");
	if (!mkdtemp(folder) || !folder_make(path_of("home/.claude"), &err) ||
		!folder_make(path_of("cell/.claude"), &err)) {
		return -1;
	}
	loop = ev_loop_new(EVFLAG_AUTO);
	pool = pool_create(loop);
	agent = (struct agent_home){
		.files = agent_files_find("claude"), .home = mem_strdup(path_of("home"))};
	write_file("home" FILE_NAME, LOGIN("old", 5));
	write_file("cell" FILE_NAME, LOGIN("old", 5));
	cell_fd = open(path_of("cell"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	login = agent_login_start(loop, pool, &agent, cell_fd);
	return login ? 0 : -1;
}

/* Without a worker thread, the broker takes the last look at once. */
static void end(void)
{
	pool_destroy(pool);
	pool = NULL;
	agent_login_end(login);
	login = NULL;
}

static int tear_down(void **state)
{
	if (login) {
		end();
	}
	close(cell_fd);
	ev_loop_destroy(loop);
	agent_home_finish(&agent);
	return remove_folder(folder, &err) ? 0 : -1;
}

static void test_what_the_cell_refreshed_comes_back(void **state)
{
	write_file("cell" FILE_NAME, LOGIN("new", 6));
	wait_for("home" FILE_NAME, LOGIN("new", 6));
}

static void test_a_file_that_is_renamed_into_place_comes_back(void **state)
{
	char from[PATH_MAX];
	write_file("cell/.claude/new", LOGIN("new", 6));
	text_whole(from, sizeof(from), "%s", path_of("cell/.claude/new"));
	assert_int_equal(rename(from, path_of("cell" FILE_NAME)), 0);
	wait_for("home" FILE_NAME, LOGIN("new", 6));
}

static void test_what_the_user_refreshed_goes_in(void **state)
{
	write_file("home" FILE_NAME, LOGIN("new", 6));
	wait_for("cell" FILE_NAME, LOGIN("new", 6));
	assert_true(has("home" FILE_NAME, LOGIN("new", 6)));
}

static void test_of_two_the_newer_one_wins(void **state)
{
	write_file("home" FILE_NAME, LOGIN("user", 9));
	write_file("cell" FILE_NAME, LOGIN("cell", 8));
	wait_for("cell" FILE_NAME, LOGIN("user", 9));
	assert_true(has("home" FILE_NAME, LOGIN("user", 9)));
}

static void test_the_users_next_login_wins_over_any_time(void **state)
{
	write_file("cell" FILE_NAME, LOGIN("evil", 9000000000000000));
	wait_for("home" FILE_NAME, LOGIN("evil", 9000000000000000));
	write_file("home" FILE_NAME, LOGIN("user", 9));
	wait_for("cell" FILE_NAME, LOGIN("user", 9));
	assert_true(has("home" FILE_NAME, LOGIN("user", 9)));
	/* Once a cell has claimed to be newer, nothing more is taken from it. */
	write_file("cell" FILE_NAME, LOGIN("evil", 9000000000000001));
	end();
	assert_true(has("home" FILE_NAME, LOGIN("user", 9)));
}

static void test_a_lock_that_nobody_releases_stops_nothing(void **state)
{
	ATTR_CLEANUP(fd_cleanup)
	int home = open(path_of("home/.claude"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_file_try(home, LOCK_ALONE), LOCK_TAKEN);
	write_file("cell" FILE_NAME, LOGIN("cell", 8));
	end();
	assert_true(has("home" FILE_NAME, LOGIN("cell", 8)));
}

/* "scopes" went into the cell, but does not come back. */
static void test_only_named_keys_come_back(void **state)
{
	struct stat status;
	write_file("home" FILE_NAME,
		"{\"mcpOAuth\": {\"x\": 1},\n\"claudeAiOauth\": {\"accessToken\": \"old\", "
		"\"expiresAt\": 5, \"scopes\": []}}\n");
	assert_int_equal(chmod(path_of("home" FILE_NAME), 0640), 0);
	write_file("cell" FILE_NAME,
		"{\"claudeAiOauth\": {\"accessToken\": \"new\", \"expiresAt\": 6, "
		"\"refreshToken\": "
		"\"r\", \"scopes\": [\"evil\"]}, \"mcpOAuth\": {\"evil\": 1}, \"hooks\": {}}");
	wait_for("home" FILE_NAME,
		"{\"mcpOAuth\": {\"x\": 1},\n\"claudeAiOauth\": {\"accessToken\": \"new\", "
		"\"expiresAt\": 6, \"scopes\": []}}\n");
	assert_int_equal(stat(path_of("home" FILE_NAME), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0640);
}

/* Checks a file that an agent leaves there when its cell ends. */
static void assert_nothing_comes_back(void)
{
	end();
	assert_true(has("home" FILE_NAME, LOGIN("old", 5)));
}

static void test_the_last_look_is_at_the_end(void **state)
{
	write_file("cell" FILE_NAME, LOGIN("new", 6));
	end();
	assert_true(has("home" FILE_NAME, LOGIN("new", 6)));
}

static void test_an_older_one_does_not_come_back(void **state)
{
	write_file("cell" FILE_NAME, LOGIN("older", 4));
	assert_nothing_comes_back();
}

static void test_what_is_no_json_does_not_come_back(void **state)
{
	write_file("cell" FILE_NAME, "{\"claudeAiOauth\":{\"accessToken\":\"new\",\"expiresAt\":6");
	assert_nothing_comes_back();
}

static void test_values_of_other_types_do_not_come_back(void **state)
{
	write_file("cell" FILE_NAME,
		"{\"claudeAiOauth\":{\"accessToken\":{\"x\":1},\"expiresAt\":\"6\"}}");
	assert_nothing_comes_back();
}

static void test_a_huge_file_does_not_come_back(void **state)
{
	write_file("cell" FILE_NAME, LOGIN("new", 6));
	assert_int_equal(truncate(path_of("cell" FILE_NAME), 1LL << 40), 0);
	assert_nothing_comes_back();
}

static void test_a_pipe_is_not_waited_for(void **state)
{
	assert_int_equal(unlink(path_of("cell" FILE_NAME)), 0);
	assert_int_equal(mkfifo(path_of("cell" FILE_NAME), 0600), 0);
	assert_nothing_comes_back();
}

static void test_a_link_in_the_cell_is_not_followed(void **state)
{
	char target[PATH_MAX];
	write_file("secret", LOGIN("secret", 9));
	text_whole(target, sizeof(target), "%s", path_of("secret"));
	assert_int_equal(unlink(path_of("cell" FILE_NAME)), 0);
	assert_int_equal(symlink(target, path_of("cell" FILE_NAME)), 0);
	assert_nothing_comes_back();
}

static void test_a_folder_of_the_cell_that_became_a_link_is_not_followed(void **state)
{
	char from[PATH_MAX];
	text_whole(from, sizeof(from), "%s", path_of("cell/.claude"));
	assert_int_equal(rename(from, path_of("cell/old")), 0);
	assert_int_equal(symlink(path_of("home/.claude"), from), 0);
	write_file("home/.claude/mine", "mine");
	write_file("home" FILE_NAME, LOGIN("user", 9));
	end();
	assert_true(has("home" FILE_NAME, LOGIN("user", 9)));
	assert_int_not_equal(access(path_of("home/.claude/.acp-broker-login"), F_OK), 0);
}

/* The user, or an agent that was allowed to write there, has put a link there. */
static void test_a_link_in_the_home_is_not_written_through(void **state)
{
	char from[PATH_MAX];
	text_whole(from, sizeof(from), "%s", path_of("home" FILE_NAME));
	assert_int_equal(rename(from, path_of("elsewhere")), 0);
	assert_int_equal(symlink("../../elsewhere", from), 0);
	write_file("cell" FILE_NAME, LOGIN("new", 6));
	end();
	assert_true(has("elsewhere", LOGIN("old", 5)));
}

static void test_a_login_that_the_user_has_not_is_not_made(void **state)
{
	assert_int_equal(unlink(path_of("home" FILE_NAME)), 0);
	write_file("cell" FILE_NAME, LOGIN("new", 6));
	end();
	assert_int_not_equal(access(path_of("home" FILE_NAME), F_OK), 0);
}

static void start_again(void)
{
	agent_login_end(login);
	login = agent_login_start(loop, pool, &agent, cell_fd);
	assert_non_null(login);
}

static void draft_of(pid_t pid, const char *end, char out[64])
{
	text_whole(out, 64, "home/.claude/.acp-broker-%d%s", (int)pid, end);
	write_file(out, LOGIN("left", 4));
}

/*
 * A broker was killed after it had given the new file a name, and before it replaced the old one.
 */
static void test_what_a_killed_broker_has_left_goes(void **state)
{
	char left[64], running[64], other[64];
	pid_t gone = fork();
	if (gone == 0) {
		_exit(0);
	}
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	draft_of(gone, "-3.tmp", left);
	draft_of(getpid(), "-4000000.tmp", running);
	draft_of(gone, "-3.tmp.json", other);
	ATTR_CLEANUP(fd_cleanup)
	int home = open(path_of("home/.claude"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_file_try(home, LOCK_ALONE), LOCK_TAKEN);
	start_again();
	assert_true(has(left, LOGIN("left", 4))); // another broker is writing
	lock_file_release(home);
	start_again();
	assert_int_not_equal(access(path_of(left), F_OK), 0);
	assert_int_equal(access(path_of(running), F_OK), 0);
	assert_int_equal(access(path_of(other), F_OK), 0);
}

/* A folder lies in the place of our draft. */
static void test_a_folder_in_the_drafts_place_harms_the_cell_alone(void **state)
{
	assert_int_equal(mkdir(path_of("cell/.claude/.acp-broker-login"), 0700), 0);
	write_file("home" FILE_NAME, LOGIN("user", 9));
	end();
	assert_true(has("home" FILE_NAME, LOGIN("user", 9)));
	assert_true(has("cell" FILE_NAME, LOGIN("old", 5)));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_what_the_cell_refreshed_comes_back),
		CASE(test_a_file_that_is_renamed_into_place_comes_back),
		CASE(test_what_the_user_refreshed_goes_in),
		CASE(test_of_two_the_newer_one_wins),
		CASE(test_the_users_next_login_wins_over_any_time),
		CASE(test_a_lock_that_nobody_releases_stops_nothing),
		CASE(test_only_named_keys_come_back),
		CASE(test_the_last_look_is_at_the_end),
		CASE(test_an_older_one_does_not_come_back),
		CASE(test_what_is_no_json_does_not_come_back),
		CASE(test_values_of_other_types_do_not_come_back),
		CASE(test_a_huge_file_does_not_come_back),
		CASE(test_a_pipe_is_not_waited_for),
		CASE(test_a_link_in_the_cell_is_not_followed),
		CASE(test_a_folder_of_the_cell_that_became_a_link_is_not_followed),
		CASE(test_a_link_in_the_home_is_not_written_through),
		CASE(test_a_login_that_the_user_has_not_is_not_made),
		CASE(test_what_a_killed_broker_has_left_goes),
		CASE(test_a_folder_in_the_drafts_place_harms_the_cell_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
