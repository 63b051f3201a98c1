/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "providers/remote/remote.h"
#include "providers/ssh/carrier.h"
#include "tests/support/ssh/pipe_client.h"

/*
 * How a host gets the runner (providers/remote/start.sh), with a stand-in that only greets. A host
 * is a folder here: it has homes, and a login shell for everybody who logs in there.
 */
enum { DEADLINE_MS = 60000, IMAGE_SIZE = 600 * 1024 };
static const char build[] = "0123456789abcdef0123456789abcdef01234567";

static struct ev_loop *loop;
static struct provider_context context;
static struct ssh_target target = {.host = (char *)"box"};
static struct buf image_bytes;
static struct runner_image image;
static char folder[64];  // all of it
static char home[80];    // HOME
static char cache[96];   // XDG_CACHE_HOME
static char runtime[80]; // XDG_RUNTIME_DIR
static char home_variable[128], runtime_variable[128];
static const char *variables[8];

/* ---- one start ---- */

struct start {
	struct ssh_client *client;
	struct ssh_carrier carrier;
	struct remote *remote;
	const char *sh;
	long long first_ms;
	char token[33];
	bool is_over;
	bool is_ready;
	bool has_sent; // the program was brought there
	bool is_real;  // it is the runner, and no stand-in
	bool was_late;
	char why[512]; // why no runner can be used
	char path[512];
	char run[512];
};

static void on_fact(void *data, const char *line)
{
	struct start *start = data;
	if (strncmp(line, "set PATH=", 9) == 0) {
		snprintf(start->path, sizeof(start->path), "%s", line + 9);
	} else if (strncmp(line, "run ", 4) == 0) {
		snprintf(start->run, sizeof(start->run), "%s", line + 4);
	}
}

static void on_progress(void *data, const char *text)
{
	((struct start *)data)->has_sent = true;
}

static void on_ready(void *data)
{
	struct start *start = data;
	start->is_ready = start->is_over = true;
}

static void on_unfit(void *data, const char *why)
{
	struct start *start = data;
	snprintf(start->why, sizeof(start->why), "%s", why);
	start->was_late = remote_start_was_late(start->remote);
	start->is_over = true;
}

static void on_lost(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static const struct remote_listener remote_listener = {.on_fact = on_fact,
	.on_progress = on_progress,
	.on_ready = on_ready,
	.on_unfit = on_unfit,
	.on_lost = on_lost};

static void on_connected(void *data)
{
	struct start *start = data;
	struct error err;
	ssh_carrier_init(&start->carrier, start->client);
	start->remote = remote_open(&(struct remote_request){.loop = loop,
					    .carrier = &start->carrier.carrier,
					    .name = "box",
					    .sh = start->sh ? start->sh : "/bin/sh",
					    .token = start->token,
					    .grace_ms = DEADLINE_MS,
					    .timeout_ms = DEADLINE_MS,
					    .first_ms = start->first_ms,
					    .image = start->is_real ? NULL : &image},
		&remote_listener, start, &err);
	assert_non_null(start->remote);
}

static void on_connection_lost(void *data, const struct error *err)
{
	remote_cut(((struct start *)data)->remote, err);
}

static const struct ssh_client_listener client_listener = {
	.on_ready = on_connected, .on_lost = on_connection_lost};

static void begin(struct start *start)
{
	struct error err;
	random_fill_hex(start->token, sizeof(start->token) - 1);
	start->client = pipe_client_connect(&context, &target, &client_listener, start, &err);
	assert_non_null(start->client);
}

static void on_tick(struct ev_loop *ticking, ev_timer *timer, int events)
{
}

static void run_until(const bool *flag)
{
	ev_timer tick;
	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(loop, &tick);
	for (long long end_ms = clock_now_ms() + DEADLINE_MS; !*flag && clock_now_ms() < end_ms;) {
		ev_run(loop, EVRUN_ONCE);
	}
	ev_timer_stop(loop, &tick);
	assert_true(*flag);
}

static void finish(struct start *start)
{
	remote_close(start->remote);
	ssh_client_close(start->client);
}

static void expect_ready(struct start *start, bool has_sent)
{
	begin(start);
	run_until(&start->is_over);
	assert_string_equal(start->why, "");
	assert_true(start->is_ready);
	assert_int_equal(start->has_sent, has_sent);
	finish(start);
}

static void expect_start(bool has_sent)
{
	struct start start = {0};
	expect_ready(&start, has_sent);
}

/* ---- the host ---- */

static const char *in(const char *place, const char *name)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", place, name);
	return path;
}

