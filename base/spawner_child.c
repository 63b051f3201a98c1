/* SPDX-License-Identifier: MIT */
#include "base/spawner_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/freeze_group.h"
#include "base/guard.h"
#include "base/killer.h"
#include "base/launch.h"
#include "base/libc.h"
#include "base/own_environment.h"

enum {
	/*
	 * After the broker has gone, guards that are still there after this time are stopped or
	 * stuck. Their trees are killed from here.
	 */
	GUARDS_DEADLINE_MS = 1000,
	/* Processes that could not be killed by then (for example another user's) are given up. */
	ABANDON_AFTER_MS = 15000,
	ARGUMENTS_MAX = 65536,
	/*
	 * A process that stops a guard so often attacks it: the guard is killed, and its tree from
	 * here.
	 */
	STOPS_MAX = 50,
	DESCRIPTORS_MAX = 4096, // checked on systems without close_range
};

struct guard_entry {
	pid_t pid;
	bool is_lost; // it was killed, and the broker was not told yet
	int stops;
	uint64_t id;
};

struct spawner_child {
	int socket; // -1 once the broker has closed it
	int signal_fd;
	struct guard_entry *guards; // owned
	size_t guard_count;
	size_t guard_capacity;
	bool has_more;            // more zombies are left than are reaped at a time
	struct killer killer;     // on while strays may be left
	long long broker_gone_ms; // time; 0: the broker is still there
	int will_fd;              // from launch_pack: what to start at the end; -1: nothing
	int will_err;             // its stderr; -1: /dev/null
};

static void add_guard(struct spawner_child *child, pid_t pid, uint64_t id)
{
	if (child->guard_count == child->guard_capacity) {
		child->guard_capacity = child->guard_capacity ? child->guard_capacity * 2 : 16;
		child->guards =
			mem_realloc(child->guards, child->guard_capacity * sizeof(*child->guards));
	}
	child->guards[child->guard_count++] = (struct guard_entry){.pid = pid, .id = id};
}

static void remove_guard(struct spawner_child *child, size_t index)
{
	child->guards[index] = child->guards[--child->guard_count];
}

/* ---- requests ---- */

/* Returns the size of the message, 0 at the end, -1 for "try again". */
static ssize_t receive(struct spawner_child *child, struct guard_request *request,
	int fds[GUARD_FDS_MAX], int *count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * GUARD_FDS_MAX)];
	} control;
	struct iovec part = {.iov_base = request, .iov_len = sizeof(*request)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t size = recvmsg(child->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*count = 0;
	if (size < 0) {
		return errno == EAGAIN || errno == EINTR ? -1 : 0;
	}
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head;
		head = CMSG_NXTHDR(&message, head)) {
		if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
			size_t bytes = head->cmsg_len - CMSG_LEN(0);
			memcpy(fds, CMSG_DATA(head), bytes);
			*count = (int)(bytes / sizeof(int));
		}
	}
	return size;
}

/* Puts the optional file descriptors in their places; false if some did not arrive. */
static bool sort_fds(const struct guard_request *request, const int *received, int count,
	int out_fds[GUARD_FDS_MAX])
{
	int used = GUARD_FDS_MIN;
	for (int i = 0; i < GUARD_FDS_MAX - GUARD_FDS_MIN; i++) {
		bool is_here = request->has_fds[i] && used < count;
		out_fds[GUARD_FDS_MIN + i] = is_here ? received[used] : -1;
		used += request->has_fds[i] ? 1 : 0;
	}
	out_fds[GUARD_FD_CONTROL] = count > 0 ? received[GUARD_FD_CONTROL] : -1;
	out_fds[GUARD_FD_LAUNCH] = count > 1 ? received[GUARD_FD_LAUNCH] : -1;
	return used == count;
}

static void start_guard(struct spawner_child *child, const struct guard_request *request,
	const int fds[GUARD_FDS_MAX])
{
	pid_t own_pid = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		fd_close(&child->socket);
		fd_close(&child->signal_fd);
		guard_run(request, fds, own_pid);
	}
	if (pid < 0) {
		int errnum = errno;
		struct error err;
		error_set_errno(&err, errnum, "starting a process");
		guard_send_failure(fds[GUARD_FD_CONTROL], &err);
		return;
	}
	add_guard(child, pid, request->id);
}

