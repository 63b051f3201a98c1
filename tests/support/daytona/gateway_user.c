/* SPDX-License-Identifier: MIT */
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "providers/ssh/sandbox.h"

/*
 * A sandbox behind a gateway, for a test in Python, with a target that is filled in by hand:
 * gateway_user HOST PORT KNOWN_HOSTS PIN DEADLINE_MS. A PIN of "-" means none. It prints lines:
 *
 *	ask                     it wants a token: the next line of its input, or "refuse"
 *	cancelled
 *	settled
 *	progress TEXT
 *	ready | failed REASON TEXT
 *	exited CODE SIGNAL STDOUT_BYTES STDERR_BYTES
 *	lost REASON TEXT
 *
 * The last two follow a line "run SCRIPT" or "kill SCRIPT" of its input. "kill" kills the script's
 * processes as soon as it prints something. The program ends when its input ends.
 */
enum { LINE_BYTES = 4096, ALIVE_MS = 300, ALIVE_COUNT = 100 };

static struct provider_context context;
static struct sandbox *sandbox;

static void say(const char *word, const char *text)
{
	printf("%s %s\n", word, text);
	fflush(stdout);
}

static void say_error(const char *word, const struct error *err)
{
	printf("%s %s %s\n", word, err->reason ? err->reason : "none", err->text);
	fflush(stdout);
}

/* Returns false at the end of the input. */
static bool read_line(char line[LINE_BYTES])
{
	size_t len = 0;
	while (read(STDIN_FILENO, line + len, 1) == 1) {
		if (line[len] == '\n') {
			line[len] = '\0';
			return true;
		}
		len += len + 1 < LINE_BYTES;
	}
	return false;
}

/* ---- tokens ---- */

static void on_ask(void *data, struct ssh_admission_turn *turn)
{
	char line[LINE_BYTES];
	struct error err;
	say("ask", "");
	if (!read_line(line)) {
		exit(1);
	}
	if (strcmp(line, "refuse") == 0) {
		error_set_reason(&err, ERROR_UNAVAILABLE, "NO_TOKEN", "there is none");
		ssh_admission_refuse(turn, &err);
	} else {
		ssh_admission_grant(turn, line);
		explicit_bzero(line, sizeof(line)); // a test searches the memory for it
	}
}

static void on_cancel(void *data, struct ssh_admission_turn *turn)
{
	say("cancelled", "");
}

static void on_settled(void *data, struct ssh_admission_turn *turn)
{
	say("settled", "");
}

static const struct ssh_admission admission = {on_ask, on_cancel, on_settled};

/* ---- a process ---- */

static struct {
	struct exec *exec;
	int fds[2];
	ev_io io[2];
	size_t counts[2];
	struct process_status status;
	bool is_killed; // once it prints anything
	bool has_exited;
} run;

static void check_end(void)
{
	if (run.has_exited && run.fds[0] < 0 && run.fds[1] < 0) {
		printf("exited %d %d %zu %zu\n", run.status.code, run.status.signal, run.counts[0],
			run.counts[1]);
		fflush(stdout);
		exec_destroy(run.exec);
		run.exec = NULL;
	}
}

static void on_output(struct ev_loop *loop, ev_io *io, int events)
{
	static char bytes[65536];
	int which = io == &run.io[1];
	ssize_t count = read(run.fds[which], bytes, sizeof(bytes));
	if (count > 0) {
		run.counts[which] += (size_t)count;
		if (run.is_killed) {
			run.is_killed = false;
			exec_kill_tree(run.exec);
		}
	} else if (count == 0) {
		ev_io_stop(loop, io);
		fd_close(&run.fds[which]);
		check_end();
	}
}

static void on_exited(void *data, struct process_status status)
{
	run.status = status;
	run.has_exited = true;
	check_end();
}

static void on_run_over(void *data, const struct error *err)
{
	say_error("lost", err);
}

static const struct exec_listener exec_listener = {
	.on_failed = on_run_over, .on_exited = on_exited, .on_lost = on_run_over};

