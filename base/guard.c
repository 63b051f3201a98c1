/* SPDX-License-Identifier: MIT */
#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/freezer.h"
#include "base/killer.h"
#include "base/launch.h"
#include "base/limit_group.h"

/*
 * After the broker has gone, the guard gives up after this time. The spawner then deals with
 * processes that cannot be killed, for example of another user.
 */
enum { ABANDON_AFTER_MS = 10000 };

/* Frozen processes that could not be killed by then may be another user's: they continue. */
enum { THAW_AFTER_ATTEMPTS = 4 };

/* Orders that come before the process is started. */
enum { EARLY_MAX = 16 };

/*
 * A process that has not joined its limits by then is killed. Anybody in the cell can stop it
 * before it asks; a busy broker answers within seconds.
 */
enum { JOIN_MAX_MS = 60000 };

struct guard {
	int control_fd; // -1 once the broker has closed it
	int signal_fd;
	int status_fd; // reads the child's launch_failure; -1 after it was handled
	struct launch launch;
	struct launch_failure failure;
	size_t failure_size; // bytes read so far
	pid_t pid;           // the process
	bool is_limited;
	struct process_limits limits;
	bool was_killed;        // by us
	int limit_fd;           // of a limit group that the guard only clears at its end; or -1
	int counts_fd;          // its own cgroup in the limit group, for reading; -1: none
	int counts_above_fd;    // that limit group
	uint64_t refused_forks; // in the limit group, before this process started
	uint64_t full;          // how often memory had run out in the limit group by then
	int refusal_fds[2];     // event files that report refused forks; -1 if closed
	struct guard_order early[EARLY_MAX]; // orders from before the process was started
	size_t early_count;
	struct rusage used; // set after it was reaped
	bool is_reaped;     // its pid may be reused by now
	int wait_status;    // set after it was reaped
	bool has_started;   // GUARD_STARTED was sent
	bool has_exited;    // GUARD_EXITED was sent
	struct killer killer;
	struct freezer freezer;
	bool joins;           // the broker moves the process into its cgroup
	bool has_more;        // more zombies are left than are reaped at a time
	long long abandon_ms; // 0: never
};

void guard_send(int control_fd, const struct guard_report *report)
{
	size_t size = offsetof(struct guard_report, text);
	if (report->text[0]) {
		size += strlen(report->text) + 1;
	}
	while (control_fd >= 0 && send(control_fd, report, size, MSG_NOSIGNAL) < 0 &&
		errno == EINTR) {
	}
}

static void send_error(int control_fd, enum guard_event event, const struct error *err)
{
	struct guard_report report = {.event = event, .error = err->code};
	report.lacks_folder = error_has_reason(err, "DIRECTORY_NOT_FOUND");
	memcpy(report.text, err->text, sizeof(report.text));
	guard_send(control_fd, &report);
}

void guard_send_failure(int control_fd, const struct error *err)
{
	send_error(control_fd, GUARD_FAILED, err);
}

/* Call this when no process is left in the cgroups, or the rest cannot be killed. */
static void leave_groups(struct guard *guard)
{
	freezer_close(&guard->freezer);
	if (guard->limit_fd >= 0) {
		limit_group_clear(guard->limit_fd);
		limit_group_leave(guard->limit_fd);
		fd_close(&guard->limit_fd);
	}
}

static void guard_fail(struct guard *guard, const struct error *err) ATTR_NORETURN;
static void guard_fail(struct guard *guard, const struct error *err)
{
	leave_groups(guard);
	guard_send_failure(guard->control_fd, err);
	_exit(0);
}

/* Ends the guard. Processes that cannot be killed must not stay frozen forever. */
static void guard_end(struct guard *guard, int status) ATTR_NORETURN;
static void guard_end(struct guard *guard, int status)
{
	leave_groups(guard);
	_exit(status);
}

/* SIGKILL also ends stopped processes. */
static void start_killing(struct guard *guard)
{
	freezer_finish(&guard->freezer);
	guard->was_killed = true;
	if (!guard->killer.is_on) {
		killer_start(&guard->killer);
	}
	if (guard->freezer.group.is_open) {
		freeze_group_kill(&guard->freezer.group);
		killer_delay(&guard->killer); // usually no process is left to look for
	}
}

/* The broker or the spawner has gone: no more orders will come. */
static void start_ending(struct guard *guard)
{
	start_killing(guard);
	if (guard->abandon_ms == 0) {
		guard->abandon_ms = clock_now_ms() + ABANDON_AFTER_MS;
	}
}

