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
	int threads;                    // a zombie that has others than the first lives
	char state;                     // of the first thread
	bool is_below;                  // set by tree_mark_below
};

/* All processes of this machine that /proc shows, by ascending pid. Zero-initialise. */
struct tree {
	struct tree_process *items; // owned
	size_t count;
	size_t capacity;
};

void tree_finish(struct tree *tree);

/* Replaces what the tree holds. Blocks for some 10 microseconds a process. */
bool tree_scan(struct tree *tree, struct error *err) ATTR_NODISCARD;

/* Appends one; by ascending pid, where tree_find is to find it. */
void tree_add(struct tree *tree, const struct tree_process *process);

/* NULL where there is no such process. */
struct tree_process *tree_find(const struct tree *tree, pid_t pid);

/*
 * Marks the living descendants of root, which is not one of them; the
 * `spared` children of root and what is below those are left out. Returns how
 * many were marked.
 */
size_t tree_mark_below(struct tree *tree, pid_t root, const pid_t *spared, size_t spared_count);

/*
 * One attempt at killing everything below root: stop it until a scan finds
 * nothing new, then SIGKILL. Returns how many living processes it met, so 0
 * says that nothing is left. Bounded in passes: call it again until 0. It does
 * not wait for the ends and reaps nothing. Safe in a forked child.
 *
 * Process groups of other sessions are signalled as a whole, for that is one
 * step that no fork can slip through; those of the caller's own session may
 * hold strangers, and their processes are signalled one by one.
 */
size_t tree_kill(pid_t root, const pid_t *spared, size_t spared_count);

/*
 * A signal to the children of the calling process, which has one thread, but
 * for the spared. So much faster than a scan that it catches what forks and
 * ends all the time: such a runner is a child of its subreaper again and
 * again. Call it in turns with waitpid, for zombies are in the way. Returns
 * how many children it met, 0 also where the kernel does not list them.
 */
size_t tree_signal_children(int signal, const pid_t *spared, size_t spared_count);

/* The name of a process for a message, in printable ASCII; "" where it has ended. */
void tree_read_name(pid_t pid, char *name, size_t size);

#endif