/* Our folder below this place. */
static const char *ours(const char *place)
{
	char name[64];
	static char path[PATH_MAX];
	snprintf(name, sizeof(name), "acp-broker-%u", (unsigned)geteuid());
	snprintf(path, sizeof(path), "%s", in(place, name));
	return path;
}

static char *name_program(const char *place, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.4000s/acp-runner.%s", ours(place), build);
	return path;
}

static bool has_program(const char *place)
{
	char path[PATH_MAX];
	struct stat status;
	return stat(name_program(place, path), &status) == 0 && (status.st_mode & 0777) == 0700 &&
	       status.st_size == (off_t)image.bytes.len;
}

/* Files in a folder, hidden ones, too. */
static size_t count_files(const char *path)
{
	size_t count = 0;
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	}
	closedir(dir);
	return count;
}

static void expect_only_program(const char *place)
{
	assert_true(has_program(place));
	assert_int_equal(count_files(ours(place)), 1);
}

static void write_file(const char *path, mode_t mode, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fd_write_all(fd, span_of(text), NULL));
	assert_int_equal(fchmod(fd, mode), 0);
	fd_close(&fd);
}

/*
 * After the login, `cache` is a file system of its own with these options. False if this machine
 * does not let a user make one.
 */
static bool mount_cache(const char *options)
{
	static char shell[PATH_MAX];
	char text[2048];
	snprintf(shell, sizeof(shell), "%s", in(folder, "shell"));
	snprintf(text, sizeof(text),
		"#!/bin/sh\n"
		"exec unshare -m %s sh -c 'mkdir -p %s/.cache && mount -t tmpfs -o %s none "
		"%s/.cache && exec /bin/sh \"$@\"' sh \"$@\"\n",
		geteuid() == 0 ? "" : "-r", home, options, home);
	write_file(shell, 0700, text);
	pipe_client_options.shell = shell;
	snprintf(text, sizeof(text), "%s -c true", shell);
	return system(text) == 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/remote-start-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(home, sizeof(home), "%s/home", folder);
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	assert_int_equal(mkdir(home, 0700), 0);
	assert_int_equal(mkdir(runtime, 0700), 0);
	snprintf(home_variable, sizeof(home_variable), "XDG_CACHE_HOME=%s/.cache", home);
	snprintf(cache, sizeof(cache), "%s/.cache", home);
	assert_int_equal(mkdir(cache, 0755), 0);
	snprintf(runtime_variable, sizeof(runtime_variable), "XDG_RUNTIME_DIR=%s", runtime);
	memset(variables, 0, sizeof(variables));
	variables[0] = home_variable;
	variables[1] = runtime_variable;
	pipe_client_options =
		(struct pipe_client_options){.shell = "/bin/sh", .home = home, .env = variables};
	return 0;
}

