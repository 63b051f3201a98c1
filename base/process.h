/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process_limit.h"

/*
 * Child processes, each owned by a guard.
 *
 *     broker ── spawner ── guard ── process ── its descendants
 *                       └─ guard ── process …
 *
 * The spawner is forked once, early, while the broker is small and has one
 * thread. For each process it forks a guard, which is a subreaper and the
 * process's parent: whatever the process leaves behind (daemons that forked
 * twice, called setsid, dropped their environment) stays below the guard. The
 * broker holds one end of a socket to each guard; when that end closes - the
 * broker has ended, by whatever signal - the guard stops and kills everything
 * below it and ends.
 *
 * Second line of defence: spawner and broker are subreapers too. What a killed
 * guard leaves falls to the spawner, which kills it; what a killed spawner
 * leaves (its guards get SIGTERM by PR_SET_PDEATHSIG and kill their trees)
 * falls to the broker, which kills it. The process itself has
 * PR_SET_PDEATHSIG = SIGKILL, so that it dies even when all three are killed at
 * once; only then can what it started escape. Beyond reach is also what we may
 * not signal: a descendant that became another user.
 *
 * Processes of the foreground have a spawner of their own, forked when the
 * first is asked for, which stays in the broker's session: a terminal can only
 * be inherited.
 */
struct spawner;
struct process;

/*
 * Forks the spawner. Call it before anything is allocated, any thread runs and
 * any library is loaded. The spawner leaves the caller's session (setsid), so
 * that a terminal's Ctrl-C reaches only the broker.
 */
struct spawner *spawner_create(struct error *err) ATTR_NODISCARD;

/*
 * One that somebody else has made, at the other end of `socket` (SOCK_SEQPACKET), which this takes
 * over: spawner_run, in namespaces of its own, whose end is the end of all that it has started.
 * It is attached. Its processes have no pid here (process_pid and on_started say 0); none is of
 * the foreground, and their stdin, stdout and stderr are pipes or sockets: a file, a folder or a
 * terminal would lead out of where they are. Destroy it with spawner_destroy, which waits for
 * nothing.
 */
struct spawner *spawner_create_remote(struct ev_loop *loop, int socket);

/*
 * Once, before the first process_start. From here on the death of a spawner is
 * noticed: what it left is killed, and the next start forks it anew. Every child
 * of this program that is younger than the spawner and not one of its own is
 * taken for such a remnant then.
 */
void spawner_attach(struct spawner *spawner, struct ev_loop *loop);

/*
 * Every process must be destroyed before. Waits for the end of the spawner, which waits for that of
 * all trees, for two seconds; then it is killed, and what is left is killed from here, for
 * three at most. Once. Fails where somebody is still there: the error names them. Not from a
 * handler.
 */
bool spawner_end(struct spawner *spawner, struct error *err) ATTR_NODISCARD;

/* Frees it, ended or not. NULL is fine. */
void spawner_destroy(struct spawner *spawner);

struct process_spec {
	const char *const *argv; // NULL-terminated; argv[0] is looked up in env's PATH
	const char *const *env;  // NULL-terminated "NAME=value"; complete, nothing is inherited
	const char *cwd;         // absolute
	size_t cwd_root;         // of its bytes: what follows them goes through no link; 0: it may
	int in;                  // the process's stdin; borrowed; -1 is /dev/null
	int out;                 // its stdout; borrowed; -1 is /dev/null
	int err;                 // its stderr; borrowed; -1 is /dev/null
	bool foreground;         // stays in the broker's session and group (a user's terminal)
	bool is_grouped; // runs programs of others: a cgroup of its own, where one can be had
	const struct process_limits *limits; // borrowed until it returns; NULL: none
	/* The cgroup in which it and all that it starts is (limit_group.fd); with limits alone. It
	 * is there from its first instruction, or does not start. */
	bool has_limit_group;
	int limit_group; // borrowed
};

/* How a process ended: by exit(code) when signal is 0, by that signal otherwise. */
struct process_status {
	int code;
	int signal;
	enum limit_kind limit;      // that it had reached; of one with limits
	struct process_usage usage; // of one with limits
};

/*
 * Raised on the loop thread, never from inside process_start. Order: started
 * or failed first. After started, exited once. After exited, emptied once: no
 * descendant is left (at once where there is none). After failed nothing.
 * When the guard itself was killed, exited comes with SIGKILL, then emptied;
 * or failed, when it had not yet told of the start. A handler may destroy the
 * process.
 */
struct process_listener {
	void (*on_started)(void *data, pid_t pid);
	/* AGENT_NOT_FOUND, AGENT_NOT_EXECUTABLE, … are for the caller to say: code is
	 * ERROR_NOT_FOUND (no such command; the PATH searched is in the text),
	 * ERROR_DENIED (found, may not be executed) or ERROR_SYSTEM (the directory,
	 * descriptors, memory). */
	void (*on_failed)(void *data, const struct error *err);
	void (*on_exited)(void *data, struct process_status status);
	void (*on_emptied)(void *data);
	/*
	 * Asked for; both may be NULL. Not after emptied, nor once its guard was killed: the end
	 * says that there is nothing left to stop. With an error everything goes on. `by_signals`
	 * is why no cgroup could be had; NULL where one was.
	 */
	void (*on_frozen)(void *data, const char *by_signals, const struct error *err);
	void (*on_thawed)(void *data);
	/* It has reached a limit without an end: LIMIT_PROCESSES. Once, before exited; may be
	 * NULL. */
	void (*on_limit)(void *data, enum limit_kind limit);
};

/*
 * The descriptors are duplicated; close them as soon as this returns, or their
 * readers wait for you. A failure here is of this program alone. Does not block
 * but where hundreds of starts are queued: for a second at most.
 */
struct process *process_start(struct spawner *spawner, const struct process_spec *spec,
	const struct process_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Signals the process's own group, in the foreground it alone; nothing where it has ended. */
void process_signal(struct process *process, int signal);

/*
 * Kills the whole tree below the guard: stopped first, so that nothing forks
 * away, then SIGKILL until nothing is left. Idempotent; emptied tells the end.
 */
void process_kill_tree(struct process *process);

/*
 * Stops the whole tree below the guard, what is forked meanwhile included, and lets it go on again.
 * The answer is on_frozen, within FREEZE_MAX_MS (base/freezer.h), or on_thawed. A signal that is
 * caught is seen once it goes on, as is any but SIGKILL where it was stopped by signals. False:
 * nothing is left, and no answer follows.
 */
bool process_freeze(struct process *process);
bool process_thaw(struct process *process);

/* Ends the tree as process_kill_tree does, without further events. NULL is fine. */
void process_destroy(struct process *process);

pid_t process_pid(const struct process *process); // 0 until started and after exited

/* "exited with status 3", "was killed by SIGSEGV"; returns text. */
const char *process_status_text(struct process_status status, char *text, size_t size);

#endif
