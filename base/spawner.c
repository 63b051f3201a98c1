/* SPDX-License-Identifier: MIT */
#include "base/spawner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/guard_request.h"
#include "base/launch.h"
#include "base/process.h"
#include "base/tree.h"

enum {
	END_DEADLINE_MS = 2000, // for a spawner to end, at the end of the broker
	SWEEP_TRIES_MAX = 300,  // some 15 s
	LAST_SWEEP_MS = 3000,   // to kill, at the end, the processes that the spawner left
	LAST_PAUSE_MS = 5,
	STOPS_MAX = 50, // a process that stops a spawner so often attacks it: the spawner is
	                // killed, and its processes
};
/* The guards of a dead spawner end their trees themselves; after this time we do it. */
static const double sweep_delay_s = 0.3;
static const double sweep_pause_s = 0.05;

/* ---- one spawner process ---- */

static void nest_watch(struct nest *nest)
{
	if (nest->socket >= 0 && nest->spawner->loop) {
		ev_io_start(nest->spawner->loop, &nest->io);
	}
}

/* Sends the present will. If that fails, the processes that it is about end by themselves. */
static void send_will(const struct spawner *spawner)
{
	const struct nest *nest = &spawner->nests[NEST_BACKGROUND];
	struct guard_request request;
	memset(&request, 0, sizeof(request)); // also clears the padding
	request.is_will = true;
	request.is_revoked = spawner->will_fd < 0;
	int fds[GUARD_FDS_MAX];
	for (int i = 0; i < GUARD_FDS_MAX; i++) {
		fds[i] = -1;
	}
	/* A request has at least two. */
	fds[GUARD_FD_CONTROL] = fds[GUARD_FD_LAUNCH] =
		spawner->will_fd >= 0 ? spawner->will_fd : nest->socket;
	fds[GUARD_FD_ERR] = spawner->will_err;
	if (nest->socket >= 0) {
		(void)!guard_request_send(nest->socket, &request, fds);
	}
}

static bool nest_start(struct nest *nest, struct error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making a socket for the process starter");
	}
	pid_t pid = guard_fork_spawner(sockets, nest->kind);
	int errnum = errno;
	fd_close(&sockets[1]);
	if (pid < 0) {
		fd_close(&sockets[0]);
		return error_set_errno(err, errnum, "forking the process starter");
	}
	nest->pid = pid;
	nest->stops = 0;
	nest->socket = sockets[0];
	ev_io_set(&nest->io, nest->socket, EV_READ);
	nest_watch(nest);
	if (nest->kind == NEST_BACKGROUND && nest->spawner->will_fd >= 0) {
		send_will(nest->spawner);
	}
	return true;
}

bool spawner_leave_will(struct spawner *spawner, const struct process_spec *spec, struct error *err)
{
	int fd = launch_pack(spec, err);
	int err_fd = fd >= 0 && spec->err >= 0 ? fcntl(spec->err, F_DUPFD_CLOEXEC, 3) : -1;
	if (fd < 0) {
		return false;
	}
	fd_close(&spawner->will_fd);
	fd_close(&spawner->will_err);
	spawner->will_fd = fd;
	spawner->will_err = err_fd;
	send_will(spawner);
	return true;
}

static void revoke_will(struct spawner *spawner)
{
	if (spawner->will_fd >= 0) {
		fd_close(&spawner->will_fd);
		fd_close(&spawner->will_err);
		send_will(spawner);
	}
}

void spawner_wake(const struct spawner *spawner, enum nest_kind kind)
{
	if (spawner->nests[kind].pid != 0) {
		kill(spawner->nests[kind].pid, SIGCONT);
	}
}

/*
 * The started processes belong to the same user, and may have stopped the spawner and its guards.
 */
static void nest_continue(struct nest *nest)
{
	siginfo_t info = {0};
	if (nest->pid == 0 || waitid(P_PID, (id_t)nest->pid, &info, WSTOPPED | WNOHANG) != 0 ||
		info.si_pid == 0) {
		return;
	}
	nest->stops++;
	kill(nest->pid, nest->stops > STOPS_MAX ? SIGKILL : SIGCONT);
}

static void on_stopped(struct ev_loop *loop, ev_signal *watcher, int events)
{
	struct spawner *spawner = CONTAINER_OF(watcher, struct spawner, stopped);
	for (int i = 0; i < NEST_COUNT; i++) {
		nest_continue(&spawner->nests[i]);
	}
}

static void nest_forget(struct nest *nest)
{
	if (nest->spawner->loop) {
		ev_io_stop(nest->spawner->loop, &nest->io);
	}
	fd_close(&nest->socket);
	nest->pid = 0;
}