static int tear_down(void **state)
{
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* ---- tests ---- */

static void test_every_login_shell_takes_it_and_finds_it(void **state)
{
	static const char *const logins[] = {
		"/bin/sh", "/bin/dash", "/bin/bash", "/usr/bin/fish", "/bin/csh", "/usr/bin/zsh"};
	static const char *const shells[] = {"/bin/dash", "/bin/bash", "/usr/bin/busybox"};
	char sh[PATH_MAX];
	snprintf(sh, sizeof(sh), "%s", in(folder, "sh"));
	for (size_t i = 0; i < ARRAY_LENGTH(logins); i++) {
		pipe_client_options.shell = logins[i];
		/* busybox acts as the program by whose name it is called. */
		assert_int_equal(symlink(shells[i % ARRAY_LENGTH(shells)], sh), 0);
		struct start first = {.sh = sh}, second = {.sh = sh};
		expect_ready(&first, true);
		expect_only_program(cache);
		expect_ready(&second, false);
		assert_true(second.path[0] == '/');
		assert_int_equal(unlink(sh), 0);
		char program[PATH_MAX];
		assert_int_equal(unlink(name_program(cache, program)), 0);
	}
}

static void test_a_login_shell_of_busybox_takes_it(void **state)
{
	char sh[PATH_MAX];
	snprintf(sh, sizeof(sh), "%s", in(folder, "ash"));
	assert_int_equal(symlink("/usr/bin/busybox", sh), 0);
	pipe_client_options.shell = sh;
	struct start start = {.sh = sh};
	expect_ready(&start, true);
}

static void test_a_login_shell_that_prints_does_no_harm(void **state)
{
	variables[2] = "BASH_ENV=talk";
	char shell[PATH_MAX];
	snprintf(shell, sizeof(shell), "%s", in(folder, "talker"));
	write_file(shell, 0700,
		"#!/bin/sh\necho Welcome; echo 'runner /nowhere'; exec /bin/sh -x \"$@\"\n");
	pipe_client_options.shell = shell;
	expect_start(true);
	expect_start(false);
}

static void test_a_banner_is_no_answer_and_an_end_is_not_late(void **state)
{
	static const struct {
		const char *script;
		long long first_ms;
		bool is_late;
	} rows[] = {{"#!/bin/sh\necho Welcome\nexec cat >/dev/null\n", 300, true},
		{"#!/bin/sh\nexit 3\n", DEADLINE_MS, false},
		{"#!/bin/sh\necho Welcome\nexit 3\n", DEADLINE_MS, false}};
	char shell[PATH_MAX];
	snprintf(shell, sizeof(shell), "%s", in(folder, "talker"));
	pipe_client_options.shell = shell;
	for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
		write_file(shell, 0700, rows[i].script);
		struct start start = {.first_ms = rows[i].first_ms};
		begin(&start);
		run_until(&start.is_over);
		assert_false(start.is_ready);
		assert_int_equal(start.was_late, rows[i].is_late);
		finish(&start);
	}
}

static void test_a_damaged_program_is_replaced(void **state)
{
	char program[PATH_MAX];
	expect_start(true);
	name_program(cache, program);
	write_file(program, 0700, ""); // as after a crash
	expect_start(true);
	write_file(program, 0700, "#!/bin/sh\necho build=another\n");
	expect_start(true);
	expect_only_program(cache);
}

static void test_where_nothing_may_be_executed_the_next_folder_is_taken(void **state)
{
	if (!mount_cache("noexec")) {
		skip();
	}
	expect_start(true);
	expect_only_program(runtime);
	expect_start(false);
}

static void test_a_read_only_home_is_passed_over(void **state)
{
	if (!mount_cache("ro")) {
		skip();
	}
	expect_start(true);
	expect_only_program(runtime);
}

static void test_a_full_disk_is_passed_over(void **state)
{
	if (!mount_cache("size=128k")) {
		skip();
	}
	expect_start(true);
	expect_only_program(runtime);
}

static void test_an_interrupted_upload_leaves_nothing(void **state)
{
	struct start start = {0};
	begin(&start);
	run_until(&start.has_sent);
	finish(&start);
	char place[PATH_MAX];
	snprintf(place, sizeof(place), "%s", ours(cache));
	expect_start(true);
	/* It takes a moment until the first one's shell sees the end of its stdin. */
	for (int i = 0; i < DEADLINE_MS / 10 && count_files(place) > 1; i++) {
		usleep(10000);
	}
	expect_only_program(cache);
}

