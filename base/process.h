/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process_spec.h"

/*
 * Child processes, each owned by a guard.
 *
 *     broker ── spawner ── guard ── process ── its descendants
 *                       └─ guard ── process …
 *
 * The spawner is forked once, early, while the broker is small and has one thread. For each process
 * it forks a guard, which is a subreaper and the process's parent. So everything that the process
 * leaves behind stays below the guard: daemons that forked twice, called setsid, or dropped their
 * environment. The broker holds one end of a socket to each guard. When that end closes because the
 * broker has ended, for whatever reason, the guard stops and kills everything below it and ends.
 *
 * Second line of defence: spawner and broker are subreapers too. Processes of a killed guard become
 * children of the spawner, which kills them. Processes of a killed spawner become children of the
 * broker, which kills them; the spawner's guards get SIGTERM by PR_SET_PDEATHSIG and kill their
 * trees. The process itself has PR_SET_PDEATHSIG = SIGKILL, so that it dies even if all three are
 * killed at once; only then can its descendants escape. A descendant that became another user also
 * escapes, because we may not signal it.
 *
 * Foreground processes have a spawner of their own, which is forked for the first of them. It stays
 * in the broker's session, because a process can only inherit a controlling terminal.
 */
struct spawner;
struct process;

/*
 * Forks the spawner. Call it before the program allocates memory, starts a thread or loads a
 * library. The spawner leaves the caller's session (setsid), so that a terminal's Ctrl-C reaches
 * only the broker.
 */
struct spawner *spawner_create(struct error *err) ATTR_NODISCARD;

/*
 * Uses a spawner that somebody else created, at the other end of `socket` (SOCK_SEQPACKET); takes
 * the socket over. That spawner runs spawner_run in its own namespaces; when it ends, the kernel
 * ends all processes that it started. The result is already attached. Its processes have no pid
 * here (process_pid and on_started say 0). None is a foreground process. Their stdin, stdout and
 * stderr are pipes or sockets: a file, a folder or a terminal would be a way out of the namespaces.
 * Destroy it with spawner_destroy, which does not wait.
 */
struct spawner *spawner_create_remote(struct ev_loop *loop, int socket);

/*
 * Call it once, before the first process_start. From here on the death of a spawner is noticed: its
 * remaining processes are killed, and the next start forks it again. Then every child of this
 * program that is younger than the spawner and not known to us counts as such a remaining process.
 */
void spawner_attach(struct spawner *spawner, struct ev_loop *loop);

/*
 * Has this program started if the calling program ends without spawner_end (it was killed), after
 * everything that it started has ended. Uses argv, env, cwd and err of the spec, which are kept in
 * memory until then; so they must not contain a secret. Another call replaces the program.
 */
bool spawner_leave_will(
	struct spawner *spawner, const struct process_spec *spec, struct error *err) ATTR_NODISCARD;

/*
 * Ends the spawner, once; every process must be destroyed before. Waits at most two seconds for the
 * spawner, which waits for all its trees. After that it kills the spawner, and kills the remaining
 * processes itself, for at most three seconds. Fails if processes are still left; the error names
 * them. Not from a handler.
 */
bool spawner_end(struct spawner *spawner, struct error *err) ATTR_NODISCARD;

/* Frees it, whether it has ended or not. NULL is fine. */
void spawner_destroy(struct spawner *spawner);

/*
 * Called on the loop thread, never from inside process_start. `started` or `failed` comes first.
 * After `started`, `exited` comes once. After `exited`, `emptied` comes once: no descendant is left
 * (at once if there were none). After `failed` nothing follows. If the guard itself was killed,
 * `exited` comes with SIGKILL, then `emptied`; or `failed`, if the guard had not yet reported the
 * start. A handler may destroy the process. All but `on_failed` may be NULL.
 */
struct process_listener {
	void (*on_started)(void *data, pid_t pid);
	/*
	 * The caller chooses AGENT_NOT_FOUND, AGENT_NOT_EXECUTABLE and so on. The error's code is
	 * ERROR_NOT_FOUND (no such command; the text has the PATH that was searched), ERROR_DENIED
	 * (found, but it may not be executed) or ERROR_SYSTEM (the directory, file descriptors,
	 * memory).
	 */
	void (*on_failed)(void *data, const struct error *err);
	void (*on_exited)(void *data, struct process_status status);
	void (*on_emptied)(void *data);
	/*
	 * Answers to process_freeze and process_thaw. Not called after `emptied`,
	 * nor after the guard was killed: the end says that nothing is left to stop. After an error
	 * all processes run. `by_signals` says why no cgroup could be used; NULL if one was.
	 */
	void (*on_frozen)(void *data, const char *by_signals, const struct error *err);
	void (*on_thawed)(void *data);
	/*
	 * The tree has reached a limit and the process has not ended: LIMIT_PROCESSES, once. Called
	 * before `exited`.
	 */
	void (*on_limit)(void *data, enum limit_kind limit);
};

/*
 * The file descriptors are duplicated; close yours as soon as this returns, or their readers see no
 * end of file. A failure here concerns this program alone. Does not block, unless hundreds of
 * starts are queued: then for at most a second.
 */
struct process *process_start(struct spawner *spawner, const struct process_spec *spec,
	const struct process_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Signals the process's own group; a foreground process alone. Does nothing if it has ended. */
void process_signal(struct process *process, int signal);

/*
 * Kills the whole tree below the guard: stops it first, so that nothing escapes by forking, then
 * sends SIGKILL until nothing is left. Idempotent; `emptied` reports the end.
 */
void process_kill_tree(struct process *process);

/*
 * Freezes the whole tree below the guard, including processes forked meanwhile, or lets it
 * continue. The answer is on_frozen, within FREEZE_MAX_MS (base/freezer.h), or on_thawed. The
 * process sees a signal that it catches only after the thaw; if it was stopped by signals, it sees
 * every signal except SIGKILL only then. False: nothing is left, and no answer follows.
 */
bool process_freeze(struct process *process);
bool process_thaw(struct process *process);

/* Ends the tree as process_kill_tree does, without further events. NULL is fine. */
void process_destroy(struct process *process);

pid_t process_pid(const struct process *process); // 0 until started and after exited

/* "exited with status 3", "was killed by SIGSEGV"; returns text. */
const char *process_status_text(struct process_status status, char *text, size_t size);

#endif
