/* SPDX-License-Identifier: MIT */
#include "providers/local/net/lookup.h"

#include <errno.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"
#include "providers/local/net/confinement.h"

enum {
	STACK_BYTES = 1 << 20,
	SEND_BYTES = 512 << 10, // size of a socket's buffer, as far as the machine allows it
	AT_OWN = 3,
	ROUTE_S = 5,
};

/*
 * Whether the kernel would deliver packets for the address to this machine itself (rtnetlink(7)).
 * Comparing it with the source address proves nothing: for a second address of an interface, the
 * kernel chooses the first one as the source. If the kernel gives no answer, the address counts as
 * this machine's.
 */
static bool is_own(const struct address *address)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr attribute;
		uint8_t bytes[16];
	} request = {.header = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST}};
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;
	const struct timeval deadline = {.tv_sec = ROUTE_S};
	const size_t len = address->family == AF_INET ? 4 : 16;
	request.header.nlmsg_len = (uint32_t)(sizeof(request) - sizeof(request.bytes) + len);
	request.route.rtm_family = (uint8_t)address->family;
	request.route.rtm_dst_len = (uint8_t)(8 * len);
	request.attribute.rta_type = RTA_DST;
	request.attribute.rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(request.bytes, address->bytes, len);
	ATTR_CLEANUP(fd_cleanup)
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) != 0 ||
		send(fd, &request, request.header.nlmsg_len, 0) < 0) {
		return true;
	}
	ssize_t size = recv(fd, &answer, sizeof(answer), 0);
	if (size < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg))) {
		return true;
	}
	const struct rtmsg *route = NLMSG_DATA(&answer.header);
	return answer.header.nlmsg_type == RTM_NEWROUTE && route->rtm_type == RTN_LOCAL;
}

static void find(const char *name, struct lookup_answer *answer)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	if (getaddrinfo(name, NULL, &hints, &list) != 0) {
		return;
	}
	for (const struct addrinfo *at = list; at && answer->count < LOOKUP_ADDRESSES_MAX;
		at = at->ai_next) {
		struct lookup_found *found = &answer->found[answer->count];
		if (address_from_name(&found->address, at->ai_addr)) {
			found->is_own = is_own(&found->address);
			answer->count++;
		}
	}
	freeaddrinfo(list);
}

/* All of this machine's addresses count as one, because its services may listen on all of them. */
static bool is_same_host(const struct lookup_found *a, const struct lookup_found *b)
{
	const struct address one = address_carried(&a->address);
	const struct address other = address_carried(&b->address);
	return (a->is_own && b->is_own) ||
	       (one.family == other.family &&
		       memcmp(one.bytes, other.bytes, sizeof(one.bytes)) == 0);
}

/* If the other name has no address now, each address may be its own. */
static void find_avoided(const char *avoid, struct lookup_answer *answer)
{
	struct lookup_answer avoided = {.count = 0};
	find(avoid, &avoided);
	for (uint32_t i = 0; i < answer->count; i++) {
		if (avoided.count == 0) {
			answer->found[i].is_avoided = true;
		}
		for (uint32_t j = 0; j < avoided.count; j++) {
			if (is_same_host(&avoided.found[j], &answer->found[i])) {
				answer->found[i].is_avoided = true;
			}
		}
	}
}

size_t lookup_request_size(const struct lookup_request *request)
{
	size_t count = LOOKUP_AVOID_MAX;
	while (count > 0 && request->avoid[count - 1][0] == '\0') {
		count--;
	}
	return offsetof(struct lookup_request, avoid) + count * NAME_SIZE;
}

/* Each thread takes the next request; only one of them receives a packet. */
static void *serve(void *data)
{
	int fd = *(const int *)data;
	for (;;) {
		struct lookup_request request = {.id = 0};
		struct lookup_answer answer = {.count = 0};
		ssize_t size = recv(fd, &request, sizeof(request), 0);
		if (size < 0 && errno == EINTR) {
			continue;
		}
		if (size < (ssize_t)offsetof(struct lookup_request, avoid)) {
			_exit(0);
		}
		request.name[sizeof(request.name) - 1] = '\0';
		answer.id = request.id;
		find(request.name, &answer);
		for (size_t i = 0; i < LOOKUP_AVOID_MAX && answer.count > 0; i++) {
			request.avoid[i][NAME_SIZE - 1] = '\0';
			if (request.avoid[i][0]) {
				find_avoided(request.avoid[i], &answer);
			}
		}
		while (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0) {
			if (errno != EINTR) {
				_exit(0);
			}
		}
	}
}

bool lookup_read(struct span packet, struct lookup_answer *out)
{
	if (packet.len != sizeof(*out)) {
		return false;
	}
	memcpy(out, packet.data, sizeof(*out));
	bool is_valid = out->count <= LOOKUP_ADDRESSES_MAX;
	for (uint32_t i = 0; is_valid && i < out->count; i++) {
		uint16_t family = out->found[i].address.family;
		is_valid = family == AF_INET || family == AF_INET6;
	}
	return is_valid;
}

void lookup_run(int fd)
{
	struct error err;
	pthread_attr_t attributes;
	pthread_t thread;
	if (!confinement_apply(CONFINEMENT_LOOKUP, &err) || pthread_attr_init(&attributes) != 0 ||
		pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0) {
		_exit(1);
	}
	for (int i = 1; i < LOOKUP_THREADS; i++) {
		if (pthread_create(&thread, &attributes, serve, &fd) != 0) {
			break; // it also works with fewer threads
		}
	}
	serve(&fd);
	_exit(0);
}

/* Returns the child's process id in the parent. */
static pid_t fork_with(int socket, void *secret, size_t size)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid != 0) {
		return pid;
	}
	if (secret) {
		explicit_bzero(secret, size);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(1);
	}
	int own = dup2(socket, AT_OWN);
	libc_close_range(AT_OWN + 1, INT_MAX, 0);
	dup2(STDERR_FILENO, STDIN_FILENO); // the parent's stdin is its control socket
	lookup_run(own);
}

int lookup_start(void *secret, size_t size, struct error *err)
{
	const int bytes = SEND_BYTES;
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "making a socket");
		return -1;
	}
	setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	pid_t pid = fork_with(sockets[1], secret, size);
	int errnum = errno;
	fd_close(&sockets[1]);
	if (pid < 0) {
		fd_close(&sockets[0]);
		error_set_errno(err, errnum, "forking the process that looks up names");
	}
	return sockets[0];
}
