/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_door.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/io.h"
#include "base/log.h"
#include "base/random.h"
#include "base/soon.h"
#include "base/text.h"
#include "base/words.h"

enum { SECRET_DIGITS = 32, BACKLOG = 16, PAUSE_MS = 100 };

struct mcp_door {
	struct ev_loop *loop;
	const struct mcp_door_listener *listener;
	const struct json_places *checked;
	ev_io io;
	ev_timer pause; // while it runs, no connection is accepted
	char *socket;   // owned; its path
	struct list places;
	struct list strangers; // of struct mcp_client
	int stranger_count;
	struct list closed; // of struct mcp_client, to be freed
	struct soon freeing;
};

struct mcp_place {
	struct list link; // mcp_door.places
	struct mcp_door *door;
	void *data;
	char secret[SECRET_DIGITS + 1];
	struct list clients; // of struct mcp_client
	int client_count;
};

/* ---- clients ---- */

static void client_close(struct mcp_client *client)
{
	struct mcp_door *door = client->door;
	if (client->is_closed) {
		return;
	}
	client->is_closed = true;
	if (client->place) {
		client->place->client_count--;
	} else {
		door->stranger_count--;
	}
	client->place = NULL;
	ev_timer_stop(door->loop, &client->hello);
	link_close(&client->line);
	list_remove(&client->link);
	list_append(&door->closed, &client->link);
	soon_start(&door->freeing);
}

static void free_closed(struct soon *soon)
{
	struct mcp_door *door = CONTAINER_OF(soon, struct mcp_door, freeing);
	LIST_FOR_EACH(client, &door->closed, struct mcp_client, link) {
		list_remove(&client->link);
		link_finish(&client->line);
		free(client);
	}
}

static void client_gone(struct mcp_client *client)
{
	const struct mcp_place *place = client->place;
	if (place) {
		client->door->listener->on_gone(place->data, client);
	}
	client_close(client);
}

/* Nothing was sent to it before, so this fits into the socket. The program shows it and ends. */
static void client_refuse(struct mcp_client *client, const char *why)
{
	char text[256];
	text_format(text, sizeof(text),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"%s\"}}"
		"\n",
		why);
	(void)!send(client->line.out, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	log_info("mcp-exec: a client was refused: %s", why);
	client_close(client);
}

/* Takes the same time whichever byte differs. */
static bool is_secret(const struct mcp_place *place, struct span line)
{
	unsigned char difference = 0;
	if (line.len != SECRET_DIGITS + 2) { // with its quotes
		return false;
	}
	for (size_t i = 0; i < SECRET_DIGITS; i++) {
		difference |= (unsigned char)(line.data[i + 1] ^ place->secret[i]);
	}
	return difference == 0;
}

static void take_secret(struct mcp_client *client, const struct frame *frame)
{
	struct mcp_door *door = client->door;
	struct mcp_place *found = NULL;
	LIST_FOR_EACH(place, &door->places, struct mcp_place, link) {
		if (frame->kind == FRAME_MESSAGE && is_secret(place, frame->bytes)) {
			found = place;
		}
	}
	if (!found) {
		client_refuse(client, "the session of this server has ended");
	} else if (found->client_count >= MCP_CLIENTS_MAX) {
		client_refuse(client, "the session has too many connections to this server");
	} else {
		ev_timer_stop(door->loop, &client->hello);
		door->stranger_count--;
		found->client_count++;
		client->place = found;
		list_remove(&client->link);
		list_append(&found->clients, &client->link);
	}
}

/* Its input has ended: it goes with its last answer. */
static void leave(struct mcp_client *client)
{
	if (client->has_ended && client->awaited == 0 && !client->is_closed) {
		link_finish_output(&client->line);
	}
}

void mcp_client_await(struct mcp_client *client)
{
	client->awaited++;
}

void mcp_client_await_no_more(struct mcp_client *client)
{
	client->awaited--;
	leave(client);
}

static bool on_frame(void *data, const struct frame *frame)
{
	struct mcp_client *client = data;
	if (link_is_over(&client->line)) {
		return false; // until it has read its answers
	}
	if (client->has_ended) {
		return true;
	}
	if (client->place && frame->kind == FRAME_MESSAGE && span_is(frame->bytes, MCP_END_LINE)) {
		client->has_ended = true;
		leave(client);
	} else if (client->place) {
		client->door->listener->on_line(client->place->data, client, frame);
	} else {
		take_secret(client, frame);
	}
	return true;
}

static void on_end(void *data, const struct error *err)
{
	client_gone(data);
}

static void on_drained(void *data)
{
	struct mcp_client *client = data;
	link_resume(&client->line);
}

static void on_flushed(void *data)
{
	client_gone(data);
}

static const struct link_listener line_listener = {.on_frame = on_frame,
	.on_end = on_end,
	.on_broken = on_end,
	.on_drained = on_drained,
	.on_flushed = on_flushed};

static void on_hello_due(struct ev_loop *loop, ev_timer *timer, int events)
{
	client_refuse(CONTAINER_OF(timer, struct mcp_client, hello),
		"the program has not shown the secret of its session");
}

static void client_create(struct mcp_door *door, int fd)
{
	int out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (out < 0) {
		close(fd);
		return;
	}
	struct mcp_client *client = mem_alloc_zero(sizeof(*client));
	const struct link_config config = {.loop = door->loop,
		.places = door->checked,
		.max_message = MCP_LINE_MAX,
		.max_queue = MCP_QUEUE_MAX,
		.listener = &line_listener,
		.data = client};
	client->door = door;
	list_append(&door->strangers, &client->link);
	door->stranger_count++;
	ev_timer_init(&client->hello, on_hello_due, MCP_HELLO_MS / 1000., 0.);
	ev_timer_start(door->loop, &client->hello);
	link_init(&client->line, &config);
	link_connect(&client->line, fd, out);
	if (door->stranger_count > MCP_STRANGERS_MAX) {
		client_refuse(client, "too many programs connect at once");
	}
}

void mcp_client_send(struct mcp_client *client, struct buf *message)
{
	if (!client->is_closed) {
		link_send_taken(&client->line, message);
	}
	buf_clear(message);
}

/* ---- the door ---- */

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	ev_io_start(loop, &CONTAINER_OF(timer, struct mcp_door, pause)->io);
}

