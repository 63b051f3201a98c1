/* SPDX-License-Identifier: MIT */
#include "providers/local/helper.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/soon.h"
#include "base/text.h"

#define PROGRAM "/proc/self/exe"

/* Limits for reading packets: in a burst, and per second. */
enum { PACKETS_MAX = 2048, REFILL = 100, REFILL_MS = 100 };

struct helper {
	struct ev_loop *loop;
	const struct helper_kind *kind;
	const struct helper_listener *listener;
	void *data;
	struct process *process;
	int theirs;        // its end of the channel, until it is started
	ev_io channel;     // -1 once it has ended
	ev_timer deadline; // for the start
	ev_timer refill;   // runs while fewer than PACKETS_MAX may be read
	int packets;       // that may be read now
	struct soon lost;  // a packet could not be sent
	bool has_ended;    // on_end was raised
};

static void stop(struct helper *helper)
{
	ev_timer_stop(helper->loop, &helper->deadline);
	ev_timer_stop(helper->loop, &helper->refill);
	soon_stop(&helper->lost);
	if (helper->channel.fd >= 0) {
		io_close(helper->loop, &helper->channel); // this ends the process
	}
}

/* The owner may destroy the helper in this call. */
static void raise_end(struct helper *helper, const struct error *err)
{
	if (helper->has_ended) {
		return;
	}
	helper->has_ended = true;
	stop(helper);
	helper->listener->on_end(helper->data, err);
}

static void lose(struct helper *helper, const char *how)
{
	struct error err;
	error_set(&err, ERROR_UNAVAILABLE, "%s %s", helper->kind->name, how);
	raise_end(helper, &err);
}

void helper_fail(struct helper *helper, const char *text, bool is_unavailable)
{
	struct error err;
	error_set_reason(
		&err, ERROR_UNAVAILABLE, is_unavailable ? "CELL_UNAVAILABLE" : NULL, "%s", text);
	raise_end(helper, &err);
}

void helper_is_ready(struct helper *helper)
{
	ev_timer_stop(helper->loop, &helper->deadline);
}

/* ---- events ---- */

static void count_packet(struct helper *helper)
{
	if (!ev_is_active(&helper->refill)) {
		ev_timer_again(helper->loop, &helper->refill);
	}
	if (--helper->packets == 0) {
		ev_io_stop(helper->loop, &helper->channel);
	}
}

/* Handles one packet per event, so that other watchers of the loop get their turn. */
static void on_channel(struct ev_loop *loop, ev_io *io, int events)
{
	struct helper *helper = CONTAINER_OF(io, struct helper, channel);
	const size_t size = helper->kind->packet_size;
	char bytes[HELPER_PACKET_MAX + 1]; // the last byte shows that a packet is too long
	ssize_t got = recv(io->fd, bytes, size + 1, MSG_DONTWAIT);
	if (got < 0 && io_is_transient(errno)) {
		return;
	}
	if (got <= 0) {
		lose(helper, "has ended");
		return;
	}
	count_packet(helper);
	if ((size_t)got != size ||
		!helper->listener->on_packet(helper->data, (struct span){bytes, size})) {
		lose(helper, "has sent an invalid message");
	}
}

static void on_refill(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct helper *helper = CONTAINER_OF(timer, struct helper, refill);
	helper->packets += REFILL;
	ev_io_start(loop, &helper->channel);
	if (helper->packets >= PACKETS_MAX) {
		helper->packets = PACKETS_MAX;
		ev_timer_stop(loop, timer);
	}
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct helper *helper = CONTAINER_OF(timer, struct helper, deadline);
	struct error err;
	error_set(&err, ERROR_TIMEOUT, "%s was not ready within %d s", helper->kind->name,
		HELPER_START_MS / 1000);
	raise_end(helper, &err);
}

static void on_lost(struct soon *soon)
{
	lose(CONTAINER_OF(soon, struct helper, lost), "does not read what the broker sends");
}

void helper_send(struct helper *helper, struct span packet)
{
	int fd = helper->channel.fd;
	if (fd >= 0 && send(fd, packet.data, packet.len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			       (ssize_t)packet.len) {
		soon_start(&helper->lost);
	}
}

/* ---- the process ---- */

static void on_failed(void *data, const struct error *err)
{
	struct helper *helper = data;
	struct error why = *err;
	error_prefix(&why, "starting %s", helper->kind->name);
	raise_end(helper, &why);
}

/* There is no on_exited: the last packets are still read, and then the channel ends. */
static const struct process_listener process_listener = {
	.on_failed = on_failed,
};

/* ---- the life ---- */

struct helper *helper_create(struct ev_loop *loop, const struct helper_kind *kind,
	const struct helper_listener *listener, void *data, struct error *err)
{
	int channel[2];
	assert(kind->packet_size <= HELPER_PACKET_MAX);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "starting %s: making a socket", kind->name);
		return NULL;
	}
	struct helper *helper = mem_alloc_zero(sizeof(*helper));
	helper->loop = loop;
	helper->kind = kind;
	helper->listener = listener;
	helper->data = data;
	helper->theirs = channel[1];
	helper->packets = PACKETS_MAX;
	ev_io_init(&helper->channel, on_channel, channel[0], EV_READ);
	ev_timer_init(&helper->deadline, on_deadline, (double)HELPER_START_MS / 1000., 0.);
	ev_timer_init(&helper->refill, on_refill, 0., (double)REFILL_MS / 1000.);
	soon_init(&helper->lost, loop, on_lost);
	return helper;
}

int helper_channel(const struct helper *helper)
{
	return helper->channel.fd;
}

bool helper_start(struct helper *helper, struct spawner *spawner, struct error *err)
{
	const char *const argv[] = {PROGRAM, helper->kind->argument, NULL};
	static const char *const env[] = {NULL};
	const struct process_spec spec = {
		.argv = argv, .env = env, .cwd = "/", .in = helper->theirs, .out = -1, .err = -1};
	ev_io_start(helper->loop, &helper->channel);
	ev_timer_start(helper->loop, &helper->deadline);
	helper->process = process_start(spawner, &spec, &process_listener, helper, err);
	fd_close(&helper->theirs);
	return helper->process != NULL;
}

void helper_destroy(struct helper *helper)
{
	if (helper) {
		stop(helper);
		fd_close(&helper->theirs);
		process_destroy(helper->process);
		free(helper);
	}
}

/* ---- texts ---- */

bool helper_text_is_whole(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);
	for (const char *at = text; end && at < end; at++) {
		if (*at < ' ' || *at > '~') {
			return false;
		}
	}
	return end != NULL;
}

void helper_put_text(char *out, size_t size, const struct error *err)
{
	text_format(out, size, "%s", err->text);
	for (char *at = out; *at; at++) {
		*at = *at < ' ' || *at > '~' ? '?' : *at;
	}
}
