/* SPDX-License-Identifier: MIT */
#include "base/fd_pass.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

union space {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

bool fd_pass(int socket, struct span bytes, const int *fds, size_t count)
{
	union space space = {0};
	assert(count > 0 && count <= FD_PASS_MAX);
	struct iovec part = {.iov_base = (char *)bytes.data, .iov_len = bytes.len};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &space,
		.msg_controllen = (unsigned)CMSG_SPACE(sizeof(int) * count)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = (unsigned)CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes.len;
}

ssize_t fd_take(int socket, void *bytes, size_t size, int *out_fds, size_t max, size_t *out_count)
{
	union space space;
	assert(max > 0 && max <= FD_PASS_MAX);
	struct iovec part = {.iov_base = bytes, .iov_len = size};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &space,
		.msg_controllen = (unsigned)CMSG_SPACE(sizeof(int) * max)};
	ssize_t result = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = result > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	*out_count = 0;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		int fds[FD_PASS_MAX + 1]; // the space is rounded up
		size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(head), count * sizeof(int));
		for (size_t i = max; i < count; i++) {
			fd_close(&fds[i]);
		}
		*out_count = count < max ? count : max;
		memcpy(out_fds, fds, *out_count * sizeof(int));
	}
	return result;
}