static void take_will(
	struct spawner_child *child, const struct guard_request *request, int *received, int count)
{
	fd_close(&child->will_fd);
	fd_close(&child->will_err);
	if (!request->is_revoked && count > GUARD_FD_LAUNCH) {
		child->will_fd = received[GUARD_FD_LAUNCH];
		received[GUARD_FD_LAUNCH] = -1;
	}
	if (!request->is_revoked && count > GUARD_FDS_MIN) {
		child->will_err = received[GUARD_FDS_MIN];
		received[GUARD_FDS_MIN] = -1;
	}
}

static void read_request(struct spawner_child *child)
{
	struct guard_request request;
	int received[GUARD_FDS_MAX];
	int fds[GUARD_FDS_MAX];
	int count;
	ssize_t size = receive(child, &request, received, &count);
	if (size == 0) {
		fd_close(&child->socket);
		child->broker_gone_ms = clock_now_ms();
	} else if (size == (ssize_t)sizeof(request)) {
		if (request.is_will) {
			take_will(child, &request, received, count);
		} else if (sort_fds(&request, received, count, fds)) {
			start_guard(child, &request, fds);
		} else {
			struct error err;
			error_set(&err, ERROR_SYSTEM, "starting a process: out of descriptors");
			guard_send_failure(fds[GUARD_FD_CONTROL], &err);
		}
	}
	for (int i = 0; i < count; i++) {
		fd_close(&received[i]);
	}
}

/* ---- ends ---- */

/* If a guard did not end by itself, with all its work done, its tree is ours now. */
static void guard_ended(struct spawner_child *child, pid_t pid, int status)
{
	for (size_t i = 0; i < child->guard_count; i++) {
		if (child->guards[i].pid != pid || child->guards[i].is_lost) {
			continue;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			remove_guard(child, i);
		} else {
			child->guards[i].is_lost = true;
			killer_start(&child->killer);
		}
		return;
	}
}

/* Guarded processes may send their guard any signal. Other children that are stopped stay so. */
static void guard_stopped(struct spawner_child *child, pid_t pid)
{
	for (size_t i = 0; i < child->guard_count; i++) {
		struct guard_entry *guard = &child->guards[i];
		if (guard->pid == pid && !guard->is_lost) {
			guard->stops++;
			kill(pid, guard->stops > STOPS_MAX ? SIGKILL : SIGCONT);
		}
	}
}

/* Returns false when there are no children left at all. */
static bool reap(void *data)
{
	struct spawner_child *child = data;
	struct signalfd_siginfo info;
	while (read(child->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
	}
	int status;
	pid_t pid = 1;
	for (int i = 0; i < REAP_MAX && (pid > 0 || (pid < 0 && errno == EINTR)); i++) {
		pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
		if (pid > 0 && WIFSTOPPED(status)) {
			guard_stopped(child, pid);
		} else if (pid > 0) {
			guard_ended(child, pid, status);
		}
	}
	child->has_more = pid > 0;
	return !(pid < 0 && errno == ECHILD);
}

/* Tells the broker about guards whose trees are gone. */
static void tell_losses(struct spawner_child *child)
{
	for (size_t i = child->guard_count; i-- > 0;) {
		if (!child->guards[i].is_lost) {
			continue;
		}
		freeze_group_remove_of(child->guards[i].pid);
		struct guard_loss loss = {.id = child->guards[i].id};
		while (child->socket >= 0 &&
			send(child->socket, &loss, sizeof(loss), MSG_NOSIGNAL) < 0 &&
			errno == EINTR) {
		}
		remove_guard(child, i);
	}
}

/*
 * Kills what dead guards left: children that are not guards, and everything below them. Returns how
 * long to sleep until the next attempt; -1: no limit.
 */
static int kill_strays(struct spawner_child *child, bool with_guards)
{
	size_t count = with_guards ? 0 : child->guard_count;
	for (size_t i = 0; i < child->guard_count && child->killer.is_on; i++) {
		if (with_guards || child->guards[i].is_lost) {
			freeze_group_kill_of(child->guards[i].pid);
		}
	}
	pid_t *guards = mem_alloc((count + 1) * sizeof(*guards));
	for (size_t i = 0; i < count; i++) {
		guards[i] = child->guards[i].is_lost ? 0 : child->guards[i].pid;
	}
	const struct killer_ground ground = {
		.spared = guards, .spared_count = count, .reap = reap, .data = child};
	int sleep_ms = killer_step(&child->killer, &ground);
	free(guards);
	return sleep_ms;
}

/* Returns how long to sleep until the next step; -1: no limit. */
static int sweep_step(struct spawner_child *child)
{
	long long gone_for_ms =
		child->broker_gone_ms != 0 ? clock_now_ms() - child->broker_gone_ms : 0;
	if (gone_for_ms >= ABANDON_AFTER_MS) {
		tell_losses(child);
		_exit(1);
	}
	bool is_late = gone_for_ms >= GUARDS_DEADLINE_MS;
	if (is_late && !child->killer.is_on) {
		killer_start(&child->killer);
	}
	int sleep_ms = kill_strays(child, is_late);
	if (child->killer.is_on && child->killer.found_nothing) {
		tell_losses(child);
		killer_stop(&child->killer);
	}
	if (sleep_ms < 0 && child->broker_gone_ms != 0) {
		return GUARDS_DEADLINE_MS / 10;
	}
	return sleep_ms;
}

/* The broker was killed: when it ends by itself, it revokes its will. Nobody watches the program.
 */
static void follow_will(struct spawner_child *child)
{
	struct launch launch = {.fds = {-1, -1, child->will_err}, .group_fd = -1};
	struct error ignored;
	if (child->will_fd < 0 || !launch_unpack(&launch, child->will_fd, &ignored)) {
		return;
	}
	if (fork() == 0) {
		int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC); // for an error
		fd_close(&child->will_fd);
		launch_run(&launch, null_fd);
	}
	launch_finish(&launch);
}

