/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/guard_request.h"
#include "base/launch.h"
#include "base/libc.h"
#include "base/text.h"
#include "providers/runner/runner.h"

enum {
	LAST_WORD_MS = 2000, // for sending the last frame
	STOPS_MAX = 50,  // a runner that is stopped more often is under attack: the keeper kills it
	                 // and its processes
	NUMBER_MAX = 20, // digits
	US_PER_MS = 1000,
};

/* ---- messages of the broker ---- */

bool runner_read_number(struct span digits, uint64_t *out)
{
	uint64_t number = 0;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9' || i >= NUMBER_MAX - 1) {
			return false;
		}
		number = number * 10 + (uint64_t)(digits.data[i] - '0');
	}
	*out = number;
	return digits.len > 0;
}

static void set_grace(struct runner *runner, uint64_t grace_ms)
{
	if (grace_ms > 0 && grace_ms < UINT32_MAX) {
		runner->grace_us = grace_ms * US_PER_MS;
	}
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct runner *runner = data;
	struct span grace;
	uint64_t grace_ms;
	runner->grace_us = (uint64_t)RUNNER_GRACE_MS * US_PER_MS;
	if (runner_find_line(text, "grace-ms", &grace) && runner_read_number(grace, &grace_ms)) {
		set_grace(runner, grace_ms);
	}
	channel_take_hello(runner, text);
}

static void on_message(void *data, const struct runner_message *message)
{
	struct runner *runner = data;
	switch (message->kind) {
	case RUNNER_EXEC:
		run_start(runner, message);
		break;
	case RUNNER_SIGNAL:
	case RUNNER_RESIZE:
	case RUNNER_KILL:
	case RUNNER_RELEASE:
	case RUNNER_FREEZE:
	case RUNNER_THAW:
		run_order(runner, message);
		break;
	case RUNNER_CANCEL:
		request_cancel(runner, message->id);
		break;
	case RUNNER_CONNECT:
		connection_start(runner, message);
		break;
	case RUNNER_GRACE:
		set_grace(runner, message->grace.ms);
		runner->channel.is_suspend_announced = message->grace.is_suspend != 0;
		break;
	default:
		if (message->kind < RUNNER_STARTED) {
			request_start(runner, message);
		}
		break;
	}
}

static void on_end(void *data, struct span text)
{
	struct runner *runner = data;
	runner->was_asked = true;
	runner->why = "the broker requested it";
}

static void on_status(void *data, struct span text)
{
	struct runner *runner = data;
	char build[BUILD_ID_SIZE];
	char answer[RUNNER_TEXT_MAX];
	build_id_read(build);
	text_format(answer, sizeof(answer), "build=%s\nruns=%zu\nrequests=%zu\n", build,
		runner->run_count, runner->request_count);
	mux_status(runner->mux, span_of(answer));
}

static const struct mux_listener mux_listener = {
	.on_hello = on_hello,
	.on_message = on_message,
	.on_end = on_end,
	.on_status = on_status,
};

/* ---- messages of the runner ---- */

static void read_line(const char *path, char *line, size_t size)
{
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, line, size - 1);
	line[count > 0 ? count : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

void runner_say_hello(struct runner *runner)
{
	char build[BUILD_ID_SIZE];
	char boot[64];
	char text[RUNNER_TEXT_MAX];
	struct utsname system = {0};
	const char *home = runner->home;
	build_id_read(build);
	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	uname(&system);
	/* The home comes last, because only it is long enough to be cut. */
	text_format(text, sizeof(text), "build=%s\npid=%d\nuid=%u\nmachine=%s\nboot=%s\nhome=%s\n",
		build, (int)getpid(), (unsigned)geteuid(), system.machine, boot,
		home && !strchr(home, '\n') ? home : "");
	mux_hello(runner->mux, span_of(text));
}

static void say_end(struct runner *runner, size_t left)
{
	char text[256];
	text_format(text, sizeof(text), "left=%zu\nwhy=%s\n", left, runner->why);
	mux_end(runner->mux, span_of(text));
	long long until_ms = clock_now_ms() + LAST_WORD_MS;
	struct span bytes;
	while (runner->out >= 0 && (bytes = mux_output(runner->mux, runner_now_us())).len > 0) {
		struct pollfd writable = {.fd = runner->out, .events = POLLOUT};
		long long wait_ms = until_ms - clock_now_ms();
		ssize_t count = -1;
		if (wait_ms > 0 && poll(&writable, 1, (int)wait_ms) > 0) {
			count = write(runner->out, bytes.data, bytes.len);
		}
		if (count < 0 && errno != EINTR && errno != EAGAIN) {
			return;
		}
		if (wait_ms <= 0) {
			return;
		}
		mux_sent(runner->mux, count > 0 ? (size_t)count : 0);
	}
}

/* ---- the runner ---- */

static bool start_spawner(struct runner *runner, struct error *err)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		return error_set_errno(err, errno, "making a socket for the process starter");
	}
	runner->spawner = guard_fork_spawner(sockets, NEST_BACKGROUND);
	int errnum = errno;
	fd_close(&sockets[1]);
	runner->spawner_socket = sockets[0];
	return runner->spawner >= 0 || error_set_errno(err, errnum, "starting the process starter");
}

static int open_signals(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

void runner_drop_standard(void)
{
	ATTR_CLEANUP(fd_cleanup) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++) {
		dup2(null, fd);
	}
}

/* Standard input and output are the channel; no other process gets them. */
static bool open_channel(struct runner *runner, struct error *err)
{
	runner->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	runner->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	runner_drop_standard();
	return fd_set_nonblock(runner->in, true, err) && fd_set_nonblock(runner->out, true, err);
}