/* The socket's credentials tell the broker which process is to be moved. */
static void await_join(const struct guard *guard, int go_fd)
{
	char byte;
	guard_send(guard->control_fd, &(struct guard_report){.event = GUARD_JOIN});
	if (read(go_fd, &byte, 1) != 1) {
		_exit(1); // the guard has ended, or reports the failure
	}
}

static void run_child(struct guard *guard, int status_fd, int go_fd, pid_t guard_pid) ATTR_NORETURN;
static void run_child(struct guard *guard, int status_fd, int go_fd, pid_t guard_pid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard_pid) {
		raise(SIGKILL); // the guard was killed before the line above
	}
	if (guard->joins) {
		await_join(guard, go_fd);
	}
	launch_run(&guard->launch, status_fd);
}

static void join(struct guard *guard);

static void start_process(struct guard *guard)
{
	struct error err;
	int status_fds[2];
	int go_fds[2] = {-1, -1};
	if (!fd_pipe(status_fds, &err) || (guard->joins && !fd_pipe(go_fds, &err))) {
		guard_fail(guard, &err);
	}
	pid_t guard_pid = getpid();
	bool is_inside;
	const struct freeze_group *group = &guard->freezer.group;
	guard->pid = freeze_group_fork(group, &is_inside);
	if (guard->pid == 0) {
		guard->launch.group_fd = group->is_limited && !is_inside ? group->fd : -1;
		fd_close(&go_fds[1]); // lets the end of the guard be seen
		run_child(guard, status_fds[1], go_fds[0], guard_pid);
	}
	if (guard->pid < 0) {
		int errnum = errno;
		error_set_errno(&err, errnum, "starting \"%s\"", guard->launch.argv[0]);
		guard_fail(guard, &err);
	}
	fd_close(&status_fds[1]);
	guard->status_fd = status_fds[0];
	for (int i = 0; i < 3; i++) {
		fd_close(&guard->launch.fds[i]); // otherwise their readers would wait for our copy
		                                 // to close
	}
	fd_close(&guard->launch.program);
	if (guard->joins) {
		join(guard);
		(void)!write(go_fds[1], "", 1); // fails if the process was killed
		fd_close(&go_fds[0]);
		fd_close(&go_fds[1]);
	}
}

/* The status pipe has ended. If it was empty, the program was executed. */
static void settle_start(struct guard *guard)
{
	fd_close(&guard->status_fd);
	if (guard->failure_size == sizeof(guard->failure)) {
		struct error err;
		launch_describe(&guard->launch, &guard->failure, &err);
		while (!guard->is_reaped && waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
		}
		guard_fail(guard, &err);
	}
	launch_finish(&guard->launch);
	guard->has_started = true;
	guard_send(guard->control_fd,
		&(struct guard_report){
			.event = GUARD_STARTED, .pid = guard->pid, .guard = getpid()});
}

/* Returns false if there is nothing more to read now. */
static bool read_status(struct guard *guard)
{
	char *at = (char *)&guard->failure + guard->failure_size;
	ssize_t count = read(guard->status_fd, at, sizeof(guard->failure) - guard->failure_size);
	if (count < 0) {
		return errno == EINTR;
	}
	guard->failure_size += (size_t)count;
	if (count == 0 || guard->failure_size == sizeof(guard->failure)) {
		settle_start(guard);
		return false;
	}
	return true;
}

static void signal_group(struct guard *guard, int signal)
{
	if (guard->is_reaped) {
		return;
	}
	guard->was_killed = guard->was_killed || signal == SIGKILL;
	/* A foreground process shares its group with the broker and with us. */
	pid_t group = getpgid(guard->pid);
	kill(group == guard->pid ? -group : guard->pid, signal);
}

static void tell_frozen(const struct guard *guard)
{
	const struct freezer *freezer = &guard->freezer;
	struct guard_report report = {.event = GUARD_FROZEN, .error = freezer->err.code};
	memcpy(report.text, report.error != ERROR_NONE ? freezer->err.text : freezer->why_signals,
		sizeof(report.text));
	guard_send(guard->control_fd, &report);
}

static void freeze(struct guard *guard)
{
	if (guard->freezer.state == FREEZER_FROZEN) {
		tell_frozen(guard);
	} else if (!guard->killer.is_on) {
		freezer_start(&guard->freezer);
	}
}

static void thaw(struct guard *guard)
{
	freezer_thaw(&guard->freezer);
	guard_send(guard->control_fd, &(struct guard_report){.event = GUARD_THAWED});
}

