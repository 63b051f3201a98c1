/* SPDX-License-Identifier: MIT */
#include "providers/local/net/hello.h"

#include <stdint.h>

enum {
	RECORD_HEAD = 5,
	RECORD_HANDSHAKE = 22,
	RECORD_MAX = 16 << 10,
	CLIENT_HELLO = 1,
	VERSION_AND_RANDOM = 2 + 32,
	EXTENSION_SERVER_NAME = 0,
	NAME_IS_HOST = 0,
};

/* Takes a number of `bytes` bytes from the front of *rest. False: *rest is too short. */
static bool take_number(struct span *rest, size_t bytes, size_t *out)
{
	if (rest->len < bytes) {
		return false;
	}
	*out = 0;
	for (size_t i = 0; i < bytes; i++) {
		*out = *out << 8 | (unsigned char)rest->data[i];
	}
	*rest = (struct span){rest->data + bytes, rest->len - bytes};
	return true;
}

/* Takes a part that follows its length of `bytes` bytes. */
static bool take_part(struct span *rest, size_t bytes, struct span *out)
{
	size_t len;
	if (!take_number(rest, bytes, &len) || rest->len < len) {
		return false;
	}
	*out = (struct span){rest->data, len};
	*rest = (struct span){rest->data + len, rest->len - len};
	return true;
}

/* Skips everything before the extensions. */
static bool find_extensions(struct span record, struct span *out)
{
	size_t kind;
	struct span hello, skipped;
	if (!take_number(&record, 1, &kind) || kind != CLIENT_HELLO ||
		!take_part(&record, 3, &hello) || hello.len < VERSION_AND_RANDOM) {
		return false;
	}
	hello = (struct span){hello.data + VERSION_AND_RANDOM, hello.len - VERSION_AND_RANDOM};
	return take_part(&hello, 1, &skipped) && take_part(&hello, 2, &skipped) &&
	       take_part(&hello, 1, &skipped) && take_part(&hello, 2, out);
}

/* The list has at most one name of a type, and there is only one type. */
static bool read_server_name(struct span extension, char out[NAME_SIZE])
{
	size_t kind;
	struct span list, name;
	return take_part(&extension, 2, &list) && take_number(&list, 1, &kind) &&
	       kind == NAME_IS_HOST && take_part(&list, 2, &name) && host_name_read(out, name);
}

enum hello_step hello_read(struct span input, char out[NAME_SIZE])
{
	size_t kind, version, len;
	struct span rest = input;
	if (input.len > 0 && (unsigned char)input.data[0] != RECORD_HANDSHAKE) {
		return HELLO_NONE;
	}
	if (input.len < RECORD_HEAD) {
		return HELLO_MORE;
	}
	if (!take_number(&rest, 1, &kind) || !take_number(&rest, 2, &version) ||
		!take_number(&rest, 2, &len) || version >> 8 != 3 || len == 0 || len > RECORD_MAX) {
		return HELLO_NONE;
	}
	if (rest.len < len) {
		return HELLO_MORE;
	}
	struct span extensions;
	if (!find_extensions((struct span){rest.data, len}, &extensions)) {
		return HELLO_NONE;
	}
	while (extensions.len > 0) {
		struct span extension;
		if (!take_number(&extensions, 2, &kind) || !take_part(&extensions, 2, &extension)) {
			return HELLO_NONE;
		}
		if (kind == EXTENSION_SERVER_NAME) {
			return read_server_name(extension, out) ? HELLO_NAME : HELLO_NONE;
		}
	}
	return HELLO_NONE;
}