static void spawner_loop(struct spawner_child *child) ATTR_NORETURN;
static void spawner_loop(struct spawner_child *child)
{
	while (reap(child) || child->socket >= 0) {
		struct pollfd polls[] = {
			{.fd = child->signal_fd, .events = POLLIN},
			{.fd = child->socket, .events = POLLIN},
		};
		int sleep_ms = sweep_step(child);
		int count = poll(polls, ARRAY_LENGTH(polls), child->has_more ? 0 : sleep_ms);
		if (count > 0 && polls[1].revents) {
			read_request(child);
		}
	}
	tell_losses(child);
	follow_will(child);
	_exit(0);
}

/* ---- becoming a spawner ---- */

/*
 * Closes the file descriptors in this range, also if the system has no close_range or forbids it.
 */
static void close_between(int first, int last)
{
	if (first > last || libc_close_range((unsigned)first, (unsigned)last, 0) == 0) {
		return;
	}
	for (int fd = first; fd <= last && fd < DESCRIPTORS_MAX; fd++) {
		close(fd);
	}
}

/*
 * Closes and resets everything inherited from the broker. Stdin, stdout and stderr matter most,
 * because their readers wait until the last holder has closed them.
 */
static void let_go_of_broker(struct spawner_child *child)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	for (int fd = 0; fd < 3 && null_fd >= 0; fd++) {
		dup2(null_fd, fd);
	}
	if (child->socket != 3 && dup3(child->socket, 3, O_CLOEXEC) == 3) {
		child->socket = 3;
	}
	close_between(3, child->socket - 1);
	close_between(child->socket + 1, INT_MAX);
	if (chdir("/") != 0) {
		return; // the only effect: the folder in which we were started stays busy
	}
}

/* How many bytes the arguments at `area` (argv[0]) take; at least argv[0] itself. */
static size_t arguments_size(const char *area)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t len = strlen(area);
	char *text = mem_alloc(ARGUMENTS_MAX);
	ssize_t count = fd < 0 ? -1 : read(fd, text, ARGUMENTS_MAX);
	if (count > (ssize_t)len && memcmp(text, area, (size_t)count) == 0) {
		len = (size_t)count;
	}
	free(text);
	return len;
}

/*
 * Renames this process, so that neither "pkill acp-broker" nor "pkill -f" with a word of our
 * arguments (for example the agent's name) hits the processes that clean up. The memory is this
 * process's own copy, and no code reads arguments here.
 */
static void rename_self(void)
{
	prctl(PR_SET_NAME, GUARD_NAME);
	char *area = program_invocation_name;
	size_t len = arguments_size(area);
	size_t name_len = sizeof(GUARD_NAME) - 1;
	memset(area, 0, len);
	memcpy(area, GUARD_NAME, len < name_len ? len : name_len);
}

void spawner_run(int socket, enum nest_kind kind)
{
	struct spawner_child child = {.socket = socket, .will_fd = -1, .will_err = -1};
	if (kind == NEST_BACKGROUND) {
		setsid();
	}
	launch_reset_signals(); // above all an ignored SIGCHLD, with which the kernel would reap
	                        // before us
	let_go_of_broker(&child);
	rename_self();
	own_environment_forget_secrets(); // each process gets its whole environment in its request
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	child.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child.signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
		_exit(1); // the broker notices, and starts another one when needed
	}
	spawner_loop(&child);
}
