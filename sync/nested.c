/* SPDX-License-Identifier: MIT */
#include "sync/nested.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store_impl.h"

static const char name[] = "nested";

void nested_add(struct buf *lines, struct span path)
{
	for (size_t i = 0; i < path.len; i++) {
		if ((unsigned char)path.data[i] < ' ') {
			return;
		}
	}
	(void)!buf_append_format(lines, NULL, "%.*s\n", (int)path.len, path.data);
}

void nested_read(const struct store *store, struct buf *out)
{
	ATTR_CLEANUP(fd_cleanup) int fd = openat(store->folder_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? 1 : 0;
	buf_clear(out);
	while (count > 0) {
		char *at = buf_reserve(out, 1024, NULL);
		count = at ? read(fd, at, 1024) : 0;
		if (count > 0) {
			buf_commit(out, (size_t)count);
		}
	}
	if (count < 0 || (out->len > 0 && buf_span(out).data[out->len - 1] != '\n')) {
		buf_clear(out);
	}
}

bool nested_write(struct store *store, const struct buf *lines, struct error *err)
{
	struct buf before;
	struct span now = buf_span(lines);
	struct temp temp = {.fd = -1};
	buf_init(&before, NESTED_MAX + 1024);
	nested_read(store, &before);
	bool is_same = before.len == now.len &&
	               (now.len == 0 || memcmp(buf_span(&before).data, now.data, now.len) == 0);
	buf_finish(&before);
	if (is_same) {
		return true;
	}
	bool written = temp_create(store, &temp, err) && fd_write_all(temp.fd, now, err) &&
	               temp_rename(store, &temp, name, err);
	temp_discard(store, &temp);
	return written;
}
