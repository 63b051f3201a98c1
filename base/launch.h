/* SPDX-License-Identifier: MIT */
#ifndef BASE_LAUNCH_H
#define BASE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process.h"

/*
 * What is to be executed, and the steps from a forked child to that program.
 * It travels from the broker to the guard as one block of memory, for argv and
 * environment have no useful limit and may hold any byte but NUL.
 */
struct launch {
	char *block; // owned; the texts below point into it
	size_t block_size;
	const char *cwd;
	size_t cwd_root; // as in struct process_spec
	char **argv;     // owned array, NULL-terminated
	char **env;      // owned array, NULL-terminated
	int fds[3];      // borrowed; -1 is /dev/null
	struct process_limits limits;
	int group_fd;    // the cgroup to enter first; -1: none
	bool foreground; // stays in the parent's session and process group
};

/* The block in a new memory file; its descriptor, or -1. */
int launch_pack(const struct process_spec *spec, struct error *err) ATTR_NODISCARD;

/* Reads what launch_pack wrote; the descriptors and foreground are left alone. */
bool launch_unpack(struct launch *launch, int memory_fd, struct error *err) ATTR_NODISCARD;
void launch_finish(struct launch *launch);

/* The step that failed in the child, written to the guard through a pipe. */
enum launch_step {
	LAUNCH_PREPARE, // descriptors, session
	LAUNCH_LIMIT,
	LAUNCH_CHDIR,
	LAUNCH_FIND,    // no such command
	LAUNCH_EXECUTE, // found, but not to be executed
};
enum { LAUNCH_PATH_MAX = 512 }; // of the file's name in messages

struct launch_failure {
	enum launch_step step;
	int errnum;
	char path[LAUNCH_PATH_MAX]; // LAUNCH_EXECUTE: the file that was found; may be cut
};

/*
 * In a freshly forked child with one thread, after launch_reset_signals: becomes
 * the program. No signal is ignored or blocked, every other descriptor is closed,
 * argv[0] is looked up in the PATH of its own environment as execvp(3) does. A
 * failure is written to status_fd, which closes by itself when all went well.
 */
void launch_run(const struct launch *launch, int status_fd) ATTR_NORETURN;

/* The failure in words, with the code that base/process.h promises. */
void launch_describe(
	const struct launch *launch, const struct launch_failure *failure, struct error *err);

/*
 * All signals to their defaults; what is blocked stays so. An agent or terminal is
 * in the foreground of a user, even where the broker was started by a shell's `&`,
 * by nohup(1), or by an editor that ignores SIGPIPE.
 */
void launch_reset_signals(void);

#endif