static void test_two_that_bring_it_at_once(void **state)
{
	struct start starts[4] = {{0}};
	for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
		begin(&starts[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
		run_until(&starts[i].is_over);
		assert_true(starts[i].is_ready);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(starts); i++) {
		finish(&starts[i]);
	}
	expect_only_program(cache);
}

/* Entries that somebody else may have put into a folder that all users share. */
static void test_a_folder_that_is_not_ours_alone_is_passed_over(void **state)
{
	char place[PATH_MAX];
	snprintf(place, sizeof(place), "%s", ours(cache));
	char mine[PATH_MAX];
	snprintf(mine, sizeof(mine), "%s", in(folder, "mine"));
	assert_int_equal(mkdir(mine, 0700), 0);
	assert_int_equal(symlink(mine, place), 0); // a link, even to a folder of ours
	expect_start(true);
	expect_only_program(runtime);
	assert_int_equal(count_files(mine), 0);
	assert_int_equal(unlink(place), 0);
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(chmod(place, 0777), 0); // one where others may write
	expect_start(false);
	assert_int_equal(count_files(place), 0);
	assert_int_equal(chmod(place, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(place, 65534, 65534), 0); // another's
		expect_start(false);
		assert_int_equal(count_files(place), 0);
	}
}

static int put_old(const char *place, const char *name)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	int fd = open(in(place, name), O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, old), 0);
	return fd;
}

static bool is_there(const char *place, const char *name)
{
	return access(in(place, name), F_OK) == 0;
}

/* Files of other brokers, for example of the user's other versions. */
static void test_only_programs_that_nobody_uses_are_removed(void **state)
{
	static const char *const names[] = {
		"acp-runner.unused", ".acp-runner.x.part", "acp-runner.used", "another"};
	struct runner_image real;
	struct start start = {.is_real = true};
	char place[PATH_MAX];
	int fds[ARRAY_LENGTH(names)];
	if (!runner_image_find("x86_64", &real)) {
		skip(); // built without
	}
	snprintf(place, sizeof(place), "%s", ours(cache));
	assert_int_equal(mkdir(place, 0700), 0);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		fds[i] = put_old(place, names[i]);
	}
	assert_int_equal(flock(fds[2], LOCK_SH), 0);
	int recent = open(in(place, "acp-runner.recent"), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(recent >= 0);
	begin(&start);
	run_until(&start.is_over);
	assert_string_equal(start.why, "");
	assert_false(is_there(place, names[0]) || is_there(place, names[1]));
	assert_true(is_there(place, names[2]) && is_there(place, names[3]));
	assert_true(is_there(place, "acp-runner.recent"));
	char program[64];
	snprintf(program, sizeof(program), "acp-runner.%s", real.build);
	int own = open(in(place, program), O_RDONLY | O_CLOEXEC);
	assert_true(own >= 0);
	assert_int_equal(flock(own, LOCK_EX | LOCK_NB), -1); // it runs
	finish(&start);
	assert_int_equal(flock(own, LOCK_EX), 0); // it has ended
	fd_close(&own);
	fd_close(&recent);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		fd_close(&fds[i]);
	}
}

/* Puts another version of a tool before the host's own. */
static void put_tool(const char *name, const char *text)
{
	static char path_variable[PATH_MAX];
	char tools[PATH_MAX];
	char tool[PATH_MAX];
	snprintf(tools, sizeof(tools), "%s", in(folder, "tools"));
	snprintf(tool, sizeof(tool), "%.4000s/%s", tools, name);
	snprintf(path_variable, sizeof(path_variable), "PATH=%.4000s:%s", tools,
		"/usr/local/bin:/usr/bin:/bin");
	mkdir(tools, 0700);
	write_file(tool, 0700, text);
	variables[2] = path_variable;
}

static void test_a_dd_that_cannot_count_reads_byte_by_byte(void **state)
{
	put_tool("dd", "#!/bin/sh\n"
		       "case \"$*\" in *fullblock*) exit 1 ;; esac\n"
		       "exec /bin/dd \"$@\"\n");
	expect_start(true);
	expect_only_program(cache);
}

