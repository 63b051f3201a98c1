/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <limits.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/freeze_group.h"
#include "tests/unit/freeze_roles.h"
#include "tests/unit/process_record.h"

/* With the argument "signals", all tests run where no cgroup can be made. */

/* ---- helpers that look at processes ---- */

static unsigned long total(void)
{
	unsigned long sum = 0;
	for (size_t i = 0; i < COUNTERS; i++) {
		sum += atomic_load(&counters->counts[i]);
	}
	return sum;
}

static void wait_for_progress(unsigned long from, unsigned long by)
{
	for (int i = 0; i < DEADLINE_MS / 10 && total() < from + by; i++) {
		run_for(10);
	}
	assert_true(total() >= from + by);
}

static int begin(struct record *record, const char *role)
{
	memset(counters, 0, sizeof(*counters));
	const char *argv[] = {"/proc/self/exe", role, counters_path, NULL};
	char path[256];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(len > 0);
	path[len] = '\0';
	argv[0] = path;
	int out = start(record, argv, NULL, NULL);
	run_until(record, "s");
	return out;
}

static struct freeze_group ours; // where the guards make theirs; open if that is possible

static void read_cgroup(pid_t pid, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	read_all(fd, text, size);
}

static void assert_is_held(const struct tree_process *process, const struct record *record)
{
	char text[4096];
	if (record->is_by_signals) {
		assert_true(strchr("TZ", process->state));
	} else if (process->state != 'Z') {
		read_cgroup(process->pid, text, sizeof(text));
		assert_non_null(strstr(text, "/acp-broker-"));
	}
}

static pid_t guard_of(const struct record *record)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, record->pid);
	assert_non_null(process);
	pid_t guard = process->parent;
	tree_finish(&tree);
	return guard;
}

static bool has_group(pid_t guard)
{
	char name[64];
	snprintf(name, sizeof(name), "acp-broker-%d", (int)guard);
	return ours.is_open && faccessat(ours.own_fd, name, F_OK, 0) == 0;
}

/* The number of processes below the guard; checks that none of them runs. */
static size_t count_stopped(const struct record *record)
{
	struct tree tree = {0};
	assert_true(tree_scan(&tree, NULL));
	const struct tree_process *process = tree_find(&tree, record->pid);
	size_t count = 0;
	if (process) {
		tree_mark_below(&tree, process->parent, NULL, 0);
		for (size_t i = 0; i < tree.count; i++) {
			if (tree.items[i].is_below) {
				assert_is_held(&tree.items[i], record);
				count++;
			}
		}
	}
	tree_finish(&tree);
	return count;
}

static void assert_still(void)
{
	unsigned long before = total();
	run_for(STILL_MS);
	assert_int_equal(total(), before);
}

/* Ends all counting processes, so that none of them counts into the next test. */
static void end(struct record *record, int out)
{
	process_kill_tree(record->process);
	for (int i = 0; i < DEADLINE_MS / 10 && !strchr(record->events, 'e'); i++) {
		run_for(10);
	}
	assert_non_null(strchr(record->events, 'e'));
	process_destroy(record->process);
	close(out);
}

/* ---- the promises of process_freeze ---- */

static void test_a_tree_that_forks_all_the_time_stands_still_and_goes_on(void **state)
{
	struct record record = {0};
	int out = begin(&record, "forker");
	wait_for_progress(0, 5);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(record.err.code, ERROR_NONE);
	assert_int_equal(record.is_by_signals, !ours.is_open);
	assert_true(count_stopped(&record) > 1);
	assert_still();
	unsigned long before = total();
	assert_true(process_thaw(record.process));
	run_until(&record, "szt");
	wait_for_progress(before, 50);
	for (int i = 0; i < DEADLINE_MS / 10 && atomic_load(&counters->next) <= MEMBERS; i++) {
		run_for(10);
	}
	assert_true(process_freeze(record.process));
	run_until(&record, "sztz");
	assert_true(process_freeze(record.process)); // twice is as good as once
	run_until(&record, "sztzz");
	assert_true(count_stopped(&record) >= MEMBERS);
	assert_still();
	end(&record, out);
}

