/* SPDX-License-Identifier: MIT */
#include "providers/daytona/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/pool.h"
#include "providers/daytona/opening.h"
#include "tests/support/facts.h"
#include "tests/unit/daytona_api_fixture.h"

/* The API key that a command prints: real commands, and a service that refuses keys. */

enum { WAIT_MS = 60000, LINE_SIZE = 512 };

static struct {
	struct spawner *spawner;
	struct provider_context context;
	struct daytona_shared shared;
	char folder[64];
	char runs[96]; // has a line for each run
	char line[LINE_SIZE];
	struct daytona_key_command command;
} world;

struct told {
	int count;
	char *key;
	struct error err;
};

static void on_key(void *data, const char *key, const struct error *err)
{
	struct told *told = data;
	told->count++;
	assert_int_equal(key == NULL, err != NULL);
	free(told->key);
	told->key = mem_strdup_or_null(key);
	told->err = err ? *err : (struct error){0};
}

static void turn_until(const int *count, int wanted)
{
	while (*count < wanted) {
		ev_run(loop, EVRUN_ONCE);
	}
}

static int set_up(void **state)
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/usr", NULL};
	struct error err;
	world.spawner = spawner_create(&err);
	api_setup(state);
	spawner_attach(world.spawner, loop);
	log_set_level(LOG_LEVEL_ERROR);
	world.context = (struct provider_context){
		.loop = loop, .spawner = world.spawner, .environment = environment};
	world.shared.context = &world.context;
	ssh_runs_init(&world.shared.runs, NULL);
	daytona_keys_init(&world.shared.keys, &world.context);
	snprintf(world.folder, sizeof(world.folder), "/tmp/acp-broker-keys-XXXXXX");
	assert_non_null(mkdtemp(world.folder));
	snprintf(world.runs, sizeof(world.runs), "%s/runs", world.folder);
	world.command = (struct daytona_key_command){
		.keys = &world.shared.keys, .line = world.line, .timeout_ms = WAIT_MS};
	return 0;
}

static int tear_down(void **state)
{
	daytona_api_destroy(api);
	api = NULL;
	daytona_keys_finish(&world.shared.keys);
	ssh_runs_finish(&world.shared.runs);
	spawner_destroy(world.spawner);
	unlink(world.runs);
	rmdir(world.folder);
	return api_teardown(state);
}

/* A command that records its runs, and then does this. */
static void will_run(const char *line)
{
	snprintf(world.line, sizeof(world.line), "echo run >>%s; %s", world.runs, line);
}

static int runs(void)
{
	FILE *file = fopen(world.runs, "re");
	int count = 0;
	for (int byte = file ? getc(file) : EOF; byte != EOF; byte = getc(file)) {
		count += byte == '\n';
	}
	if (file) {
		fclose(file);
	}
	return count;
}

static void ask_key(struct told *told, const char *refused)
{
	int before = told->count;
	assert_non_null(daytona_key_ask(&world.command, refused, on_key, told));
	assert_int_equal(told->count, before);
}

/* ---- the command ---- */

static void test_the_first_line_is_the_key_and_the_command_runs_once(void **state)
{
	struct told one = {0}, other = {0};
	will_run("echo ' dtn_1\t'; echo login: me");
	ask_key(&one, NULL);
	ask_key(&other, NULL);
	turn_until(&one.count, 1);
	turn_until(&other.count, 1);
	assert_string_equal(one.key, "dtn_1");
	assert_string_equal(other.key, "dtn_1");
	ask_key(&one, NULL);
	turn_until(&one.count, 2);
	ask_key(&one, "dtn_0"); // which it is not any more
	turn_until(&one.count, 3);
	assert_string_equal(one.key, "dtn_1");
	assert_int_equal(runs(), 1);
	ask_key(&one, "dtn_1");
	turn_until(&one.count, 4);
	assert_int_equal(runs(), 2);
	free(one.key);
	free(other.key);
}

/*
 * A workspace is a folder in which others may have put files, so it is not the place to run a
 * command.
 */
static void test_the_command_runs_in_the_home_directory(void **state)
{
	struct told told = {0};
	will_run("pwd");
	ask_key(&told, NULL);
	turn_until(&told.count, 1);
	assert_string_equal(told.key, "/usr");
	free(told.key);
}

