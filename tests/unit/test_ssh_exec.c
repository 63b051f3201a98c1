/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "tests/support/ssh/shells_fixture.h"

static void test_every_status_is_told_as_it_is(void **state)
{
	static const int codes[] = {0, 1, 126, 127, 129, 130, 137, 141, 143, 255};
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM, SIGUSR1};
	struct heard heard;
	char script[64];
	for (size_t i = 0; i < ARRAY_LENGTH(codes) + ARRAY_LENGTH(signals); i++) {
		bool is_code = i < ARRAY_LENGTH(codes);
		int code = is_code ? codes[i] : 0;
		int signal = is_code ? 0 : signals[i - ARRAY_LENGTH(codes)];
		snprintf(script, sizeof(script), is_code ? "exit %d" : "kill -%d $$",
			is_code ? code : signal);
		heard_start_shell(&heard, &stage, script);
		heard_wait(&heard, "sxe");
		heard_wait_output(&heard);
		assert_int_equal(heard.status.code, code);
		assert_int_equal(heard.status.signal, signal);
		assert_string_equal(heard_text(&heard, 0), "");
		assert_string_equal(heard_text(&heard, 1), "");
		heard_finish(&heard);
	}
}

static void test_output_is_apart(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage, "echo out; echo err >&2; exit 7");
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, 0), "out\n");
	assert_string_equal(heard_text(&heard, 1), "err\n");
	assert_int_equal(heard.status.code, 7);
	heard_finish(&heard);
}

/* ---- words, environment, directory ---- */

static void test_all_bytes_arrive(void **state)
{
	char all[256], variable[300], where[300];
	for (int i = 1; i < 256; i++) {
		all[i - 1] = (char)i;
	}
	all[255] = '\0';
	snprintf(variable, sizeof(variable), "BYTES=%s", all);
	snprintf(where, sizeof(where), "%s/it's \"a\"\n$x\\\xff\xc3\xa4 ", folder);
	assert_int_equal(mkdir(where, 0700), 0);
	const char *argv[] = {"printf", "%s\\0", "two words", "", "-n", "a=b", "!x", all, NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", variable, NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .env = env, .cwd = where});
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	struct span out = buf_span(&heard.bytes[0]);
	static const char begin[] = "two words\0\0-n\0a=b\0!x";
	assert_int_equal(out.len, sizeof(begin) + sizeof(all));
	assert_memory_equal(out.data, begin, sizeof(begin));
	assert_memory_equal(out.data + sizeof(begin), all, sizeof(all));
	heard_finish(&heard);

	const char *look[] = {"sh", "-c", "printf '%s\\0' \"$BYTES\"; pwd", NULL};
	heard_start(&heard, &stage, &(struct exec_spec){.argv = look, .env = env, .cwd = where});
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	out = buf_span(&heard.bytes[0]);
	assert_memory_equal(out.data, all, sizeof(all));
	assert_int_equal(out.len, sizeof(all) + strlen(where) + 1);
	assert_memory_equal(out.data + sizeof(all), where, strlen(where));
	heard_finish(&heard);
	assert_int_equal(rmdir(where), 0);
}

static void test_the_environment_is_what_was_asked(void **state)
{
	const char *argv[] = {"env", "-0", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", "NEWLINE=one\ntwo\n", "EMPTY=", "SHLVL=7",
		"PWD=/elsewhere", "_=under", "UID=12345", "IFS=x", "OPTIND=no", "acp_id=9",
		"LC_ALL=nowhere", "N=n", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .env = env});
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	struct span out = buf_span(&heard.bytes[0]);
	size_t expected = 0;
	for (size_t i = 0; env[i]; i++) {
		assert_non_null(memmem(out.data, out.len, env[i], strlen(env[i]) + 1));
		expected += strlen(env[i]) + 1;
	}
	const char *mark = memmem(out.data, out.len, "ACP_BROKER_RUN=", 15);
	assert_non_null(mark);
	assert_int_equal(out.len, expected + strlen(mark) + 1);
	assert_string_equal(heard_text(&heard, 1), "");
	heard_finish(&heard);
}

static void test_a_name_that_no_shell_takes_is_refused(void **state)
{
	const char *argv[] = {"true", NULL};
	const char *env[] = {"PATH=/usr/bin:/bin", "a-b=secret", NULL};
	static const struct exec_listener none = {0};
	struct error err;
	assert_null(ssh_host_exec(stage.host,
		&(struct exec_spec){.argv = argv, .env = env, .cwd = "/"}, &none, NULL, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "\"a-b\""));
	assert_null(strstr(err.text, "secret"));
	const char *const plain[] = {"PATH=/bin", NULL};
	assert_null(ssh_host_exec(stage.host,
		&(struct exec_spec){.argv = argv, .env = plain, .cwd = "/", .foreground = true},
		&none, NULL, &err));
	assert_int_equal(err.code, ERROR_UNAVAILABLE);
}

