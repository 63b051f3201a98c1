/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/remote/remote_impl.h"
#include "providers/ssh/host_impl.h"
#include "tests/support/facts.h"
#include "tests/support/ssh/host_fixture.h"
#include "tests/support/ssh/pipe_client.h"

/*
 * Runs on a host that outlive the connection. It is lost and made again, and the users of the run
 * notice nothing but the time that it takes.
 */
enum { LINES = 200000, CUTS = 12, CUTS_LEAST = 4 };

static struct stage stage;
static char folder[64];
static char cache[96];
static const char *env[] = {cache, NULL};

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/ssh-reattach-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(cache, sizeof(cache), "XDG_CACHE_HOME=%s", folder);
	pipe_client_options =
		(struct pipe_client_options){.shell = "/bin/sh", .home = folder, .env = env};
	stage_init(&stage);
	stage.request.wants_runner = stage.request.outlives = true;
	stage.request.orphan_ms = 60000;
	stage.request.grace_ms = 600000;
	return 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int tear_down(void **state)
{
	char token[SSH_TOKEN_SIZE] = "";
	if (stage.host) {
		snprintf(token, sizeof(token), "%s", stage.host->token);
	}
	stage_finish(&stage);
	if (token[0]) {
		stage_expect_none_left(token);
	}
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* Starts a process with an input. */
static void start(struct heard *heard, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	static const char *const path[] = {"PATH=/usr/bin:/bin", NULL};
	heard_start(heard, &stage,
		&(struct exec_spec){.argv = argv, .env = path, .cwd = "/", .want_stdin = true});
	heard_wait(heard, "s");
}

static void put(struct heard *heard, const char *text)
{
	assert_int_equal(write(heard->in, text, strlen(text)), strlen(text));
}

static bool has_returned(void)
{
	return stage.host->reattach.lost_ms == 0;
}

static void wait_returned(void)
{
	long long until_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (!has_returned() && !stage.has_failed && clock_now_ms() < until_ms) {
		stage_run_for(&stage, 5);
	}
	assert_false(stage.has_failed);
	assert_true(has_returned());
}

static void test_a_process_goes_on_and_loses_nothing(void **state)
{
	struct heard heard;
	stage_open(&stage);
	assert_non_null(stage.host->remote);
	start(&heard, "echo begun; while read -r word; do echo got $word; done; exit 7");
	heard_wait_text(&heard, "begun\n");
	pipe_clients_cut();
	put(&heard, "one\n");
	wait_returned();
	put(&heard, "two\n");
	fd_close(&heard.in);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_int_equal(heard.status.code, 7);
	assert_string_equal(heard_text(&heard, SSH_STREAM_OUT), "begun\ngot one\ngot two\n");
	assert_int_equal(stage.losses, 1);
	assert_int_equal(stage.returns, 1);
	assert_int_equal(pipe_client_options.connection_count, 2);
	heard_finish(&heard);
}

/* Both directions are in use all the time. */
static void test_many_cuts_lose_and_double_nothing(void **state)
{
	struct heard heard;
	struct buf all;
	struct error err;
	size_t written = 0;
	int cuts = 0;
	buf_init(&all, 4 << 20);
	for (int i = 0; i < LINES; i++) {
		assert_true(buf_append_format(&all, &err, "%d\n", i));
	}
	stage_open(&stage);
	start(&heard, "exec cat");
	assert_true(fd_set_nonblock(heard.in, true, &err));
	while (heard.bytes[0].len < all.len) {
		ssize_t count = written < all.len ? write(heard.in, buf_span(&all).data + written,
							    all.len - written)
		                                  : 0;
		written += count > 0 ? (size_t)count : 0;
		stage_run_for(&stage, 1);
		if (cuts < CUTS && has_returned() &&
			heard.bytes[0].len > (size_t)cuts * all.len / CUTS) {
			pipe_clients_cut();
			cuts++;
		}
		assert_false(stage.has_failed);
	}
	fd_close(&heard.in);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_in_range(cuts, CUTS_LEAST, CUTS);
	assert_int_equal(heard.bytes[0].len, all.len);
	assert_memory_equal(buf_span(&heard.bytes[0]).data, buf_span(&all).data, all.len);
	heard_finish(&heard);
	buf_finish(&all);
}

static void test_a_process_that_is_started_meanwhile_runs_afterwards(void **state)
{
	struct heard heard;
	struct heard other; // otherwise nothing would go on there
	stage_open(&stage);
	start(&other, "exec sleep 600");
	pipe_clients_cut();
	heard_start_shell(&heard, &stage, "echo late; exit 3");
	assert_string_equal(heard.told, "");
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_int_equal(heard.status.code, 3);
	assert_string_equal(heard_text(&heard, SSH_STREAM_OUT), "late\n");
	heard_finish(&heard);
	exec_kill_tree(other.exec);
	heard_wait(&other, "sxe");
	heard_finish(&other);
}

static void test_a_host_that_is_out_of_reach_is_tried_again(void **state)
{
	struct heard heard;
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	pipe_client_options.login_failures = 2;
	pipe_client_options.login_reason = "HOST_UNREACHABLE";
	pipe_clients_cut();
	wait_returned();
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, SSH_STREAM_OUT), "got one\n");
	assert_int_equal(pipe_client_options.connection_count, 4);
	assert_int_equal(stage.losses, 1); // however often it was tried
	assert_int_equal(stage.returns, 1);
	heard_finish(&heard);
}