static void on_connection(struct ev_loop *loop, ev_io *io, int events)
{
	struct mcp_door *door = CONTAINER_OF(io, struct mcp_door, io);
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		client_create(door, fd);
	} else if (!io_is_transient(errno)) {
		ev_io_stop(loop, io); // too many open files, for example
		ev_timer_set(&door->pause, PAUSE_MS / 1000., 0.);
		ev_timer_start(loop, &door->pause);
	}
}

/*
 * The folder keeps other users out. In a cell the agent may have another user, and only the socket
 * is there, not the folder. So everybody may connect who finds the socket.
 */
static int listen_at(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!text_whole(address.sun_path, sizeof(address.sun_path), "%s", path)) {
		error_set(err, ERROR_LIMIT, "the path of the socket is too long: %s", path);
		return -1;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
		chmod(path, 0666) == 0 && listen(fd, BACKLOG) == 0) {
		return fd;
	}
	int errnum = errno;
	fd_close(&fd);
	error_set_errno(err, errnum, "listening at %s", path);
	return -1;
}

struct mcp_door *mcp_door_create(struct ev_loop *loop, const char *socket,
	const struct json_places *checked, const struct mcp_door_listener *listener,
	struct error *err)
{
	int fd = listen_at(socket, err);
	if (fd < 0) {
		return NULL;
	}
	struct mcp_door *door = mem_alloc_zero(sizeof(*door));
	door->loop = loop;
	door->listener = listener;
	door->checked = checked;
	door->socket = mem_strdup(socket);
	list_init(&door->places);
	list_init(&door->strangers);
	list_init(&door->closed);
	soon_init(&door->freeing, loop, free_closed);
	ev_init(&door->pause, on_pause);
	ev_io_init(&door->io, on_connection, fd, EV_READ);
	ev_io_start(loop, &door->io);
	return door;
}

void mcp_door_destroy(struct mcp_door *door)
{
	if (!door) {
		return;
	}
	assert(list_is_empty(&door->places));
	LIST_FOR_EACH(client, &door->strangers, struct mcp_client, link) {
		client_close(client);
	}
	free_closed(&door->freeing);
	soon_stop(&door->freeing);
	ev_timer_stop(door->loop, &door->pause);
	io_close(door->loop, &door->io);
	unlink(door->socket);
	free(door->socket);
	free(door);
}

/* ---- places ---- */

struct mcp_place *mcp_place_open(struct mcp_door *door, void *data)
{
	struct mcp_place *place = mem_alloc_zero(sizeof(*place));
	place->door = door;
	place->data = data;
	random_fill_hex(place->secret, SECRET_DIGITS);
	list_init(&place->clients);
	list_append(&door->places, &place->link);
	return place;
}

void mcp_place_close(struct mcp_place *place)
{
	if (!place) {
		return;
	}
	LIST_FOR_EACH(client, &place->clients, struct mcp_client, link) {
		client_close(client);
	}
	list_remove(&place->link);
	explicit_bzero(place->secret, sizeof(place->secret));
	free(place);
}

void mcp_place_entry(const struct mcp_place *place, const char *program, struct mcp_server *entry)
{
	char text[512];
	*entry = (struct mcp_server){.name = mem_strdup(MCP_SERVER_NAME),
		.type = MCP_STDIO,
		.command = mem_strdup(program)};
	words_append(&entry->args, MCP_CONNECT_WORD);
	text_format(text, sizeof(text), MCP_SOCKET_VARIABLE "=%s", place->door->socket);
	words_append(&entry->env, text);
	text_format(text, sizeof(text), MCP_SECRET_VARIABLE "=%s", place->secret);
	words_append(&entry->env, text);
	explicit_bzero(text, sizeof(text));
}
