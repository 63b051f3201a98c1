/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/ssh/libssh2_route.h"

/*
 * A TCP connection to the first address that answers. Addresses are tried in turn, alternating
 * between the families. The next attempt begins after STAGGER_MS, or when the previous one has
 * failed (RFC 8305); earlier attempts continue beside it.
 */
enum { STAGGER_MS = 250, ADDRESSES_MAX = 8, FAILURES_MAX = 640, DEFAULT_TIMEOUT_MS = 15 * 1000 };

/* Owned by the pool once the dial no longer refers to it. */
struct names_job {
	struct pool_job job;
	struct dial *dial;
	char *host;
	char service[8];
	int family;
	struct addrinfo *addresses;
	int failed; // getaddrinfo's result
	int saved_errno;
};

struct attempt {
	struct dial *dial;
	struct ev_io writable;
	int fd; // -1: not begun, or failed
	char name[INET6_ADDRSTRLEN + 16];
};

struct dial {
	struct route route;
	struct names_job *names; // NULL once done
	struct addrinfo *addresses;
	const struct addrinfo *order[ADDRESSES_MAX];
	size_t count;
	size_t begun; // number of attempts that were begun
	struct attempt attempts[ADDRESSES_MAX];
	struct ev_timer stagger;
	struct ev_timer deadline;
	struct buf failures;
};

static void dial_stop(struct dial *dial)
{
	struct ev_loop *loop = dial->route.context->loop;
	ev_timer_stop(loop, &dial->stagger);
	ev_timer_stop(loop, &dial->deadline);
	for (size_t i = 0; i < dial->begun; i++) {
		ev_io_stop(loop, &dial->attempts[i].writable);
		fd_close(&dial->attempts[i].fd);
	}
}

static void dial_close(struct route *route)
{
	struct dial *dial = CONTAINER_OF(route, struct dial, route);
	dial_stop(dial);
	if (dial->names) {
		pool_leave(&dial->names->job);
	}
	if (dial->addresses) {
		freeaddrinfo(dial->addresses);
	}
	buf_finish(&dial->failures);
	free(dial);
}

/* Reports the failure and stops; the dial may be freed when it returns. */
static void dial_fail(struct dial *dial, struct error *err)
{
	dial_stop(dial);
	error_prefix(err, "connecting to %s", dial->route.target->alias);
	dial->route.listener->on_failed(dial->route.data, err);
}

/* ---- addresses in turn ---- */

static void note_failure(struct attempt *attempt, int errnum)
{
	struct buf *failures = &attempt->dial->failures;
	/* A note that no longer fits is dropped: it is one of many similar ones. */
	(void)!buf_append_format(failures, NULL, "%s%s: %s", failures->len ? "; " : "",
		attempt->name, strerror(errnum));
	ev_io_stop(attempt->dial->route.context->loop, &attempt->writable);
	fd_close(&attempt->fd);
}

static bool has_attempts(const struct dial *dial)
{
	for (size_t i = 0; i < dial->begun; i++) {
		if (dial->attempts[i].fd >= 0) {
			return true;
		}
	}
	return false;
}

static void dial_unreachable(struct dial *dial)
{
	struct error err;
	struct span failures = buf_span(&dial->failures);
	error_set_reason(&err, ERROR_UNAVAILABLE, "HOST_UNREACHABLE",
		"%.*s: is the host running, and is this the port of its sshd?", (int)failures.len,
		failures.len ? failures.data : "");
	dial_fail(dial, &err);
}

static void dial_next(struct dial *dial);

/* Chooses this connection and drops the others. */
static void dial_won(struct attempt *attempt)
{
	struct dial *dial = attempt->dial;
	int fd = attempt->fd;
	attempt->fd = -1;
	dial_stop(dial);
	dial->route.listener->on_reached(dial->route.data, fd);
}

static void attempt_ended(struct attempt *attempt)
{
	int failed = 0;
	socklen_t size = sizeof(failed);
	if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) {
		failed = errno;
	}
	if (failed == 0) {
		dial_won(attempt);
		return;
	}
	note_failure(attempt, failed);
	dial_next(attempt->dial);
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	attempt_ended(CONTAINER_OF(watcher, struct attempt, writable));
}

static int open_socket(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -1;
	}
	int on = 1;
	/*
	 * Small messages are sent at once. Keepalive notices a dead connection even if nobody
	 * writes.
	 */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return fd;
}