static void test_a_turn_that_begins_or_ends_meanwhile_changes_nothing_until_it_is_back(void **state)
{
	struct heard heard;
	stage.request.turn_grace_ms = 2 * stage.request.grace_ms;
	stage_open(&stage);
	start(&heard, "exec sleep 600"); // otherwise nothing would go on there
	ssh_host_note_turn(stage.host, true);
	assert_int_equal(ssh_reattach_grace_ms(stage.host), stage.request.turn_grace_ms);
	for (int is_open = 0; is_open < 2; is_open++) {
		long long before_ms = ssh_reattach_grace_ms(stage.host);
		pipe_clients_cut();
		while (has_returned()) {
			ev_run(stage.loop, EVRUN_ONCE);
		}
		ssh_host_note_turn(stage.host, is_open != 0);
		assert_int_equal(ssh_reattach_grace_ms(stage.host), before_ms);
		wait_returned();
		assert_int_equal(ssh_reattach_grace_ms(stage.host),
			is_open ? stage.request.turn_grace_ms : stage.request.grace_ms);
	}
	heard_finish(&heard);
}

/* It drops the line "run FOLDER". */
static const char hostile[] =
	"#!/bin/sh\n"
	"exec /bin/sh -c 'printf() { case $1 in \"run %s\"*) shift 2; command printf \"runner "
	"%s\\n\" \"$1\" ;; *) command printf \"$@\" ;; esac; }\n'\"$2\"\n";

static void test_a_host_that_names_no_run_is_refused(void **state)
{
	char path[96];
	struct ssh_runs runs;
	ssh_runs_init(&runs, NULL);
	snprintf(path, sizeof(path), "%s/sh", folder);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, hostile, sizeof(hostile) - 1), sizeof(hostile) - 1);
	fd_close(&fd);
	stage.request.sh = path;
	stage.request.runs = &runs;
	stage.request.place = "here";
	stage_start(&stage);
	stage_run_until(&stage, &stage.has_failed);
	assert_int_equal(stage.err.code, ERROR_PROTOCOL);
	assert_non_null(strstr(stage.err.text, "folder of the run"));
	assert_true(list_is_empty(&runs.runs));
	ssh_host_close(stage.host);
	stage.host = NULL;
	ssh_runs_finish(&runs);
}

/* ---- changes of the network: of a namespace, where only the test changes anything ---- */

static bool has_namespace;

static void change_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	ATTR_CLEANUP(fd_cleanup)
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &lo), 0);
	lo.ifr_flags ^= IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
}

static void wake_up(void)
{
	struct network_watch *network = &stage.host->reattach.network;
	assert_true(network->clock.fd >= 0);
	network->suspended_ms -= NETWORK_SLEPT_MS;
	ev_feed_event(stage.loop, &network->clock, EV_READ);
}

