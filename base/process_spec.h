/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_SPEC_H
#define BASE_PROCESS_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/process_limit.h"

/*
 * What to start, and how it ended. Separate from base/process.h for programs without its event
 * loop.
 */
struct process_spec {
	const char *const *argv; // NULL-terminated; argv[0] is looked up in env's PATH
	const char *const *env;  // NULL-terminated "NAME=value"; complete, nothing is inherited
	const char *cwd;         // absolute
	size_t cwd_root; // this many bytes of cwd may go through symbolic links, the rest may not;
	                 // 0: all of it may
	int in;          // the process's stdin; borrowed; -1 is /dev/null
	int out;         // its stdout; borrowed; -1 is /dev/null
	int err;         // its stderr; borrowed; -1 is /dev/null
	bool foreground; // stays in the broker's session and group (a user's terminal)
	bool owns_terminal; // `in` is a terminal without a session: it controls the process's
	bool is_grouped;    // runs other people's programs: gets its own cgroup if possible
	/*
	 * Executes `program`, an open memory file, and argv[0] is only what it is called. While
	 * somebody else has the file locked alone (flock(2)), the process waits before it executes
	 * it. By then the file must have F_SEAL_SEAL, or the start fails.
	 */
	bool has_program;
	int program;                         // borrowed
	const struct process_limits *limits; // borrowed until process_start returns; NULL: none
	/*
	 * The cgroup for the process and all its descendants (limit_group.fd); needed only with
	 * limits. The process is in it from its first instruction, or does not start. The guard of
	 * a remote spawner gets no descriptor of it: the broker moves the process there. When
	 * memory runs out, the kernel kills all of them.
	 */
	bool has_limit_group;
	int limit_group;    // borrowed
	bool stays_outside; // not in the group, but removes what is left in it at its end
};

/* How a process ended: by exit(code) if signal is 0, otherwise by that signal. */
struct process_status {
	int code;
	int signal;
	enum limit_kind limit;      // the limit that it reached, if it had limits
	struct process_usage usage; // if it had limits
};

#endif
