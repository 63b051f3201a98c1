/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_KEYS_EXCHANGE_H
#define PROVIDERS_LOCAL_KEYS_EXCHANGE_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/secrets.h"
#include "providers/curl_loop.h"
#include "providers/local/keys/wire.h"
#include "providers/local/net/lookup.h"

/*
 * Requests from a cell's programs, in the process that holds the keys. Each connection carries one
 * request and has these states:
 *
 *    reading its head → resolving → running (libcurl sends and receives) → closing
 *
 * It reads the request only as fast as libcurl accepts it, and the answer only as fast as the
 * program accepts it.
 */
enum {
	EXCHANGES_MAX = 64,       // at once; further connections wait to be accepted
	EXCHANGE_HEAD_MS = 30000, // deadline for the head of a request
	EXCHANGE_LOOKUP_MS = 30000,
	EXCHANGE_CONNECT_MS = 20000,
	EXCHANGE_IDLE_MS =
		900000, // without a byte in either direction: models may think for minutes
	EXCHANGE_LINGER_MS = 2000, // for the program to read the last bytes
};

struct exchanges_listener {
	/* Raised once for each request that was sent on, with the result (KEYS_ANSWERED). */
	void (*on_answered)(void *data, const struct keys_message *message);
	/* Returns false if it cannot hand on the request now; then the exchange fails. */
	bool (*on_lookup)(void *data, const struct lookup_request *request);
	/* An exchange has ended, so another one may begin. */
	void (*on_ended)(void *data);
};

/* Everything is borrowed until the process ends. */
struct exchanges {
	struct ev_loop *loop;
	struct curl_loop curl;
	struct curl_blob authorities; // PEM
	const struct keys_start *start;
	struct secrets *secrets[KEYS_MAX]; // of each key, to find the key in an answer
	const struct exchanges_listener *listener;
	void *data;
	struct list list; // of struct exchange
	size_t count;
	uint32_t last_id;
};

/* The caller sets the loop, the authorities, the start, the listener and its data before. */
void exchanges_init(struct exchanges *exchanges, const struct curl *curl);

/* Adds a connection that was accepted at the socket of a key. Takes over the descriptor. */
void exchanges_add(struct exchanges *exchanges, int client, size_t index);

void exchanges_found(struct exchanges *exchanges, const struct lookup_answer *answer);

#endif
