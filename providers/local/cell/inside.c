/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/fd_pass.h"
#include "base/guard.h"
#include "base/libc.h"
#include "base/spawner.h"
#include "base/text.h"
#include "providers/local/cell/connector.h"
#include "providers/local/cell/kernel.h"
#include "providers/local/cell/limits.h"
#include "providers/local/cell/mounts.h"
#include "providers/local/cell/pins.h"
#include "providers/local/cell/plan.h"
#include "providers/local/cell/probe.h"
#include "providers/local/cell/program.h"
#include "providers/local/cell/sockets.h"
#include "providers/local/cell/wire.h"
#include "providers/local/net/ports.h"

/* Numbers of the descriptors. */
enum { AT_CONTROL = 0, AT_PLAN = 3, AT_SPAWNER, AT_REST };

enum { SOCKETS_TABLE_MAX = 16 << 20, STOPS_MAX = 50 };

static void answer(const struct error *err)
{
	static struct cell_answer message;
	message = (struct cell_answer){.code = err ? err->code : ERROR_NONE};
	message.landlock = limits_landlock(&message.landlock_errnum);
	if (err) {
		message.is_unavailable = error_has_reason(err, "CELL_UNAVAILABLE");
		memcpy(message.text, err->text, sizeof(message.text));
	}
	while (send(AT_CONTROL, &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR) {
	}
}

/* The first answer carries a descriptor of the cell's home, and its sockets. */
static bool answer_ready(const int *fds, size_t count)
{
	static struct cell_answer answer;
	answer.landlock = limits_landlock(&answer.landlock_errnum);
	return fd_pass(
		AT_CONTROL, (struct span){(const char *)&answer, sizeof(answer)}, fds, count);
}

static void tell(const char *text)
{
	static struct cell_answer message;
	message = (struct cell_answer){.is_notice = true};
	text_whole(message.text, sizeof(message.text), "%s", text);
	while (send(AT_CONTROL, &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR) {
	}
}

static void end_with(const struct error *err) ATTR_NORETURN;
static void end_with(const struct error *err)
{
	answer(err);
	_exit(1);
}

static void explain(enum probe_step step, int errnum) ATTR_NORETURN;
static void explain(enum probe_step step, int errnum)
{
	struct error err;
	struct probe_facts facts;
	probe_read(&facts);
	probe_explain(&err, step, errnum, &facts);
	end_with(&err);
}

/* ---- the plan ---- */

/* Receives the broker's first packet, and moves its descriptors to their numbers. */
static bool take_descriptors(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * CELL_FDS)];
	} control;
	char byte;
	int fds[CELL_FDS];
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t size = recvmsg(AT_CONTROL, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = size == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
		head->cmsg_len != CMSG_LEN(sizeof(fds))) {
		return false;
	}
	memcpy(fds, CMSG_DATA(head), sizeof(fds));
	for (int i = 0; i < CELL_FDS; i++) {
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, AT_REST);
	}
	return dup3(fds[CELL_FD_PLAN], AT_PLAN, O_CLOEXEC) == AT_PLAN &&
	       dup3(fds[CELL_FD_SPAWNER], AT_SPAWNER, O_CLOEXEC) == AT_SPAWNER;
}

/* Only root can become another user, and the plan's user is never root. */
static bool check_user(const struct cell_plan *plan, struct error *err)
{
	if (plan->uid == 0 || plan->gid == 0) {
		return error_set(err, ERROR_DENIED,
			"confining an agent: a process that runs as root cannot be confined");
	}
	return geteuid() == 0 || (geteuid() == plan->uid && getegid() == plan->gid) ||
	       error_set(err, ERROR_DENIED,
		       "confining an agent: the broker is user %u and cannot become user %u",
		       (unsigned)geteuid(), (unsigned)plan->uid);
}

/* The cell's first process. */
struct first {
	const struct cell_plan *plan;
	bool is_root; // root outside of the cell, also for files; unknown inside
	struct mounts_taken taken;
	struct pins *pins;
	int signal_fd;
	pid_t spawner;
	int stops;
};

/* ---- namespaces ---- */