static void obey(struct guard *guard, const struct guard_order *order)
{
	switch (order->command) {
	case GUARD_KILL_TREE:
		start_killing(guard);
		break;
	case GUARD_FREEZE:
		freeze(guard);
		break;
	case GUARD_THAW:
		thaw(guard);
		break;
	case GUARD_JOINED: // the process was killed while it waited for this
		break;
	default:
		signal_group(guard, order->signal);
		break;
	}
}

static void read_order(struct guard *guard)
{
	struct guard_order order;
	ssize_t count = recv(guard->control_fd, &order, sizeof(order), MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (count != (ssize_t)sizeof(order)) {
		fd_close(&guard->control_fd);
		start_ending(guard);
	} else {
		obey(guard, &order);
	}
}

static void read_signals(struct guard *guard)
{
	struct signalfd_siginfo info;
	while (read(guard->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM) {
			start_ending(guard);
		}
	}
}

static uint64_t ms_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000;
}

static uint64_t count_full(const struct guard *guard)
{
	return cgroup_read_key(guard->counts_above_fd, "memory.events", "oom");
}

/*
 * The kernel killed in our group, and since the start the processes that share the limit have
 * reached it. It also kills if this machine, or a cgroup above, has no memory: then only the first
 * count grows. If both happened since the start, nothing tells which of them killed.
 */
static bool is_out_of_memory(const struct guard *guard)
{
	return cgroup_read_key(guard->counts_fd, "memory.events", "oom_kill") > 0 &&
	       count_full(guard) > guard->full;
}

/*
 * Before Linux 6.11 the kernel counts them in the forking cgroup, since then in the one with the
 * limit.
 */
static uint64_t count_refused_forks(const struct guard *guard)
{
	return cgroup_read_key(guard->counts_fd, "pids.events", "max") +
	       cgroup_read_key(guard->counts_above_fd, "pids.events", "max");
}

/* The kernel reports a change with POLLPRI until the file is read. */
static void watch_limits(struct guard *guard)
{
	const int folders[] = {guard->counts_fd, guard->counts_above_fd};
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		guard->refusal_fds[i] = openat(folders[i], "pids.events", O_RDONLY | O_CLOEXEC);
	}
	guard->refused_forks = count_refused_forks(guard);
	guard->full = count_full(guard);
}

static void read_refusals(struct guard *guard)
{
	for (size_t i = 0; i < ARRAY_LENGTH(guard->refusal_fds); i++) {
		cgroup_take_event(&guard->refusal_fds[i]); // a process inside may have removed it
	}
	if (count_refused_forks(guard) > guard->refused_forks) {
		guard_send(guard->control_fd,
			&(struct guard_report){.event = GUARD_LIMIT, .limit = LIMIT_PROCESSES});
		fd_close(&guard->refusal_fds[0]);
		fd_close(&guard->refusal_fds[1]);
	}
}

/* Adds the usage of the cgroup, over its whole life. */
static void add_group_usage(const struct guard *guard, struct guard_report *report)
{
	struct process_usage *usage = &report->usage;
	struct group_usage all;
	limit_group_usage(guard->counts_fd, &all);
	usage->cpu_ms = all.cpu_ms > usage->cpu_ms ? all.cpu_ms : usage->cpu_ms;
	usage->peak_bytes = all.has_memory ? all.peak_bytes : usage->peak_bytes;
	bool is_killed = WIFSIGNALED(guard->wait_status) && WTERMSIG(guard->wait_status) == SIGKILL;
	if (is_killed && !guard->was_killed && is_out_of_memory(guard)) {
		report->limit = LIMIT_MEMORY;
	} else if (report->limit == LIMIT_NONE &&
		   count_refused_forks(guard) > guard->refused_forks) {
		report->limit = LIMIT_PROCESSES;
	}
}

static void add_usage(const struct guard *guard, struct guard_report *report)
{
	report->usage = (struct process_usage){
		.is_known = true,
		.cpu_ms = ms_of(&guard->used.ru_utime) + ms_of(&guard->used.ru_stime),
		.peak_bytes = (uint64_t)guard->used.ru_maxrss * 1024,
	};
	report->limit = limits_reached(
		&guard->limits, guard->wait_status, report->usage.cpu_ms, guard->was_killed);
	if (guard->counts_fd >= 0) {
		add_group_usage(guard, report);
	}
}

static void report_exit(struct guard *guard)
{
	struct guard_report report = {.event = GUARD_EXITED};
	if (WIFSIGNALED(guard->wait_status)) {
		report.signal = WTERMSIG(guard->wait_status);
	} else {
		report.code = WEXITSTATUS(guard->wait_status);
	}
	if (guard->is_limited) {
		add_usage(guard, &report);
	}
	guard->has_exited = true;
	guard_send(guard->control_fd, &report);
}

