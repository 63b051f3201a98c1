/* SPDX-License-Identifier: MIT */
#include "broker/cli/broker.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "broker/agent/login_note.h"
#include "providers/local/local.h"
#include "tests/support/facts.h"

enum { DEADLINE_MS = 30000, OUTPUT_MAX = 65536, ENVIRONMENT_MAX = 8 };

/* A scripted agent: answers two requests, and then prints what it gets, until the end of file. */
static const char agent_script[] =
	"read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}'; "
	"read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"pwd\":\"'\"$PWD\"'\","
	"\"key\":\"'\"$KEY\"'\"}}'; cat >/dev/null";

/*
 * The whole program in a process of its own; the test has the other ends of its three descriptors.
 */
struct run {
	pid_t pid;
	int in;
	int out;
	int err;
	char output[OUTPUT_MAX];
	char errors[OUTPUT_MAX];
	size_t output_len;
	size_t errors_len;
	const char *environment[ENVIRONMENT_MAX];
	int ignored[4]; // signals that the program inherits as ignored; 0 ends them
	bool (*add)(struct registry *registry, const struct provider_context *context,
		struct error *err);
};

/* A login that a broker has offered. */
struct offered {
	char folder[64];
	char note[256];
	char mark[96];
	char home[96];
};

static bool add_local(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return registry_add(registry, local_provider_create(context), err);
}

static bool add_nothing(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return true;
}

static bool add_nil(
	struct registry *registry, const struct provider_context *context, struct error *err)
{
	return registry_add(registry, NULL, err);
}

static int set_up(void **state)
{
	struct run *run = mem_alloc_zero(sizeof(*run));
	run->in = run->out = run->err = -1;
	run->environment[0] = "PATH=/usr/bin:/bin";
	run->environment[1] = "KEY=of the broker";
	run->add = add_local;
	*state = run;
	return 0;
}

/* We are a subreaper, so everything that the broker left is our child. */
static int tear_down(void **state)
{
	struct run *run = *state;
	long long deadline = clock_now_ms() + DEADLINE_MS;
	fd_close(&run->in);
	fd_close(&run->out);
	fd_close(&run->err);
	if (run->pid > 0) {
		kill(run->pid, SIGKILL);
	}
	while (waitpid(-1, NULL, WNOHANG) >= 0 && clock_now_ms() < deadline) {
		usleep(1000);
	}
	free(run);
	return errno == ECHILD ? 0 : -1;
}

/* ---- the program ---- */

/*
 * What the broker inherits: these signals ignored, as by a shell's `&` and nohup(1), and all
 * blocked.
 */
static void be_left_signals(const int *ignored)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	for (; *ignored; ignored++) {
		signal(*ignored, SIG_IGN);
	}
}

static _Noreturn void be_broker(const struct run *run, char **argv, const int ends[3])
{
	struct broker_providers providers = {.add = run->add};
	int argc = 0;
	while (argv[argc]) {
		argc++;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(ends[i], i) != i) {
			_exit(99);
		}
	}
	for (int fd = 3; fd < 64; fd++) {
		close(fd);
	}
	be_left_signals(run->ignored);
	int status = broker_main(argc, argv, run->environment, &providers);
	fflush(stdout);
	exit(status);
}

/* Begins acp-broker with these arguments; NULL ends them. */
static void begin(struct run *run, const char *const *arguments)
{
	char *argv[16] = {(char *)"acp-broker"};
	struct error err;
	int in[2];
	int out[2];
	int errors[2];
	for (int i = 0; arguments[i]; i++) {
		argv[i + 1] = (char *)arguments[i];
	}
	assert_true(fd_pipe(in, &err) && fd_pipe(out, &err) && fd_pipe(errors, &err));
	run->output_len = run->errors_len = 0;
	memset(run->output, 0, sizeof(run->output));
	memset(run->errors, 0, sizeof(run->errors));
	run->pid = fork();
	assert_true(run->pid >= 0);
	if (run->pid == 0) {
		be_broker(run, argv, (const int[3]){in[0], out[1], errors[1]});
	}
	close(in[0]);
	close(out[1]);
	close(errors[1]);
	run->in = in[1];
	run->out = out[0];
	run->err = errors[0];
}

