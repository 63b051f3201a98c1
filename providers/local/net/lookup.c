/* SPDX-License-Identifier: MIT */
#include "providers/local/net/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "providers/local/net/confinement.h"

enum { STACK_BYTES = 1 << 20 };

/*
 * A datagram socket sends nothing when it is connected, and gets the source that a packet would
 * have: to an address of this machine, that address itself.
 */
static bool is_own(const struct address *address)
{
	struct sockaddr_storage name;
	struct sockaddr_storage source = {.ss_family = AF_UNSPEC};
	struct address from;
	socklen_t size = address_name(address, 1, &name);
	socklen_t source_size = sizeof(source);
	ATTR_CLEANUP(fd_cleanup)
	int fd = socket(address->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&name, size) == 0 &&
	       getsockname(fd, (struct sockaddr *)&source, &source_size) == 0 &&
	       address_from_name(&from, (const struct sockaddr *)&source) &&
	       memcmp(from.bytes, address->bytes, sizeof(from.bytes)) == 0;
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

/* Each thread takes the next request: a packet has one reader. */
static void *serve(void *data)
{
	int fd = *(const int *)data;
	for (;;) {
		struct lookup_request request;
		struct lookup_answer answer = {.count = 0};
		ssize_t size = recv(fd, &request, sizeof(request), 0);
		if (size < 0 && errno == EINTR) {
			continue;
		}
		if (size != (ssize_t)sizeof(request)) {
			_exit(0);
		}
		request.name[sizeof(request.name) - 1] = '\0';
		answer.id = request.id;
		find(request.name, &answer);
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
			break; // fewer do, too
		}
	}
	serve(&fd);
	_exit(0);
}