/*
 * Reaps ended children: the process, and orphans that became ours. Returns false if there are no
 * children left; because we are a subreaper, there is then no process below us at all.
 */
static bool reap(void *data)
{
	struct guard *guard = data;
	int status;
	struct rusage used;
	pid_t pid = 1;
	for (int i = 0; i < REAP_MAX && (pid > 0 || (pid < 0 && errno == EINTR)); i++) {
		pid = wait4(-1, &status, WNOHANG, &used);
		if (pid == guard->pid) {
			guard->is_reaped = true;
			guard->wait_status = status;
			guard->used = used;
		}
		if (pid > 0) {
			freezer_note_end(&guard->freezer);
		}
	}
	guard->has_more = pid > 0;
	bool has_children = !(pid < 0 && errno == ECHILD);
	if (guard->is_reaped && guard->status_fd >= 0) {
		while (guard->status_fd >= 0 && read_status(guard)) {
		}
	}
	if (guard->is_reaped && guard->has_started && !guard->has_exited) {
		report_exit(guard);
	}
	return has_children;
}

/* Returns how long to sleep until the next attempt to kill; -1: no limit. */
static int kill_step(struct guard *guard)
{
	if (guard->abandon_ms != 0 && clock_now_ms() >= guard->abandon_ms) {
		guard_end(guard, 1);
	}
	const struct killer_ground ground = {.reap = reap, .data = guard};
	int sleep_ms = killer_step(&guard->killer, &ground);
	if (guard->killer.is_on) {
		freeze_group_kill(&guard->freezer.group); // processes that came in meanwhile
	}
	if (guard->killer.attempts >= THAW_AFTER_ATTEMPTS) {
		freeze_group_thaw(&guard->freezer.group);
	}
	if (guard->killer.is_on) {
		signal_group(guard, SIGKILL); // for a system where /proc cannot be read
	}
	return sleep_ms;
}

static int freeze_step(struct guard *guard)
{
	bool was_stopping = guard->freezer.state == FREEZER_STOPPING;
	const struct killer_ground ground = {.reap = reap, .data = guard};
	int sleep_ms = freezer_step(&guard->freezer, &ground);
	if (was_stopping && guard->freezer.state != FREEZER_STOPPING) {
		tell_frozen(guard);
	}
	return sleep_ms;
}

/* The shorter of two sleep times; -1 is no limit. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void guard_loop(struct guard *guard) ATTR_NORETURN;
static void guard_loop(struct guard *guard)
{
	while (reap(guard)) {
		struct pollfd polls[] = {
			{.fd = guard->signal_fd, .events = POLLIN},
			{.fd = guard->control_fd, .events = POLLIN},
			{.fd = guard->status_fd, .events = POLLIN},
			{.fd = guard->refusal_fds[0], .events = POLLPRI},
			{.fd = guard->refusal_fds[1], .events = POLLPRI},
		};
		int kill_ms = kill_step(guard);
		int sleep_ms = sooner(kill_ms, freeze_step(guard));
		if (poll(polls, ARRAY_LENGTH(polls), guard->has_more ? 0 : sleep_ms) <= 0) {
			continue;
		}
		if (polls[0].revents) {
			read_signals(guard);
		}
		if (polls[2].revents && guard->status_fd >= 0) {
			read_status(guard);
		}
		if (polls[3].revents | polls[4].revents) {
			read_refusals(guard);
		}
		if (polls[1].revents) {
			read_order(guard);
		}
	}
	leave_groups(guard);
	guard_send(guard->control_fd, &(struct guard_report){.event = GUARD_EMPTIED});
	_exit(0);
}

/* ---- groups ---- */

/*
 * Keeps an order until the process is started. A killed one ends the wait: it may have been stopped
 * before it asked. Returns an errno, or 0.
 */
static int keep_early(struct guard *guard, const struct guard_order *order)
{
	if (order->command == GUARD_KILL_TREE ||
		(order->command == GUARD_SIGNAL && order->signal == SIGKILL)) {
		kill(guard->pid, SIGKILL);
	}
	if (guard->early_count == EARLY_MAX) {
		return ENOBUFS;
	}
	guard->early[guard->early_count++] = *order;
	return 0;
}

/*
 * Waits for the broker's answer, or for the end of the process: anybody in the cell can kill it.
 * Returns an errno, or 0.
 */
