/* SPDX-License-Identifier: MIT */
#include "tests/unit/daytona_server_fixture.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/list.h"

enum { ANSWERS_MAX = 128, REQUESTS_MAX = 128, REQUEST_MAX = 2 << 20 };

struct answer {
	struct buf bytes;
	enum server_then then;
};

struct connection {
	struct list link; // server.connections
	struct ev_io io;
	struct buf in, out;
	enum server_then then;
	bool is_answering;
};

static struct {
	struct ev_loop *loop;
	struct ev_io accepting;
	struct list connections;
	struct answer answers[ANSWERS_MAX];
	size_t answer_count, answer_next;
	char *requests[REQUESTS_MAX];
	size_t request_count, accepted;
	int port;
} server;

static void connection_free(struct connection *connection)
{
	ev_io_stop(server.loop, &connection->io);
	close(connection->io.fd);
	list_remove(&connection->link);
	buf_finish(&connection->in);
	buf_finish(&connection->out);
	free(connection);
}

static void watch(struct connection *connection, int events)
{
	int fd = connection->io.fd;
	ev_io_stop(server.loop, &connection->io);
	ev_io_set(&connection->io, fd, events);
	ev_io_start(server.loop, &connection->io);
}

/* The length of the whole request at the beginning of the bytes; 0 if more bytes have to come. */
static size_t request_length(struct span bytes)
{
	const char *end = bytes.len > 0 ? memmem(bytes.data, bytes.len, "\r\n\r\n", 4) : NULL;
	if (!end) {
		return 0;
	}
	size_t head = (size_t)(end + 4 - bytes.data);
	size_t body = 0;
	for (size_t i = 0; i + 15 < head; i++) {
		if (strncasecmp(bytes.data + i, "\ncontent-length:", 16) == 0) {
			body = strtoul(bytes.data + i + 16, NULL, 10);
		}
	}
	return bytes.len >= head + body ? head + body : 0;
}

static void answer_next(struct connection *connection)
{
	size_t len = request_length(buf_span(&connection->in));
	if (len == 0) {
		return;
	}
	assert(server.request_count < REQUESTS_MAX);
	server.requests[server.request_count++] =
		mem_strndup((struct span){buf_span(&connection->in).data, len});
	buf_consume(&connection->in, len);
	connection->is_answering = true;
	if (server.answer_next == server.answer_count) {
		connection->then = SERVER_HANG; // more requests than queued answers
		return;
	}
	struct answer *answer = &server.answers[server.answer_next++];
	connection->then = answer->then;
	buf_move(&connection->out, &answer->bytes);
	watch(connection, EV_WRITE);
}

static void on_writable(struct connection *connection)
{
	struct span bytes = buf_span(&connection->out);
	ssize_t count =
		bytes.len > 0 ? send(connection->io.fd, bytes.data, bytes.len, MSG_NOSIGNAL) : 0;
	if (count < 0) {
		if (errno != EAGAIN) {
			connection_free(connection);
		}
		return;
	}
	buf_consume(&connection->out, (size_t)count);
	if (connection->out.len > 0) {
		return;
	}
	if (connection->then == SERVER_CLOSE) {
		connection_free(connection);
		return;
	}
	connection->is_answering = connection->then == SERVER_HANG;
	watch(connection, EV_READ);
	if (!connection->is_answering) {
		answer_next(connection);
	}
}

static void on_readable(struct connection *connection)
{
	char bytes[16384];
	ssize_t count = recv(connection->io.fd, bytes, sizeof(bytes), 0);
	if (count <= 0) {
		if (count == 0 || errno != EAGAIN) {
			connection_free(connection);
		}
		return;
	}
	bool ok = buf_append(&connection->in, (struct span){bytes, (size_t)count}, NULL);
	assert(ok);
	(void)ok;
	if (!connection->is_answering) {
		answer_next(connection);
	}
}

static void on_ready(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	struct connection *connection = CONTAINER_OF(watcher, struct connection, io);
	if (events & EV_WRITE) {
		on_writable(connection);
	} else {
		on_readable(connection);
	}
}

static void on_accept(struct ev_loop *loop, struct ev_io *watcher, int events)
{
	int fd = accept4(watcher->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		return;
	}
	struct connection *connection = mem_alloc_zero(sizeof(*connection));
	buf_init(&connection->in, REQUEST_MAX);
	buf_init(&connection->out, SIZE_MAX);
	ev_io_init(&connection->io, on_ready, fd, EV_READ);
	ev_io_start(loop, &connection->io);
	list_append(&server.connections, &connection->link);
	server.accepted++;
}

void server_begin(struct ev_loop *loop)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	          listen(fd, 64) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0;
	assert(ok);
	(void)ok;
	server.loop = loop;
	server.port = ntohs(address.sin_port);
	list_init(&server.connections);
	ev_io_init(&server.accepting, on_accept, fd, EV_READ);
	ev_io_start(loop, &server.accepting);
}

void server_end(void)
{
	LIST_FOR_EACH(connection, &server.connections, struct connection, link) {
		connection_free(connection);
	}
	ev_io_stop(server.loop, &server.accepting);
	close(server.accepting.fd);
	for (size_t i = server.answer_next; i < server.answer_count; i++) {
		buf_finish(&server.answers[i].bytes);
	}
	for (size_t i = 0; i < server.request_count; i++) {
		free(server.requests[i]);
	}
	memset(&server, 0, sizeof(server));
}

int server_port(void)
{
	return server.port;
}

static struct answer *answer_add(enum server_then then)
{
	assert(server.answer_count < ANSWERS_MAX);
	struct answer *answer = &server.answers[server.answer_count++];
	buf_init(&answer->bytes, SIZE_MAX);
	answer->then = then;
	return answer;
}

void server_will(const char *bytes, enum server_then then)
{
	bool ok = buf_append(&answer_add(then)->bytes, span_of(bytes), NULL);
	assert(ok);
	(void)ok;
}

void server_will_answer(int status, const char *headers, const char *body)
{
	bool ok = buf_append_format(&answer_add(SERVER_KEEP)->bytes, NULL,
		"HTTP/1.1 %d Status\r\nContent-Type: application/json; charset=utf-8\r\n"
		"Content-Length: %zu\r\n%s\r\n%s",
		status, strlen(body), headers, body);
	assert(ok);
	(void)ok;
}

void server_will_flood(const char *head, const char *piece, size_t size)
{
	struct answer *answer = answer_add(SERVER_CLOSE);
	bool ok = buf_append(&answer->bytes, span_of(head), NULL);
	while (ok && answer->bytes.len < size) {
		ok = buf_append(&answer->bytes, span_of(piece), NULL);
	}
	assert(ok);
}

size_t server_count(void)
{
	return server.request_count;
}

const char *server_request(size_t number)
{
	return number < server.request_count ? server.requests[number] : "";
}

size_t server_connections(void)
{
	return server.accepted;
}

size_t server_open(void)
{
	size_t count = 0;
	LIST_FOR_EACH(connection, &server.connections, struct connection, link) {
		count++;
	}
	return count;
}
