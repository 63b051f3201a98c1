/* SPDX-License-Identifier: MIT */
#include "providers/ssh/libssh2_secret.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "providers/ssh/target.h"

struct secret_query {
	const struct provider_context *context;
	const char *what;
	secret_done *done;
	void *data;
	struct process *process;
	struct ev_io readable;
	int fd;
	bool has_exited;
	struct process_status status;
	size_t len;
	char text[SECRET_MAX + 1]; // wiped
};

struct process *shell_start(const struct provider_context *context, const char *line, int fds[3],
	const struct process_listener *listener, void *data, struct error *err)
{
	char folder[PATH_MAX];
	const char *const argv[] = {"/bin/sh", "-c", line, NULL};
	struct process_spec spec = {
		.argv = argv,
		.env = context->environment,
		.cwd = ssh_folder(folder),
		.in = fds[0],
		.out = fds[1],
		.err = fds[2],
	};
	return process_start(context->spawner, &spec, listener, data, err);
}

static void query_free(struct secret_query *query)
{
	ev_io_stop(query->context->loop, &query->readable);
	fd_close(&query->fd);
	process_destroy(query->process);
	explicit_bzero(query->text, sizeof(query->text));
	free(query);
}

void secret_query_cancel(struct secret_query *query)
{
	if (query) {
		query_free(query);
	}
}

static void query_end(struct secret_query *query, char *secret, const struct error *err)
{
	secret_done *done = query->done;
	void *data = query->data;
	query_free(query);
	done(data, secret, err);
}

/* Both its output's end and its own are there. */
static void query_finished(struct secret_query *query)
{
	struct error err;
	char status[64];
	size_t len = strcspn(query->text, "\r\n");
	if (query->status.code != 0 || query->status.signal != 0) {
		error_set(&err, ERROR_UNAVAILABLE, "%s %s", query->what,
			process_status_text(query->status, status, sizeof(status)));
		query_end(query, NULL, &err);
	} else if (len == 0) {
		error_set(&err, ERROR_UNAVAILABLE, "%s printed nothing", query->what);
		query_end(query, NULL, &err);
	} else {
		query_end(query, mem_strndup((struct span){query->text, len}), NULL);
	}
}

static void query_read(struct secret_query *query)
{
	char rest[512];
	bool is_full = query->len == SECRET_MAX;
	ssize_t count = read(query->fd, is_full ? rest : query->text + query->len,
		is_full ? sizeof(rest) : SECRET_MAX - query->len);
	if (count > 0) {
		query->len += is_full ? 0 : (size_t)count;
		explicit_bzero(rest, sizeof(rest));
	} else if (count == 0 || !io_is_transient(errno)) {
		ev_io_stop(query->context->loop, &query->readable);
		fd_close(&query->fd);
		if (query->has_exited) {
			query_finished(query);
		}
	}
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	query_read(CONTAINER_OF(watcher, struct secret_query, readable));
}

static void on_started(void *data, pid_t pid)
{
}

static void on_failed(void *data, const struct error *failure)
{
	struct secret_query *query = data;
	struct error err = *failure;
	error_prefix(&err, "running %s", query->what);
	query_end(query, NULL, &err);
}

static void on_exited(void *data, struct process_status status)
{
	struct secret_query *query = data;
	query->has_exited = true;
	query->status = status;
	if (query->fd < 0) {
		query_finished(query);
	}
}

static void on_emptied(void *data)
{
}

static const struct process_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
	.on_exited = on_exited,
	.on_emptied = on_emptied,
};

struct secret_query *secret_query_start(const struct provider_context *context, const char *what,
	const char *command, secret_done *done, void *data, struct error *err)
{
	int pipe_fds[2];
	if (!fd_pipe(pipe_fds, err)) {
		return NULL;
	}
	struct secret_query *query = mem_alloc_zero(sizeof(*query));
	query->context = context;
	query->what = what;
	query->done = done;
	query->data = data;
	query->fd = pipe_fds[0];
	ev_io_init(&query->readable, on_readable, query->fd, EV_READ);
	int fds[3] = {-1, pipe_fds[1], -1};
	if (fd_set_nonblock(query->fd, true, err)) {
		query->process = shell_start(context, command, fds, &listener, query, err);
	}
	fd_close(&pipe_fds[1]);
	if (!query->process) {
		error_prefix(err, "running %s", what);
		query_free(query);
		return NULL;
	}
	ev_io_start(context->loop, &query->readable);
	return query;
}
