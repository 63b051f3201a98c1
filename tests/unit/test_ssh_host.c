/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/fd.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/pipe_client.h"

/* A host's life: login shells, limits of channels, and its end in every way. */
static struct stage stage;
static char home[] = "/tmp/ssh-host-XXXXXX";

static int set_up(void **state)
{
	pipe_client_options = (struct pipe_client_options){.shell = "/bin/bash", .home = home};
	stage_init(&stage);
	return 0;
}

static int tear_down(void **state)
{
	char token[SSH_TOKEN_SIZE] = "";
	if (stage.host) {
		snprintf(token, sizeof(token), "%s", stage.host->token);
	}
	pipe_clients_freeze(false);
	stage_finish(&stage);
	if (token[0]) {
		stage_expect_none_left(token);
	}
	return 0;
}

static void write_rc(const char *name, const char *text)
{
	char path[512], *slash;
	snprintf(path, sizeof(path), "%s/%s", home, name);
	for (slash = path + strlen(home) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fd_write_all(fd, span_of(text), NULL));
	fd_close(&fd);
}

/* ---- login shells ---- */

static void expect_works(const char *path_begins)
{
	const struct ssh_host_facts *facts;
	stage_open(&stage);
	facts = ssh_host_facts(stage.host);
	assert_int_equal(strncmp(facts->path, path_begins, strlen(path_begins)), 0);
	assert_string_equal(facts->home, home);
	assert_string_equal(facts->directory, home);
	assert_true(facts->user[0] != '\0'); // fish asks the system
	assert_string_equal(facts->shell, pipe_client_options.shell);
	assert_string_equal(facts->system, "Linux");
	assert_true(facts->machine[0] != '\0');
	assert_true(facts->git_version[0] >= '1' && facts->git_version[0] <= '9');
	assert_true(facts->rsync_version[0] >= '1' && facts->rsync_version[0] <= '9');
	assert_null(ssh_environment_get(facts->environment, "TOKEN_OF_RC"));
	assert_string_equal(stage_shell(&stage, "printf '{\"a\":1}'"), "{\"a\":1}");
}

static void test_bash_that_prints(void **state)
{
	/* bash also reads .bashrc for programs that sshd runs, and traces all of it. */
	static const char *const env[] = {"BASH_ENV=.bashrc", NULL};
	write_rc(".bashrc", "echo Welcome to box; echo more >&2; set -x\n"
			    "printf 'no newline'; export TOKEN_OF_RC=1\n");
	write_rc(".bash_profile", ". ~/.bashrc; export PATH=/from/bash:$PATH\n");
	pipe_client_options.env = env;
	assert_int_equal(chdir(home), 0);
	expect_works("/from/bash:");
	assert_int_equal(chdir("/"), 0);
}

static void test_fish(void **state)
{
	pipe_client_options.shell = "/usr/bin/fish";
	write_rc(".config/fish/config.fish", "echo Welcome; set -gx PATH /from/fish $PATH\n");
	expect_works("/from/fish:");
}

static void test_csh(void **state)
{
	pipe_client_options.shell = "/bin/csh";
	write_rc(".cshrc", "echo Welcome\n");
	write_rc(".login", "setenv PATH /from/csh:$PATH\n");
	expect_works("/from/csh:");
}

static void test_dash(void **state)
{
	pipe_client_options.shell = "/bin/dash";
	write_rc(".profile", "echo Welcome; PATH=/from/dash:$PATH\n");
	expect_works("/from/dash:");
}

static void test_what_the_configuration_sets_wins(void **state)
{
	static char *set_env[] = {(char *)"LANG=xx", (char *)"MORE=a\nb", NULL};
	write_rc(".bash_profile", "export LANG=yy LC_TIME=zz OTHER=1\n");
	stage.target.set_env = set_env;
	stage_open(&stage);
	const char *const *env = ssh_host_facts(stage.host)->environment;
	assert_string_equal(ssh_environment_get(env, "LANG"), "xx");
	assert_string_equal(ssh_environment_get(env, "MORE"), "a\nb");
	assert_string_equal(ssh_environment_get(env, "LC_TIME"), "zz");
	assert_null(ssh_environment_get(env, "OTHER"));
	assert_string_equal(stage_shell(&stage, "echo $LANG $LC_TIME"), "xx zz");
}

static void test_a_login_shell_that_hangs_is_given_up(void **state)
{
	write_rc(".bash_profile", "read x </dev/tty; sleep 600 & sleep 600\n");
	stage.request.login_timeout_ms = 1500;
	stage_open(&stage);
	assert_non_null(strstr(stage.progress, "did not answer within 1 s"));
	assert_string_equal(ssh_host_facts(stage.host)->path, "/usr/local/bin:/usr/bin:/bin");
	assert_string_equal(ssh_host_facts(stage.host)->system, "Linux");
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
	write_rc(".bash_profile", "");
}

