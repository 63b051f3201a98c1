/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void io_close(struct ev_loop *loop, ev_io *io)
{
	ev_io_stop(loop, io);
	if (io->fd >= 0) {
		close(io->fd);
		ev_io_set(io, -1, io->events);
	}
}

bool io_is_transient(int errnum)
{
	return errnum == EAGAIN || errnum == EINTR;
}

void io_keep_words(char *tail, size_t max, struct span bytes)
{
	size_t fresh = bytes.len < max ? bytes.len : max;
	size_t old = strlen(tail);
	size_t kept = old < max - fresh ? old : max - fresh;
	memmove(tail, tail + old - kept, kept);
	for (size_t i = 0; i < fresh; i++) {
		unsigned char byte = (unsigned char)bytes.data[bytes.len - fresh + i];
		tail[kept + i] = byte >= ' ' && byte < 0x7f ? (char)byte : ' ';
	}
	tail[kept + fresh] = '\0';
}