static int await_joined(struct guard *guard)
{
	long long deadline_ms = clock_now_ms() + JOIN_MAX_MS;
	int errnum = 0;
	while (errnum == 0) {
		struct guard_order order;
		struct pollfd polls[] = {
			{.fd = guard->control_fd, .events = POLLIN},
			{.fd = guard->status_fd, .events = POLLIN},
		};
		long long left_ms = deadline_ms - clock_now_ms();
		int ready = poll(polls, ARRAY_LENGTH(polls), left_ms > 0 ? (int)left_ms : 0);
		if (ready < 0) {
			continue;
		}
		if (ready == 0) {
			return ETIMEDOUT;
		}
		if (!polls[0].revents) {
			return 0; // it ends like a process that was killed at its start
		}
		ssize_t count = recv(guard->control_fd, &order, sizeof(order), 0);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count != (ssize_t)sizeof(order)) {
			_exit(1); // the broker is gone
		}
		if (order.command == GUARD_JOINED) {
			return order.signal;
		}
		errnum = keep_early(guard, &order);
	}
	return errnum;
}

/*
 * In a cell: the broker moves the process, which has asked for it and waits, into a cgroup of the
 * limits. We stay outside, so that no limit ends us. We can read that cgroup, and nobody in the
 * cell can write it.
 */
static void join(struct guard *guard)
{
	struct error err;
	char path[CGROUP_PATH_MAX];
	int errnum = await_joined(guard);
	if (errnum != 0) {
		kill(guard->pid, SIGKILL);
		while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
		}
		error_set_errno(
			&err, errnum, "starting \"%s\": joining its limits", guard->launch.argv[0]);
		guard_fail(guard, &err);
	}
	guard->counts_fd = cgroup_path_of(guard->pid, path) ? cgroup_open_of(path, guard->pid) : -1;
	if (guard->counts_fd >= 0) {
		guard->counts_above_fd =
			openat(guard->counts_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		watch_limits(guard);
	}
}

/* Opens the guard's cgroups. Takes over `limit_fd`, the group with the limits; -1: no limits. */
static void open_groups(struct guard *guard, const struct guard_request *request, int limit_fd)
{
	struct error err;
	struct freeze_group *group = &guard->freezer.group;
	if (limit_fd >= 0 && request->stays_outside) {
		/* Opens the folder again, because a lock belongs to one opening. */
		guard->limit_fd = openat(limit_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	} else if (limit_fd >= 0) {
		if (!freeze_group_open_in(group, limit_fd, &err)) {
			error_prefix(&err, "starting \"%s\"", guard->launch.argv[0]);
			guard_fail(guard, &err);
		}
		guard->counts_fd = group->fd;
		guard->counts_above_fd = group->own_fd;
		watch_limits(guard);
	}
	fd_close(&limit_fd);
	guard->joins = request->joins;
	if (!request->joins && request->is_grouped && !group->is_open) {
		(void)!freeze_group_open(group, &err); // else the tree is all we know
	}
}

static int open_signals(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void guard_run(const struct guard_request *request, const int fds[GUARD_FDS_MAX], pid_t spawner_pid)
{
	struct error err;
	struct guard guard = {.control_fd = fds[GUARD_FD_CONTROL],
		.status_fd = -1,
		.limit_fd = -1,
		.counts_fd = -1,
		.counts_above_fd = -1,
		.refusal_fds = {-1, -1}};
	guard.signal_fd = open_signals();
	bool is_set_up = guard.signal_fd >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 &&
	                 prctl(PR_SET_PDEATHSIG, SIGTERM) == 0;
	int errnum = errno;
	if (getppid() != spawner_pid) {
		_exit(1); // the spawner was killed before the line above
	}
	if (!is_set_up) {
		error_set_errno(&err, errnum, "starting a process: becoming its guard");
		guard_fail(&guard, &err);
	}
	if (!launch_unpack(&guard.launch, fds[GUARD_FD_LAUNCH], &err)) {
		guard_fail(&guard, &err);
	}
	int launch_fd = fds[GUARD_FD_LAUNCH];
	fd_close(&launch_fd);
	guard.launch.foreground = request->foreground;
	guard.launch.owns_terminal = request->owns_terminal;
	guard.launch.program = fds[GUARD_FD_PROGRAM];
	guard.launch.has_program = guard.launch.program >= 0;
	guard.launch.limits = guard.limits = request->limits;
	guard.is_limited = request->is_limited;
	for (int i = 0; i < 3; i++) {
		guard.launch.fds[i] = fds[GUARD_FDS_MIN + i];
	}
	open_groups(&guard, request, fds[GUARD_FD_GROUP]);
	start_process(&guard);
	for (size_t i = 0; i < guard.early_count; i++) {
		obey(&guard, &guard.early[i]);
	}
	guard_loop(&guard);
}
