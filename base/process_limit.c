/* SPDX-License-Identifier: MIT */
#include "base/process_limit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"

enum {
	CPU_GRACE_S = 5, // from SIGXCPU, which can be caught, to SIGKILL
	SHELL_SIGNALS = 128,
};

static const char *const keys[LIMIT_KIND_COUNT] = {
	[LIMIT_NONE] = "",
	[LIMIT_MEMORY] = "memory",
	[LIMIT_PROCESSES] = "processes",
	[LIMIT_FILE_SIZE] = "file-size",
	[LIMIT_CPU_TIME] = "cpu-time",
};

const char *limit_key(enum limit_kind kind)
{
	return keys[kind];
}

bool limits_are_set(const struct process_limits *limits)
{
	return limits->open_files > 0 || limits->file_bytes > 0 || limits->cpu_seconds > 0 ||
	       limits->user_processes > 0;
}

/* Never raises one. `grace` lies between what can be caught and what cannot. */
static bool lower(int resource, rlim_t value, rlim_t grace)
{
	struct rlimit now;
	if (value == 0) {
		return true;
	}
	if (getrlimit(resource, &now) != 0) {
		return false;
	}
	rlim_t hard = value + grace;
	struct rlimit wanted = {
		.rlim_cur = now.rlim_cur < value ? now.rlim_cur : value,
		.rlim_max = now.rlim_max < hard ? now.rlim_max : hard,
	};
	return setrlimit(resource, &wanted) == 0;
}

bool limits_set(const struct process_limits *limits)
{
	return lower(RLIMIT_FSIZE, limits->file_bytes, 0) &&
	       lower(RLIMIT_CPU, limits->cpu_seconds, CPU_GRACE_S) &&
	       lower(RLIMIT_NPROC, limits->user_processes, 0) &&
	       lower(RLIMIT_NOFILE, limits->open_files, 0);
}

enum limit_kind limits_reached(
	const struct process_limits *limits, int wait_status, uint64_t cpu_ms, bool was_killed)
{
	int number = 0;
	if (WIFSIGNALED(wait_status)) {
		number = WTERMSIG(wait_status);
	} else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) > SHELL_SIGNALS) {
		number = WEXITSTATUS(wait_status) - SHELL_SIGNALS;
	}
	if (limits->file_bytes > 0 && number == SIGXFSZ) {
		return LIMIT_FILE_SIZE;
	}
	/* The kernel limits what its ticks have counted, which can be a fifth more. */
	bool is_over = number == SIGKILL && !was_killed && cpu_ms / 1000 >= limits->cpu_seconds;
	if (limits->cpu_seconds > 0 && (number == SIGXCPU || is_over)) {
		return LIMIT_CPU_TIME;
	}
	return LIMIT_NONE;
}

uint64_t limits_count_tasks(unsigned user)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	uint64_t count = 0;
	while (folder && (entry = readdir(folder)) != NULL) {
		char path[300];
		struct stat about;
		if (strtol(entry->d_name, NULL, 10) <= 0) {
			continue;
		}
		text_whole(path, sizeof(path), "/proc/%s/task", entry->d_name);
		if (stat(path, &about) == 0 && about.st_uid == user && about.st_nlink > 2) {
			count += about.st_nlink - 2; // a folder for each thread
		}
	}
	if (folder) {
		closedir(folder);
	}
	return count;
}