static void test_a_command_with_an_equals_sign_runs(void **state)
{
	char script[200], file[100];
	snprintf(script, sizeof(script),
		"printf '#!/bin/sh\\necho \"$0 $1\"\\n' >'%s/a=b' && chmod 755 '%s/a=b'", folder,
		folder);
	stage_shell(&stage, script);
	snprintf(file, sizeof(file), "%s/a=b", folder);
	const char *argv[] = {file, "word", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv});
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_non_null(strstr(heard_text(&heard, 0), "a=b word\n"));
	heard_finish(&heard);
	assert_int_equal(unlink(file), 0);
}

/* ---- failing to start ---- */

static void expect_failed(const struct exec_spec *spec, enum error_code code, const char *words)
{
	struct heard heard;
	heard_start(&heard, &stage, spec);
	heard_wait(&heard, "f");
	heard_wait_output(&heard);
	if (heard.err.code != code || !strstr(heard.err.text, words)) {
		fail_msg("error %d: %s", (int)heard.err.code, heard.err.text);
	}
	stage_run_for(&stage, 20);
	assert_string_equal(heard.told, "f");
	heard_finish(&heard);
}

static void test_what_cannot_be_started_is_said(void **state)
{
	const char *env[] = {"PATH=/nowhere:/usr/bin", NULL};
	const char *missing[] = {"no-such-command", NULL};
	expect_failed(&(struct exec_spec){.argv = missing, .env = env}, ERROR_NOT_FOUND,
		"/nowhere:/usr/bin");
	const char *empty[] = {"", NULL};
	expect_failed(&(struct exec_spec){.argv = empty}, ERROR_NOT_FOUND, "PATH");
	const char *path[] = {"/nowhere/command", NULL};
	expect_failed(&(struct exec_spec){.argv = path}, ERROR_NOT_FOUND, "/nowhere/command");
	const char *is_folder[] = {"/tmp", NULL};
	expect_failed(&(struct exec_spec){.argv = is_folder}, ERROR_DENIED, "is a directory");
	const char *plain[] = {"/etc/passwd", NULL};
	expect_failed(&(struct exec_spec){.argv = plain}, ERROR_DENIED, "/etc/passwd");
	const char *good[] = {"true", NULL};
	expect_failed(&(struct exec_spec){.argv = good, .cwd = "/nowhere/at all"}, ERROR_NOT_FOUND,
		"/nowhere/at all: no such directory");
	char script[200], file[100];
	snprintf(script, sizeof(script), "printf '#!/nowhere/int -x\\n' >%s/bad; chmod 755 %s/bad",
		folder, folder);
	stage_shell(&stage, script);
	snprintf(file, sizeof(file), "%s/bad", folder);
	const char *bad[] = {file, NULL};
	expect_failed(&(struct exec_spec){.argv = bad}, ERROR_DENIED, "\"/nowhere/int\"");
	assert_int_equal(unlink(file), 0);
}

/* ---- streams ---- */

static void test_stdin_is_the_processs_own(void **state)
{
	const char *argv[] = {"sh", "-c", "cat; sleep 0.1; echo after", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
	assert_int_equal(write(heard.in, "early\n", 6), 6); // before it runs
	heard_wait(&heard, "s");
	assert_int_equal(write(heard.in, "late\n", 5), 5);
	fd_close(&heard.in);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, 0), "early\nlate\nafter\n");
	heard_finish(&heard);
	const char *cat[] = {"cat", NULL};
	heard_start(&heard, &stage, &(struct exec_spec){.argv = cat});
	heard_wait(&heard, "sxe");
	assert_int_equal(heard.status.code, 0);
	heard_finish(&heard);
}

static void test_merged_stderr_is_interleaved(void **state)
{
	const char *argv[] = {"sh", "-c", "echo a; echo b >&2; echo c; echo d >&2", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .merge_stderr = true});
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_string_equal(heard_text(&heard, 0), "a\nb\nc\nd\n");
	heard_finish(&heard);
}

struct feed {
	struct heard *heard;
	size_t left;
	ev_io io;
};

static void on_feed(struct ev_loop *loop, ev_io *io, int events)
{
	static char piece[65536];
	struct feed *feed = CONTAINER_OF(io, struct feed, io);
	size_t want = feed->left < sizeof(piece) ? feed->left : sizeof(piece);
	for (size_t i = 0; i < want; i++) {
		piece[i] = (char)((feed->left - i) * 2654435761U >> 9);
	}
	ssize_t count = write(feed->heard->in, piece, want);
	feed->left -= count > 0 ? (size_t)count : 0;
	if (feed->left == 0) {
		ev_io_stop(loop, io);
		fd_close(&feed->heard->in);
	}
}