/* The second attempt would come in an hour. */
static void check_that_it_ends_the_pause(void (*change)(void))
{
	struct heard heard;
	if (!has_namespace) {
		skip();
	}
	stage.request.pause_ms = 3600 * 1000;
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	pipe_client_options.login_failures = 1;
	pipe_client_options.login_reason = "HOST_UNREACHABLE";
	pipe_clients_cut();
	while (stage.host->reattach.attempts < 2) {
		stage_run_for(&stage, 5);
	}
	assert_int_equal(pipe_client_options.connection_count, 2);
	change();
	wait_returned();
	assert_int_equal(pipe_client_options.connection_count, 3);
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

static void test_a_change_of_the_network_ends_the_pause(void **state)
{
	check_that_it_ends_the_pause(change_network);
}

static void test_waking_up_ends_the_pause(void **state)
{
	check_that_it_ends_the_pause(wake_up);
}

static void wait_probed(void)
{
	const struct ssh_reattach *reattach = &stage.host->reattach;
	while (!ev_is_active(&reattach->probe)) {
		stage_run_for(&stage, 5);
	}
	while (ev_is_active(&reattach->probe)) {
		stage_run_for(&stage, 5);
	}
}

static void test_a_link_that_is_dead_after_a_change_is_made_again(void **state)
{
	struct heard heard;
	if (!has_namespace) {
		skip();
	}
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	pipe_clients_freeze(true);
	change_network();
	while (stage.losses == 0) {
		stage_run_for(&stage, 5);
	}
	pipe_clients_freeze(false);
	wait_returned();
	assert_int_equal(pipe_client_options.connection_count, 2);
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

/* The runner has answered before that. */
static void test_a_change_during_a_probe_is_another_probe(void **state)
{
	struct heard heard;
	if (!has_namespace) {
		skip();
	}
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	change_network();
	struct ssh_reattach *reattach = &stage.host->reattach;
	while (!ev_is_active(&reattach->probe) ||
		remote_heard_us(stage.host->remote) < reattach->probed_us) {
		stage_run_for(&stage, 5);
	}
	pipe_clients_freeze(true);
	reattach->network.on_change(&reattach->network, false);
	while (stage.losses == 0) {
		stage_run_for(&stage, 5);
	}
	pipe_clients_freeze(false);
	wait_returned();
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

static void test_a_link_that_lives_after_a_change_stays(void **state)
{
	struct heard heard;
	if (!has_namespace) {
		skip();
	}
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	change_network();
	wait_probed();
	assert_int_equal(stage.losses, 0);
	assert_int_equal(pipe_client_options.connection_count, 1);
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

/* ---- what ends a run ---- */

/* The user has to do something about a refused login. */
static void test_a_login_that_is_refused_ends_it(void **state)
{
	struct heard heard;
	stage_open(&stage);
	start(&heard, "exec sleep 600");
	pipe_client_options.login_failures = 1;
	pipe_client_options.login_reason = "AUTH_FAILED";
	pipe_clients_cut();
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(heard.told, "sl");
	heard_finish(&heard);
	/* On a host the run ends by itself; here the test ends it. */
	char line[256];
	snprintf(line, sizeof(line),
		"for f in $(grep -ls ACP_BROKER_RUN=%s /proc/[0-9]*/environ); do f=${f%%/*}; "
		"kill -KILL ${f##*/} 2>/dev/null; done; :",
		stage.host->token);
	assert_int_equal(system(line), 0); // NOLINT(cert-env33-c)
}

static void test_without_a_connection_it_ends_after_link_grace(void **state)
{
	struct heard heard;
	stage.request.grace_ms = 8000; // the broker says something every 2 s
	stage_open(&stage);
	start(&heard, "exec sleep 600");
	assert_true(mux_due_us(stage.host->remote->mux) <= remote_now_us() + 2000000);
	pipe_client_options.max_connections = 1;
	pipe_clients_cut();
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, "LINK_LOST");
	assert_true(text_names(stage.err.text, "link-grace | 8000 ms"));
	assert_string_equal(heard.told, "sl");
	stage_expect_none_left(stage.host->token); // there, too
	heard_finish(&heard);
}

/* Somebody has ended the run there in the meantime. */
static void test_a_run_that_is_gone_is_lost(void **state)
{
	struct heard heard;
	char line[256];
	stage_open(&stage);
	start(&heard, "exec sleep 600");
	pipe_client_options.login_failures = 1;
	pipe_client_options.login_reason = "HOST_UNREACHABLE";
	pipe_clients_cut();
	snprintf(line, sizeof(line),
		"for f in $(grep -ls ACP_BROKER_RUN=%s /proc/[0-9]*/environ); do f=${f%%/*}; "
		"kill -KILL ${f##*/} 2>/dev/null; done; :",
		stage.host->token);
	assert_int_equal(system(line), 0); // NOLINT(cert-env33-c)
	stage_run_until(&stage, &stage.has_failed);
	assert_string_equal(stage.err.reason, "LINK_LOST");
	assert_string_equal(heard.told, "sl");
	heard_finish(&heard);
}

/* The process has passed the channel on, and only waits: it may be killed with its session. */
static void test_the_process_that_the_server_has_started_is_not_needed(void **state)
{
	struct heard heard;
	char line[256];
	stage_open(&stage);
	start(&heard, "read -r word; echo got $word");
	const char *name = strrchr(stage.host->control.run_folder, '/');
	assert_non_null(name);
	/* acp-broker.TOKEN.PID.…: the first process of the run is the waiter. */
	const char *pid = strchr(strchr(name, '.') + 1, '.') + 1;
	snprintf(line, sizeof(line), "kill -KILL %.*s", (int)strcspn(pid, "."), pid);
	assert_int_equal(system(line), 0); // NOLINT(cert-env33-c)
	stage_run_for(&stage, 50);
	pipe_clients_cut();
	wait_returned();
	put(&heard, "one\n");
	heard_wait(&heard, "sxe");
	heard_finish(&heard);
}

static void test_closing_ends_what_runs_there(void **state)
{
	struct heard heard;
	stage_open(&stage);
	start(&heard, "exec sleep 600");
	pipe_clients_cut();
	wait_returned();
	char token[SSH_TOKEN_SIZE];
	snprintf(token, sizeof(token), "%s", stage.host->token);
	ssh_host_close(stage.host);
	stage.host = NULL;
	stage_expect_none_left(token);
	heard_finish(&heard);
}

/* More than fits into a pipe, and more than other streams may send ahead. */
static void test_an_agent_may_say_ahead_what_link_buffer_takes(void **state)
{
	struct heard heard;
	const char *argv[] = {"sh", "-c", "head -c 6000000 /dev/zero; echo over >&2", NULL};
	static const char *const path[] = {"PATH=/usr/bin:/bin", NULL};
	stage.request.link_buffer = 16 << 20;
	stage_open(&stage);
	heard_start(&heard, &stage,
		&(struct exec_spec){.argv = argv,
			.env = path,
			.cwd = "/",
			.want_stdin = true,
			.suspends = true});
	ev_io_stop(stage.loop, &heard.io[0]); // nobody reads what it says
	while (heard.bytes[1].len == 0) {
		stage_run_for(&stage, 5);
		assert_false(stage.has_failed);
	}
	assert_int_equal(heard.bytes[0].len, 0);
	ev_io_start(stage.loop, &heard.io[0]);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_int_equal(heard.bytes[0].len, 6000000);
	heard_finish(&heard);
}

/* Without the profile's key, the run ends as before. */
static void test_by_default_it_ends_with_the_connection(void **state)
{
	struct heard heard;
	stage.request.outlives = false;
	stage_open(&stage);
	assert_non_null(stage.host->remote);
	start(&heard, "exec sleep 600");
	pipe_clients_cut();
	assert_true(stage.has_failed);
	assert_string_equal(heard.told, "sl");
	assert_int_equal(stage.losses, 0);
	stage_expect_none_left(stage.host->token);
	heard_finish(&heard);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_a_process_goes_on_and_loses_nothing),
		TEST(test_many_cuts_lose_and_double_nothing),
		TEST(test_a_process_that_is_started_meanwhile_runs_afterwards),
		TEST(test_a_host_that_is_out_of_reach_is_tried_again),
		TEST(test_a_turn_that_begins_or_ends_meanwhile_changes_nothing_until_it_is_back),
		TEST(test_a_host_that_names_no_run_is_refused),
		TEST(test_a_change_of_the_network_ends_the_pause),
		TEST(test_waking_up_ends_the_pause),
		TEST(test_a_link_that_is_dead_after_a_change_is_made_again),
		TEST(test_a_change_during_a_probe_is_another_probe),
		TEST(test_a_link_that_lives_after_a_change_stays),
		TEST(test_a_login_that_is_refused_ends_it),
		TEST(test_without_a_connection_it_ends_after_link_grace),
		TEST(test_a_run_that_is_gone_is_lost),
		TEST(test_the_process_that_the_server_has_started_is_not_needed),
		TEST(test_closing_ends_what_runs_there),
		TEST(test_an_agent_may_say_ahead_what_link_buffer_takes),
		TEST(test_by_default_it_ends_with_the_connection),
	};
	signal(SIGPIPE, SIG_IGN);
	has_namespace = unshare(CLONE_NEWNET) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
