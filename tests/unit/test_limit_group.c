/* SPDX-License-Identifier: MIT */
#include "base/limit_group.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/freeze_group.h"
#include "base/text.h"
#include "tests/unit/process_record.h"

/* Real cgroups, as far as this machine has them; a test names the missing ones and skips. */

static const struct process_limits none; // of each process

static void open_group(struct limit_group *group, const struct group_limits *limits)
{
	struct error err;
	*group = (struct limit_group){0};
	if (!limit_group_open(group, limits, &err)) {
		fprintf(stderr, "skipped: %s\n", err.text);
		skip();
	}
}

static void needs(struct limit_group *group, bool is_limited, const char *controller)
{
	if (!is_limited) {
		fprintf(stderr, "skipped: cgroup v2 has no controller \"%s\" here\n", controller);
		limit_group_close(group);
		skip();
	}
}

static int start_in(struct record *record, const struct limit_group *group, const char *script)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	int fds[2];
	struct error err;
	assert_true(fd_pipe(fds, &err));
	struct process_spec spec = {.argv = argv,
		.env = plain_env,
		.cwd = "/",
		.in = -1,
		.out = fds[1],
		.err = -1,
		.limits = &none,
		.has_limit_group = true,
		.limit_group = group->fd};
	record->process = process_start(spawner, &spec, &listener, record, &err);
	assert_non_null(record->process);
	fd_close(&fds[1]);
	return fds[0];
}

static void path_of(const struct limit_group *group, char path[PATH_MAX])
{
	char link[64];
	text_whole(link, sizeof(link), "/proc/self/fd/%d", group->fd);
	ssize_t len = readlink(link, path, PATH_MAX - 1);
	assert_true(len > 0);
	path[len] = '\0';
}