/* One read of what it writes; false at the end of both. */
static bool read_some(struct run *run, int wait_ms)
{
	struct pollfd ends[] = {
		{.fd = run->out, .events = POLLIN}, {.fd = run->err, .events = POLLIN}};
	if (poll(ends, 2, wait_ms) <= 0) {
		return true;
	}
	if (ends[0].revents) {
		ssize_t got = read(
			run->out, run->output + run->output_len, OUTPUT_MAX - 1 - run->output_len);
		run->output_len += got > 0 ? (size_t)got : 0;
		if (got <= 0) {
			fd_close(&run->out);
		}
	}
	if (ends[1].revents) {
		ssize_t got = read(
			run->err, run->errors + run->errors_len, OUTPUT_MAX - 1 - run->errors_len);
		run->errors_len += got > 0 ? (size_t)got : 0;
		if (got <= 0) {
			fd_close(&run->err);
		}
	}
	return run->out != -1 || run->err != -1;
}

/* Waits until its output has this many lines. */
static void wait_lines(struct run *run, int count)
{
	long long deadline = clock_now_ms() + DEADLINE_MS;
	for (;;) {
		int lines = 0;
		for (size_t i = 0; i < run->output_len; i++) {
			lines += run->output[i] == '\n';
		}
		if (lines >= count) {
			return;
		}
		if (clock_now_ms() > deadline || !read_some(run, 100)) {
			fail_msg("%d lines instead of %d: %s%s", lines, count, run->output,
				run->errors);
		}
	}
}

/* Waits for its end; returns its exit status. */
static int finish(struct run *run)
{
	long long deadline = clock_now_ms() + DEADLINE_MS;
	int status = 0;
	fd_close(&run->in);
	while (read_some(run, 100)) {
		if (clock_now_ms() > deadline) {
			fail_msg("it does not end: %s", run->errors);
		}
	}
	assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
	run->pid = 0;
	if (!WIFEXITED(status)) {
		fail_msg("it was killed by signal %d: %s", WTERMSIG(status), run->errors);
	}
	return WEXITSTATUS(status);
}

static void says(struct run *run, const char *line)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",%s}\n", line);
	assert_int_equal(write(run->in, text, (size_t)len), len);
}

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- the command line ---- */

static void test_help_and_version_go_to_stdout(void **state)
{
	struct run *run = *state;
	begin(run, ARGUMENTS("--version"));
	assert_int_equal(finish(run), 0);
	assert_non_null(strstr(run->output, ACP_BROKER_VERSION));
	assert_string_equal(run->errors, "");
	begin(run, ARGUMENTS("--help"));
	assert_int_equal(finish(run), 0);
	assert_non_null(strstr(run->output, "--profile"));
	assert_string_equal(run->errors, "");
}

static void assert_complains(struct run *run, int status, const char *facts)
{
	assert_int_equal(finish(run), status);
	assert_string_equal(run->output, "");
	assert_int_equal(strncmp(run->errors, "acp-broker: ", 12), 0);
	assert_names(run->errors, facts);
	assert_ptr_equal(strchr(run->errors, '\n'), run->errors + run->errors_len - 1);
}