static void start_sweep(struct spawner *spawner)
{
	ev_timer_stop(spawner->loop, &spawner->sweep);
	ev_timer_set(&spawner->sweep, sweep_delay_s, 0.);
	ev_timer_start(spawner->loop, &spawner->sweep);
	spawner->sweep_tries = 0;
}

/*
 * The spawner was killed. Its guards and their processes are our children now, and must end. The
 * sweep also reaps the spawner. The processes of a remote spawner have ended with it.
 */
static void nest_died(struct nest *nest)
{
	struct spawner *spawner = nest->spawner;
	nest_forget(nest);
	process_mark_orphans(spawner, nest->kind);
	if (spawner->is_remote) {
		process_orphans_swept(spawner);
	} else {
		start_sweep(spawner);
	}
}

static void on_nest_message(struct ev_loop *loop, ev_io *io, int events)
{
	struct nest *nest = CONTAINER_OF(io, struct nest, io);
	struct guard_loss loss;
	ssize_t size = recv(nest->socket, &loss, sizeof(loss), MSG_DONTWAIT);
	if (size == (ssize_t)sizeof(loss)) {
		process_guard_lost(nest->spawner, loss.id);
	} else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
		nest_died(nest);
	}
}

/* ---- strays: processes of a dead spawner ---- */

/*
 * Finds our children that are not strays: the spawners, and older children that the program before
 * us left when it executed us.
 */
static size_t find_spared(const struct spawner *spawner, const struct tree *tree, pid_t *spared)
{
	size_t count = 0;
	for (size_t i = 0; i < NEST_COUNT; i++) {
		spared[count++] = spawner->nests[i].pid;
	}
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->items[i];
		if (process->parent == getpid() && process->start_ticks < spawner->start_ticks) {
			spared[count++] = process->pid;
		}
	}
	return count;
}

/* Reaps the strays that have ended. */
static void reap_strays(const struct tree *tree, const pid_t *spared, size_t spared_count)
{
	for (size_t i = 0; i < tree->count; i++) {
		bool is_stray = tree->items[i].parent == getpid();
		for (size_t k = 0; k < spared_count; k++) {
			is_stray = is_stray && tree->items[i].pid != spared[k];
		}
		if (is_stray) {
			waitpid(tree->items[i].pid, NULL, WNOHANG);
		}
	}
}

/* Returns how many living strays it found. */
static size_t sweep_once(const struct spawner *spawner)
{
	struct tree tree = {0};
	if (!tree_scan(&tree, NULL)) {
		return 0;
	}
	pid_t *spared = mem_alloc((tree.count + NEST_COUNT) * sizeof(*spared));
	size_t spared_count = find_spared(spawner, &tree, spared);
	size_t met = tree_kill(getpid(), spared, spared_count);
	reap_strays(&tree, spared, spared_count);
	free(spared);
	tree_finish(&tree);
	return met;
}

static void on_sweep(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct spawner *spawner = CONTAINER_OF(timer, struct spawner, sweep);
	if (sweep_once(spawner) == 0 || ++spawner->sweep_tries >= SWEEP_TRIES_MAX) {
		process_orphans_swept(spawner);
		return;
	}
	ev_timer_set(timer, sweep_pause_s, 0.);
	ev_timer_start(loop, timer);
}

/* ---- the two spawners ---- */

static unsigned long long boot_ticks_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	unsigned long long per_second = (unsigned long long)sysconf(_SC_CLK_TCK);
	return (unsigned long long)now.tv_sec * per_second +
	       (unsigned long long)now.tv_nsec * per_second / 1000000000ULL;
}

static struct spawner *create(void)
{
	struct spawner *spawner = mem_alloc_zero(sizeof(*spawner));
	spawner->will_fd = spawner->will_err = -1;
	list_init(&spawner->processes);
	ev_init(&spawner->sweep, on_sweep);
	ev_signal_init(&spawner->stopped, on_stopped, SIGCHLD);
	for (int i = 0; i < NEST_COUNT; i++) {
		struct nest *nest = &spawner->nests[i];
		*nest = (struct nest){.spawner = spawner, .kind = (enum nest_kind)i, .socket = -1};
		ev_init(&nest->io, on_nest_message);
	}
	return spawner;
}

struct spawner *spawner_create_remote(struct ev_loop *loop, int socket)
{
	struct spawner *spawner = create();
	struct nest *nest = &spawner->nests[NEST_BACKGROUND];
	spawner->is_remote = true;
	spawner->loop = loop;
	nest->socket = socket;
	ev_io_set(&nest->io, nest->socket, EV_READ);
	nest_watch(nest);
	return spawner;
}

