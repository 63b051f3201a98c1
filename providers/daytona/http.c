/* SPDX-License-Identifier: MIT */
#include "providers/daytona/http.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "providers/daytona/http_impl.h"

enum { CONNECTIONS_MAX = 32 };

struct http_socket {
	struct list link; // http.sockets
	struct http *http;
	struct ev_io io;
};

/* ---- libcurl on the loop ---- */

static void act(struct http *http, curl_socket_t fd, int events)
{
	int running = 0;
	http->curl->multi_socket_action(http->multi, fd, events, &running);
	http_check(http);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	act(CONTAINER_OF(watcher, struct http, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct http_socket *socket = CONTAINER_OF(watcher, struct http_socket, io);
	act(socket->http, watcher->fd,
		(events & EV_READ ? CURL_CSELECT_IN : 0) |
			(events & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *data)
{
	struct http *http = data;
	ev_timer_stop(http->loop, &http->timer);
	if (timeout_ms >= 0) {
		ev_timer_set(&http->timer, (double)timeout_ms / 1000, 0);
		ev_timer_start(http->loop, &http->timer);
	}
	return 0;
}

static void socket_free(struct http_socket *socket)
{
	ev_io_stop(socket->http->loop, &socket->io);
	list_remove(&socket->link);
	free(socket);
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *data, void *of_socket)
{
	struct http *http = data;
	struct http_socket *socket = of_socket;
	if (what == CURL_POLL_REMOVE) {
		if (socket) {
			socket_free(socket);
			http->curl->multi_assign(http->multi, fd, NULL);
		}
		return 0;
	}
	if (!socket) {
		socket = mem_alloc_zero(sizeof(*socket));
		socket->http = http;
		list_append(&http->sockets, &socket->link);
		ev_io_init(&socket->io, on_socket, fd, 0);
		http->curl->multi_assign(http->multi, fd, socket);
	}
	ev_io_stop(http->loop, &socket->io);
	ev_io_set(&socket->io, fd,
		(what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	ev_io_start(http->loop, &socket->io);
	return 0;
}

/* ---- life ---- */

static void multi_init(struct http *http)
{
	const struct curl *curl = http->curl;
	http->multi = curl->multi_init();
	assert(http->multi); // out of memory aborts
	curl->multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
	curl->multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl->multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
	curl->multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	curl->multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)CONNECTIONS_MAX);
	curl->multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
}

struct http *http_create(const struct http_config *config, struct error *err)
{
	const struct curl *curl = curl_open(err);
	if (!curl) {
		return NULL;
	}
	struct http *http = mem_alloc_zero(sizeof(*http));
	http->curl = curl;
	http->loop = config->loop;
	list_init(&http->sockets);
	list_init(&http->transfers);
	ev_timer_init(&http->timer, on_timer, 0, 0);
	if (!http_read_place(http, config, err)) {
		http_destroy(http);
		return NULL;
	}
	multi_init(http);
	http_set_headers(http, config->headers);
	return http;
}

void http_set_headers(struct http *http, const char *const *headers)
{
	words_wipe_free(http->headers);
	http->headers = words_copy(headers);
}

void http_destroy(struct http *http)
{
	if (!http) {
		return;
	}
	assert(list_is_empty(&http->transfers));
	if (http->multi) {
		http->curl->multi_cleanup(http->multi);
	}
	LIST_FOR_EACH(socket, &http->sockets, struct http_socket, link) {
		socket_free(socket); // of a connection that was closed without a word
	}
	ev_timer_stop(http->loop, &http->timer);
	words_wipe_free(http->headers);
	mem_wipe_free(http->proxy); // it may have a password
	free(http->no_proxy);
	free(http->authorities);
	free(http->authorities_folder);
	free(http->host);
	free(http->url);
	free(http);
}

const char *http_host(const struct http *http)
{
	return http->host;
}