static void test_what_fails_says_why_and_is_run_again(void **state)
{
	static const struct {
		const char *line, *names;
	} table[] = {
		{"no-such-program-at-all", "api-key-command | status 127 | PATH | "
					   "no-such-program-at-all"},
		{"echo printed; echo 'the store is locked' >&2; exit 3",
			"api-key-command | status 3 | the store is locked"},
		{"kill -KILL $$", "api-key-command | SIGKILL"},
		{"true", "api-key-command | nothing | ; | # | double quotes"},
		{"echo; echo second", "api-key-command | nothing | double quotes"},
		{"echo '  '", "api-key-command | nothing"},
		{"printf %5000s printed", "api-key-command | 4096 bytes"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(table); i++) {
		struct told told = {0};
		will_run(table[i].line);
		for (int time = 1; time <= 2; time++) {
			int before = runs();
			ask_key(&told, NULL);
			turn_until(&told.count, time);
			assert_null(told.key);
			assert_string_equal(told.err.reason, "DAYTONA_KEY_COMMAND");
			assert_names(told.err.text, table[i].names);
			assert_int_equal(runs(), before + 1);
		}
	}
}

static void test_its_output_is_in_no_error(void **state)
{
	struct told told = {0};
	will_run("echo dtn_secret; exit 1");
	ask_key(&told, NULL);
	turn_until(&told.count, 1);
	assert_null(strstr(told.err.text, "dtn_secret"));
}

static void test_one_that_does_not_end_is_killed_in_time(void **state)
{
	struct told told = {0};
	world.command.timeout_ms = 100;
	will_run("sleep 1000");
	ask_key(&told, NULL);
	turn_until(&told.count, 1);
	assert_string_equal(told.err.reason, "TIMEOUT_EXCEEDED");
	assert_int_equal(told.err.code, ERROR_TIMEOUT);
	assert_names(told.err.text, "api-key-command | 100 ms | api-key-command-timeout");
}

/* Every process of the command holds the other end of a pipe. */
static void test_it_is_killed_once_nobody_waits_for_it(void **state)
{
	struct told told = {0};
	char pipe[96], byte;
	snprintf(pipe, sizeof(pipe), "%s/pipe", world.folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	snprintf(world.line, sizeof(world.line), "exec 3>%s; echo up >&3; sleep 1000", pipe);
	int fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	struct daytona_key_wait *one = daytona_key_ask(&world.command, NULL, on_key, &told);
	struct daytona_key_wait *other = daytona_key_ask(&world.command, NULL, on_key, &told);
	while (read(fd, &byte, 1) != 1) {
		loop_for_ms(5);
	}
	daytona_key_cancel(one);
	loop_for_ms(5);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(read(fd, &byte, 1), 1); // it runs: there is more, and no end
	daytona_key_cancel(other);
	while (read(fd, &byte, 1) != 0) { // until the last process of the command has ended
	}
	assert_int_equal(told.count, 0);
	close(fd);
	unlink(pipe);
}

/* ---- the service refuses a key ---- */

static void api_with_command(const char *line)
{
	will_run(line);
	config.command = &world.command;
	api_again();
}

static void will_refuse(void)
{
	server_will_answer(401, "", "{\"statusCode\":401,\"message\":\"Invalid credentials\"}");
}

static void test_a_key_that_is_refused_is_asked_for_again(void **state)
{
	api_with_command("echo dtn_new");
	will_refuse();
	will_sandbox();
	ask();
	expect_done();
	assert_has(server_request(0), "Bearer " KEY "\r\n");
	assert_has(server_request(1), "Bearer dtn_new\r\n");
	assert_string_equal(daytona_api_key(api), "dtn_new");
	will_sandbox();
	ask();
	expect_done();
	assert_has(server_request(2), "Bearer dtn_new\r\n");
	assert_int_equal(runs(), 1);
}

static void test_the_same_key_again_is_an_error_and_it_is_not_asked_for_a_third_time(void **state)
{
	api_with_command("echo " KEY);
	for (int i = 0; i < 2; i++) {
		will_refuse();
		ask();
		expect_failed("DAYTONA_UNAUTHORIZED",
			i == 0 ? "Invalid credentials | api-key-command | no new key"
			       : "Invalid credentials | api-key-command");
		assert_int_equal(runs(), 1);
	}
	will_sandbox(); // the service accepts the key after all: later answers are another matter
	ask();
	expect_done();
	will_refuse();
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "no new key");
	assert_int_equal(runs(), 2);
}

static void test_a_new_key_is_tried_once(void **state)
{
	api_with_command("date +dtn_%s%N");
	will_refuse();
	will_refuse();
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "Invalid credentials");
	assert_int_equal(server_count(), 2);
	assert_int_equal(runs(), 1);
}

