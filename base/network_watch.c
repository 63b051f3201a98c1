/* SPDX-License-Identifier: MIT */
#include "base/network_watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/point.h"

enum {
	MESSAGE_MAX = 8192,
	MESSAGES_MAX = 64, // read in one turn of the loop; the others wait for the next
	MS = 1000,
	NS_PER_MS = 1000000,
};

static const unsigned groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE |
                               RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;

static long long read_ms(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return (long long)now.tv_sec * MS + now.tv_nsec / NS_PER_MS;
}

/* While the machine is suspended, CLOCK_BOOTTIME goes on and CLOCK_MONOTONIC stands still. */
static long long suspended_ms(void)
{
	return read_ms(CLOCK_BOOTTIME) - read_ms(CLOCK_MONOTONIC);
}

static void note(struct network_watch *watch)
{
	long long since_ms = clock_now_ms() - watch->last_ms;
	long long wait_ms =
		watch->last_ms > 0 && since_ms < NETWORK_PAUSE_MS ? NETWORK_PAUSE_MS - since_ms : 0;
	if (!ev_is_active(&watch->settle)) {
		wait_ms = wait_ms > NETWORK_SETTLE_MS ? wait_ms : NETWORK_SETTLE_MS;
		ev_timer_set(&watch->settle, (double)wait_ms / MS, 0.);
		ev_timer_start(watch->loop, &watch->settle);
	}
}

static void on_settled(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct network_watch *watch = CONTAINER_OF(timer, struct network_watch, settle);
	bool has_slept = watch->has_slept;
	watch->has_slept = false;
	watch->last_ms = clock_now_ms();
	watch->on_change(watch, has_slept);
}

/* ---- addresses, links, routes ---- */

static bool is_change(const char *bytes, size_t size)
{
	struct nlmsghdr header;
	if (size < sizeof(header)) {
		return false;
	}
	memcpy(&header, bytes, sizeof(header));
	return header.nlmsg_type >= RTM_BASE;
}

/* It does not matter which change it was. If messages were lost, that is a change, too. */
static void on_changes(struct ev_loop *loop, ev_io *io, int events)
{
	struct network_watch *watch = CONTAINER_OF(io, struct network_watch, changes);
	for (int i = 0; i < MESSAGES_MAX; i++) {
		char bytes[MESSAGE_MAX];
		struct sockaddr_nl from = {0};
		socklen_t from_size = sizeof(from);
		ssize_t size = recvfrom(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT,
			(struct sockaddr *)&from, &from_size);
		if (size < 0 && errno != ENOBUFS) {
			if (!io_is_transient(errno)) {
				io_close(loop, io);
			}
			return;
		}
		if (size < 0 || (from.nl_pid == 0 && is_change(bytes, (size_t)size))) {
			note(watch);
		}
	}
}

static int open_changes(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		fd_close(&fd);
	}
	return fd;
}

/* ---- a suspend ---- */

/* The kernel cancels the timer when the clock jumps, as it also does after a suspend. */
static bool arm_clock(int fd)
{
	const struct itimerspec never = {.it_value = {.tv_sec = INT32_MAX}};
	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) == 0;
}

static void on_clock(struct ev_loop *loop, ev_io *io, int events)
{
	struct network_watch *watch = CONTAINER_OF(io, struct network_watch, clock);
	uint64_t count;
	long long now_ms = suspended_ms();
	ssize_t size = read(io->fd, &count, sizeof(count));
	if (size < 0 && errno == ECANCELED && !arm_clock(io->fd)) {
		io_close(loop, io);
	}
	if (now_ms - watch->suspended_ms >= NETWORK_SLEPT_MS) {
		watch->suspended_ms = now_ms;
		watch->has_slept = true;
		note(watch);
	}
}

static int open_clock(void)
{
	int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd >= 0 && !arm_clock(fd)) {
		fd_close(&fd);
	}
	return fd;
}

/* ---- life ---- */

static void watch_fd(struct ev_loop *loop, ev_io *io, int fd,
	void (*on_ready)(struct ev_loop *loop, ev_io *io, int events))
{
	ev_io_init(io, on_ready, fd, EV_READ);
	if (fd >= 0) {
		ev_io_start(loop, io);
	}
}

void network_watch_start(struct network_watch *watch, struct ev_loop *loop,
	void (*on_change)(struct network_watch *watch, bool has_slept))
{
	*watch = (struct network_watch){.loop = loop, .on_change = on_change};
	watch->suspended_ms = suspended_ms();
	ev_init(&watch->settle, on_settled);
	watch_fd(loop, &watch->changes, open_changes(), on_changes);
	watch_fd(loop, &watch->clock, open_clock(), on_clock);
}

void network_watch_stop(struct network_watch *watch)
{
	if (watch->loop) {
		ev_timer_stop(watch->loop, &watch->settle);
		io_close(watch->loop, &watch->changes);
		io_close(watch->loop, &watch->clock);
		watch->loop = NULL;
	}
}