static void test_a_mistake_is_one_line_and_status_2(void **state)
{
	static const struct {
		const char *arguments[5];
		const char *words;
	} cases[] = {
		{{"--nonsense"}, "--nonsense"},
		{{"--profile"}, "--profile"},
		{{NULL}, "no agent is named"},
		{{"--workspace", "/no/such/place", "--", "agent"}, "--workspace /no/such/place"},
		{{"--trace", "/no/such/place", "--", "agent"}, "--trace /no/such/place"},
		{{"--config", "/no/such/place", "--", "agent"}, "--config /no/such/place"},
		{{"--log-level", "loud", "--", "agent"}, "--log-level"},
		{{"--toolhost", "nobody", "--", "agent"}, "--toolhost"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *other = NULL;
		set_up(&other);
		begin(other, cases[i].arguments);
		assert_complains(other, 2, cases[i].words);
		tear_down(&other);
	}
}

static void test_a_mark_that_is_no_token_is_a_mistake(void **state)
{
	struct run *run = *state;
	run->environment[2] = "ACP_BROKER_LOGIN=0";
	begin(run, ARGUMENTS("--", "agent"));
	assert_complains(run, 2, "ACP_BROKER_LOGIN | token");
}

static void test_a_provider_that_is_not_there_is_told(void **state)
{
	struct run *run = *state;
	run->add = add_nothing;
	begin(run, ARGUMENTS("--", "agent"));
	assert_complains(run, 2, "provider not registered");
}

static void test_a_nil_provider_is_told(void **state)
{
	struct run *run = *state;
	run->add = add_nil;
	begin(run, ARGUMENTS("--", "agent"));
	assert_complains(run, 2, "provider is nil");
}

static void test_check_prints_what_was_understood(void **state)
{
	struct run *run = *state;
	begin(run, ARGUMENTS("check", "--", "/bin/sh", "-c", "exit"));
	assert_int_equal(finish(run), 0);
	assert_non_null(strstr(run->output, "/bin/sh"));
	begin(run, ARGUMENTS("check", "--", "/no/such/agent"));
	assert_int_equal(finish(run), 1);
}

/* ---- a session ---- */

static void greet(struct run *run, const char *workspace)
{
	begin(run, ARGUMENTS("--workspace", workspace, "--", "/bin/sh", "-c", agent_script));
	says(run, "\"id\":\"i\",\"method\":\"initialize\",\"params\":{}");
	wait_lines(run, 1);
	assert_non_null(strstr(run->output, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":"));
	assert_non_null(strstr(run->output, "\"backend\":\"local\""));
}

static void test_a_session_runs_and_ends_with_its_editor(void **state)
{
	struct run *run = *state;
	greet(run, "/");
	says(run, "\"id\":\"x\",\"method\":\"_x\"");
	wait_lines(run, 2);
	assert_non_null(strstr(run->output, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":"
					    "{\"pwd\":\"/\",\"key\":\"of the broker\"}}\n"));
	assert_int_equal(finish(run), 0);
}

static void test_each_signal_ends_it_in_order(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		void *other = NULL;
		set_up(&other);
		struct run *run = other;
		greet(run, "/");
		says(run, "\"id\":\"p\",\"method\":\"_x\"");
		wait_lines(run, 2);
		says(run, "\"id\":\"q\",\"method\":\"_y\"");
		/* The agent never answers this request, so it is open when the signal comes. */
		assert_int_equal(kill(run->pid, signals[i]), 0);
		wait_lines(run, 3);
		assert_non_null(strstr(run->output, "\"id\":\"q\",\"error\":{"));
		assert_int_equal(finish(run), 0);
		tear_down(&other);
	}
}

static void test_what_was_ignored_stays_so_but_sigterm(void **state)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, 0};
	struct run *run = *state;
	memcpy(run->ignored, ignored, sizeof(ignored));
	greet(run, "/");
	assert_int_equal(kill(run->pid, SIGINT), 0);
	assert_int_equal(kill(run->pid, SIGHUP), 0);
	says(run, "\"id\":\"p\",\"method\":\"_x\"");
	wait_lines(run, 2);
	assert_null(strstr(run->errors, "ending"));
	says(run, "\"id\":\"q\",\"method\":\"_y\"");
	assert_int_equal(kill(run->pid, SIGTERM), 0);
	wait_lines(run, 3);
	assert_non_null(strstr(run->errors, "TERM, ending"));
	assert_int_equal(finish(run), 0);
}

static void test_an_agent_that_is_not_there_is_an_answer(void **state)
{
	struct run *run = *state;
	begin(run, ARGUMENTS("--", "no-such-agent"));
	says(run, "\"id\":1,\"method\":\"initialize\",\"params\":{}");
	wait_lines(run, 1);
	assert_non_null(strstr(run->output, "\"code\":\"AGENT_NOT_FOUND\""));
	assert_non_null(strstr(run->output, "/usr/bin:/bin"));
	assert_int_equal(finish(run), 1);
	assert_non_null(strstr(run->errors, "no agent has started (AGENT_NOT_FOUND)"));
}

static void test_an_editor_that_says_nothing_starts_nothing(void **state)
{
	struct run *run = *state;
	begin(run, ARGUMENTS("--", "/no/such/agent"));
	assert_int_equal(finish(run), 0);
	assert_string_equal(run->output, "");
}

