/* SPDX-License-Identifier: MIT */
#include "base/process_limit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/text.h"

enum {
	CPU_GRACE_S = 5, // from SIGXCPU, which can be caught, to SIGKILL
	SHELL_SIGNALS = 128,
	TICKS_ERROR = 4, // the ticks count at most this many times the time used
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

/* Never raises a limit. `grace` is the distance between the soft and the hard limit. */
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

/*
 * The kernel enforces the limit on its tick count. The time really used can be much less; but far
 * below the limit, a signal came from somebody else.
 */
static bool is_near(const struct process_limits *limits, uint64_t cpu_ms)
{
	return limits->cpu_seconds > 0 && cpu_ms / (1000 / TICKS_ERROR) >= limits->cpu_seconds;
}

enum limit_kind limits_reached(
	const struct process_limits *limits, int wait_status, uint64_t cpu_ms, bool was_killed)
{
	int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
	if (limits->file_bytes > 0 && signal == SIGXFSZ) {
		return LIMIT_FILE_SIZE;
	}
	bool is_told = signal == SIGXCPU || code == SHELL_SIGNALS + SIGXCPU;
	bool is_over = signal == SIGKILL && !was_killed && cpu_ms / 1000 >= limits->cpu_seconds;
	if (is_near(limits, cpu_ms) && (is_told || is_over)) {
		return LIMIT_CPU_TIME;
	}
	return LIMIT_NONE;
}

bool limits_count_by_namespace(void)
{
	struct utsname kernel;
	char *end;
	if (uname(&kernel) != 0) {
		return false;
	}
	long major = strtol(kernel.release, &end, 10);
	long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	return major > 5 || (major == 5 && minor >= 14);
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
			count += about.st_nlink - 2; // one folder per thread
		}
	}
	if (folder) {
		closedir(folder);
	}
	return count;
}
