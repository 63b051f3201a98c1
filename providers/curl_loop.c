/* SPDX-License-Identifier: MIT */
#include "providers/curl_loop.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"

struct curl_socket {
	struct list link; // curl_loop.sockets
	struct curl_loop *owner;
	struct ev_io io;
};

static void check(struct curl_loop *self)
{
	int left = 0;
	CURLMsg *message = self->curl->multi_info_read(self->multi, &left);
	for (; message; message = self->curl->multi_info_read(self->multi, &left)) {
		if (message->msg == CURLMSG_DONE) {
			char *data = NULL;
			CURLcode result = message->data.result; // freed with the transfer
			self->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &data);
			self->on_done(data, result);
		}
	}
}

static void act(struct curl_loop *self, curl_socket_t fd, int events)
{
	int running = 0;
	self->curl->multi_socket_action(self->multi, fd, events, &running);
	check(self);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
	act(CONTAINER_OF(watcher, struct curl_loop, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct curl_socket *socket = CONTAINER_OF(watcher, struct curl_socket, io);
	act(socket->owner, watcher->fd,
		(events & EV_READ ? CURL_CSELECT_IN : 0) |
			(events & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *data)
{
	struct curl_loop *self = data;
	ev_timer_stop(self->loop, &self->timer);
	if (timeout_ms >= 0) {
		ev_timer_set(&self->timer, (double)timeout_ms / 1000, 0);
		ev_timer_start(self->loop, &self->timer);
	}
	return 0;
}

static void socket_free(struct curl_socket *socket)
{
	ev_io_stop(socket->owner->loop, &socket->io);
	list_remove(&socket->link);
	free(socket);
}

static int on_socket_wanted(CURL *easy, curl_socket_t fd, int what, void *data, void *of_socket)
{
	struct curl_loop *self = data;
	struct curl_socket *socket = of_socket;
	if (what == CURL_POLL_REMOVE) {
		if (socket) {
			socket_free(socket);
			self->curl->multi_assign(self->multi, fd, NULL);
		}
		return 0;
	}
	if (!socket) {
		socket = mem_alloc_zero(sizeof(*socket));
		socket->owner = self;
		list_append(&self->sockets, &socket->link);
		ev_io_init(&socket->io, on_socket, fd, 0);
		self->curl->multi_assign(self->multi, fd, socket);
	}
	ev_io_stop(self->loop, &socket->io);
	ev_io_set(&socket->io, fd,
		(what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	ev_io_start(self->loop, &socket->io);
	return 0;
}

void curl_loop_init(struct curl_loop *self, struct ev_loop *loop, const struct curl *curl,
	long connections_max, void (*on_done)(void *data, CURLcode result))
{
	*self = (struct curl_loop){.curl = curl, .loop = loop, .on_done = on_done};
	list_init(&self->sockets);
	ev_timer_init(&self->timer, on_timer, 0, 0);
	self->multi = curl->multi_init();
	assert(self->multi); // out of memory aborts
	curl->multi_setopt(self->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
	curl->multi_setopt(self->multi, CURLMOPT_SOCKETDATA, self);
	curl->multi_setopt(self->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
	curl->multi_setopt(self->multi, CURLMOPT_TIMERDATA, self);
	curl->multi_setopt(self->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections_max);
	curl->multi_setopt(self->multi, CURLMOPT_MAXCONNECTS, connections_max);
}

void curl_loop_finish(struct curl_loop *self)
{
	if (self->multi) {
		self->curl->multi_cleanup(self->multi);
		LIST_FOR_EACH(socket, &self->sockets, struct curl_socket, link) {
			socket_free(socket); // its connection was closed without a callback
		}
		ev_timer_stop(self->loop, &self->timer);
	}
}