struct spawner *spawner_create(struct error *err)
{
	struct spawner *spawner = create();
	spawner->start_ticks = boot_ticks_now();
	/* Without this, processes of a dead spawner would become children of init. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "becoming the parent of orphans");
		free(spawner);
		return NULL;
	}
	if (!nest_start(&spawner->nests[NEST_BACKGROUND], err)) {
		free(spawner);
		return NULL;
	}
	return spawner;
}

void spawner_attach(struct spawner *spawner, struct ev_loop *loop)
{
	assert(!spawner->loop);
	spawner->loop = loop;
	ev_signal_start(loop, &spawner->stopped);
	ev_unref(loop); // it alone does not keep the loop running
	for (int i = 0; i < NEST_COUNT; i++) {
		nest_watch(&spawner->nests[i]);
	}
}

/*
 * Ends a spawner. Its guards were told to end when their processes were destroyed; it waits for
 * them. A spawner that does not end in time is killed: its remaining processes become ours.
 */
static bool nest_end(struct nest *nest)
{
	int status = 0;
	bool has_ended = nest->pid == 0;
	if (nest->socket >= 0 && nest->spawner->loop) {
		ev_io_stop(nest->spawner->loop, &nest->io);
	}
	fd_close(&nest->socket);
	for (int ms = 0; ms < END_DEADLINE_MS && !has_ended; ms++) {
		kill(nest->pid, SIGCONT);
		has_ended = waitpid(nest->pid, &status, WNOHANG) != 0;
		if (!has_ended) {
			poll(NULL, 0, 1);
		}
	}
	if (!has_ended) {
		kill(nest->pid, SIGKILL);
		waitpid(nest->pid, &status, 0);
	}
	nest_forget(nest);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns false, and names them in the error, if there are any. */
static bool find_survivors(const struct spawner *spawner, struct error *err)
{
	struct tree tree = {0};
	char names[200] = "";
	size_t len = 0;
	size_t left = 0;
	if (!tree_scan(&tree, NULL)) {
		return true;
	}
	pid_t *spared = mem_alloc((tree.count + NEST_COUNT) * sizeof(*spared));
	size_t spared_count = find_spared(spawner, &tree, spared);
	left = tree_mark_below(&tree, getpid(), spared, spared_count);
	for (size_t i = 0; i < tree.count; i++) {
		char name[32];
		if (tree.items[i].is_below && len + 64 < sizeof(names)) {
			tree_read_name(tree.items[i].pid, name, sizeof(name));
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%d (%s)",
				len > 0 ? ", " : "", (int)tree.items[i].pid, name);
		}
	}
	free(spared);
	tree_finish(&tree);
	return left == 0 || error_set(err, ERROR_SYSTEM,
				    "%zu process%s of the agent could not be ended: %s%s; end them "
				    "with kill(1)",
				    left, left == 1 ? "" : "es", names,
				    len + 64 < sizeof(names) ? "" : " and others");
}

bool spawner_end(struct spawner *spawner, struct error *err)
{
	assert(list_is_empty(&spawner->processes));
	bool has_strays = spawner->loop && ev_is_active(&spawner->sweep);
	revoke_will(spawner);
	for (int i = 0; i < NEST_COUNT; i++) {
		has_strays = !nest_end(&spawner->nests[i]) || has_strays;
	}
	if (spawner->loop && !spawner->is_remote) {
		ev_timer_stop(spawner->loop, &spawner->sweep);
		ev_ref(spawner->loop);
		ev_signal_stop(spawner->loop, &spawner->stopped);
	}
	spawner->loop = NULL;
	long long until_ms = clock_now_ms() + LAST_SWEEP_MS;
	while (has_strays && sweep_once(spawner) > 0 && clock_now_ms() < until_ms) {
		poll(NULL, 0, LAST_PAUSE_MS);
	}
	return !has_strays || find_survivors(spawner, err);
}

void spawner_destroy(struct spawner *spawner)
{
	struct error ignored;
	if (spawner) {
		(void)!spawner_end(spawner, &ignored);
		free(spawner);
	}
}

bool spawner_send(struct spawner *spawner, const struct guard_request *request,
	const int fds[GUARD_FDS_MAX], struct error *err)
{
	struct nest *nest =
		&spawner->nests[request->foreground ? NEST_FOREGROUND : NEST_BACKGROUND];
	int errnum = EPIPE;
	if (nest->socket >= 0) {
		errnum = guard_request_send(nest->socket, request, fds);
	}
	if (errnum == EPIPE || errnum == ECONNRESET) {
		if (nest->socket >= 0) {
			nest_died(nest);
		}
		if (spawner->is_remote) {
			return error_set(err, ERROR_UNAVAILABLE, "the process starter has ended");
		}
		if (!nest_start(nest, err)) {
			return false;
		}
		errnum = guard_request_send(nest->socket, request, fds);
	}
	return errnum == 0 || error_set_errno(err, errnum, "asking for a process");
}
