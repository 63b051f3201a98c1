/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "providers/ssh/libssh2_route.h"
#include "providers/ssh/target.h"

/* A connection whose other end is the stdin and stdout of the user's ProxyCommand. */
struct proxy {
	struct route route;
	struct process *process;
	int fd;       // -1 once it is handed over
	int words_fd; // its stderr; -1 once that has ended
	struct ev_io readable;
	char words[ROUTE_WORDS_MAX + 1]; // the end of its stderr
};

/* False: there is nothing more to read now. */
static bool read_words(struct proxy *proxy)
{
	char bytes[ROUTE_WORDS_MAX];
	ssize_t count = proxy->words_fd < 0 ? -1 : read(proxy->words_fd, bytes, sizeof(bytes));
	if (count > 0) {
		io_keep_words(proxy->words, ROUTE_WORDS_MAX, (struct span){bytes, (size_t)count});
	} else if (proxy->words_fd >= 0 && (count == 0 || !io_is_transient(errno))) {
		ev_io_stop(proxy->route.context->loop, &proxy->readable);
		fd_close(&proxy->words_fd);
	}
	return count > 0;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	(void)read_words(CONTAINER_OF(watcher, struct proxy, readable));
}

/*
 * The output before its end is in the pipe by now. Reads a limited amount, because some programs
 * write a lot.
 */
static struct span proxy_words(struct route *route)
{
	enum { READS_MAX = 256 };
	struct proxy *proxy = CONTAINER_OF(route, struct proxy, route);
	for (int i = 0; i < READS_MAX && read_words(proxy); i++) {
	}
	struct span words = span_of(proxy->words);
	while (words.len > 0 && words.data[words.len - 1] == ' ') {
		words.len--;
	}
	return words;
}

static void proxy_close(struct route *route)
{
	struct proxy *proxy = CONTAINER_OF(route, struct proxy, route);
	fd_close(&proxy->fd);
	ev_io_stop(proxy->route.context->loop, &proxy->readable);
	fd_close(&proxy->words_fd);
	process_destroy(proxy->process);
	free(proxy);
}

static void on_started(void *data, pid_t pid)
{
	struct proxy *proxy = data;
	int fd = proxy->fd;
	proxy->fd = -1;
	proxy->route.listener->on_reached(proxy->route.data, fd);
}

static void on_failed(void *data, const struct error *failure)
{
	struct proxy *proxy = data;
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"starting the ProxyCommand of %s: %s", proxy->route.target->alias, failure->text);
	proxy->route.listener->on_failed(proxy->route.data, &err);
}

/* The user of the socket sees its end. */
static const struct process_listener listener = {
	.on_started = on_started,
	.on_failed = on_failed,
};

/* "/bin/sh -c LINE" with this program's environment and directory. */
static struct process *shell_start(
	struct proxy *proxy, const char *line, const int fds[3], struct error *err)
{
	const struct provider_context *context = proxy->route.context;
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
	return process_start(context->spawner, &spec, &listener, proxy, err);
}

struct route *route_proxy(const struct route *request, struct error *err)
{
	int sockets[2];
	int words[2];
	if (!socket_pair(sockets, err)) {
		return NULL;
	}
	if (!fd_pipe(words, err)) {
		fd_close(&sockets[0]);
		fd_close(&sockets[1]);
		return NULL;
	}
	struct proxy *proxy = mem_alloc_zero(sizeof(*proxy));
	proxy->route = *request;
	proxy->route.close = proxy_close;
	proxy->route.words = proxy_words;
	proxy->fd = sockets[0];
	proxy->words_fd = words[0];
	ev_io_init(&proxy->readable, on_readable, proxy->words_fd, EV_READ);
	int fds[3] = {sockets[1], sockets[1], words[1]};
	/* Simple programs expect descriptors that block. */
	if (fd_set_nonblock(sockets[1], false, err) && fd_set_nonblock(words[0], true, err)) {
		proxy->process = shell_start(proxy, request->target->proxy_command, fds, err);
	}
	fd_close(&sockets[1]);
	fd_close(&words[1]);
	if (!proxy->process) {
		error_prefix(err, "starting the ProxyCommand of %s", request->target->alias);
		proxy_close(&proxy->route);
		return NULL;
	}
	ev_io_start(proxy->route.context->loop, &proxy->readable);
	return &proxy->route;
}