/* How the runner was started. */
struct start {
	const char *home;   // may be NULL
	const char *name;   // of a run that may outlive its channel; NULL: it ends with the channel
	const char *folder; // of the run; NULL: none
	int waiter;         // -1: none
};

static void run(const struct start *start) ATTR_NORETURN;
static void run(const struct start *start)
{
	struct error err;
	struct runner runner = {.in = -1,
		.out = -1,
		.waiter = start->waiter,
		.home = start->home,
		.spawner_socket = -1};
	list_init(&runner.runs);
	list_init(&runner.requests);
	list_init(&runner.connections);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	runner.grace_us = (uint64_t)RUNNER_HELLO_MS * US_PER_MS;
	runner.roots = confine_create();
	runner.signal_fd = open_signals();
	bool is_ready = start_spawner(&runner, &err) && open_channel(&runner, &err) &&
	                channel_open(&runner, start->name, &err) &&
	                alive_open(&runner, start->folder, &err) &&
	                (runner.worker = worker_create(&err)) != NULL;
	if (!is_ready) {
		_exit(1);
	}
	runner.mux = mux_create(MUX_RUNNER, &mux_listener, &runner, runner_now_us());
	runner_say_hello(&runner);
	runner_loop(&runner);
	requests_end(&runner);
	runs_end(&runner);
	connections_end(&runner);
	fd_close(&runner.spawner_socket);
	size_t left = family_end();
	alive_finish(&runner, left);
	say_end(&runner, left);
	channel_finish(&runner);
	_exit(left > 0 ? 1 : 0);
}

/* ---- the keeper ---- */

/* Returns the runner's exit status. */
static int keep(pid_t runner)
{
	int status = 0;
	int stops = 0;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WUNTRACED)) != runner || WIFSTOPPED(status)) {
		if (pid < 0 && errno != EINTR) {
			return 1;
		}
		if (pid == runner) {
			kill(runner, ++stops > STOPS_MAX ? SIGKILL : SIGCONT);
		}
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Starts the runner and stays as its keeper; returns the exit status. */
static int start_and_keep(struct start *start)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (start->folder && alive_hold(start->folder) < 0) {
		return 1;
	}
	pid_t keeper = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == keeper) {
			run(start);
		}
		_exit(1);
	}
	runner_drop_standard();
	fd_close(&start->waiter);
	int status = pid > 0 ? keep(pid) : 1;
	if (family_end() > 0) {
		alive_tell_left(start->folder);
		return 1;
	}
	return status;
}

/*
 * Like start_and_keep, but the keeper gets a Unix session of its own (setsid) and is no descendant
 * of this process. So a carrier that ends this process with all its descendants does not end the
 * run. This process is the first channel's waiter.
 */
static int start_apart(struct start *start)
{
	int sockets[2];
	sigset_t all;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		return 1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		fd_close(&sockets[0]);
		start->waiter = sockets[1];
		setsid();
		_exit(fork() == 0 ? start_and_keep(start) : 0);
	}
	fd_close(&sockets[1]);
	runner_drop_standard();
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL); // a signal that ends the session ends the waiter
	(void)waitpid(pid, NULL, 0);
	attach_wait(sockets[0]);
	return pid > 0 ? 0 : 1;
}

/*
 * The first process of a container: it does nothing until somebody stops the container. It waits
 * for orphaned processes, so that none remains a zombie. It blocks all signals and takes them with
 * sigwait: the kernel delivers no signal with the default action to the first process of a
 * namespace.
 */
static int hold(void)
{
	sigset_t signals;
	int signal = SIGCHLD;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	while (signal == SIGCHLD && sigwait(&signals, &signal) == 0) {
		while (waitpid(-1, NULL, WNOHANG) > 0) {
		}
	}
	return 0;
}

/* False: there are other words. */
static bool read_words(char **words, struct start *start)
{
	for (; words[0] && words[1]; words += 2) {
		if (strcmp(words[0], "apart") == 0) {
			start->name = words[1];
		} else if (strcmp(words[0], "run") == 0) {
			start->folder = words[1];
		} else {
			return false;
		}
	}
	return !words[0];
}

/*
 * The runner ends with its channel. With "apart NAME" it may outlive its channel, as the run of
 * that name. With "run FOLDER" this is the folder of the run (alive.c). With "begin TOKEN" no
 * script has made that folder (begin.c). Other programs: "attach NAME" is another channel for that
 * run, whose socket is in the working directory; "hold" is the first process of a container; "root"
 * makes the folder of a workspace (place.c).
 */
int main(int argc, char **argv)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread yet */
	struct start start = {.home = getenv("HOME"), .waiter = -1};
	sigset_t all;
	struct error err;
	if (!fd_fill_standard(&err)) {
		return 1;
	}
	launch_reset_signals();
	libc_close_range(3, ~0U, 0);
	if (argc == 3 && strcmp(argv[1], "attach") == 0) {
		return attach_run(argv[2]);
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (argc == 2 && strcmp(argv[1], "hold") == 0) {
		return hold();
	}
	if (argc > 1 && strcmp(argv[1], "root") == 0) {
		return place_root(argv + 2);
	}
	(void)program_hold(); // until the runner's last process ends
	if (argc == 3 && strcmp(argv[1], "begin") == 0) {
		char folder[PATH_MAX];
		if (!begin_run(argv[2], folder, sizeof(folder))) {
			return 1;
		}
		start.folder = folder[0] ? folder : NULL;
		return start_and_keep(&start);
	}
	if (!read_words(argv + 1, &start)) {
		return 1;
	}
	return start.name ? start_apart(&start) : start_and_keep(&start);
}