static void test_a_login_shell_that_refuses(void **state)
{
	pipe_client_options.shell = "/usr/sbin/nologin";
	stage_start(&stage);
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, "HOST_COMMAND_FORCED");
	assert_non_null(strstr(stage.err.text, "not available"));
	assert_non_null(strstr(stage.err.text, "nologin"));
}

/* ---- limits ---- */

static void test_further_connections_are_made(void **state)
{
	enum { COUNT = 10 };
	struct heard heard[COUNT];
	pipe_client_options.max_sessions = 4;
	stage_open(&stage);
	for (int i = 0; i < COUNT; i++) {
		heard_start_shell(&heard[i], &stage, "echo up; sleep 600");
	}
	for (int i = 0; i < COUNT; i++) {
		heard_wait(&heard[i], "s");
	}
	assert_in_range(pipe_client_options.connection_count, 3, 4);
	for (int i = 0; i < COUNT; i++) {
		exec_kill_tree(heard[i].exec);
		heard_wait(&heard[i], "sxe");
		heard_finish(&heard[i]);
	}
	/* The loss of a further connection is not the end of the host. */
	struct heard other[4];
	for (int i = 0; i < 4; i++) {
		heard_start_shell(&other[i], &stage, "echo $$; sleep 600");
		heard_wait_text(&other[i], "\n");
	}
	pipe_clients_cut_last();
	stage_run_for(&stage, 20);
	assert_false(stage.has_failed);
	for (int i = 0; i < 4; i++) {
		if (strcmp(other[i].told, "sl") == 0) {
			assert_string_equal(other[i].err.reason, "LINK_LOST");
		}
		heard_finish(&other[i]);
	}
	assert_string_equal(stage_shell(&stage, "echo works"), "works");
}

static void test_without_a_free_channel_it_is_said(void **state)
{
	struct heard heard[4], late;
	pipe_client_options.max_sessions = 3;
	stage.request.max_connections = 1;
	stage_open(&stage);
	for (int i = 0; i < 2; i++) {
		heard_start_shell(&heard[i], &stage, "echo up; sleep 600");
		heard_wait(&heard[i], "s");
	}
	stage.host->request.channel_timeout_ms = 500;
	heard_start_shell(&late, &stage, "echo late");
	heard_wait(&late, "f");
	stage.host->request.channel_timeout_ms = STAGE_DEADLINE_MS;
	assert_int_equal(late.err.code, ERROR_LIMIT);
	assert_non_null(strstr(late.err.text, "MaxSessions"));
	assert_non_null(strstr(late.err.text, "max-connections"));
	heard_finish(&late);
	heard_start_shell(&late, &stage, "echo late");
	stage_run_for(&stage, 100);
	exec_kill_tree(heard[0].exec); // through the control's own channel
	heard_wait(&heard[0], "sxe");
	heard_wait(&late, "sxe");
	heard_finish(&late);
	heard_finish(&heard[0]);
	heard_finish(&heard[1]);
}

/* ---- its end ---- */

#define LOST_DAEMON "(setsid sh -c 'trap \"\" HUP TERM INT; sleep 600' &); trap '' HUP TERM; "

static void test_a_cut_ends_everything(void **state)
{
	struct heard heard;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, LOST_DAEMON "echo up; sleep 600; sleep 600");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "up");
	assert_true(stage_count_left(stage.host->token) >= 5);
	pipe_clients_cut();
	assert_true(stage.has_failed);
	assert_string_equal(heard.told, "sl");
	heard_wait_output(&heard);
	stage_expect_none_left(stage.host->token);
	heard_finish(&heard);
}

static void test_closing_ends_everything_silently(void **state)
{
	struct heard heard;
	char token[SSH_TOKEN_SIZE];
	stage_open(&stage);
	heard_start_shell(&heard, &stage, LOST_DAEMON "echo up; sleep 600");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "up");
	snprintf(token, sizeof(token), "%s", stage.host->token);
	ssh_host_close(stage.host);
	stage.host = NULL;
	stage_expect_none_left(token);
	stage_run_for(&stage, 20);
	assert_string_equal(heard.told, "s");
	heard_finish(&heard);
}

static void test_a_frozen_link_ends_after_the_grace(void **state)
{
	struct heard heard;
	stage.request.grace_ms = 3000;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, LOST_DAEMON "echo up; sleep 600");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "up");
	stage_run_for(&stage, 3500); // beats keep it
	assert_string_equal(heard.told, "s");
	pipe_clients_freeze(true);
	stage_expect_none_left(stage.host->token);
	heard_finish(&heard);
}