/* The folder of a run is at this place, or the run has only a name. */
static void expect_run(const char *place)
{
	struct start start = {0};
	char expected[PATH_MAX];
	begin(&start);
	run_until(&start.is_over);
	assert_string_equal(start.why, "");
	snprintf(expected, sizeof(expected), "%.2000s%.80s.",
		in(place, place[0] ? "alive." : "acp-broker."), start.token);
	assert_true(strncmp(start.run, expected, strlen(expected)) == 0);
	finish(&start);
}

static void test_the_folder_of_a_run_is_beside_the_program_or_elsewhere(void **state)
{
	char text[PATH_MAX];
	static char temporary[128];
	char place[PATH_MAX];
	snprintf(place, sizeof(place), "%s", ours(cache));
	expect_run(place);
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", runtime);
	variables[3] = temporary;
	snprintf(text, sizeof(text),
		"#!/bin/sh\ncase $1 in %s/*/alive.*) exit 1 ;; esac\nexec /bin/mkdir \"$@\"\n",
		cache);
	put_tool("mkdir", text);
	expect_run(runtime);
	put_tool("mkfifo", "#!/bin/sh\nexit 1\n");
	expect_run("");
	assert_int_equal(count_files(runtime), 0);
	expect_only_program(cache);
}

static void expect_unfit(const char *words)
{
	struct start start = {0};
	begin(&start);
	run_until(&start.is_over);
	assert_false(start.is_ready);
	assert_false(start.has_sent);
	assert_non_null(strstr(start.why, words));
	finish(&start);
}

static void test_another_machine_gets_none(void **state)
{
	put_tool("uname", "#!/bin/sh\ncase $1 in -m) echo riscv64 ;; *) echo Linux ;; esac\n");
	expect_unfit("riscv64");
	assert_int_equal(access(ours(cache), F_OK), -1);
}

/* People read the reason in a notice. */
static void test_the_host_cannot_hide_what_follows_its_words(void **state)
{
	put_tool("uname", "#!/bin/sh\nprintf 'a\\033[2Jb\\342\\200\\256c\\n'\n");
	expect_unfit("a?[2Jb?c");
}

static void test_a_missing_tool_is_named(void **state)
{
	put_tool("nothing", "");
	char line[PATH_MAX];
	snprintf(line, sizeof(line), "PATH=%s", in(folder, "tools"));
	variables[2] = line;
	expect_unfit("chmod");
}

static void make_image(void)
{
	static const char text_format[] = "version=1\nbuild=%s\n";
	char text[128];
	struct error err;
	snprintf(text, sizeof(text), text_format, build);
	buf_init(&image_bytes, IMAGE_SIZE);
	assert_true(buf_append_format(&image_bytes, &err,
		"#!/bin/sh\n[ \"$1\" != run ] || rm -r \"$2\"\n"
		"printf '\\n\\036acp-runner link\\n'\n"
		"printf '\\%03o\\0\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0'\n"
		"echo 'version=1'\necho 'build=%s'\nexec cat >/dev/null\n#",
		(unsigned)strlen(text), build));
	while (image_bytes.len < IMAGE_SIZE) {
		buf_add(&image_bytes, SPAN_LITERAL("x"));
	}
	image.bytes = buf_span(&image_bytes);
	snprintf(image.build, sizeof(image.build), "%s", build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_every_login_shell_takes_it_and_finds_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_login_shell_of_busybox_takes_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_login_shell_that_prints_does_no_harm, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_banner_is_no_answer_and_an_end_is_not_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_damaged_program_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_where_nothing_may_be_executed_the_next_folder_is_taken, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_read_only_home_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_full_disk_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_interrupted_upload_leaves_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_that_bring_it_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_folder_that_is_not_ours_alone_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_only_programs_that_nobody_uses_are_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_dd_that_cannot_count_reads_byte_by_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_folder_of_a_run_is_beside_the_program_or_elsewhere, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_another_machine_gets_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_host_cannot_hide_what_follows_its_words, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_missing_tool_is_named, set_up, tear_down),
	};
	signal(SIGPIPE, SIG_IGN);
	loop = ev_loop_new(0);
	context.loop = loop;
	make_image();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_finish(&image_bytes);
	ev_loop_destroy(loop);
	return failed;
}