static void test_who_is_somebody_else_all_the_time_is_caught(void **state)
{
	struct record record = {0};
	int out = begin(&record, "runner");
	run_until(&record, "sx"); // the first one has ended
	wait_for_progress(0, 50);
	assert_true(process_freeze(record.process));
	run_until(&record, "sxz");
	if (record.err.code == ERROR_NONE) {
		assert_still();
		unsigned long before = total();
		assert_true(process_thaw(record.process));
		run_until(&record, "sxzt");
		wait_for_progress(before, 50);
	} else { // on a slow machine it may get away, and then nothing was changed
		assert_int_equal(record.err.code, ERROR_TIMEOUT);
		wait_for_progress(total(), 50);
	}
	end(&record, out);
}

static void test_threads_that_outlive_the_first_one_stand_still(void **state)
{
	struct record record = {0};
	int out = begin(&record, "threads");
	wait_for_progress(0, 5);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(record.err.code, ERROR_NONE);
	assert_int_equal(record.is_by_signals, !ours.is_open);
	assert_still();
	assert_true(process_thaw(record.process));
	run_until(&record, "szt");
	wait_for_progress(total(), 5);
	process_kill_tree(record.process); // this does not make it a zombie, either
	run_until(&record, "sztxe");
	end(&record, out);
}

static void test_what_was_stopped_before_stays_so(void **state)
{
	struct record record = {0};
	int out = begin(&record, "stopper");
	wait_for_progress(0, 5);
	run_for(20);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_still();
	assert_true(process_thaw(record.process));
	run_until(&record, "szt");
	wait_for_progress(total(), 50);
	assert_int_equal(atomic_load(&counters->counts[COUNTERS - 1]), 0);
	end(&record, out);
}

static void test_no_parent_is_told_that_its_child_was_stopped(void **state)
{
	struct record record = {0};
	int out = begin(&record, "shell");
	wait_for_progress(0, 5);
	for (int i = 0; i < 5; i++) {
		memset(record.events + 1, 0, sizeof(record.events) - 1);
		assert_true(process_freeze(record.process));
		run_until(&record, "sz");
		assert_still();
		assert_true(process_thaw(record.process));
		run_until(&record, "szt");
		wait_for_progress(total(), 5);
	}
	assert_int_equal(atomic_load(&counters->counts[COUNTERS - 1]), 0);
	end(&record, out);
}

static void test_the_frozen_end_when_they_are_killed(void **state)
{
	struct record record = {0};
	int out = begin(&record, "forker");
	wait_for_progress(0, 500);
	pid_t guard = guard_of(&record);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(has_group(guard), ours.is_open);
	process_kill_tree(record.process);
	run_until(&record, "szxe");
	assert_false(has_group(guard));
	assert_false(process_freeze(record.process)); // no process is left to freeze
	assert_false(process_thaw(record.process));
	end(&record, out);
}

static void test_a_signal_that_is_caught_is_seen_once_it_goes_on(void **state)
{
	struct record record = {0};
	int out = begin(&record, "catcher");
	wait_for_progress(0, 5);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	process_signal(record.process, SIGTERM);
	run_for(50);
	assert_string_equal(record.events, "sz");
	assert_true(process_thaw(record.process));
	run_until(&record, "sztxe");
	assert_int_equal(record.status.code, 7);
	end(&record, out);
}

static void test_a_killed_guard_leaves_nothing_frozen(void **state)
{
	struct record record = {0};
	int out = begin(&record, "forker");
	wait_for_progress(0, 500);
	pid_t guard = guard_of(&record);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(kill(guard, SIGKILL), 0);
	run_until(&record, "szxe");
	assert_false(has_group(guard));
	assert_still();
	end(&record, out);
}