static void start(const char *script, bool is_killed)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	struct exec_spec spec = {.argv = argv};
	struct error err;
	memset(&run, 0, sizeof(run));
	run.is_killed = is_killed;
	run.exec = sandbox_exec(sandbox, &spec, &exec_listener, NULL, &err);
	if (!run.exec) {
		say_error("lost", &err);
		return;
	}
	run.fds[0] = exec_take_stdout(run.exec);
	run.fds[1] = exec_take_stderr(run.exec);
	for (int i = 0; i < 2; i++) {
		ev_io_init(&run.io[i], on_output, run.fds[i], EV_READ);
		ev_io_start(context.loop, &run.io[i]);
	}
}

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
	char line[LINE_BYTES];
	if (!read_line(line)) {
		ev_break(loop, EVBREAK_ALL);
	} else if (strncmp(line, "run ", 4) == 0) {
		start(line + 4, false);
	} else if (strncmp(line, "kill ", 5) == 0) {
		start(line + 5, true);
	}
}

/* ---- the sandbox ---- */

static void on_progress(void *data, const char *text)
{
	say("progress", text);
}

static void on_ready(void *data)
{
	say("ready", "");
}

static void on_failed(void *data, const struct error *err)
{
	say_error("failed", err);
}

static const struct sandbox_listener listener = {
	.on_progress = on_progress, .on_ready = on_ready, .on_failed = on_failed};

static struct sandbox *open_sandbox(char **argv)
{
	struct error err;
	long long deadline_ms = strtoll(argv[5], NULL, 10);
	struct ssh_target target = {.alias = mem_strdup("box"),
		.host = mem_strdup(argv[1]),
		.port = (int)strtol(argv[2], NULL, 10),
		.user_known_hosts_files = mem_alloc_zero(2 * sizeof(char *)),
		.host_checking = SSH_HOST_CHECKING_ACCEPT_NEW,
		.host_key_pin = strcmp(argv[4], "-") == 0 ? NULL : mem_strdup(argv[4]),
		.connect_timeout_ms = deadline_ms,
		.auth_timeout_ms = deadline_ms,
		.alive_interval_ms = ALIVE_MS,
		.alive_count_max = ALIVE_COUNT,
		.client = SSH_CLIENT_LIBSSH2,
		.allows_none = true};
	struct ssh_sandbox_settings settings = {.runtime_root = "~/runtime",
		.grace_ms = 60000,
		.channel_timeout_ms = deadline_ms,
		.login_timeout_ms = deadline_ms,
		.max_connections = 1,
		.connect = ssh_connect,
		.admission = &admission,
		.stderr_apart = true,
		.max_channels = 64};
	target.user_known_hosts_files[0] = mem_strdup(argv[3]);
	struct sandbox_request request = {.profile = "test"};
	struct sandbox *opened =
		ssh_sandbox_open(&context, &request, &settings, &target, &listener, NULL, &err);
	if (!opened) {
		say_error("failed", &err);
	}
	return opened;
}

int main(int argc, char **argv)
{
	struct error err;
	if (argc != 6) {
		fprintf(stderr, "usage: gateway_user HOST PORT KNOWN_HOSTS PIN DEADLINE_MS\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	context.spawner = spawner_create(&err);
	context.loop = ev_loop_new(EVFLAG_AUTO);
	context.pool = pool_create(context.loop);
	context.environment = (const char *const *)environ;
	if (!context.spawner || !context.pool) {
		return 1;
	}
	spawner_attach(context.spawner, context.loop);
	ev_io input;
	ev_io_init(&input, on_input, STDIN_FILENO, EV_READ);
	ev_io_start(context.loop, &input);
	sandbox = open_sandbox(argv);
	ev_run(context.loop, 0);
	sandbox_close(sandbox);
	exec_destroy(run.exec);
	ev_io_stop(context.loop, &input);
	pool_destroy(context.pool);
	spawner_destroy(context.spawner);
	ev_loop_destroy(context.loop);
	return 0;
}
