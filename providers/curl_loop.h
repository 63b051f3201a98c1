/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CURL_LOOP_H
#define PROVIDERS_CURL_LOOP_H

#include <ev.h>

#include "base/list.h"
#include "providers/curl.h"

/* libcurl's transfers on a libev loop. Loop thread only. */
struct curl_loop {
	const struct curl *curl;
	struct ev_loop *loop;
	CURLM *multi;
	struct ev_timer timer; // libcurl's next deadline
	struct list sockets;   // of struct curl_socket
	/*
	 * A transfer has ended; `data` is its CURLINFO_PRIVATE. Never called from a callback of
	 * libcurl, so the transfer may be removed here.
	 */
	void (*on_done)(void *data, CURLcode result);
};

/* Opens at most `connections_max` connections at a time. Aborts if there is no memory. */
void curl_loop_init(struct curl_loop *self, struct ev_loop *loop, const struct curl *curl,
	long connections_max, void (*on_done)(void *data, CURLcode result));

/* Call it after all transfers were removed. */
void curl_loop_finish(struct curl_loop *self);

#endif
