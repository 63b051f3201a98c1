/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_KEYS_WIRE_H
#define PROVIDERS_LOCAL_KEYS_WIRE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/helper.h"
#include "providers/local/keys/profile_keys.h"
#include "providers/local/net/ports.h"
#include "providers/local/net/upstream.h"

/*
 * Messages between the broker and the process that holds a cell's keys, over a SOCK_SEQPACKET pair;
 * each packet is one message. Both are the same program, so structs define the format. But that
 * process reads data from the cell and the Internet, so the broker checks everything that it sends.
 */
enum {
	KEY_SECRET_MIN = 8, // a shorter one could occur in ordinary text
	KEY_SECRET_MAX = 4096,
	KEY_PLACEHOLDER_SIZE = 64,
	KEY_HEADER_SIZE = 32,
};

struct keys_place {
	char host[NAME_SIZE];
	char path[KEY_PATH_SIZE];
	char header[KEY_HEADER_SIZE]; // "": "Authorization: Bearer"
	char secret[KEY_SECRET_MAX + 1];
	char placeholder[KEY_PLACEHOLDER_SIZE]; // every request must contain it
	uint32_t port;
};

/*
 * The broker's only packet, with `count` sockets that listen in the cell. It contains the keys:
 * wipe it.
 */
struct keys_start {
	uint32_t uid; // user to become if it is root
	uint32_t gid;
	uint32_t count;
	char authorities[PATH_MAX]; // a file of certificates; "": libcurl's default
	struct upstream upstream;   // this machine's proxy
	struct keys_place places[KEYS_MAX];
};

enum keys_kind {
	KEYS_READY,
	KEYS_FAILED,   // the last message; `text` gives the reason
	KEYS_ANSWERED, // the server's answer to a request with the key `index`
};

struct keys_message {
	uint32_t kind;
	uint32_t index;
	uint32_t status;         // HTTP status; 0: the server was not reached, and `text` says why
	uint32_t is_unavailable; // KEYS_FAILED with the reason CELL_UNAVAILABLE
	char text[HELPER_TEXT_SIZE];
};

bool keys_send_start(int control, const struct keys_start *start, const int *fds) ATTR_NODISCARD;
bool keys_take_start(int control, struct keys_start *out, int out_fds[KEYS_MAX]) ATTR_NODISCARD;

/* False if that process would never write such a packet. `count` is the number of keys. */
bool keys_read(struct span packet, size_t count, struct keys_message *out) ATTR_NODISCARD;

#endif
