/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/guard.h"
#include "base/io.h"
#include "base/text.h"
#include "providers/local/keys/exchange.h"
#include "providers/local/net/confinement.h"

/* The number of its descriptor. */
enum { AT_CONTROL = 0 };
enum { AUTHORITIES_MAX = 8 << 20, PAUSE_MS = 100 };

struct holder {
	struct keys_start start;
	int fds[KEYS_MAX];
	struct exchanges exchanges;
	ev_io control;
	ev_io lookup;
	ev_io ports[KEYS_MAX];
	ev_timer pause; // while it runs, no connection is accepted
};

static void say(const struct keys_message *message, int flags)
{
	while (send(AT_CONTROL, message, sizeof(*message), MSG_NOSIGNAL | flags) < 0 &&
		errno == EINTR) {
	}
}

static void end_with(const struct error *err) ATTR_NORETURN;
static void end_with(const struct error *err)
{
	struct keys_message message = {
		.kind = KEYS_FAILED, .is_unavailable = error_has_reason(err, "CELL_UNAVAILABLE")};
	helper_put_text(message.text, sizeof(message.text), err);
	say(&message, 0);
	_exit(1);
}

/* ---- events ---- */

static void watch_ports(struct holder *holder)
{
	struct ev_loop *loop = holder->exchanges.loop;
	bool is_open = holder->exchanges.count < EXCHANGES_MAX && !ev_is_active(&holder->pause);
	for (size_t i = 0; i < holder->start.count; i++) {
		if (is_open) {
			ev_io_start(loop, &holder->ports[i]);
		} else {
			ev_io_stop(loop, &holder->ports[i]);
		}
	}
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	watch_ports(CONTAINER_OF(timer, struct holder, pause));
}

static void on_port(struct ev_loop *loop, ev_io *io, int events)
{
	struct holder *holder = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		exchanges_add(&holder->exchanges, fd, (size_t)(io - holder->ports));
	} else if (!io_is_transient(errno)) {
		ev_timer_set(&holder->pause, (double)PAUSE_MS / 1000., 0.);
		ev_timer_start(loop, &holder->pause);
	}
	watch_ports(holder);
}

/* The broker sends nothing after the start. */
static void on_control(struct ev_loop *loop, ev_io *io, int events)
{
	_exit(0);
}

static void on_found(struct ev_loop *loop, ev_io *io, int events)
{
	struct holder *holder = CONTAINER_OF(io, struct holder, lookup);
	struct lookup_answer packet, answer;
	struct error err;
	ssize_t size = recv(io->fd, &packet, sizeof(packet), MSG_DONTWAIT);
	if (size < 0 && io_is_transient(errno)) {
		return;
	}
	struct span span = {(const char *)&packet, size > 0 ? (size_t)size : 0};
	if (!lookup_read(span, &answer)) {
		error_set(&err, ERROR_UNAVAILABLE, "the process that looks up names has ended");
		end_with(&err);
	}
	exchanges_found(&holder->exchanges, &answer);
}

/* ---- callbacks of the exchanges ---- */

/* Only for the log, so a broker that is too slow misses some. */
static void on_answered(void *data, const struct keys_message *message)
{
	say(message, MSG_DONTWAIT);
}

static bool on_lookup(void *data, const struct lookup_request *request)
{
	const struct holder *holder = data;
	size_t size = lookup_request_size(request);
	return send(holder->lookup.fd, request, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

static void on_ended(void *data)
{
	watch_ports(data);
}

static const struct exchanges_listener exchanges_listener = {
	.on_answered = on_answered, .on_lookup = on_lookup, .on_ended = on_ended};

/* ---- the start ---- */

/* Must be read before the confinement forbids opening files. */
static bool read_authorities(
	struct holder *holder, const struct curl *curl, struct buf *out, struct error *err)
{
	const char *path = holder->start.authorities;
	if (path[0] == '\0') {
		path = curl->version_info(CURLVERSION_NOW)->cainfo;
	}
	if (!path) {
		return error_set(err, ERROR_CONFIG,
			"libcurl has no file of certificates: set SSL_CERT_FILE");
	}
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : 1;
	while (count > 0) {
		char *at = buf_reserve(out, 64 << 10, err);
		if (!at) {
			return error_prefix(err, "reading %s", path);
		}
		count = read(fd, at, 64 << 10);
		buf_commit(out, count > 0 ? (size_t)count : 0);
	}
	if (count < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "reading certificates from %s", path);
	}
	return true;
}

static void watch_all(struct holder *holder, int lookup)
{
	struct ev_loop *loop = holder->exchanges.loop;
	ev_io_init(&holder->control, on_control, AT_CONTROL, EV_READ);
	ev_io_init(&holder->lookup, on_found, lookup, EV_READ);
	ev_timer_init(&holder->pause, on_pause, 0., 0.);
	ev_io_start(loop, &holder->control);
	ev_io_start(loop, &holder->lookup);
	for (size_t i = 0; i < holder->start.count; i++) {
		ev_io_init(&holder->ports[i], on_port, holder->fds[i], EV_READ);
		holder->ports[i].data = holder;
	}
	watch_ports(holder);
}

static bool set_up(struct holder *holder, struct error *err)
{
	static struct buf authorities; // until this process ends
	struct exchanges *exchanges = &holder->exchanges;
	buf_init(&authorities, AUTHORITIES_MAX);
	const struct curl *curl = curl_open(err);
	if (!curl || !read_authorities(holder, curl, &authorities, err) ||
		!confinement_become(holder->start.uid, holder->start.gid, err) ||
		!confinement_prepare(err)) {
		return false;
	}
	int lookup = lookup_start(&holder->start, sizeof(holder->start), err);
	if (lookup < 0) {
		return false;
	}
	exchanges->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	if (!exchanges->loop) {
		return error_set(err, ERROR_SYSTEM, "making an event loop");
	}
	exchanges->authorities =
		(struct curl_blob){.data = authorities.data, .len = authorities.len};
	exchanges->start = &holder->start;
	exchanges->listener = &exchanges_listener;
	exchanges->data = holder;
	tzset(); // reads a file; certificates contain dates
	exchanges_init(exchanges, curl);
	watch_all(holder, lookup);
	return confinement_apply(CONFINEMENT_KEYS, err);
}

bool holder_is_asked(int argc, char *const *argv)
{
	return argc == 2 && strcmp(argv[1], HOLDER_ARGUMENT) == 0;
}

void holder_run(void)
{
	struct holder *holder = mem_alloc_zero(sizeof(*holder)); // until this process ends
	const struct keys_message ready = {.kind = KEYS_READY};
	struct error err;
	struct stat status;
	prctl(PR_SET_NAME, GUARD_NAME);
	prctl(PR_SET_DUMPABLE, 0); // before it has the keys
	if (fstat(AT_CONTROL, &status) != 0 || !S_ISSOCK(status.st_mode) ||
		!keys_take_start(AT_CONTROL, &holder->start, holder->fds)) {
		_exit(1); // not started by the broker, or the broker has ended
	}
	if (!set_up(holder, &err)) {
		error_prefix(&err, "starting the process that holds the keys");
		end_with(&err);
	}
	say(&ready, 0);
	ev_run(holder->exchanges.loop, 0);
	_exit(0);
}
