/* SPDX-License-Identifier: MIT */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/* One process as /proc/PID/stat shows it, see proc(5). */
struct tree_process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	pid_t session;
	unsigned long long start_ticks; // since boot
	int threads;                    // a zombie with more than one thread is still alive
	char state;                     // of the first thread
	bool is_below;                  // set by tree_mark_below
};

/* All processes that /proc shows on this machine, by ascending pid. Zero-initialise. */
struct tree {
	struct tree_process *items; // owned
	size_t count;
	size_t capacity;
};

void tree_finish(struct tree *tree);

/* Replaces the content of the tree. Blocks for some 10 microseconds per process. */
bool tree_scan(struct tree *tree, struct error *err) ATTR_NODISCARD;

/* Appends a process. tree_find needs them in ascending order of their pids. */
void tree_add(struct tree *tree, const struct tree_process *process);

/* NULL if there is no such process. */
struct tree_process *tree_find(const struct tree *tree, pid_t pid);

/*
 * Marks the living descendants of root, but not root. Leaves out the `spared` children of root and
 * their descendants. Returns how many it marked.
 */
size_t tree_mark_below(struct tree *tree, pid_t root, const pid_t *spared, size_t spared_count);

/*
 * Makes one attempt to kill everything below root: stops processes until a scan finds nothing new,
 * then sends SIGKILL. Returns how many living processes it found; 0 means that none is left. The
 * number of passes is bounded: call it again until it returns 0. It does not wait for the processes
 * to end and reaps none. Safe in a forked child.
 *
 * Process groups of other sessions are signalled as a whole, which is one step that no fork can
 * escape. Groups of the caller's own session may contain unrelated processes, so that their
 * processes are signalled one by one.
 */
size_t tree_kill(pid_t root, const pid_t *spared, size_t spared_count);

/*
 * Sends a signal to the children of the calling process, except the spared ones. The caller has one
 * thread. This is much faster than a scan. So it also catches programs that fork and end all the
 * time: they become children of their subreaper again and again. Call it in turns with waitpid,
 * because zombies get in the way. Returns how many children it found; also 0 if the kernel does not
 * list them.
 */
size_t tree_signal_children(int signal, const pid_t *spared, size_t spared_count);

/* The name of a process for a message, in printable ASCII; "" if it has ended. */
void tree_read_name(pid_t pid, char *name, size_t size);

#endif
