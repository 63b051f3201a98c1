/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <unistd.h>

#include "providers/mux/mux.h"

enum {
	CHUNK = 16384,
	CHUNKS_MAX = 8, // per call, so that others get their turn
};

enum mux_pump mux_pump_out(struct mux_stream *stream, int fd, bool *has_read)
{
	char bytes[CHUNK];
	for (int i = 0; i < CHUNKS_MAX; i++) {
		size_t room = mux_stream_room(stream);
		if (room == 0) {
			mux_stream_write(stream, (struct span){bytes, 1}); // asks for on_writable
			return MUX_PUMP_LINK;
		}
		ssize_t count = read(fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0 && errno == EAGAIN) {
			return MUX_PUMP_FD;
		}
		bool is_hung_up = count < 0 && errno == EIO; // a terminal that no process has open
		if (count < 0 && !is_hung_up) {
			return MUX_PUMP_BROKEN;
		}
		if (count == 0 || is_hung_up) {
			mux_stream_finish(stream);
			return MUX_PUMP_OVER;
		}
		mux_stream_write(stream, (struct span){bytes, (size_t)count});
		if (has_read) {
			*has_read = true;
		}
	}
	return MUX_PUMP_FD;
}

enum mux_pump mux_pump_in(struct mux_stream *stream, int fd)
{
	for (int i = 0; i < CHUNKS_MAX; i++) {
		struct span bytes = mux_stream_peek(stream);
		if (bytes.len == 0) {
			return mux_stream_is_over(stream) ? MUX_PUMP_OVER : MUX_PUMP_LINK;
		}
		ssize_t count = write(fd, bytes.data, bytes.len);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return errno == EAGAIN ? MUX_PUMP_FD : MUX_PUMP_BROKEN;
		}
		mux_stream_consume(stream, (size_t)count);
	}
	return MUX_PUMP_FD;
}