static bool write_text(const char *path, const char *text)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Maps the user for the calling process, or for its parent if that made the user namespace. */
static bool name_user(const struct cell_plan *plan, pid_t pid)
{
	char path[64];
	char users[64];
	char groups[64];
	text_whole(users, sizeof(users), "%u %u 1", (unsigned)plan->uid, (unsigned)plan->uid);
	text_whole(groups, sizeof(groups), "%u %u 1", (unsigned)plan->gid, (unsigned)plan->gid);
	text_whole(path, sizeof(path), "/proc/%d/setgroups", (int)pid);
	bool is_named = write_text(path, "deny");
	text_whole(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	is_named = is_named && write_text(path, users);
	text_whole(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	return is_named && write_text(path, groups);
}

/*
 * If we are root: a child that stays outside maps another user. Root itself is not mapped, so that
 * no process in the cell can become root.
 */
static void make_users_as_root(const struct cell_plan *plan)
{
	struct error err;
	int go[2], said[2];
	int errnum = 0;
	if (setgroups(0, NULL) != 0) {
		explain(PROBE_IDENTITY, errno);
	}
	if (!fd_pipe(go, &err) || !fd_pipe(said, &err)) {
		end_with(&err);
	}
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		fd_close(&go[1]); // lets the end of the parent be seen
		if (read(go[0], &byte, 1) == 1) {
			errnum = name_user(plan, getppid()) ? 0 : errno;
			(void)!write(said[1], &errnum, sizeof(errnum));
		}
		_exit(0);
	}
	fd_close(&said[1]);
	if (pid < 0 || unshare(CLONE_NEWUSER) != 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	if (write(go[1], "", 1) != 1 || read(said[0], &errnum, sizeof(errnum)) != sizeof(errnum)) {
		errnum = EPIPE;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
	if (errnum != 0) {
		explain(PROBE_IDENTITY, errnum);
	}
	fd_close(&go[0]);
	fd_close(&go[1]);
	fd_close(&said[0]);
}

static void make_namespaces(const struct cell_plan *plan, bool is_root)
{
	const int others = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	if (is_root) {
		make_users_as_root(plan);
	} else if (unshare(CLONE_NEWUSER) != 0) {
		explain(PROBE_NAMESPACES, errno);
	} else if (!name_user(plan, getpid())) {
		explain(PROBE_IDENTITY, errno);
	}
	if (unshare(others) != 0) {
		explain(PROBE_NAMESPACES, errno);
	}
}

/*
 * Becomes the plan's user and keeps the capabilities of the user namespace, in which the old user
 * is unknown.
 */
static bool become_user(const struct cell_plan *plan, bool is_root, struct error *err)
{
	if (is_root && (setresgid(plan->gid, plan->gid, plan->gid) != 0 ||
			       setresuid(plan->uid, plan->uid, plan->uid) != 0)) {
		int errnum = errno;
		return error_set_errno(
			err, errnum, "confining an agent: becoming user %u", (unsigned)plan->uid);
	}
	return true;
}

/*
 * Uses only files as the plan's user, so that this user may not signal or trace the process. It
 * cannot become root for files again.
 */
static bool use_users_files(const struct first *first, struct error *err)
{
	const struct cell_plan *plan = first->plan;
	if (first->is_root) {
		setfsgid(plan->gid);
		setfsuid(plan->uid);
	}
	/* Both calls return the old value, even if they fail. */
	return !first->is_root ||
	       ((gid_t)setfsgid((gid_t)-1) == plan->gid &&
		       (uid_t)setfsuid((uid_t)-1) == plan->uid) ||
	       error_set(err, ERROR_SYSTEM, "confining an agent: using files as user %u",
		       (unsigned)plan->uid);
}

/* Tests early what a machine may forbid, before anything depends on it. */
static void probe_mounts(void)
{
	const struct kernel_change change = {.set = MOUNT_ATTR_RDONLY};
	struct error err;
	const struct kernel_room room = {"1%", 16};
	ATTR_CLEANUP(fd_cleanup) int tmpfs = kernel_new_tmpfs("0700", &room, 0, &err);
	if (tmpfs < 0 || !kernel_change(tmpfs, &change, &err)) {
		explain(PROBE_MOUNTS, errno);
	}
	ATTR_CLEANUP(fd_cleanup) int proc = kernel_new_proc(&err);
	if (proc < 0) {
		explain(PROBE_PROC, errno);
	}
}

/* ---- the network ---- */

/* What the spawner opens for the first process and the broker. */
struct handed {
	int network; // the namespace
	int ports[PORTS_MAX];
	int keys[PORTS_KEYS_MAX];
	int connector[2]; // the first process keeps the second one; -1 without forwards
};
enum { HANDED_FDS_MAX = 1 + PORTS_MAX + PORTS_KEYS_MAX + 2 };

/* Makes a network namespace of the cell's own, unless the plan has none, and its sockets. */
static void open_network(const struct cell_plan *plan, struct handed *out)
{
	struct error err;
	int *out_ports = out->ports;
	if (!plan->has_network && unshare(CLONE_NEWNET) != 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	out->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (out->network < 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	if (!plan->has_network && !limits_open_loopback(&err)) {
		end_with(&err);
	}
	if (plan->has_ports && !ports_open(plan->services, plan->service_count, out_ports, &err)) {
		if (ports_are_unknown(errno)) {
			explain(PROBE_PORTS, errno);
		}
		error_prefix(&err, "confining an agent");
		end_with(&err);
	}
	out->connector[0] = out->connector[1] = -1;
	if (!ports_open_keys(plan->key_count, out->keys, &err) ||
		(plan->forward_count > 0 && !connector_open(out->connector, &err))) {
		error_prefix(&err, "confining an agent");
		end_with(&err);
	}
}

/* The descriptors in the order in which they are passed; returns their number. */
static size_t list_handed(
	const struct cell_plan *plan, struct handed *handed, int *list[HANDED_FDS_MAX])
{
	size_t count = 0;
	list[count++] = &handed->network;
	for (size_t i = 0; plan->has_ports && i < PORTS_SERVICES + plan->service_count; i++) {
		list[count++] = &handed->ports[i];
	}
	for (size_t i = 0; i < plan->key_count; i++) {
		list[count++] = &handed->keys[i];
	}
	for (size_t i = 0; plan->forward_count > 0 && i < 2; i++) {
		list[count++] = &handed->connector[i];
	}
	return count;
}

/*
 * Waits for descriptors. Ends this process if the other one has ended: that has reported an error,
 * or the broker is gone.
 */
static void receive(int socket, int *out_fds, size_t count)
{
	struct pollfd polled = {.fd = socket, .events = POLLIN};
	size_t came = 0;
	char byte;
	while (poll(&polled, 1, -1) < 0) {
	}
	if (fd_take(socket, &byte, 1, out_fds, count, &came) != 1 || came != count) {
		_exit(1);
	}
}

static void give(const struct cell_plan *plan, struct handed *handed, int socket)
{
	int *list[HANDED_FDS_MAX];
	int fds[HANDED_FDS_MAX];
	size_t count = list_handed(plan, handed, list);
	for (size_t i = 0; i < count; i++) {
		fds[i] = *list[i];
	}
	if (!fd_pass(socket, (struct span){"", 1}, fds, count)) {
		_exit(1);
	}
	for (size_t i = 0; i < count; i++) {
		fd_close(list[i]);
	}
}

static void take(const struct cell_plan *plan, struct handed *handed, int socket)
{
	int *list[HANDED_FDS_MAX];
	int fds[HANDED_FDS_MAX];
	size_t count = list_handed(plan, handed, list);
	handed->connector[0] = handed->connector[1] = -1;
	receive(socket, fds, count);
	for (size_t i = 0; i < count; i++) {
		*list[i] = fds[i];
	}
}

/* ---- the spawner ---- */

/*
 * The spawner makes the network and the filter while the first process makes the cell's files: each
 * of these takes a millisecond or more.
 */
static void run_spawner(const struct first *first, int socket) ATTR_NORETURN;
static void run_spawner(const struct first *first, int socket)
{
	struct error err = {.code = ERROR_NONE};
	struct handed handed;
	int root_fd = -1;
	open_network(first->plan, &handed);
	void *filter = limits_prepare(&err);
	if (!filter) {
		end_with(&err);
	}
	give(first->plan, &handed, socket);
	receive(socket, &root_fd, 1);
	if (!mounts_enter(root_fd, first->plan, &err) ||
		!become_user(first->plan, first->is_root, &err) || !limits_apply(filter, &err)) {
		(void)!send(socket, &err, sizeof(err), MSG_NOSIGNAL);
		_exit(1);
	}
	/*
	 * Keeps other processes in the cell from looking at this one until it executes a program.
	 */
	prctl(PR_SET_DUMPABLE, 0);
	spawner_run(AT_SPAWNER, NEST_BACKGROUND); // closes all but its socket
}

/* Returns the process's end of a socket; it waits for let_spawner_run. */
static int start_spawner(struct first *first)
{
	struct error err;
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	first->spawner = fork();
	if (first->spawner == 0) {
		fd_close(&sockets[0]);
		run_spawner(first, sockets[1]);
	}
	int errnum = errno;
	fd_close(&sockets[1]);
	if (first->spawner < 0) {
		error_set_errno(&err, errnum, "confining an agent: forking the process starter");
		end_with(&err);
	}
	return sockets[0];
}

/* The cell's files are ready. Closes the socket. */
static void let_spawner_run(const struct first *first, int socket)
{
	struct error err;
	if (!fd_pass(socket, (struct span){"", 1}, &first->taken.root_fd, 1)) {
		_exit(1);
	}
	if (recv(socket, &err, sizeof(err), 0) == (ssize_t)sizeof(err)) {
		error_prefix(&err, "confining an agent");
		end_with(&err);
	}
	fd_close(&socket);
}

/* ---- the first process ---- */

/*
 * Reaps children. The cell ends when its spawner does. Stopping the spawner would break the cell as
 * it would outside.
 */
static void reap(struct first *first)
{
	struct signalfd_siginfo info;
	while (read(first->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
	}
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != first->spawner) {
			continue;
		}
		if (!WIFSTOPPED(status) || ++first->stops > STOPS_MAX) {
			_exit(0);
		}
		kill(pid, SIGCONT);
	}
}

/*
 * If we are root, a child does this, which uses files as the plan's user. Returns whether the child
 * succeeded.
 */
static bool is_child_done(pid_t pid)
{
	int status = 1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void build(const struct first *first)
{
	struct error err;
	if (!use_users_files(first, &err)) {
		end_with(&err);
	}
	probe_mounts();
	if (!mounts_build(&first->taken, first->plan, &err)) {
		error_prefix(&err, "confining an agent");
		end_with(&err);
	}
}

static void build_apart(const struct first *first)
{
	pid_t pid = first->is_root ? fork() : 0;
	if (pid < 0) {
		explain(PROBE_MOUNTS, errno);
	}
	if (pid == 0) {
		build(first);
	}
	if (pid == 0 && first->is_root) {
		_exit(0);
	}
	if (pid > 0 && !is_child_done(pid)) {
		_exit(1); // it has reported the error
	}
}

static void show(const struct first *first, const char *path)
{
	struct error err;
	int taken = first->is_root ? mounts_take_folder(path) : -1;
	bool is_shown = use_users_files(first, &err) &&
	                mounts_show(first->taken.root_fd, taken, path, &err);
	answer(is_shown ? NULL : &err);
}

static void show_apart(const struct first *first, const char *path)
{
	struct error err;
	pid_t pid = first->is_root ? fork() : 0;
	if (pid == 0) {
		show(first, path);
	}
	if (pid == 0 && first->is_root) {
		_exit(0);
	}
	if (pid < 0 || (pid > 0 && !is_child_done(pid))) {
		error_set(&err, ERROR_SYSTEM,
			"showing %s in the cell: cannot start a process for it", path);
		answer(&err);
	}
}

/*
 * A workspace with pins belongs to the plan's user, who must be able to reach it. From now on no
 * file of root's is shown.
 */
static void show_listed(struct first *first, int list_fd)
{
	struct cell_read_plan list;
	struct error err;
	bool is_shown = use_users_files(first, &err) && cell_plan_unpack(&list, list_fd, &err);
	first->is_root = false;
	is_shown = is_shown && pins_show(first->pins, &list.plan, &err);
	cell_plan_finish(&list);
	answer(is_shown ? NULL : &err);
}

static void obey(struct first *first)
{
	struct cell_order order;
	size_t count;
	int fd = -1;
	ssize_t size = fd_take(AT_CONTROL, &order, sizeof(order), &fd, 1, &count);
	if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (size <= 0 || memchr(order.path, '\0', (size_t)size) == NULL) {
		_exit(0); // the broker has ended or destroyed the cell
	}
	ATTR_CLEANUP(fd_cleanup) int list_fd = fd;
	if (list_fd >= 0) {
		show_listed(first, list_fd);
	} else {
		show_apart(first, order.path);
	}
}

/*
 * A socket that stayed open here would listen for ever. Now only the broker's side keeps it open.
 */
static void hand_out(
	const struct first *first, const struct cell_plan *plan, const struct handed *handed)
{
	struct error err;
	int fds[CELL_ANSWER_FDS_MAX];
	size_t ports = plan->has_ports ? PORTS_SERVICES + plan->service_count : 0;
	size_t has_connector = handed->connector[0] >= 0;
	size_t count = 1 + ports + plan->key_count + has_connector;
	fds[0] = kernel_open_in(first->taken.root_fd, plan->home, O_RDONLY | O_DIRECTORY, false);
	memcpy(fds + 1, handed->ports, ports * sizeof(*fds));
	memcpy(fds + 1 + ports, handed->keys, plan->key_count * sizeof(*fds));
	memcpy(fds + count - has_connector, handed->connector, has_connector * sizeof(*fds));
	if (fds[0] < 0 || !answer_ready(fds, count)) {
		error_set(&err, ERROR_SYSTEM, "confining an agent: opening the cell's home");
		end_with(&err);
	}
	for (size_t i = 0; i < count; i++) {
		fd_close(&fds[i]);
	}
}

static void run_first(
	const struct cell_plan *plan, struct span sockets, bool is_root) ATTR_NORETURN;
static void run_first(const struct cell_plan *plan, struct span sockets, bool is_root)
{
	struct error err;
	static struct first first; // too large for a stack
	sigset_t children;
	first.plan = plan;
	first.is_root = is_root;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	first.signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	struct handed handed;
	int spawner = start_spawner(&first);
	if (!mounts_take(&first.taken, plan, sockets, is_root, &err)) {
		error_prefix(&err, "confining an agent");
		end_with(&err);
	}
	build_apart(&first);
	first.pins = pins_create(first.taken.root_fd);
	take(plan, &handed, spawner);
	/* Below /proc/1/net everybody in the cell sees the network of this process. */
	if (!plan->has_network && setns(handed.network, CLONE_NEWNET) != 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	fd_close(&handed.network);
	let_spawner_run(&first, spawner);
	libc_close_range(AT_SPAWNER, AT_SPAWNER, 0);
	hand_out(&first, plan, &handed);
	while (true) {
		struct pollfd polls[] = {
			{.fd = first.signal_fd, .events = POLLIN},
			{.fd = AT_CONTROL, .events = POLLIN},
			{.fd = pins_fd(first.pins), .events = POLLIN},
			{.fd = handed.connector[1], .events = POLLIN},
		};
		reap(&first);
		if (poll(polls, ARRAY_LENGTH(polls), pins_patience_ms(first.pins)) < 0) {
			continue;
		}
		/* A process in the cell can wake us all the time, so the clock decides. */
		if (polls[2].revents || pins_patience_ms(first.pins) == 0) {
			pins_renew(first.pins, tell);
		}
		if (polls[3].revents && !connector_serve(handed.connector[1], plan->forwards,
						plan->forward_count)) {
			fd_close(&handed.connector[1]);
		}
		if (polls[1].revents) {
			obey(&first);
		}
	}
}

/* ---- the keeper ---- */

static bool read_sockets(struct buf *table, struct error *err)
{
	ssize_t count = 1;
	ATTR_CLEANUP(fd_cleanup) int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && count > 0) {
		char *at = buf_reserve(table, 65536, err);
		count = at ? read(fd, at, 65536) : -1;
		if (!at) {
			return false;
		}
		buf_commit(table, count > 0 ? (size_t)count : 0);
	}
	return (fd >= 0 && count == 0) || error_set(err, ERROR_SYSTEM,
						  "confining an agent: cannot read /proc/net/unix, "
						  "which lists this machine's sockets");
}

/* Whoever starts us by hand must not get a cell whose processes can open a file of this machine. */
static bool check_program(struct error *err)
{
	return cell_program_is_copy() ||
	       error_set(err, ERROR_DENIED, "confining an agent: the program is not a sealed copy");
}

static void run_keeper(void) ATTR_NORETURN;
static void run_keeper(void)
{
	struct error err;
	struct cell_read_plan read;
	struct buf table;
	struct buf sockets;
	sigset_t all;
	buf_init(&table, SOCKETS_TABLE_MAX);
	buf_init(&sockets, SOCKETS_TABLE_MAX);
	if (!take_descriptors()) {
		_exit(1); // the broker has ended
	}
	if (!cell_plan_unpack(&read, AT_PLAN, &err) || !check_program(&err) ||
		!check_user(&read.plan, &err) || !read_sockets(&table, &err) ||
		!sockets_find(buf_span(&table), "/proc", &sockets, &err)) {
		end_with(&err);
	}
	libc_close_range(AT_PLAN, AT_PLAN, 0);
	libc_close_range(AT_REST, INT_MAX, 0);
	bool is_root = geteuid() == 0;
	make_namespaces(&read.plan, is_root);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		run_first(&read.plan, buf_span(&sockets), is_root);
	}
	if (pid < 0) {
		explain(PROBE_NAMESPACES, errno);
	}
	libc_close_range(0, INT_MAX, 0);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
	_exit(0);
}

/* ---- main ---- */

bool cell_is_asked(int argc, char *const *argv)
{
	return argc == 2 && strcmp(argv[1], CELL_ARGUMENT) == 0;
}

void cell_run(void)
{
	struct stat status;
	prctl(PR_SET_NAME, GUARD_NAME);
	if (fstat(AT_CONTROL, &status) != 0 || !S_ISSOCK(status.st_mode)) {
		_exit(1); // not started by the broker
	}
	run_keeper();
}