/* ---- a login ---- */

/* Makes a state folder with an offered login; its texts are in run->environment. */
static void offer(struct run *run, struct offered *offered, char *const *args)
{
	struct error err;
	char token[LOGIN_TOKEN_SIZE];
	snprintf(offered->folder, sizeof(offered->folder), "/tmp/test-broker-XXXXXX");
	assert_non_null(mkdtemp(offered->folder));
	char state[96];
	snprintf(state, sizeof(state), "%s/acp-broker", offered->folder);
	assert_true(login_note_write(state, NULL, args, NULL, token, &err));
	snprintf(offered->note, sizeof(offered->note), "%s/logins/%s", state, token);
	snprintf(offered->mark, sizeof(offered->mark), "ACP_BROKER_LOGIN=%s", token);
	snprintf(offered->home, sizeof(offered->home), "XDG_STATE_HOME=%s", offered->folder);
	run->environment[2] = offered->mark;
	run->environment[3] = offered->home;
}

static void drop(const struct offered *offered)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", offered->folder);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
}

static const char login_script[] =
	"echo \"$0 $1 ${ACP_BROKER_LOGIN-unset}\"; echo sorry >&2; exit ${STATUS-0}";
static const char *const login_args[] = {"--profile", "now", NULL};

static void test_a_login_is_the_agents_own_with_the_words_added(void **state)
{
	struct run *run = *state;
	struct offered offered;
	offer(run, &offered, (char *const *)login_args);
	begin(run, ARGUMENTS("--", "/bin/sh", "-c", login_script));
	assert_int_equal(finish(run), 0);
	assert_string_equal(run->output, "--profile now unset\n");
	assert_non_null(strstr(run->errors, "sorry"));
	assert_int_equal(access(offered.note, F_OK), -1); // its token was used
	drop(&offered);
}

static void test_a_login_that_fails_can_be_tried_again(void **state)
{
	struct run *run = *state;
	struct offered offered;
	offer(run, &offered, (char *const *)login_args);
	run->environment[4] = "STATUS=7";
	begin(run, ARGUMENTS("--", "/bin/sh", "-c", login_script));
	assert_int_equal(finish(run), 7);
	assert_int_equal(access(offered.note, F_OK), 0);
	drop(&offered);
}

static void test_a_login_that_cannot_be_run_is_told(void **state)
{
	struct run *run = *state;
	struct offered offered;
	offer(run, &offered, NULL);
	begin(run, ARGUMENTS("--", "no-such-agent"));
	assert_complains(run, 1, "no-such-agent | login");
	drop(&offered);
}

static void test_a_login_that_was_done_is_refused(void **state)
{
	struct run *run = *state;
	struct offered offered;
	offer(run, &offered, NULL);
	assert_int_equal(unlink(offered.note), 0);
	begin(run, ARGUMENTS("--", "/bin/sh", "-c", login_script));
	assert_complains(run, 1, "ACP_BROKER_LOGIN | done already");
	assert_string_equal(run->output, "");
	drop(&offered);
}

#define BROKER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BROKER_TEST(test_help_and_version_go_to_stdout),
		cmocka_unit_test(test_a_mistake_is_one_line_and_status_2),
		BROKER_TEST(test_a_mark_that_is_no_token_is_a_mistake),
		BROKER_TEST(test_a_provider_that_is_not_there_is_told),
		BROKER_TEST(test_a_nil_provider_is_told),
		BROKER_TEST(test_check_prints_what_was_understood),
		BROKER_TEST(test_a_session_runs_and_ends_with_its_editor),
		cmocka_unit_test(test_each_signal_ends_it_in_order),
		BROKER_TEST(test_what_was_ignored_stays_so_but_sigterm),
		BROKER_TEST(test_an_agent_that_is_not_there_is_an_answer),
		BROKER_TEST(test_an_editor_that_says_nothing_starts_nothing),
		BROKER_TEST(test_a_login_is_the_agents_own_with_the_words_added),
		BROKER_TEST(test_a_login_that_fails_can_be_tried_again),
		BROKER_TEST(test_a_login_that_cannot_be_run_is_told),
		BROKER_TEST(test_a_login_that_was_done_is_refused),
	};
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) == -1) {
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
