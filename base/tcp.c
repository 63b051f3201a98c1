/* SPDX-License-Identifier: MIT */
#include "base/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { ALIVE_S = 60 }; // silence after which the kernel asks whether the peer is still there

void tcp_keep_alive(int fd)
{
	const int on = 1;
	const int idle = ALIVE_S;
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void tcp_make_abrupt(int fd)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}
