/* SPDX-License-Identifier: MIT */
#include "tests/bench/route.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/samples.h"

bool route_start(struct route *route, char **argv)
{
	int in[2];
	int out[2];
	posix_spawn_file_actions_t actions;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
		perror("load_client: pipe");
		return false;
	}
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	*route = (struct route){.in = in[1], .out = out[0], .started_ns = now_ns()};
	const int failed = posix_spawnp(&route->pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	if (failed != 0) {
		(void)fprintf(stderr, "load_client: starting %s: %s\n", argv[0], strerror(failed));
		(void)close(route->in);
		(void)close(route->out);
		return false;
	}
	lines_init(&route->lines, route->out);
	return true;
}

const char *route_request(
	struct route *route, const char *method, const char *params, size_t *out_len)
{
	char line[1024];
	char mark[32];
	const unsigned id = ++route->last_id;
	const int len = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":%s}\n", id, method,
		params);

	(void)snprintf(mark, sizeof(mark), "\"id\":%u,", id);
	if (!write_all(route->in, line, (size_t)len)) {
		(void)fprintf(
			stderr, "load_client: %s: the other side has closed its stdin\n", method);
		return NULL;
	}
	for (;;) {
		const char *got = lines_next(&route->lines, out_len);
		if (got == NULL) {
			(void)fprintf(stderr, "load_client: %s: the output ended\n", method);
			return NULL;
		}
		if (memmem(got, *out_len, mark, strlen(mark)) == NULL) {
			continue;
		}
		if (memmem(got, *out_len, "\"result\":", strlen("\"result\":")) == NULL) {
			(void)fprintf(stderr, "load_client: %s: answered %.*s", method,
				(int)*out_len, got);
			return NULL;
		}
		return got;
	}
}

bool route_initialize(struct route *route)
{
	size_t len = 0;

	return route_request(route, "initialize",
		       "{\"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":"
		       "true,"
		       "\"writeTextFile\":true},\"terminal\":true},"
		       "\"clientInfo\":{\"name\":\"load-client\",\"version\":\"1\"}}",
		       &len) != NULL;
}

bool route_open_session(struct route *route)
{
	char cwd[512];
	char params[640];
	size_t len = 0;

	if (getcwd(cwd, sizeof(cwd)) == NULL) {
		perror("load_client: getcwd");
		return false;
	}
	(void)snprintf(params, sizeof(params), "{\"cwd\":\"%s\",\"mcpServers\":[]}", cwd);
	const char *got = route_request(route, "session/new", params, &len);
	if (got == NULL) {
		return false;
	}
	if (!text_between(
		    got, len, "\"sessionId\":\"", '"', route->session, sizeof(route->session))) {
		(void)fprintf(
			stderr, "load_client: session/new: no sessionId: %.*s", (int)len, got);
		return false;
	}
	return true;
}

uint64_t route_cpu_ns(const struct route *route)
{
	clockid_t clock = 0;

	return clock_getcpuclockid(route->pid, &clock) == 0 ? clock_ns(clock) : 0;
}

bool route_stop(struct route *route)
{
	size_t len = 0;
	int status = 0;

	(void)close(route->in);
	while (lines_next(&route->lines, &len) != NULL) {
	}
	lines_finish(&route->lines);
	(void)close(route->out);
	while (waitpid(route->pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return false;
		}
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		(void)fprintf(stderr, "load_client: the command ended with wait status 0x%x\n",
			(unsigned)status);
		return false;
	}
	return true;
}