static void test_64_mebibytes_arrive_both_ways(void **state)
{
	enum { TOTAL = 64 << 20 };
	const char *argv[] = {"cat", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .want_stdin = true});
	struct feed feed = {.heard = &heard, .left = TOTAL};
	ev_io_init(&feed.io, on_feed, heard.in, EV_WRITE);
	ev_io_start(stage.loop, &feed.io);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	struct span out = buf_span(&heard.bytes[0]);
	assert_int_equal(out.len, TOTAL);
	for (size_t i = 0; i < out.len; i += 997) {
		assert_int_equal(out.data[i], (char)((TOTAL - i) * 2654435761U >> 9));
	}
	heard_finish(&heard);
}

static void test_stderr_flows_while_stdout_is_unread(void **state)
{
	struct heard heard;
	heard_start_shell(&heard, &stage,
		"head -c 300000 /dev/zero; head -c 3145728 /dev/zero >&2; echo done");
	ev_io_stop(stage.loop, &heard.io[0]);
	long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
	while (heard.bytes[1].len < 3145728 && clock_now_ms() < deadline_ms) {
		/* The bytes before those of stderr have to be read first. */
		if (heard.bytes[0].len < 200000) {
			ev_io_start(stage.loop, &heard.io[0]);
		} else {
			ev_io_stop(stage.loop, &heard.io[0]);
		}
		stage_run_for(&stage, 2);
	}
	assert_int_equal(heard.bytes[1].len, 3145728);
	ev_io_start(stage.loop, &heard.io[0]);
	heard_wait(&heard, "sxe");
	heard_wait_output(&heard);
	assert_int_equal(heard.bytes[0].len, 300005);
	heard_finish(&heard);
}

static void test_closed_output_ends_the_writer(void **state)
{
	const char *argv[] = {"yes", NULL};
	struct heard heard;
	heard_start(&heard, &stage, &(struct exec_spec){.argv = argv});
	ev_io_stop(stage.loop, &heard.io[0]);
	heard_wait(&heard, "s");
	fd_close(&heard.fds[0]);
	heard_wait(&heard, "sxe");
	assert_true(heard.status.signal == SIGPIPE || heard.status.code != 0);
	heard_finish(&heard);
}

/* ---- secrets ---- */

static bool is_in_a_command_line(const char *secret)
{
	static char text[1 << 17];
	DIR *processes = opendir("/proc");
	bool is_there = false;
	assert_non_null(processes);
	for (struct dirent *entry = readdir(processes); entry; entry = readdir(processes)) {
		char path[300];
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text));
		is_there = is_there ||
		           (count > 0 && memmem(text, (size_t)count, secret, strlen(secret)));
		fd_close(&fd);
	}
	closedir(processes);
	return is_there;
}

static void test_no_secret_is_in_a_command_line(void **state)
{
	static const char secret[] = "s3cret-"
				     "value-of-the-environment";
	char variable[100];
	snprintf(variable, sizeof(variable), "KEY=%s", secret);
	const char *env[] = {"PATH=/usr/bin:/bin", variable, NULL};
	const char *argv[] = {"sh", "-c", "test -n \"$KEY\" && sleep 0.1 && echo up", NULL};
	for (int i = 0; i < 5; i++) {
		struct heard heard;
		heard_start(&heard, &stage, &(struct exec_spec){.argv = argv, .env = env});
		long long deadline_ms = clock_now_ms() + STAGE_DEADLINE_MS;
		while (!strstr(heard_text(&heard, 0), "up") && clock_now_ms() < deadline_ms) {
			stage_run_for(&stage, 1);
			assert_false(is_in_a_command_line(secret));
		}
		heard_wait(&heard, "sxe");
		heard_finish(&heard);
	}
}

int main(int argc, char **argv)
{
	if (!shells_init(argc, argv)) {
		return 1;
	}
	const struct CMUnitTest tests[] = {
		EACH_SHELL(test_every_status_is_told_as_it_is),
		EACH_SHELL(test_output_is_apart),
		EACH_SHELL(test_all_bytes_arrive),
		EACH_SHELL(test_the_environment_is_what_was_asked),
		EACH_SHELL(test_a_name_that_no_shell_takes_is_refused),
		EACH_SHELL(test_a_command_with_an_equals_sign_runs),
		EACH_SHELL(test_what_cannot_be_started_is_said),
		EACH_SHELL(test_stdin_is_the_processs_own),
		EACH_SHELL(test_merged_stderr_is_interleaved),
		EACH_SHELL(test_64_mebibytes_arrive_both_ways),
		EACH_SHELL(test_stderr_flows_while_stdout_is_unread),
		EACH_SHELL(test_closed_output_ends_the_writer),
		EACH_SHELL(test_no_secret_is_in_a_command_line),
	};
	return shells_finish(shells_run(tests, ARRAY_LENGTH(tests)));
}