static pid_t find_control(void)
{
	struct ssh_process *any = LIST_FIRST(&stage.host->processes, struct ssh_process, link);
	assert_non_null(any);
	char line[300], text[32] = "";
	/* The control is the parent of both watches. */
	snprintf(line, sizeof(line),
		"for p in $(grep -ls acp_watch_control /proc/[0-9]*/cmdline); do p=${p%%/cmdline}; "
		"grep -zqs %s $p/environ && grep PPid: $p/status && break; done",
		stage.host->token);
	FILE *out = popen(line, "r");
	assert_non_null(out);
	assert_non_null(fgets(text, sizeof(text), out));
	pclose(out);
	return (pid_t)strtol(text + strlen("PPid:"), NULL, 10);
}

static void test_a_killed_control_ends_everything(void **state)
{
	struct heard heard;
	stage_open(&stage);
	heard_start_shell(&heard, &stage, LOST_DAEMON "echo up; sleep 600");
	heard_wait(&heard, "s");
	heard_wait_text(&heard, "up");
	assert_int_equal(kill(find_control(), SIGKILL), 0);
	stage_run_until(&stage, &stage.has_failed);
	assert_non_null(strstr(stage.err.text, "controls"));
	assert_string_equal(heard.told, "sl");
	stage_expect_none_left(stage.host->token);
	heard_finish(&heard);
}

static void test_a_killed_broker_leaves_nothing(void **state)
{
	int fds[2];
	char token[SSH_TOKEN_SIZE] = "";
	assert_int_equal(pipe(fds), 0);
	pid_t broker = fork();
	assert_true(broker >= 0);
	if (broker == 0) {
		struct heard heard;
		stage_open(&stage);
		heard_start_shell(&heard, &stage, LOST_DAEMON "echo up; sleep 600; sleep 600");
		heard_wait(&heard, "s");
		heard_wait_text(&heard, "up");
		if (write(fds[1], stage.host->token, SSH_TOKEN_SIZE) > 0) {
			stage_run_for(&stage, 60000);
		}
		_exit(1);
	}
	assert_int_equal(read(fds[0], token, sizeof(token)), sizeof(token));
	close(fds[0]);
	close(fds[1]);
	assert_true(stage_count_left(token) >= 5);
	assert_int_equal(kill(broker, SIGKILL), 0);
	stage_expect_none_left(token);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
}

/* ---- handlers that close ---- */

static void close_in(void *data)
{
	ssh_host_close(stage.host);
	stage.host = NULL;
	*(bool *)data = true;
}

static void close_in_exited(void *data, struct process_status status)
{
	close_in(data);
}

static void nothing_lost(void *data, const struct error *err)
{
}

static void test_handlers_may_close_the_host(void **state)
{
	static const struct exec_listener in_started = {
		.on_started = close_in, .on_failed = nothing_lost};
	static const struct exec_listener in_exited = {
		.on_failed = nothing_lost, .on_exited = close_in_exited};
	const struct exec_listener *const all[] = {&in_started, &in_exited};
	const char *argv[] = {"true", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", NULL};
	for (size_t i = 0; i < ARRAY_LENGTH(all); i++) {
		bool is_closed = false;
		struct error err;
		stage_open(&stage);
		stage.is_ready = false;
		struct exec *exec = ssh_host_exec(stage.host,
			&(struct exec_spec){.argv = argv, .env = env, .cwd = "/"}, all[i],
			&is_closed, &err);
		assert_non_null(exec);
		stage_run_until(&stage, &is_closed);
		stage_run_for(&stage, 10);
		exec_signal_group(exec, SIGTERM);
		exec_kill_tree(exec);
		exec_destroy(exec);
	}
}

#define HOST_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(home)) {
		return 1;
	}
	const struct CMUnitTest tests[] = {
		HOST_TEST(test_bash_that_prints),
		HOST_TEST(test_fish),
		HOST_TEST(test_csh),
		HOST_TEST(test_dash),
		HOST_TEST(test_what_the_configuration_sets_wins),
		HOST_TEST(test_a_login_shell_that_hangs_is_given_up),
		HOST_TEST(test_a_login_shell_that_refuses),
		HOST_TEST(test_further_connections_are_made),
		HOST_TEST(test_without_a_free_channel_it_is_said),
		HOST_TEST(test_a_cut_ends_everything),
		HOST_TEST(test_closing_ends_everything_silently),
		HOST_TEST(test_a_frozen_link_ends_after_the_grace),
		HOST_TEST(test_a_killed_control_ends_everything),
		HOST_TEST(test_a_killed_broker_leaves_nothing),
		HOST_TEST(test_handlers_may_close_the_host),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char line[64];
	snprintf(line, sizeof(line), "rm -rf %s", home);
	return system(line) == 0 ? failed : 1;
}
