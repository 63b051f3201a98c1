/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_FREEZE_ROLES_H
#define TESTS_UNIT_FREEZE_ROLES_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"

/*
 * Processes to freeze. Each member of the tree counts in its own place of a file that the test can
 * read.
 */
enum { COUNTERS = 64, MEMBERS = 40, STILL_MS = 150, LIFE_S = 60 };

struct counters {
	atomic_uint next;
	atomic_ulong counts[COUNTERS];
};

static char counters_path[] = "/tmp/test-process-freeze-XXXXXX";
static struct counters *counters;

static inline struct counters *map_counters(int fd)
{
	void *memory = mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- processes to freeze ---- */

static inline void count_on(void)
{
	unsigned place = atomic_fetch_add(&counters->next, 1) % COUNTERS;
	const struct timespec moment = {.tv_nsec = 200000};
	for (;;) {
		atomic_fetch_add(&counters->counts[place], 1);
		nanosleep(&moment, NULL);
	}
}

/*
 * Forks all the time. Every second child has a session of its own; every third child's parent ends.
 */
static inline int run_forker(void)
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

/* Whether an ended process is still not reaped after a while. */
static inline bool is_uncollected(pid_t pid)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	for (int i = 0; i < 20000 && pid != 0 && kill(pid, 0) == 0; i++) {
		nanosleep(&moment, NULL);
	}
	return pid != 0 && kill(pid, 0) == 0;
}

/*
 * Forks and ends all the time, so that its pid always changes. If it is faster than the guard
 * reaps, as under valgrind, it waits; otherwise zombies would fill the process table, and no
 * process could start.
 */
static inline int run_runner(void)
{
	enum { GENERATIONS_MAX = 1000000 }; // a minute or more
	static pid_t before[200];
	for (size_t i = 0; atomic_fetch_add(&counters->counts[0], 1) < GENERATIONS_MAX; i++) {
		pid_t *place = &before[i % ARRAY_LENGTH(before)];
		if (is_uncollected(*place)) {
			return 1;
		}
		*place = getpid();
		pid_t pid = fork();
		if (pid != 0) {
			_exit(pid < 0);
		}
	}
	return 0;
}

static inline void *count_in_thread(void *data)
{
	count_on();
	return NULL;
}

/* Its first thread ends, another goes on. */
static inline int run_threads(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, count_in_thread, NULL) != 0) {
		return 1;
	}
	pthread_exit(NULL);
}

/* A child that stops itself, and one that counts. */
static inline int run_stopper(void)
{
	if (fork() == 0) {
		raise(SIGSTOP);
		atomic_store(&counters->counts[COUNTERS - 1], 1);
		count_on();
	}
	count_on();
	return 0;
}

/* A parent that notices each stop and end of its child: it must notice none. */
static inline int run_shell_like(void)
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

static inline void on_term(int number)
{
	_exit(7);
}

/* Handles SIGTERM itself. */
static inline int run_catcher(void)
{
	signal(SIGTERM, on_term);
	count_on();
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
	{"catcher", run_catcher},
};

static inline int play(const char *role, const char *path)
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

#endif
