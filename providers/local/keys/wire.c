/* SPDX-License-Identifier: MIT */
#include "providers/local/keys/wire.h"

#include <assert.h>
#include <string.h>

#include "base/fd_pass.h"

static_assert((int)KEYS_MAX == (int)PORTS_KEYS_MAX, "one socket for each key");

enum { STATUS_MIN = 100, STATUS_MAX = 999 };

bool keys_send_start(int control, const struct keys_start *start, const int *fds)
{
	return fd_pass(
		control, (struct span){(const char *)start, sizeof(*start)}, fds, start->count);
}

bool keys_take_start(int control, struct keys_start *out, int out_fds[KEYS_MAX])
{
	size_t count = 0;
	ssize_t size = fd_take(control, out, sizeof(*out), out_fds, KEYS_MAX, &count);
	return size == (ssize_t)sizeof(*out) && count > 0 && count == out->count &&
	       upstream_is_whole(&out->upstream);
}

bool keys_read(struct span packet, size_t count, struct keys_message *out)
{
	if (packet.len != sizeof(*out)) {
		return false;
	}
	memcpy(out, packet.data, sizeof(*out));
	bool has_status =
		out->status == 0 || (out->status >= STATUS_MIN && out->status <= STATUS_MAX);
	return helper_text_is_whole(out->text, sizeof(out->text)) &&
	       (out->kind == KEYS_READY || out->kind == KEYS_FAILED ||
		       (out->kind == KEYS_ANSWERED && out->index < count && has_status));
}