static void assert_goes(const char *path)
{
	long long deadline_ms = clock_now_ms() + DEADLINE_MS;
	while (access(path, F_OK) == 0 && clock_now_ms() < deadline_ms) {
		run_for(5);
	}
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_a_process_is_inside_from_the_start_and_leaves_nothing(void **state)
{
	struct limit_group group;
	struct record record = {0};
	struct group_usage used;
	char path[PATH_MAX];
	char text[4096];
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	int out = start_in(&record, &group,
		"cat /proc/self/cgroup; i=0; "
		"while [ $i -lt 100000 ]; do i=$((i + 1)); done");
	run_until(&record, "sxe");
	read_all(out, text, sizeof(text));
	assert_non_null(strstr(text, strrchr(path, '/')));
	assert_true(record.status.usage.cpu_ms > 0);
	limit_group_usage(group.fd, &used);
	assert_true(used.cpu_ms > 0);
	process_destroy(record.process);
	limit_group_close(&group);
	assert_goes(path);
}

static void test_the_last_one_removes_it(void **state)
{
	struct limit_group group;
	struct record record = {0};
	char path[PATH_MAX];
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	int out = start_in(&record, &group, "sleep 60");
	run_until(&record, "s");
	limit_group_close(&group);
	assert_int_equal(access(path, F_OK), 0); // somebody is there
	process_destroy(record.process);
	close(out);
	assert_goes(path);
}

static void test_a_command_that_is_not_there_leaves_nothing(void **state)
{
	struct limit_group group;
	struct record record = {0};
	struct error err;
	char path[PATH_MAX];
	const char *argv[] = {"/nowhere/there", NULL};
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	struct process_spec spec = {.argv = argv,
		.env = plain_env,
		.cwd = "/",
		.in = -1,
		.out = -1,
		.err = -1,
		.limits = &none,
		.has_limit_group = true,
		.limit_group = group.fd};
	record.process = process_start(spawner, &spec, &listener, &record, &err);
	assert_non_null(record.process);
	run_until(&record, "f");
	process_destroy(record.process);
	limit_group_close(&group);
	assert_goes(path);
}

static void test_memory_ends_all_of_a_process_and_is_named(void **state)
{
	struct limit_group group;
	struct record record = {0};
	struct record other = {0};
	char text[64];
	open_group(&group, &(struct group_limits){.memory_bytes = 48 << 20});
	needs(&group, group.limits_memory, "memory");
	int other_out = start_in(&other, &group, "sleep 60");
	run_until(&other, "s");
	/*
	 * The kernel also ends the shell and the process in the background, but not another process
	 * of the group.
	 */
	int out = start_in(&record, &group,
		"sleep 60 & dd if=/dev/zero of=/dev/null bs=200M count=1; echo not reached");
	run_until(&record, "sxe");
	read_all(out, text, sizeof(text));
	assert_int_equal(record.status.signal, SIGKILL);
	assert_int_equal(record.status.limit, LIMIT_MEMORY);
	assert_true(record.status.usage.peak_bytes > 8 << 20);
	assert_string_equal(other.events, "s");
	process_destroy(record.process);
	process_destroy(other.process);
	close(other_out);
	limit_group_close(&group);
}

/* The kernel kills for a cgroup above, as it does if this machine has no memory. */
static void test_memory_that_is_missing_elsewhere_is_not_this_limit(void **state)
{
	static const char script[] = "dd if=/dev/zero of=/dev/null bs=200M count=1";
	static const enum limit_kind expected[] = {LIMIT_MEMORY, LIMIT_NONE};
	struct limit_group above, group = {.is_open = true};
	char text[64];
	open_group(&above, &(struct group_limits){.memory_bytes = 64 << 20});
	needs(&above, above.limits_memory, "memory");
	for (size_t i = 0; i < ARRAY_LENGTH(expected); i++) {
		struct record record = {0};
		assert_int_equal(mkdirat(above.fd, "inner", 0755), 0);
		group.fd = openat(above.fd, "inner", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(cgroup_write(group.fd, "cgroup.subtree_control", "+memory"));
		assert_true(cgroup_write(group.fd, "memory.max", i == 0 ? "32M" : "max"));
		int out = start_in(&record, &group, script);
		run_until(&record, "sxe");
		read_all(out, text, sizeof(text));
		assert_int_equal(record.status.signal, SIGKILL);
		assert_int_equal(record.status.limit, expected[i]);
		process_destroy(record.process);
		close(group.fd); // the last guard in it has removed it
	}
	limit_group_clear(above.fd);
	limit_group_close(&above);
}

static void test_a_refused_fork_is_told_at_once_and_named(void **state)
{
	struct limit_group group;
	struct record record = {0};
	char text[64];
	open_group(&group, &(struct group_limits){.processes = 8});
	needs(&group, group.limits_processes, "pids");
	/* The inner shell gives up at the first refusal; the outer shell stays. */
	int out = start_in(&record, &group,
		"(for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done); exec sleep 60");
	run_until(&record, "sl");
	process_kill_tree(record.process);
	run_until(&record, "slxe");
	assert_int_equal(record.status.limit, LIMIT_PROCESSES);
	read_all(out, text, sizeof(text));
	process_destroy(record.process);
	limit_group_close(&group);
}

static void test_processors_are_set(void **state)
{
	struct limit_group group;
	char text[64] = "";
	open_group(&group, &(struct group_limits){.cpus = 2});
	needs(&group, group.limits_cpus, "cpu");
	int fd = openat(group.fd, "cpu.max", O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_string_equal(text, "200000 100000\n");
	limit_group_close(&group);
}

/* How often poll(2) reports a change that is taken each time, up to 10 times. */
static int count_events(int *fd)
{
	int count = 0;
	struct pollfd told = {.fd = *fd, .events = POLLPRI};
	while (count < 10 && poll(&told, 1, 0) > 0) {
		cgroup_take_event(fd);
		told.fd = *fd;
		count++;
	}
	return count;
}

static void test_the_events_of_a_removed_group_are_told_once(void **state)
{
	struct limit_group group;
	char inner[PATH_MAX + 8];
	char path[PATH_MAX];
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	text_whole(inner, sizeof(inner), "%s/inner", path);
	assert_int_equal(mkdir(inner, 0755), 0);
	int inner_fd = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(inner_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	count_events(&fd);
	assert_true(fd >= 0);
	assert_int_equal(count_events(&fd), 0);
	assert_true(cgroup_write(inner_fd, "cgroup.freeze", "1"));
	assert_int_equal(count_events(&fd), 1);
	assert_true(fd >= 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(count_events(&fd), 1);
	assert_int_equal(fd, -1);
	close(inner_fd);
	limit_group_close(&group);
	assert_goes(path);
}

static void test_those_that_were_left_are_removed_and_those_held_stay(void **state)
{
	struct limit_group group;
	char path[PATH_MAX];
	char left[PATH_MAX];
	char inner[PATH_MAX];
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	assert_true(text_whole(left, sizeof(left), "%s-left", path));
	assert_true(text_whole(inner, sizeof(inner), "%s/acp-broker-1", left));
	assert_int_equal(mkdir(left, 0755), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
	(void)freeze_group_end_left();
	assert_int_not_equal(access(left, F_OK), 0);
	assert_int_equal(access(path, F_OK), 0);
	limit_group_close(&group);
	assert_goes(path);
}

/* Makes a folder below ours; false if we may not. */
static bool make_below(char path[PATH_MAX], const char *above, const char *name)
{
	return text_whole(path, PATH_MAX, "%s/%s", above, name) && mkdir(path, 0755) == 0;
}

static bool write_to(const char *folder, const char *file, const char *text)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_written = fd >= 0 && cgroup_write(fd, file, text);
	close(fd);
	return is_written;
}

static void read_from(const char *folder, const char *file, char text[256])
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file_fd = openat(fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t count = read(file_fd, text, 255);
	text[count > 0 ? count : 0] = '\0';
	close(file_fd);
	close(fd);
}

/* Opens a group from a process in the cgroup `own`: the new group lies beside that one. */
static void open_from(const char *own)
{
	struct error err;
	struct limit_group group = {0};
	struct group_limits limits = {.memory_bytes = 48 << 20, .processes = 8, .cpus = 1};
	pid_t pid = fork();
	if (pid == 0) {
		bool is_open = write_to(own, "cgroup.procs", "0") &&
		               limit_group_open(&group, &limits, &err);
		limit_group_close(&group);
		_exit(is_open ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_nothing_is_enabled_above_the_place(void **state)
{
	char own[CGROUP_PATH_MAX], top[PATH_MAX], above[PATH_MAX], place[PATH_MAX], here[PATH_MAX];
	char before[256], after[256];
	assert_true(text_whole(top, sizeof(top), "%s%s", cgroup_mount(),
		cgroup_path_of(getpid(), own) ? own : ""));
	text_whole(before, sizeof(before), "test-%d", (int)getpid());
	if (!make_below(above, top, before)) {
		fprintf(stderr, "skipped: cgroup v2 cannot be written here\n");
		skip();
	}
	assert_true(make_below(place, above, "place"));
	assert_true(make_below(here, place, "here"));
	read_from(above, "cgroup.subtree_control", before);
	open_from(here);
	read_from(above, "cgroup.subtree_control", after);
	assert_string_equal(before, after);
	assert_int_equal(rmdir(here), 0);
	assert_int_equal(rmdir(place), 0);
	assert_int_equal(rmdir(above), 0);
}

static void test_a_process_of_elsewhere_is_moved_and_its_cgroup_goes_with_its_lock(void **state)
{
	struct limit_group group;
	char path[PATH_MAX];
	char own[CGROUP_PATH_MAX];
	int fds[2], lock = -1;
	struct error err;
	open_group(&group, &(struct group_limits){0});
	path_of(&group, path);
	assert_true(fd_pipe(fds, &err));
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		close(fds[1]);
		_exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
	}
	assert_int_equal(limit_group_take(group.fd, pid, &lock), 0);
	assert_true(cgroup_path_of(pid, own));
	assert_non_null(strstr(own, strrchr(path, '/')));
	(void)freeze_group_end_left(); // nobody ends it while the lock is held
	limit_group_clear(group.fd);
	assert_true(cgroup_path_of(pid, own));
	assert_non_null(strstr(own, strrchr(path, '/')));
	close(fds[1]);
	close(fds[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	uint64_t is_whole = 1;
	(void)!cgroup_read(lock, "memory.oom.group", &is_whole);
	assert_int_equal(is_whole, 1);
	limit_group_clear(group.fd); // its guard may still read what it has counted
	assert_int_equal(faccessat(lock, "cgroup.procs", F_OK, 0), 0);
	close(lock);
	limit_group_clear(group.fd);
	limit_group_close(&group);
	assert_goes(path);
}

static int set_up(void **state)
{
	return set_up_loop();
}

static int tear_down(void **state)
{
	return tear_down_loop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_is_inside_from_the_start_and_leaves_nothing),
		cmocka_unit_test(test_the_last_one_removes_it),
		cmocka_unit_test(test_a_command_that_is_not_there_leaves_nothing),
		cmocka_unit_test(test_memory_ends_all_of_a_process_and_is_named),
		cmocka_unit_test(test_memory_that_is_missing_elsewhere_is_not_this_limit),
		cmocka_unit_test(test_a_refused_fork_is_told_at_once_and_named),
		cmocka_unit_test(test_processors_are_set),
		cmocka_unit_test(test_the_events_of_a_removed_group_are_told_once),
		cmocka_unit_test(test_those_that_were_left_are_removed_and_those_held_stay),
		cmocka_unit_test(test_nothing_is_enabled_above_the_place),
		cmocka_unit_test(
			test_a_process_of_elsewhere_is_moved_and_its_cgroup_goes_with_its_lock),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
