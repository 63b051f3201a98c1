/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sync/delta_impl.h"

enum {
	WINDOW_MIN = 256 << 10,
	READ_COST = 4096, // the cost of one read, even of a few bytes
};

void delta_window_init(struct delta_window *window, uint64_t size, size_t block)
{
	window->size = size;
	window->capacity = 2 * block > WINDOW_MIN ? 2 * block : WINDOW_MIN;
	window->bytes = mem_alloc(window->capacity);
}

void delta_window_finish(struct delta_window *window)
{
	free(window->bytes);
	window->bytes = NULL;
}

static bool read_fd(int fd, char *to, size_t len, uint64_t at)
{
	size_t done = 0;
	while (done < len) {
		ssize_t count = pread(fd, to + done, len - done, (off_t)(at + done));
		if (count == 0 || (count < 0 && errno != EINTR)) {
			return false;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return true;
}

static bool is_over(const struct delta_work *work)
{
	return work->failed || work->done > work->max ||
	       (work->is_cancelled && atomic_load(work->is_cancelled));
}

/* In the older version, the bytes may lie in many pieces, each of which needs a read. */
bool delta_window_read(struct delta_window *window, char *to, size_t len, uint64_t at)
{
	struct delta_work *work = window->work;
	struct delta_reader *from = window->from;
	if (is_over(work)) {
		work->failed = true;
		return false;
	}
	uint64_t reads = from ? from->reads : 0;
	bool read = from ? delta_reader_read(from, to, len, at) : read_fd(window->fd, to, len, at);
	work->done += len + READ_COST * (from ? from->reads - reads : 1);
	work->failed = !read;
	return read;
}

const char *delta_window_see(struct delta_window *window, uint64_t at, size_t len)
{
	if (at < window->at || at + len > window->at + window->len) {
		uint64_t left = window->size - at;
		size_t want = left < window->capacity ? (size_t)left : window->capacity;
		window->at = at;
		window->len = 0;
		if (!delta_window_read(window, window->bytes, want, at)) {
			return NULL;
		}
		window->len = want;
	}
	return window->bytes + (at - window->at);
}
