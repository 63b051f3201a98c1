/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/unit/process_record.h"

/*
 * What is frozen counts: each member of a tree in a place of its own of a file that the test sees,
 * too.
 */
enum { COUNTERS = 64, MEMBERS = 40, STILL_MS = 150, LIFE_S = 60 };

struct counters {
	atomic_uint next;
	atomic_ulong counts[COUNTERS];
};

static char counters_path[] = "/tmp/test-process-freeze-XXXXXX";
static struct counters *counters;

static struct counters *map_counters(int fd)
{
	void *memory = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- who is frozen ---- */

static void count_on(void)
{
	unsigned place = atomic_fetch_add(&counters->next, 1) % COUNTERS;
	const struct timespec moment = {.tv_nsec = 200000};
	for (;;) {
		atomic_fetch_add(&counters->counts[place], 1);
		nanosleep(&moment, NULL);
	}
}

/* Forks on and on; every second one in a session of its own, every third one's parent ends. */
static int run_forker(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	for (int i = 0; i < MEMBERS; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (i % 2 == 0) {
				setsid();
			}
			if (i % 3 != 0 || fork() == 0) {
				count_on();
			}
			_exit(0);
		}
		nanosleep(&moment, NULL);
		waitpid(-1, NULL, WNOHANG);
	}
	count_on();
	return 0;
}

/* Is somebody else all the time. */
static int run_runner(void)
{
	enum { GENERATIONS_MAX = 1000000 }; // a minute or more
	while (atomic_fetch_add(&counters->counts[0], 1) < GENERATIONS_MAX) {
		pid_t pid = fork();
		if (pid != 0) {
			_exit(pid < 0);
		}
	}
	return 0;
}

static void *count_in_thread(void *data)
{
	count_on();
	return NULL;
}

/* Its first thread ends, another goes on. */
static int run_threads(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, count_in_thread, NULL) != 0) {
		return 1;
	}
	pthread_exit(NULL);
}

/* A child that stopped itself, beside one that counts. */
static int run_stopper(void)
{
	if (fork() == 0) {
		raise(SIGSTOP);
		atomic_store(&counters->counts[COUNTERS - 1], 1);
		count_on();
	}
	count_on();
	return 0;
}

/* A parent that hears of each stop and end of its child: none may be told. */
static int run_shell_like(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		count_on();
	}
	int status;
	while (waitpid(pid, &status, WUNTRACED) == pid) {
		atomic_fetch_add(&counters->counts[COUNTERS - 1], 1);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} roles[] = {
	{"forker", run_forker},
	{"runner", run_runner},
	{"threads", run_threads},
	{"stopper", run_stopper},
	{"shell", run_shell_like},
};

static int play(const char *role, const char *path)
{
	counters = map_counters(open(path, O_RDWR));
	alarm(LIFE_S);
	for (size_t i = 0; counters && i < ARRAY_LENGTH(roles); i++) {
		if (strcmp(roles[i].name, role) == 0) {
			return roles[i].run();
		}
	}
	return 1;
}

/* ---- who looks ---- */

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

/* How many processes are below the guard, and that none of them runs. */
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
				assert_true(strchr("TZ", tree.items[i].state));
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

/* Nobody may count into the next test. */
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

/* ---- what is promised ---- */

static void test_a_tree_that_forks_all_the_time_stands_still_and_goes_on(void **state)
{
	struct record record = {0};
	int out = begin(&record, "forker");
	wait_for_progress(0, 5);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	assert_int_equal(record.err.code, ERROR_NONE);
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
	assert_still();
	assert_true(process_thaw(record.process));
	run_until(&record, "szt");
	wait_for_progress(total(), 5);
	process_kill_tree(record.process); // it is no zombie to this, either
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
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	process_kill_tree(record.process);
	run_until(&record, "szxe");
	assert_false(process_freeze(record.process)); // there is nothing to freeze
	assert_false(process_thaw(record.process));
	end(&record, out);
}

static void test_a_signal_is_seen_once_it_goes_on(void **state)
{
	struct record record = {0};
	int out = begin(&record, "shell");
	wait_for_progress(0, 5);
	assert_true(process_freeze(record.process));
	run_until(&record, "sz");
	process_signal(record.process, SIGTERM);
	run_for(50);
	assert_string_equal(record.events, "sz");
	assert_true(process_thaw(record.process));
	run_until(&record, "sztxe");
	assert_int_equal(record.status.signal, SIGTERM);
	end(&record, out);
}

/* ---- all of them ---- */

static int set_up(void **state)
{
	int fd = mkstemp(counters_path);
	if (fd < 0 || ftruncate(fd, sizeof(*counters)) != 0) {
		return -1;
	}
	counters = map_counters(fd);
	return counters ? set_up_loop() : -1;
}

static int tear_down(void **state)
{
	unlink(counters_path);
	munmap(counters, sizeof(*counters));
	return tear_down_loop();
}

int main(int argc, char **argv)
{
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
		cmocka_unit_test(test_a_signal_is_seen_once_it_goes_on),
	};
	return run_with_spawner(tests, ARRAY_LENGTH(tests), set_up, tear_down);
}
