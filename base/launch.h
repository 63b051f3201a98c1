/* SPDX-License-Identifier: MIT */
#ifndef BASE_LAUNCH_H
#define BASE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process_spec.h"

/*
 * A program to execute, and the steps from a forked child to that program. The broker sends it to
 * the guard as one block of memory, because argv and the environment have no practical limit and
 * may contain any byte except NUL.
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
	int group_fd;       // the cgroup to enter first; -1: none
	bool foreground;    // stays in the parent's session and process group
	bool owns_terminal; // fds[0] becomes the terminal of the new session
	bool has_program;   // `program`, not argv[0], is executed
	int program;        // borrowed
};

/* Packs the spec into a new memory file. Returns its file descriptor, or -1. */
int launch_pack(const struct process_spec *spec, struct error *err) ATTR_NODISCARD;

/* Reads what launch_pack wrote; leaves everything else unchanged. */
bool launch_unpack(struct launch *launch, int memory_fd, struct error *err) ATTR_NODISCARD;
void launch_finish(struct launch *launch);

/* The step that failed in the child, written to the guard through a pipe. */
enum launch_step {
	LAUNCH_PREPARE, // file descriptors, session
	LAUNCH_LIMIT,
	LAUNCH_CHDIR,
	LAUNCH_FIND,    // no such command
	LAUNCH_EXECUTE, // found, but cannot be executed
};
enum { LAUNCH_PATH_MAX = 512 }; // of the file's name in messages

struct launch_failure {
	enum launch_step step;
	int errnum;
	char path[LAUNCH_PATH_MAX]; // LAUNCH_EXECUTE: the file that was found; may be cut
};

/*
 * Becomes the program, in a freshly forked child with one thread, after launch_reset_signals. No
 * signal stays ignored or blocked, and every other file descriptor is closed. argv[0] is looked up
 * in the PATH of its own environment, as execvp(3) does. On failure it writes a struct
 * launch_failure to status_fd. On success status_fd closes by itself.
 */
void launch_run(const struct launch *launch, int status_fd) ATTR_NORETURN;

/* Sets the error's text for the failure, and the code that base/process.h promises. */
void launch_describe(
	const struct launch *launch, const struct launch_failure *failure, struct error *err);

/*
 * Resets all signals to their default actions; blocked signals stay blocked. An agent or terminal
 * is in the foreground of a user, even if the broker was started by a shell's `&`, by nohup(1), or
 * by an editor that ignores SIGPIPE.
 */
void launch_reset_signals(void);

#endif