/* Others have set limits for it there. */
static void test_who_is_in_another_cgroup_is_not_taken_from_it(void **state)
{
	struct record record = {0};
	char name[64];
	char text[4096];
	int out = begin(&record, "shell");
	wait_for_progress(0, 5);
	snprintf(name, sizeof(name), "acp-test-%d", (int)getpid());
	if (ours.is_open) {
		assert_int_equal(mkdirat(ours.own_fd, name, 0755), 0);
		int group_fd = openat(ours.own_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int procs_fd = openat(group_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		assert_true(dprintf(procs_fd, "%d", (int)record.pid) > 0);
		close(procs_fd);
		close(group_fd);
	}
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(record.err.code, ERROR_NONE);
	assert_true(record.is_by_signals);
	count_stopped(&record);
	assert_still();
	if (ours.is_open) {
		read_cgroup(record.pid, text, sizeof(text));
		assert_non_null(strstr(text, name));
	}
	assert_true(process_thaw(record.process));
	run_until(&record, "szt");
	wait_for_progress(total(), 5);
	end(&record, out);
	if (ours.is_open) {
		assert_int_equal(unlinkat(ours.own_fd, name, AT_REMOVEDIR), 0);
	}
}

/* ---- cgroups that nobody is left to end ---- */

/* Makes the cgroup of a guard, for a pid that no process has. */
static int make_left(char *name, size_t size)
{
	snprintf(name, size, "acp-broker-%d", INT_MAX - (int)getpid());
	assert_int_equal(mkdirat(ours.own_fd, name, 0755), 0);
	int fd = openat(ours.own_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void write_to(int group_fd, const char *name, int number)
{
	int fd = openat(group_fd, name, O_WRONLY | O_CLOEXEC);
	assert_true(dprintf(fd, "%d", number) > 0);
	close(fd);
}

static pid_t freeze_somebody(int group_fd)
{
	pid_t pid = fork();
	if (pid == 0) {
		close(group_fd); // otherwise this process would hold the lock
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	write_to(group_fd, "cgroup.procs", (int)pid);
	write_to(group_fd, "cgroup.freeze", 1);
	return pid;
}

static void test_who_is_frozen_and_whose_guard_is_gone_is_ended(void **state)
{
	char name[64];
	int status;
	if (!ours.is_open) {
		skip();
	}
	int group_fd = make_left(name, sizeof(name));
	pid_t pid = freeze_somebody(group_fd);
	assert_int_equal(flock(group_fd, LOCK_EX | LOCK_NB), 0); // as long as a guard holds it …
	(void)freeze_group_end_left();
	assert_int_equal(faccessat(ours.own_fd, name, F_OK, 0), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	close(group_fd);
	(void)freeze_group_end_left(); // unless a broker of another test has just begun to
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	for (int i = 0; i < DEADLINE_MS / 10 && faccessat(ours.own_fd, name, F_OK, 0) == 0; i++) {
		run_for(10);
	}
	assert_int_not_equal(faccessat(ours.own_fd, name, F_OK, 0), 0);
	assert_int_equal(faccessat(ours.own_fd, ours.name, F_OK, 0), 0); // a guard holds it
}

/* ---- all of them ---- */

static int set_up(void **state)
{
	int fd = mkstemp(counters_path);
	if (fd < 0 || ftruncate(fd, sizeof(*counters)) != 0) {
		return -1;
	}
	counters = map_counters(fd);
	struct error err;
	if (!freeze_group_open(&ours, &err)) {
		print_message("by signals: %s\n", err.text);
	}
	return counters ? set_up_loop() : -1;
}

static int tear_down(void **state)
{
	unlink(counters_path);
	munmap(counters, sizeof(*counters));
	int status = tear_down_loop();
	freeze_group_close(&ours);
	return status;
}

/* Hides them from us and from all processes that we start, and from nobody else. */
static bool hide_cgroups(void)
{
	int flags = CLONE_NEWNS | (getuid() == 0 ? 0 : CLONE_NEWUSER);
	return unshare(flags) == 0 && mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "signals") == 0 && !hide_cgroups()) {
		perror("hiding the cgroups");
		return 1;
	}
	if (argc == 3) {
		return play(argv[1], argv[2]);
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_tree_that_forks_all_the_time_stands_still_and_goes_on),
		cmocka_unit_test(test_who_is_somebody_else_all_the_time_is_caught),
		cmocka_unit_test(test_threads_that_outlive_the_first_one_stand_still),
		cmocka_unit_test(test_what_was_stopped_before_stays_so),
		cmocka_unit_test(test_no_parent_is_told_that_its_child_was_stopped),
		cmocka_unit_test(test_the_frozen_end_when_they_are_killed),
		cmocka_unit_test(test_a_signal_that_is_caught_is_seen_once_it_goes_on),
		cmocka_unit_test(test_a_killed_guard_leaves_nothing_frozen),
		cmocka_unit_test(test_who_is_in_another_cgroup_is_not_taken_from_it),
		cmocka_unit_test(test_who_is_frozen_and_whose_guard_is_gone_is_ended),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