static void test_a_command_that_fails_is_told_with_the_refusal(void **state)
{
	api_with_command("echo locked >&2; exit 3");
	will_refuse();
	ask();
	expect_failed("DAYTONA_UNAUTHORIZED", "Invalid credentials | api-key-command | status 3 | "
					      "locked");
	assert_int_equal(server_count(), 1);
}

static void test_calls_that_are_refused_together_wait_for_one_run(void **state)
{
	api_with_command("echo dtn_new");
	for (int i = 0; i < 2; i++) {
		will_refuse();
	}
	will_sandbox();
	will_sandbox();
	ask();
	daytona_get(api, "p1", on_told, NULL);
	turn_until(&outcome.count, 2);
	assert_false(outcome.has_failed);
	assert_int_equal(runs(), 1);
}

static void test_a_call_that_waits_for_a_key_can_be_given_up(void **state)
{
	for (int way = 0; way < 2; way++) {
		api_with_command("exec sleep 1000");
		will_refuse();
		outcome.count = 0;
		int before = runs();
		struct daytona_call *call = daytona_get(api, "p1", on_told, NULL);
		while (runs() == before) {
			loop_for_ms(5);
		}
		if (way == 0) {
			daytona_call_cancel(call);
		}
		daytona_api_destroy(api);
		api = NULL;
		loop_for_ms(5);
		assert_int_equal(outcome.count, 0);
	}
}

/* ---- of a profile ---- */

static struct daytona_api *opened;
static struct error opening_error;
static int openings;

static void on_opened(void *data, struct daytona_api *of, const struct error *err)
{
	openings++;
	opened = of;
	opening_error = err ? *err : (struct error){0};
}

static void open_with(struct daytona_profile *profile, const char *line)
{
	struct settings settings;
	struct error err;
	settings_init(&settings);
	settings_add(&settings, "api-key-command", line, "test");
	openings = 0;
	assert_true(
		daytona_profile_read(profile, "cloud", &settings, world.context.environment, &err));
	settings_finish(&settings);
	assert_non_null(daytona_opening_start(&world.shared, profile, on_opened, NULL, &err));
	assert_int_equal(openings, 0);
	turn_until(&openings, 1);
}

static void test_a_profile_takes_the_key_that_its_command_prints(void **state)
{
	struct daytona_profile profile;
	struct error err;
	open_with(&profile, "echo dtn_mine");
	assert_non_null(opened);
	assert_string_equal(daytona_api_key(opened), "dtn_mine");
	assert_string_equal(daytona_profile_key(&profile, &err), "dtn_mine");
	assert_string_equal(profile.key_from, "api-key-command");
	daytona_api_destroy(opened);
	daytona_profile_finish(&profile);
	open_with(&profile, "exit 4");
	assert_null(opened);
	assert_string_equal(opening_error.reason, "DAYTONA_KEY_COMMAND");
	daytona_profile_finish(&profile);
	open_with(&profile, "echo You are not signed in.");
	assert_null(opened);
	assert_int_equal(opening_error.code, ERROR_CONFIG);
	assert_names(opening_error.text, "api-key-command");
	assert_null(strstr(opening_error.text, "signed"));
	daytona_profile_finish(&profile);
}

#define KEY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEY_TEST(test_the_first_line_is_the_key_and_the_command_runs_once),
		KEY_TEST(test_the_command_runs_in_the_home_directory),
		KEY_TEST(test_what_fails_says_why_and_is_run_again),
		KEY_TEST(test_its_output_is_in_no_error),
		KEY_TEST(test_one_that_does_not_end_is_killed_in_time),
		KEY_TEST(test_it_is_killed_once_nobody_waits_for_it),
		KEY_TEST(test_a_key_that_is_refused_is_asked_for_again),
		KEY_TEST(test_the_same_key_again_is_an_error_and_it_is_not_asked_for_a_third_time),
		KEY_TEST(test_a_new_key_is_tried_once),
		KEY_TEST(test_a_command_that_fails_is_told_with_the_refusal),
		KEY_TEST(test_calls_that_are_refused_together_wait_for_one_run),
		KEY_TEST(test_a_call_that_waits_for_a_key_can_be_given_up),
		KEY_TEST(test_a_profile_takes_the_key_that_its_command_prints),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
