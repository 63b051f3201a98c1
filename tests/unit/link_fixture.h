/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_LINK_FIXTURE_H
#define TESTS_UNIT_LINK_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "acp/link.h"
#include "acp/places.h"
#include "base/fd.h"

enum {
	MAX_MESSAGE = 1024 * 1024,
	MAX_QUEUE = 10000,
	TURNS = 20, // turns of the loop, enough for everything that needs no waiting
	LOG_MAX = 4096,
};

/*
 * A link, the peer's ends of it, and the events that it raised, one word each: "frame:… end drained
 * ".
 */
struct fixture {
	struct ev_loop *loop;
	struct json_places *places;
	struct link link;
	int to;   // what the peer writes
	int from; // what the peer reads
	char told[LOG_MAX];
	int refuse; // how many frames are refused yet
	void (*on_frame)(struct fixture *fixture, const struct frame *frame);
	void (*on_drained)(struct fixture *fixture);
};

static inline void tell(struct fixture *fixture, const char *format, ...) ATTR_PRINTF(2, 3);

static inline void tell(struct fixture *fixture, const char *format, ...)
{
	size_t len = strlen(fixture->told);
	va_list args;
	va_start(args, format);
	vsnprintf(fixture->told + len, LOG_MAX - len, format, args);
	va_end(args);
}

static inline void assert_told(struct fixture *fixture, const char *expected)
{
	assert_string_equal(fixture->told, expected);
	fixture->told[0] = '\0';
}

static inline bool on_frame(void *data, const struct frame *frame)
{
	struct fixture *fixture = data;
	if (fixture->refuse > 0) {
		fixture->refuse--;
		tell(fixture, "refused:%.*s ", (int)frame->bytes.len, frame->bytes.data);
		return false;
	}
	if (fixture->on_frame) {
		fixture->on_frame(fixture, frame);
	} else {
		tell(fixture, "frame:%.*s ", (int)frame->bytes.len, frame->bytes.data);
	}
	return true;
}

static inline void on_end(void *data, const struct error *err)
{
	tell(data, "end(%s) ", err ? err->text : "");
}

static inline void on_broken(void *data, const struct error *err)
{
	tell(data, "broken(%s) ", err->text);
}

static inline void on_drained(void *data)
{
	struct fixture *fixture = data;
	tell(fixture, "drained ");
	if (fixture->on_drained) {
		fixture->on_drained(fixture);
	}
}

static inline void on_flushed(void *data)
{
	tell(data, "flushed ");
}

static const struct link_listener listener = {
	.on_frame = on_frame,
	.on_end = on_end,
	.on_broken = on_broken,
	.on_drained = on_drained,
	.on_flushed = on_flushed,
};

static inline int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->loop = ev_loop_new(EVFLAG_AUTO);
	fixture->places = places_create();
	fixture->to = fixture->from = -1;
	struct link_config config = {
		.loop = fixture->loop,
		.places = fixture->places,
		.max_message = MAX_MESSAGE,
		.max_queue = MAX_QUEUE,
		.listener = &listener,
		.data = fixture,
	};
	link_init(&fixture->link, &config);
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;
	link_close(&fixture->link);
	link_finish(&fixture->link);
	fd_close(&fixture->to);
	fd_close(&fixture->from);
	json_places_destroy(fixture->places);
	ev_loop_destroy(fixture->loop);
	free(fixture);
	return 0;
}

static inline void unblock(int fd)
{
	struct error err;
	assert_true(fd_set_nonblock(fd, true, &err));
}

/* Connects by two pipes; the pipe to the peer holds one page. */
static inline void connect_pipes(struct fixture *fixture)
{
	struct error err;
	int in[2];
	int out[2];
	assert_true(fd_pipe(in, &err) && fd_pipe(out, &err));
	assert_true(fcntl(out[1], F_SETPIPE_SZ, 4096) >= 4096);
	unblock(in[0]);
	unblock(out[1]);
	unblock(out[0]);
	fixture->to = in[1];
	fixture->from = out[0];
	link_connect(&fixture->link, in[0], out[1]);
}

/* Connects by a packet socket: each write is one packet. */
static inline void connect_packets(struct fixture *fixture)
{
	int fds[2];
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	assert_int_equal(socketpair(AF_UNIX, type, 0, fds), 0);
	fixture->from = fds[0];
	link_connect(&fixture->link, -1, fds[1]);
}

static inline void turn(struct fixture *fixture)
{
	for (int i = 0; i < TURNS; i++) {
		ev_run(fixture->loop, EVRUN_NOWAIT);
	}
}

static inline void peer_writes(struct fixture *fixture, const char *text)
{
	assert_int_equal(write(fixture->to, text, strlen(text)), strlen(text));
}

/* Everything that the peer can read now; terminated, valid until the next call. */
static inline const char *peer_reads(struct fixture *fixture)
{
	static char text[1 << 20];
	size_t len = 0;
	for (int i = 0; i < 1000; i++) {
		ssize_t got = read(fixture->from, text + len, sizeof(text) - 1 - len);
		if (got <= 0) {
			break;
		}
		len += (size_t)got;
		turn(fixture);
	}
	text[len] = '\0';
	return text;
}

static inline void send_text(struct fixture *fixture, const char *text)
{
	link_send(&fixture->link, span_of(text));
}

static inline void send_bytes(struct fixture *fixture, size_t len)
{
	char *text = mem_alloc(len);
	memset(text, 'x', len);
	link_send(&fixture->link, (struct span){text, len});
	free(text);
}

#define LINK_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