static void attempt_name(struct attempt *attempt, const struct addrinfo *address, int port)
{
	char host[INET6_ADDRSTRLEN + 1] = "?";
	(void)getnameinfo(
		address->ai_addr, address->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	text_whole(attempt->name, sizeof(attempt->name), "%s port %d", host, port);
}

/* False if it failed at once. */
static bool attempt_begin(struct dial *dial, struct attempt *attempt)
{
	const struct route *route = &dial->route;
	const struct addrinfo *address = dial->order[dial->begun++];
	*attempt = (struct attempt){.dial = dial};
	attempt_name(attempt, address, route->target->port);
	char text[400];
	text_format(
		text, sizeof(text), "Connecting to %s (%s)", route->target->alias, attempt->name);
	attempt->fd = open_socket(address);
	ev_io_init(&attempt->writable, on_writable, attempt->fd, EV_WRITE);
	if (attempt->fd < 0 || (connect(attempt->fd, address->ai_addr, address->ai_addrlen) != 0 &&
				       errno != EINPROGRESS)) {
		note_failure(attempt, errno);
		return false;
	}
	ev_io_start(route->context->loop, &attempt->writable);
	ev_timer_again(route->context->loop, &dial->stagger);
	route->listener->on_progress(route->data, text);
	return true;
}

static void dial_next(struct dial *dial)
{
	while (dial->begun < dial->count) {
		/* The progress callback may have closed the dial, so it is not used afterwards. */
		if (attempt_begin(dial, &dial->attempts[dial->begun])) {
			return;
		}
	}
	ev_timer_stop(dial->route.context->loop, &dial->stagger);
	if (!has_attempts(dial)) {
		dial_unreachable(dial);
	}
}

static void on_stagger(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	dial_next(CONTAINER_OF(watcher, struct dial, stagger));
}

static void on_deadline(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	struct dial *dial = CONTAINER_OF(watcher, struct dial, deadline);
	struct span failures = buf_span(&dial->failures);
	struct error err;
	error_set_reason(&err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
		"%s%s%sno answer within %g s (connect-timeout)%s%.*s",
		dial->names ? "resolving " : "", dial->names ? dial->names->host : "",
		dial->names ? ": " : "", dial->deadline.repeat, failures.len ? "; " : "",
		(int)failures.len, failures.len ? failures.data : "");
	dial_fail(dial, &err);
}

/* ---- names ---- */

static void names_run(struct pool_job *job)
{
	struct names_job *names = CONTAINER_OF(job, struct names_job, job);
	struct addrinfo hints = {
		.ai_family = names->family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	names->failed = getaddrinfo(names->host, names->service, &hints, &names->addresses);
	names->saved_errno = errno;
}

/* Alternates between the families, beginning with the one that the system prefers. */
static void order_addresses(struct dial *dial)
{
	const struct addrinfo *next[2] = {dial->addresses, dial->addresses};
	int family = dial->addresses->ai_family;
	for (size_t turn = 0; dial->count < ADDRESSES_MAX && (next[0] || next[1]); turn ^= 1) {
		const struct addrinfo *at = next[turn];
		while (at && (at->ai_family == family) != (turn == 0)) {
			at = at->ai_next;
		}
		if (at) {
			dial->order[dial->count++] = at;
		}
		next[turn] = at ? at->ai_next : NULL;
	}
}

static void names_failed(struct dial *dial, int failed, int saved_errno)
{
	struct error err;
	bool is_for_now = failed == EAI_AGAIN;
	error_set_reason(&err, ERROR_UNAVAILABLE,
		is_for_now ? "HOST_UNREACHABLE" : "HOST_NOT_FOUND", "resolving %s: %s: %s",
		dial->route.target->host,
		failed == EAI_SYSTEM ? strerror(saved_errno) : gai_strerror(failed),
		is_for_now ? "is this machine's network up?"
			   : "correct host in the profile, or its Host in ~/.ssh/config");
	dial_fail(dial, &err);
}

static void names_drop(struct pool_job *job)
{
	struct names_job *names = CONTAINER_OF(job, struct names_job, job);
	if (names->addresses) {
		freeaddrinfo(names->addresses);
	}
	free(names->host);
	free(names);
}

static void names_done(struct pool_job *job)
{
	struct names_job *names = CONTAINER_OF(job, struct names_job, job);
	struct dial *dial = names->dial;
	int failed = names->failed;
	int saved_errno = names->saved_errno;
	dial->names = NULL;
	dial->addresses = names->addresses;
	names->addresses = NULL;
	names_drop(job);
	if (failed != 0) {
		names_failed(dial, failed, saved_errno);
	} else {
		order_addresses(dial);
		dial_next(dial);
	}
}

static struct names_job *names_submit(struct dial *dial, struct error *err)
{
	const struct route *route = &dial->route;
	struct names_job *names = mem_alloc_zero(sizeof(*names));
	names->job = (struct pool_job){
		.lane = POOL_LANE_NAMES, .run = names_run, .done = names_done, .drop = names_drop};
	names->dial = dial;
	names->host = mem_strdup(route->target->host);
	names->family = route->target->address_family;
	names->failed = EAI_AGAIN; // stays if the pool ends before it runs
	snprintf(names->service, sizeof(names->service), "%d", route->target->port);
	if (!pool_submit(route->context->pool, &names->job, err)) {
		error_prefix(err, "resolving %s", names->host);
		names_drop(&names->job);
		return NULL;
	}
	return names;
}

struct route *route_dial(const struct route *request, struct error *err)
{
	struct dial *dial = mem_alloc_zero(sizeof(*dial));
	dial->route = *request;
	dial->route.close = dial_close;
	dial->names = names_submit(dial, err);
	if (!dial->names) {
		free(dial);
		return NULL;
	}
	buf_init(&dial->failures, FAILURES_MAX);
	long long timeout_ms = request->target->connect_timeout_ms;
	ev_timer_init(&dial->stagger, on_stagger, 0, STAGGER_MS / 1000.0);
	ev_timer_init(&dial->deadline, on_deadline, 0,
		(double)(timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS) / 1000);
	ev_timer_again(request->context->loop, &dial->deadline);
	return &dial->route;
}
